"""Captures what applications ask of a disk, and makes a fio job like it."""
