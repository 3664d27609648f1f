"""The screen. Only this package imports textual, rich and plotext."""
