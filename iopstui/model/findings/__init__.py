"""What the evidence of some seconds shows, in sentences with their numbers."""
