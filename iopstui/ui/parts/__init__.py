"""The actions of the dashboard's keys; each module is one part of the application."""
