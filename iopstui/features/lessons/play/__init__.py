"""Play lessons: the player, its pages and the shipped files."""
