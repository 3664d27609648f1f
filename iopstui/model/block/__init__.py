"""Block devices as values: queues, CPUs, interrupts, settings, targets."""
