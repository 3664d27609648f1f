"""The current run of a session: its number, and its fio while that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iopstui.session.fio.fio_run import FioRun


class CurrentRun:
    """The current run: ``step`` numbers the runs of a session from 1 (0: none yet); ``fio`` is
    the running one.

    ``Runs`` alone changes it; sampling reads it at every tick.
    """

    def __init__(self) -> None:
        self._step = 0
        self._fio: FioRun | None = None

    @property
    def step(self) -> int:
        """The number of the last run that was begun."""
        return self._step

    @property
    def fio(self) -> FioRun | None:
        """The running one; ``None`` between two runs."""
        return self._fio

    def begin(self) -> int:
        """Begin another run; its number."""
        self._step += 1
        return self._step

    def started(self, fio: FioRun) -> None:
        """The run's fio is about to start."""
        self._fio = fio

    def end(self) -> None:
        """The run has ended."""
        self._fio = None
