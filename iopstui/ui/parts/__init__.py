"""What the keys of the dashboard do, a part of the application each."""
