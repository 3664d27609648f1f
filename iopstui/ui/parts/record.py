"""Keys R and H: record what is measured from now on, and write a report of it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import iopstui
from iopstui.errors import IopstuiError
from iopstui.text import printable
from iopstui.ui.actions import (
    BOTH_SCREENS,
    EXPERIMENT,
    IDLE,
    LESSON,
    OVER_EXPERIMENT,
    QUIET_FROM,
    RUNNING,
    Action,
    Footer,
    Part,
)
from iopstui.ui.core.key import Key
from iopstui.ui.port import Port

NOTHING_RECORDED = "Nothing recorded yet. R starts a recording, H then writes the report."


class RecordKeys(Part):
    """Starts and stops a recording, and has a report of it written."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        # the newest recording of this screen
        self._newest: Path | None = None

    @property
    def recording(self) -> bool:
        """True while a recording is made."""
        session = self.port.live
        return session is not None and session.recording is not None

    def record(self) -> None:
        """Start a recording, or stop the one that was started."""
        session = self.port.live
        if session is None:
            return
        # a notice of the session follows, and the footer's keys with it
        if session.recording is not None:
            self._newest = session.recording
            session.stop_recording()
            return
        try:
            session.record(Path.cwd() / time.strftime("iopstui-%Y%m%d-%H%M%S.iops"))
        except IopstuiError as error:
            self.port.say("error", f"{error.message} {error.hint}".strip())

    def report(self) -> None:
        """Write an HTML report of what was recorded, beside the recording."""
        session = self.port.live
        recording = (session.recording if session is not None else None) or self._newest
        if recording is None:
            self.port.say("info", NOTHING_RECORDED)
            return
        self.port.say("info", "Writing the report ...")
        self.port.work(self._write_report(recording), "report")

    async def _write_report(self, recording: Path) -> None:
        """In a process of its own: a long recording takes a while, and measuring goes on."""
        output = recording.with_suffix(".html")
        # the very same program, wherever it was started from
        environment = {**os.environ, "PYTHONPATH": str(Path(iopstui.__file__).parent.parent)}
        try:
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "iopstui", "report", str(recording), "-o", str(output),
                env=environment, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            _, said = await child.communicate()
        except OSError as error:
            self.port.say("error", f"Cannot write the report: {error.strerror or error}.")
            return
        if child.returncode:
            words = " ".join(said.decode(errors="replace").split()).removeprefix("iopstui: ")
            self.port.say("error", printable(f"Cannot write the report. {words}"))
        else:
            self.port.say("info", printable(f"Report: {output}"))

    ACTIONS = (
        Action(
            "record", (Key("R", "R"),), record, title="Record",
            note="record all measurements in a file",
            help="start or stop recording to a file in the current directory (for "
                 "iopstui replay). After a change of device it continues in FILE-2", place=80,
            footer=(
                # in front while it records, so that it is never forgotten
                Footer("● end recording",
                       {IDLE: 0, RUNNING: 0, EXPERIMENT: 0, LESSON: QUIET_FROM},
                       when=lambda record: record.recording),
                Footer("record", {IDLE: 900, RUNNING: 900},
                       when=lambda record: not record.recording),
            ),
            where=OVER_EXPERIMENT, offered_on=BOTH_SCREENS, measures=True,
        ),
        Action(
            "report", (Key("H", "H"),), report, title="HTML report",
            note="of the recording, next to it",
            help="write an HTML report of what R recorded, next to the recording", place=85,
            where=OVER_EXPERIMENT, offered_on=BOTH_SCREENS, measures=True,
        ),
    )  # fmt: skip
