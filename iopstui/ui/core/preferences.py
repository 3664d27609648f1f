"""Preferences of the user for the screen, kept for the next start."""

from __future__ import annotations

from collections.abc import Callable

BROWSER_DRIVER = "iopstui.ui.core.terminal.browser_driver:BrowserDriver"
"""TEXTUAL_DRIVER of a screen that `iopstui serve` shows in a browser."""


class Preferences:
    """``remember`` writes a key of the configuration file; it raises OSError."""

    def __init__(self) -> None:
        self.mouse = True
        """Whether the mouse is used."""
        self.notify = False
        """Whether the terminal notifies of ends of runs and of findings (OSC 9)."""
        self.layout = ""
        """The dashboard's layout (saved_layout.py) in the configuration."""
        self.fleet_layout = ""
        """The layout of a fleet's dashboard (its feature checks it)."""
        self.previewing = False
        """True while a choice is only previewed, not saved."""
        self.remember: Callable[[str, str | bool], object] = lambda key, value: None


PREFERENCES = Preferences()
"""The preferences of this process: there is one terminal, and one configuration."""
