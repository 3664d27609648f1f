"""A tick: the readings and conclusions of each second."""
