"""The counters of /proc and cgroups that every tick reads."""
