"""What a feature may add to the screen: keys, actions and rows of its own."""

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
    returns a session's target and request; ``first`` is what the command line asked to begin
    with."""

    HELP: ClassVar[tuple[str, tuple[tuple[str, str], ...]]] = ("", ())
    """The feature's section in the help: a title ("": no section), and rows of keys with their
    meaning."""
    HOME_ACTION: ClassVar[tuple[str, str, str] | None] = None
    """The action on the home screen that calls ``choose``: its key, title and name."""

    def __init__(
        self, port: Port, jobs: JobKeys, experiments: ExperimentKeys,
        conditions: Conditions | None, first: object | None,
    ) -> None:  # fmt: skip
        super().__init__(port)

    def choose(self) -> None:
        """Let the user choose one of the things that the feature offers."""

    def begin_first(self) -> None:
        """Start what the command line asked for, because the first session has begun."""

    def event(self, event: Event) -> None:
        """Handle an event of the session; the state has already applied it."""

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """Rows to show above the message, at the bottom of the dashboard."""
        return ()

    def forget(self) -> None:
        """Forget the session, because another one will replace it."""

    async def close(self) -> None:
        """Undo what is left to undo, because the session was closed."""

    def end(self) -> None:
        """Like ``close``, after the application's loop has ended."""
