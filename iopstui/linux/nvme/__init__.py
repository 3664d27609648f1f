"""What an NVMe drive reports about itself: log pages, Identify and features, read-only."""
