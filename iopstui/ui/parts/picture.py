"""Key S: save the screen as a picture and as text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from iopstui.text import printable
from iopstui.ui.actions import ANYWHERE, BOTH_SCREENS, Action, Part
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

    ACTIONS = (
        Action(
            "picture", (Key("S", "S"),), picture, title="Save the screen",
            note="as SVG and text, in the current directory",
            scope=ANYWHERE, offered_on=BOTH_SCREENS,
        ),
    )  # fmt: skip
