"""What fills the terminal: picker, dashboard, job chooser, help, log."""
