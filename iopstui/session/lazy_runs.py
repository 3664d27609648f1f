"""The runs of a session, loaded from disk on first use.

Preparing a job and following fio is half of the program: who only looks at a disk needs none of it,
and the first frame of the screen does not wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iopstui.errors import EXIT_OK
from iopstui.linux.counters.signal_flag import SignalFlag

if TYPE_CHECKING:
    from iopstui.session.fio.fio_run import FioRun
    from iopstui.session.run_order import RunOrder
    from iopstui.session.runs import Runs
    from iopstui.session.start_signal import StartSignal


class LazyRuns:
    """Stands in for ``Runs`` with the same arguments; loads it at the first ``order``."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments
        self._runs: Runs | None = None
        self.given_up = SignalFlag()

    def order(self, order: RunOrder) -> None:
        """Run this job; a running one is stopped first."""
        if self._runs is None:
            from iopstui.session.runs import Runs

            self._runs = Runs(*(*self._arguments, self.given_up))
        self._runs.order(order)

    @property
    def run(self) -> FioRun | None:
        """The running job's fio."""
        return self._runs.run if self._runs is not None else None

    @property
    def began_ns(self) -> int | None:
        """When the running one began to measure."""
        return self._runs.began_ns if self._runs is not None else None

    @property
    def exit_code(self) -> int:
        """The last run's."""
        return self._runs.exit_code if self._runs is not None else EXIT_OK

    @property
    def left_behind(self) -> str:
        """Processes that hang in the kernel, in words."""
        return self._runs.left_behind if self._runs is not None else ""

    @property
    def ending(self) -> bool:
        """Whether a run is there that has to end."""
        return self._runs is not None and self._runs.ending

    def lay_out(self) -> None:
        """Continue the run that has announced its layout."""
        if self._runs is not None:
            self._runs.lay_out()

    def start_run(self, start_signal: StartSignal) -> None:
        """Start the waiting run."""
        if self._runs is not None:
            self._runs.start_run(start_signal)

    def stop(self, hard: bool = False) -> None:
        """Stop the running job; ``hard``: without its last document."""
        if self._runs is not None:
            self._runs.stop(hard)
        else:
            self.given_up.clear()

    def fds(self) -> tuple[int, ...]:
        """Descriptors to poll for events."""
        return self._runs.fds() if self._runs is not None else ()

    def patience_s(self) -> float | None:
        """The longest time to wait for them; ``None`` without a run."""
        return self._runs.patience_s() if self._runs is not None else None

    def follow(self) -> None:
        """Process fio's new output."""
        if self._runs is not None:
            self._runs.follow()

    def progress(self) -> None:
        """Tell how far the run is."""
        if self._runs is not None:
            self._runs.progress()

    def end_steady(self) -> None:
        """Stop the running job if it has become steady and is to end then."""
        if self._runs is not None:
            self._runs.end_steady()

    def leave_behind(self) -> None:
        """Give up a fio that does not end."""
        if self._runs is not None:
            self._runs.leave_behind()

    def close(self) -> None:
        """Whatever is left of a run is ended."""
        if self._runs is not None:
            self._runs.close()
