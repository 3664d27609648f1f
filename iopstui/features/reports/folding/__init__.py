"""Add up the frames of a recording in blocks, in one process or several."""
