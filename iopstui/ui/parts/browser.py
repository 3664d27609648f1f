"""Keys of a screen in a browser: those that write files do nothing there."""

from __future__ import annotations

from iopstui.ui.actions import Action, Part

FILE_ACTIONS = frozenset({"record", "report", "picture"})
"""They write into the directory that the server was started in."""
ONE_TARGET = "choose_device"
NOT_HERE = "Not available in the browser: it would write a file on the server."
ONE_TARGET_HERE = "Not available in the browser: viewers follow this target."


class BrowserKeys(Part):
    """Refuses actions that a page must not do; it has no keys of its own."""

    HIDES = FILE_ACTIONS | {ONE_TARGET}

    def refuses(self, action: Action) -> bool:
        """Refuse to write files, and to change the target that viewers follow."""
        if action.id in FILE_ACTIONS:
            self.port.show_message("info", NOT_HERE)
        elif action.id == ONE_TARGET:
            self.port.show_message("info", ONE_TARGET_HERE)
        return action.id in self.HIDES
