"""What providers promise of their volumes, instances and drives, as values."""
