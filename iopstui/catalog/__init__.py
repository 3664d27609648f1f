"""Files with the figures that providers promise, and a guess which of them fit this machine."""
