"""Many hosts on the screen: their totals on the dashboard, a list or a map of the hosts, and any
single host."""
