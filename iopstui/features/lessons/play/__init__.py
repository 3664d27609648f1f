"""Play lessons: the player, its state, its texts, and the shipped lessons."""
