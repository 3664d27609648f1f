"""The bought volume on the screen: its limits, which charts draw, and its remaining credits."""

from __future__ import annotations

from iopstui.model.figures.disk import DiskRates
from iopstui.model.volumes.gauge import gauges, rate_limits
from iopstui.model.volumes.promised import PromisedFigures
from iopstui.model.volumes.volume import IOPS, THROUGHPUT

MIB = 1 << 20


class VolumeState:
    """``iops`` and ``mib`` are the limits of ``volumes`` equal volumes together, the lowest first,
    for I/Os as large as the newest ones. Credits are counted only for a single volume."""

    def __init__(self, promised: PromisedFigures, volumes: int = 1) -> None:
        self._promised, self._volumes = promised, max(1, volumes)
        self._gauges = gauges(promised) if volumes <= 1 else ()
        self.iops: tuple[float, ...] = ()
        self.mib: tuple[float, ...] = ()

    def feed(self, disk: DiskRates) -> None:
        """Update the limits and credits from the newest figures of the volume's device."""
        self.iops = tuple(rate_limits(self._promised, IOPS, disk, self._volumes))
        limits = rate_limits(self._promised, THROUGHPUT, disk, self._volumes)
        self.mib = tuple(bytes_s / MIB for bytes_s in limits)
        for gauge in self._gauges:
            gauge.feed(disk)

    @property
    def text(self) -> str:
        """The volume's class, and the state of its credits."""
        texts = [text for gauge in self._gauges if (text := gauge.text())]
        return f"{self._promised.volume.name}{': ' if texts else ''}{'; '.join(texts)}"
