"""Capture the requests that applications send to a disk, and write a fio job that sends similar
ones."""
