"""Keys of a screen in a browser: those that write files do nothing there."""

from __future__ import annotations

from iopstui.ui.actions import Action, Part

FILE_ACTIONS = frozenset({"save", "record", "report", "picture"})
"""They write into the directory that the server was started in."""
NOT_HERE = "Not available in the browser: it would write a file on the server."


class BrowserKeys(Part):
    """Refuses actions that a browser page must not do; it has no keys of its own."""

    HIDES = FILE_ACTIONS

    def refuses(self, action: Action) -> bool:
        """Refuse to write files."""
        if action.id in FILE_ACTIONS:
            self.port.show_message("info", NOT_HERE)
        return action.id in self.HIDES
