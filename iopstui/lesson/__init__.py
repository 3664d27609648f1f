"""Lessons carried out: the player, its pages, the shipped files."""
