"""The option that was changed last, with its value in each run of the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iopstui.model.fio.sizes import size_bytes
from iopstui.ui.core.options import BY_OPTION, title_value
from iopstui.ui.draw.charts.option_row import OptionStep

MAX_RUNS = 500


@dataclass(slots=True)
class _Run:
    start: float
    options: Mapping[str, str]
    end: float | None = None


class OptionSteps:
    """Collects runs in order. ``option`` is the one that differed last between two runs; ""
    while none has."""

    def __init__(self) -> None:
        self.option = ""
        self._runs: list[_Run] = []

    @property
    def name(self) -> str:
        """A short name of the option."""
        knob = BY_OPTION.get(self.option)
        return knob.mark_name if knob is not None else self.option

    def start_run(self, t: float, title: str, options: Mapping[str, str]) -> None:
        """A run with these options begins."""
        known = {**options}
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
        """The run has ended."""
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
