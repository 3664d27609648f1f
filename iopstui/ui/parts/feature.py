"""What a feature may add to the screen: keys of its own, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from iopstui.events import Event
from iopstui.ui.actions import Part
from iopstui.ui.core.backend import Conditions
from iopstui.ui.draw.rows import Row
from iopstui.ui.parts.experiment import ExperimentKeys
from iopstui.ui.parts.job import JobKeys
from iopstui.ui.port import Port


class FeaturePart(Part):
    """The keys of a feature; its module ``screen_part`` names the class as ``PART``. ``conditions``
    says what a session measures; ``first`` is what the command line wants to begin with."""

    HELP: ClassVar[tuple[str, tuple[tuple[str, str], ...]]] = ("", ())
    """Its section of the help: a title ("": no section), and rows of keys and their meaning."""
    HOME_ACTION: ClassVar[tuple[str, str, str] | None] = None
    """The home screen's action that calls ``choose``: key, title and name."""

    def __init__(
        self, port: Port, jobs: JobKeys, experiments: ExperimentKeys,
        conditions: Conditions | None, first: object | None,
    ) -> None:  # fmt: skip
        super().__init__(port)

    def choose(self) -> None:
        """Let the user choose from what the feature offers."""

    def begin_first(self) -> None:
        """A session has begun: start what the command line asked for."""

    def event(self, event: Event) -> None:
        """Take an event of the session, after the state has applied it."""

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """Rows above the panels of the dashboard."""
        return ()

    def forget(self) -> None:
        """The session makes way for another."""

    async def close(self) -> None:
        """The session was closed: undo what is left to undo."""

    def end(self) -> None:
        """Like ``close``, after the application's loop has ended."""
