"""What the flight recorder adds to commands of the core."""
