"""The figures of every subject (disks, CPUs ...), each declared once, as a row."""
