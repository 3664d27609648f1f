"""Playing lessons: the player, its pages, the shipped files."""
