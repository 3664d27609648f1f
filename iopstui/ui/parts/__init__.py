"""The keys of the dashboard and their actions; each module is one part of the application."""
