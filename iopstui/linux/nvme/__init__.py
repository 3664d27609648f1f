"""What an NVMe drive says of itself: log pages, Identify and features, read only."""
