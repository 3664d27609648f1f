"""Whether others use the disk right before or after a run.

In the run itself nobody can tell: a file system may write any number of blocks for a sync, and
those of a neighbour look the same (unless they are flushes).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from iopstui.format import number, size
from iopstui.model.experiment.disturbance import DISTURBING_SHARE, MIN_OTHERS
from iopstui.model.figures.disk import DiskRates, Loads

IDLE_S, POLL_S = 1.5, 0.1
MIN_BYTES_S = 256 << 10
"""Less is what any system writes now and then."""


@dataclass
class Neighbours:
    """Watches the disks ``names`` around a run; ``stopped`` ends the wait."""

    loads: Loads
    names: Collection[str]
    stopped: Callable[[], bool]
    _idle: dict[str, Mapping[str, DiskRates]] = field(default_factory=dict)
    _run: Mapping[str, DiskRates] = field(default_factory=dict)

    def watch(self, when: str) -> None:
        """Count what the disks do for a moment in which the job does nothing; ``when`` says which
        one ("before")."""
        if self._idle:
            self._run = self.loads()
        if not self.names:
            return
        self.loads()
        until = time.monotonic() + IDLE_S
        while time.monotonic() < until and not self.stopped():
            time.sleep(POLL_S)
        self._idle[when] = self.loads()

    @property
    def reasons(self) -> list[str]:
        """A sentence on the disk that others used most; none if they did hardly anything."""
        found = [
            (share, f"{text} {when} the run, for others")
            for when, rates in self._idle.items()
            for name in self.names if name in rates and name in self._run
            for share, text in (_others(name, rates[name], self._run[name]),)
        ]  # fmt: skip
        share, text = max(found, default=(0.0, ""))
        return [text] if share >= DISTURBING_SHARE else []


def _others(name: str, idle: DiskRates, run: DiskRates) -> tuple[float, str]:
    """What others do, as a share of what the disk did in the run, and a text on it."""
    ios, moved = _ios(idle), _bytes(idle)
    by_ios = ios / max(_ios(run), ios) if ios >= MIN_OTHERS[0] else 0.0
    by_bytes = moved / max(_bytes(run), moved) if moved >= MIN_BYTES_S else 0.0
    amount = f"{number(ios)} I/Os" if by_ios >= by_bytes else size(moved)
    return max(by_ios, by_bytes), f"{name} did {amount} a second"


def _ios(rates: DiskRates) -> float:
    return (rates.r_s or 0.0) + (rates.w_s or 0.0)


def _bytes(rates: DiskRates) -> float:
    return (rates.r_bytes_s or 0.0) + (rates.w_bytes_s or 0.0)
