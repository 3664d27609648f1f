"""Block devices, their queues and interrupts, and who uses them."""
