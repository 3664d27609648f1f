"""Sweeps started on a fleet's screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from iopstui.events import Event
from iopstui.experiment.setup import length_text
from iopstui.features.fleet.controller import FleetController
from iopstui.features.fleet.host_sweep import job_seconds
from iopstui.format import counted
from iopstui.model.experiment.host_sweep import SweptPoint
from iopstui.model.experiment.plan import Plan, expand_plan
from iopstui.text import printable

MAX_NAMES = 4


@dataclass(frozen=True, slots=True)
class PreparedSweep:
    """A sweep that has been checked."""

    plan: Plan
    lines: tuple[str, ...]
    resume_note: str = ""
    loss_note: str = ""


class FleetExperiments:
    """Sweeps of ``fleet``, one at a time. Each point takes ``seconds``."""

    def __init__(self, fleet: FleetController, seconds: float | None) -> None:
        self.seconds = seconds
        self._fleet = fleet

    @property
    def hosts(self) -> int:
        return len(self._fleet.runs.hosts)

    def preview(self, plan: Plan) -> PreparedSweep:
        """Describe a plan. Raises UsageError for a job that does not exist."""
        seconds = [job_seconds(plan.jobs[0], SweptPoint(plan, step).options)
                   for step in expand_plan(plan)]  # fmt: skip
        known = [second for second in seconds if second is not None]
        plan = replace(plan, measure=max(known) if len(known) == len(seconds) else 0.0)
        most = max(SweptPoint(plan, step).hosts or self.hosts for step in expand_plan(plan))
        lines = [
            length_text(plan),
            "Runs: one after another, each with all checks of a run on every host",
            f"Hosts: {_names(self._fleet.runs.hosts[:most])}, in this order",
        ]
        return PreparedSweep(plan, tuple(lines))

    def start(
        self, ready: PreparedSweep, sink: Callable[[Event], None], t: float, anew: bool
    ) -> FleetExperiments:
        """Start a sweep; its events come with those of the fleet."""
        self._fleet.sweep(ready.plan)
        return self

    @property
    def active(self) -> bool:
        return self._fleet.sweeping

    def feed(self, event: Event) -> None:
        """Do nothing: the fleet counts by itself."""

    def stop(self) -> None:
        self._fleet.stop_job()

    def wait(self, seconds: float) -> None:
        """Do nothing: it ends with the fleet."""

    def variants(self) -> tuple[str, str]:
        """There are no comparisons."""
        return "", ""


def _names(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:MAX_NAMES])
    more = f" ... {hosts[-1]}" if len(hosts) > MAX_NAMES else ""
    return printable(f"{shown}{more} ({counted(len(hosts), 'host')})")
