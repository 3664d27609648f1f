"""Key S: record, write a report, or keep a picture of the screen."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import iopstui
from iopstui import format as f
from iopstui.discovery import command_modules
from iopstui.errors import IopstuiError
from iopstui.recording.writer import next_free_path
from iopstui.text import printable
from iopstui.ui.actions import (
    ALL_SCREENS,
    ANYWHERE,
    BOTH_SCREENS,
    EXPERIMENT,
    FIRST_QUIET_POSITION,
    IDLE,
    LESSON,
    OVER_EXPERIMENT,
    REPLAY,
    RUNNING,
    Action,
    Footer,
    Part,
)
from iopstui.ui.core.key import Key
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.session.live import LiveSession


REPORTS = "report" in command_modules()
"""Whether this program has the command `report`."""
REPORT_TITLE = "HTML report"
REPORT_WORD = "report, " if REPORTS else ""
REPORT_HELP = (
    ", an HTML report of the recording, the replay or the last 10 minutes" if REPORTS else ""
)
NOTHING_YET = "Nothing measured yet: no report."
TOAST_S = 3.0
"""How many seconds a message covers the screen below it."""
NAME = "iopstui-%Y%m%d-%H%M%S.iops"


class RecordKeys(Part):
    """The key S: starts and stops a recording, and writes a report of it."""

    def __init__(self, port: Port, take_picture: Callable[[], None]) -> None:
        super().__init__(port)
        self._take_picture = take_picture
        # the last recording, if no report of it was written yet
        self._last_recording: Path | None = None

    @property
    def recording(self) -> bool:
        session = self.port.live
        return session is not None and session.recording is not None

    def save(self) -> None:
        from iopstui.ui.dialogs.questions import Choice

        recording = "End the recording" if self.recording else "Record all measurements in a file"
        choices: dict[str, Callable[[], None]] = {
            **({REPORT_TITLE: self.report} if REPORTS else {}),
            "Picture of the screen": self._take_picture,
        }
        if self.port.live is not None:
            choices = {recording: self.record} | choices
        self.port.push(
            Choice("Save in the current directory", tuple(choices), "", self.port.charset),
            lambda chosen: choices[chosen]() if chosen is not None else None,
        )

    def record(self) -> None:
        session = self.port.live
        if session is None:
            return
        # the session then sends a notice, after which the footer's keys are updated
        if session.recording is not None:
            self._last_recording = session.recording
            session.stop_recording()
            return
        try:
            session.record(Path.cwd() / time.strftime(NAME))
        except IopstuiError as error:
            self.port.show_message("error", error.full_text)

    def report(self) -> None:
        """Write an HTML report of the recording that is being made or played; without one, of the
        recording that has just ended, else of the last minutes."""
        port, session = self.port, self.port.live
        if port.replay_path is not None:
            output = _free(Path.cwd() / f"{port.replay_path.stem}.html")
            work = self._write_report(port.replay_path, output)
        elif session is None:
            return
        elif (recording := session.recording or self._last_recording) is not None:
            self._last_recording = None
            work = self._write_report(recording, recording.with_suffix(".html"))
        else:
            work = self._report_last(session)
        port.show_message("info", "Writing the report ...")
        port.run_in_background(work, "report")

    async def _report_last(self, session: LiveSession) -> None:
        """Write a report of the last minutes, which are in memory. They are saved first, because a
        report is made from a file."""
        recording = Path.cwd() / time.strftime(NAME)
        try:
            seconds = await asyncio.to_thread(session.save_kept, recording)
        except IopstuiError as error:
            self.port.show_message("error", error.full_text)
            return
        if seconds is None:
            self.port.show_message("info", NOTHING_YET)
            return
        period = f" of the last {f.clock(seconds)}"
        await self._write_report(recording, recording.with_suffix(".html"), period)

    async def _write_report(self, recording: Path, output: Path, period: str = "") -> None:
        """Write a report in a separate process, because a long recording takes a while, and
        measuring continues."""
        # so that the child imports the same program, wherever that was started from
        environment = {**os.environ, "PYTHONPATH": str(Path(iopstui.__file__).parent.parent)}
        try:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "iopstui", "report", str(recording), "-o", str(output),
                env=environment, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            _, stderr = await child.communicate()
        except OSError as error:
            self.port.show_message("error", f"Cannot write the report: {error.strerror or error}.")
            return
        if child.returncode:
            text = " ".join(stderr.decode(errors="replace").split()).removeprefix("iopstui: ")
            self.port.show_message("error", printable(f"Cannot write the report. {text}"))
        else:
            self.port.show_message("info", printable(f"Report{period}: {output}"))

    REPORT: ClassVar[Action] = Action(
        "report", (Key("", "", title=REPORT_TITLE),), report,
        note="of the recording, or of the last 10 minutes", scope=OVER_EXPERIMENT,
        offered_on=BOTH_SCREENS,
    )  # fmt: skip
    ACTIONS: ClassVar[tuple[Action, ...]] = (
        Action(
            "save", (Key("S", "S"),), save, title=f"Save: recording, {REPORT_WORD}picture",
            help="save in the current directory: start or stop a recording (for iopstui replay; "
                 f"after a change of device it continues in FILE-2){REPORT_HELP}, or a picture of "
                 "the screen. In a list: a picture", place=80,
            footer=(
                # first in the footer while recording, so that the user does not forget it
                Footer("● End recording",
                       {IDLE: 0, RUNNING: 0, EXPERIMENT: 0, LESSON: FIRST_QUIET_POSITION},
                       when=lambda record: record.recording),
                Footer("Save", {IDLE: 900, RUNNING: 900, REPLAY: 905},
                       when=lambda record: not record.recording),
            ),
            scope=OVER_EXPERIMENT, offered_on=BOTH_SCREENS,
        ),
        Action(
            "record", (Key("", "", title="Record"),), record,
            note="record all measurements in a file", scope=OVER_EXPERIMENT,
            offered_on=BOTH_SCREENS, measures=True,
        ),
        *((REPORT,) if REPORTS else ()),
    )  # fmt: skip


def _free(path: Path) -> Path:
    """``path``, or a numbered variant of it if that file exists."""
    return next_free_path(path) if os.path.lexists(path) else path


# Keys S and y: save the screen as a picture and as text, or copy the main part of it.


class PictureKeys(Part):
    """Saves pictures of the screen in the current directory, and copies text."""

    def picture(self) -> None:
        """Save a picture of the current screen."""
        # render now, and write the files in the background
        name = time.strftime("iopstui-%Y%m%d-%H%M%S")
        self.port.run_in_background(self._save(name, self.port.pictures()), "picture")

    async def _save(self, name: str, files: Mapping[str, str]) -> None:
        from iopstui.ui.core.clipboard import save_pictures

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
        """Copy the main part of the page, or the row under the cursor."""
        from iopstui.ui.core.clipboard import MAX_CHARACTERS, copied_message, text_of

        lines = text_of(self.port.screen).split("\n")
        text = "\n".join(one if one.isprintable() else printable(one) for one in lines)
        text = text[:MAX_CHARACTERS]
        self.port.copy(text)
        message = copied_message(text) if text else "nothing to copy here"
        if self.port.is_shown(self.port.dashboard):
            self.port.show_message("info", message)
        else:
            self.port.screen.notify(message, timeout=TOAST_S, markup=False)

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
            footer=(Footer("Copy", {IDLE: 27, RUNNING: 62, REPLAY: 62}),),
            scope=ANYWHERE, offered_on=ALL_SCREENS,
        ),
    )  # fmt: skip


# In a browser, keys that write files do nothing.


FILE_ACTIONS = frozenset({"save", "record", "report", "picture"})
"""Actions that write to the directory in which the server was started."""
NOT_HERE = "Not available in the browser: it would write a file on the server."


class BrowserKeys(Part):
    """Refuses actions that a browser page must not do; it has no keys of its own."""

    HIDES = FILE_ACTIONS

    def refuses(self, action: Action) -> bool:
        if action.id in FILE_ACTIONS:
            self.port.show_message("info", NOT_HERE)
        return action.id in self.HIDES
