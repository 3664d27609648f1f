"""Actions of the dashboard's keys, a part of the application each."""
