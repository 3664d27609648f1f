"""The live screen and its panels."""
