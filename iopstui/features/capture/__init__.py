"""Capture what applications ask of a disk, and write a fio job that asks the same of it."""
