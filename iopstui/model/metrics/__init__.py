"""Frames and the figures of a run: what happened between two samples."""
