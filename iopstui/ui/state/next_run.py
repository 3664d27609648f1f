"""The requested run that has not started yet, with its changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iopstui.model.fio.jobfile import SEQUENCE
from iopstui.model.sizes import size_bytes
from iopstui.ui.core.options import BY_OPTION, title_value
from iopstui.ui.draw.charts.axis_rows import OptionStep

MAX_LATE_REPORTS, STOP_REPORTS = 2, 30


class NextRun:
    """The next run, and the changes for it. ``requested``: it was requested, and has neither
    started nor failed yet."""

    def __init__(self, requested: bool = False, after: int | None = None) -> None:
        self.requested = requested
        self.refusals = 0
        """Number of requests that were refused while the running job went on."""
        self.changes: dict[str, str] = {}
        """Changes for which no run was requested yet, as text by option."""
        self._sent_changes: dict[str, str] = {}
        """Changes of the requested run, until it has started."""
        self._after = after
        """The run that must stop first."""
        self._reports = 0
        """Counts the reports since the request, beginning at -STOP_REPORTS."""

    def copy(self) -> NextRun:
        """A copy of the current request."""
        duplicate = self.without_changes()
        duplicate.changes, duplicate._sent_changes = dict(self.changes), dict(self._sent_changes)
        duplicate._reports = self._reports
        return duplicate

    def without_changes(self) -> NextRun:
        return NextRun(self.requested, self._after)

    @property
    def pending(self) -> str:
        """How the next run differs from the current one, in words."""
        return ", ".join({**self._sent_changes, **self.changes}.values())

    def request(self, after: int | None) -> None:
        """Request a run with all changes. Run ``after`` is stopped first."""
        self.requested, self._after = True, after
        self._reports = -STOP_REPORTS
        self._sent_changes.update(self.changes)
        self.changes.clear()

    def note_change(self, option: str, change: str) -> None:
        self.changes[option] = change

    def forget_changes(self) -> None:
        self.changes.clear()

    def cancel(self) -> None:
        """Forget the requested run."""
        self.requested = False
        self.changes.clear()
        self._sent_changes.clear()

    def refuse(self) -> None:
        """Note that the requested run was refused; the running job goes on."""
        self.refusals += 1
        self._drop_request()

    def mark_applied(self, step: int, title: str) -> None:
        """Mark the requested changes as applied, unless the run's title shows other values: then
        they came too late for this run, and another follows."""
        for option, change in list(self._sent_changes.items()):
            knob = BY_OPTION.get(option)
            running_value = title_value(knob, title) if knob is not None else None
            if running_value is None or running_value == change.rpartition(" ")[2].lower():
                del self._sent_changes[option]
        self.requested = bool(self._sent_changes)
        self._after = step if self._sent_changes else None
        self._reports = 0

    def reported(self, step: int, final: bool) -> None:
        """Note a report of run ``step``. If it goes on although it should have been stopped, forget
        the requested run."""
        self._reports += not final
        if self._after == step and self._reports >= MAX_LATE_REPORTS:
            self._drop_request()

    def finished(self, step: int, interrupted: bool) -> None:
        """Note the end of run ``step``. The request is forgotten, unless the run was stopped to
        start the requested one."""
        if step != self._after or not interrupted:
            self._drop_request()

    def _drop_request(self) -> None:
        self.requested, self._after = False, None
        self._sent_changes.clear()


# The option that was changed last, with its value in each run of the session.


MAX_RUNS = 500


@dataclass(slots=True)
class _Run:
    start: float
    options: Mapping[str, str]
    end: float | None = None


class OptionSteps:
    """Collects runs in order. ``option`` is the option that last differed between two runs; "" if
    none has."""

    def __init__(self) -> None:
        self.option = ""
        self._runs: list[_Run] = []

    @property
    def name(self) -> str:
        knob = BY_OPTION.get(self.option)
        return knob.mark_name if knob is not None else self.option

    def start_run(self, t: float, title: str, options: Mapping[str, str]) -> None:
        known = {name: value for name, value in options.items() if name not in SEQUENCE}
        for option, knob in BY_OPTION.items():
            value = options.get(option) or title_value(knob, title)
            if value is not None:
                known[option] = value
        before = self._runs[-1].options if self._runs else known
        changed = [name for name in (*BY_OPTION, *known) if _differs(name, before, known)]
        if changed:
            self.option = changed[0]
        self.end_run(t)
        self._runs.append(_Run(t, known))
        del self._runs[:-MAX_RUNS]

    def end_run(self, t: float) -> None:
        if self._runs and self._runs[-1].end is None:
            self._runs[-1].end = t

    @property
    def steps(self) -> list[OptionStep]:
        """The values in order; empty while no option has changed."""
        if not self.option:
            return []
        runs = [run for run in self._runs if self.option in run.options]
        values = {run.options[self.option] for run in runs}
        ordered = sorted(values, key=lambda value: (size_bytes(value) or 0, value))
        top = max(1, len(ordered) - 1)
        return [
            OptionStep(run.start, run.end, value, ordered.index(value) / top)
            for run in runs
            for value in [run.options[self.option]]
        ]


def _differs(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    return name in before and name in now and before[name] != now[name]
