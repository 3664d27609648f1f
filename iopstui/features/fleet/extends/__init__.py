"""What a fleet adds to commands of one machine."""
