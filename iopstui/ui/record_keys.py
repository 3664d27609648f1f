"""Key R: what is measured is kept in a file, from now on."""

from __future__ import annotations

import time
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from textual.app import App
from textual.binding import Binding, BindingType

from iopstui.errors import IopstuiError
from iopstui.ui.messages import Controller
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


class RecordKeys(App[int]):
    """What the key does. The rest of the application is ui/app.py."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("R", "record", "record")]

    controller: Controller | None

    @abstractmethod
    def _say(self, level: str, text: str) -> None:
        """A message of the screen's own."""

    @abstractmethod
    def _refresh_hints(self) -> None:
        """The footer."""

    def action_record(self) -> None:
        """R: begin, or end what was begun."""
        session = self.controller
        if not isinstance(session, Recordable):
            return
        if session.recording is not None:
            session.stop_recording()
        else:
            path = Path.cwd() / time.strftime("iopstui-%Y%m%d-%H%M%S.iops")
            try:
                session.record(path)
            except IopstuiError as error:
                self._say("error", f"{error.message} {error.hint}".strip())
                return
            self._say("info", f"recording to {path}; R ends it")
        self._refresh_hints()

    def record_hint(self) -> KeyHint:
        """What the key does now."""
        session = self.controller
        on = isinstance(session, Recordable) and session.recording is not None
        return KeyHint("R", "● end recording" if on else "record")
