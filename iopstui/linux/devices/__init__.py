"""Block devices, their queues, interrupts and targets."""
