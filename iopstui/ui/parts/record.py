"""Key R: record what is measured from now on in a file."""

from __future__ import annotations

import time
from pathlib import Path

from iopstui.errors import IopstuiError
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


class RecordKeys(Part):
    """Starts and stops a recording."""

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
            session.stop_recording()
            return
        try:
            session.record(Path.cwd() / time.strftime("iopstui-%Y%m%d-%H%M%S.iops"))
        except IopstuiError as error:
            self.port.say("error", f"{error.message} {error.hint}".strip())

    ACTIONS = (
        Action(
            "record", (Key("R", "R"),), record, title="Record",
            note="keep all that is measured in a file",
            help="record to a file in the current directory, or end that: see iopstui replay."
            " With another device a recording goes on in a file of its own: FILE-2", place=80,
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
    )  # fmt: skip
