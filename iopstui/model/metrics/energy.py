"""Energy of a run: what CPUs and memory used while fio measured, and I/Os for each joule."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import ratio
from iopstui.model.sources import POWER


class RunEnergy:
    """Sums over the intervals of a run in which both fio and the counters were measured."""

    def __init__(self) -> None:
        self._joules: dict[str, float] = {}
        self._seconds = 0.0
        self._ios = 0

    def add(self, frame: Frame) -> None:
        """Count a frame."""
        power = frame.more.get(POWER, {})
        known_watts = {kind: watts for kind, watts in power.items() if watts is not None}
        if frame.fio is None or not frame.seconds or not known_watts:
            return
        for kind, watts in known_watts.items():
            self._joules[kind] = self._joules.get(kind, 0.0) + watts * frame.seconds
        self._seconds += frame.seconds
        self._ios += frame.fio.total.ios

    def join(self, later: RunEnergy) -> None:
        """Add the frames that follow."""
        for kind, joules in later._joules.items():
            self._joules[kind] = self._joules.get(kind, 0.0) + joules
        self._seconds += later._seconds
        self._ios += later._ios

    @property
    def joules(self) -> Mapping[str, float]:
        """Energy by kind ("package", "dram", "platform")."""
        return self._joules

    def watts(self, kind: str) -> float | None:
        """Mean power; ``None`` where it was not counted."""
        return ratio(self._joules.get(kind), self._seconds)

    @property
    def ios_per_joule(self) -> float | None:
        """I/Os for each joule of the CPU packages, idle power included."""
        return ratio(float(self._ios), self._joules.get("package"))

    def data(self) -> dict[str, object] | None:
        """As JSON: watts and joules by kind, and I/Os per joule; ``None`` without counters."""
        if not self._joules:
            return None
        return {
            "seconds": self._seconds,
            "joules": dict(self._joules),
            "watts": {kind: self.watts(kind) for kind in self._joules},
            "ios_per_joule": self.ios_per_joule,
        }
