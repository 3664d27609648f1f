"""Many hosts: their seconds added up, an agent on each, and what launches and starts them."""
