"""Energy of a run: what CPUs and memory used while fio measured, and I/Os for each joule."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import ratio
from iopstui.model.sources import POWER


class RunEnergy:
    """Sums over the intervals of a run in which both fio and the counters were measured."""

    def __init__(self) -> None:
        self.joules: dict[str, float] = {}
        """Energy by kind ("package", "dram", "platform")."""
        self._seconds = 0.0
        self._ios = 0

    def add(self, frame: Frame) -> None:
        power = frame.more.get(POWER, {})
        seconds = frame.seconds or 0.0
        used = {kind: watts * seconds for kind, watts in power.items() if watts is not None}
        if frame.fio is not None and seconds and used:
            self._add(used, seconds, frame.fio.total.ios)

    def join(self, later: RunEnergy) -> None:
        """Add the frames that follow."""
        self._add(later.joules, later._seconds, later._ios)

    def _add(self, joules: Mapping[str, float], seconds: float, ios: int) -> None:
        for kind, used in joules.items():
            self.joules[kind] = self.joules.get(kind, 0.0) + used
        self._seconds += seconds
        self._ios += ios

    def watts(self, kind: str) -> float | None:
        """Mean power; ``None`` if it was not counted."""
        return ratio(self.joules.get(kind), self._seconds)

    @property
    def ios_per_joule(self) -> float | None:
        """I/Os for each joule of the CPU packages, idle power included."""
        return ratio(float(self._ios), self.joules.get("package"))

    def data(self) -> dict[str, object] | None:
        """As JSON: watts and joules by kind, and I/Os per joule; ``None`` without counters."""
        if not self.joules:
            return None
        return {
            "seconds": self._seconds,
            "joules": dict(self.joules),
            "watts": {kind: self.watts(kind) for kind in self.joules},
            "ios_per_joule": self.ios_per_joule,
        }
