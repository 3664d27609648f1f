"""What the parts of the screen are made of: actions and the port to the application."""
