"""The panels of the dashboard: figures of fio, the kernel and the CPUs in one second, and the
runs."""
