"""Many hosts on the screen: their totals on the dashboard, a row or a map of all, and any single
host."""
