"""Key R: what is measured is kept in a file, from now on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from textual.binding import Binding, BindingType

from iopstui.errors import IopstuiError
from iopstui.ui.app_parts import AppPart
from iopstui.ui.widgets.bars import KeyHint

RECORD_ACTIONS = {"record"}


@runtime_checkable
class Recordable(Protocol):
    """A session that can be recorded (session/live.py)."""

    @property
    def recording(self) -> Path | None:
        """Where it is being recorded to."""
        ...

    def record(self, path: Path) -> None:
        """Record from now on; raises UsageError."""
        ...

    def stop_recording(self) -> None:
        """End the recording."""
        ...


class RecordKeys(AppPart):
    """What the key does. The rest of the application is ui/app.py."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("R", "record", "record")]

    def action_record(self) -> None:
        """R: begin, or end what was begun."""
        session = self.controller
        if not isinstance(session, Recordable):
            return
        # a notice of the session follows, and the footer's keys with it
        if session.recording is not None:
            session.stop_recording()
            return
        try:
            session.record(Path.cwd() / time.strftime("iopstui-%Y%m%d-%H%M%S.iops"))
        except IopstuiError as error:
            self._say("error", f"{error.message} {error.hint}".strip())

    def with_record(self, hints: Sequence[KeyHint]) -> Sequence[KeyHint]:
        """The footer's keys with R: in front while it records, so that it is never forgotten."""
        session = self.controller
        if isinstance(session, Recordable) and session.recording is not None:
            return (KeyHint("R", "● end recording"), *hints)
        return (*hints[:-1], KeyHint("R", "record"), *hints[-1:])
