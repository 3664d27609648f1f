"""The screen: the only importer of textual, rich and plotext."""
