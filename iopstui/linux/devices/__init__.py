"""Block devices, their queues, interrupts and users."""
