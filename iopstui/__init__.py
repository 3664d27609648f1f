"""iopstui: the oscilloscope for block I/O (fio and the kernel, side by side)."""

__version__ = "0.1.0"
