"""Translates DISKSPD's command lines into fio jobs."""
