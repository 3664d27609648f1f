"""fio as a program: its fence, its guard, its stream, its jobs."""
