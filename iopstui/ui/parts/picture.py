"""Keys S and y: save the screen as a picture and as text, copy what matters on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from iopstui.text import printable
from iopstui.ui.actions import ALL_SCREENS, ANYWHERE, Action, Part
from iopstui.ui.core.key import Key


class PictureKeys(Part):
    """Writes pictures into the current directory."""

    def picture(self) -> None:
        """Save the current screen."""
        # rendered at once; only the files are written in the background
        name = time.strftime("iopstui-%Y%m%d-%H%M%S")
        self.port.run_in_background(self._save(name, self.port.pictures()), "picture")

    async def _save(self, name: str, files: Mapping[str, str]) -> None:
        from iopstui.ui.core.picture import save_pictures

        try:
            directory = Path.cwd()
            paths = await asyncio.to_thread(save_pictures, directory, name, files)
        except OSError as error:
            why = error.strerror or str(error)
            text = f"Cannot save the screen in the current directory: {why}"
            self.port.show_message("error", printable(text))
            return
        names = " and ".join([paths[0].name, *(path.suffix for path in paths[1:])])
        self.port.show_message("info", printable(f"Screen saved: {names} in {directory}"))

    def copy(self) -> None:
        """Copy the answer, the page or the row under the cursor."""
        from iopstui.ui.core.clipboard import MAX_CHARACTERS, copied_message, text_of

        lines = text_of(self.port.screen).split("\n")
        text = "\n".join(one if one.isprintable() else printable(one) for one in lines)
        text = text[:MAX_CHARACTERS]
        self.port.copy(text)
        message = copied_message(text) if text else "nothing to copy here"
        if self.port.is_shown(self.port.dashboard):
            self.port.show_message("info", message)
        else:
            self.port.screen.notify(message, markup=False)

    ACTIONS = (
        Action(
            "picture", (Key("S", "S"),), picture, title="Save the screen",
            note="as SVG and text, in the current directory",
            scope=ANYWHERE, offered_on=ALL_SCREENS,
        ),
        Action(
            "copy", (Key("y", "y"),), copy, title="Copy as text",
            note="the answer and findings; in a list its row or page",
            help="copy as text: the answer, findings and the last run; in a list the row under the "
                 "cursor, on a page all of it (OSC 52: the terminal must allow it)", place=250,
            scope=ANYWHERE, offered_on=ALL_SCREENS,
        ),
    )  # fmt: skip
