"""The bought volume on the screen: the limits that charts draw, and the remaining credits."""

from __future__ import annotations

from iopstui.model.figures.disk import DiskRates
from iopstui.model.volumes.gauge import gauges, rate_limits
from iopstui.model.volumes.promised import PromisedFigures
from iopstui.model.volumes.volume import IOPS, THROUGHPUT

MIB = 1 << 20


class VolumeState:
    """``iops`` and ``mib`` are the limits of ``volumes`` volumes of one kind together, the lowest
    first, for I/Os of the newest size. Credits are only counted for a single volume."""

    def __init__(self, promised: PromisedFigures, volumes: int = 1) -> None:
        self._promised, self._volumes = promised, max(1, volumes)
        self._gauges = gauges(promised) if volumes <= 1 else ()
        self.iops: tuple[float, ...] = ()
        self.mib: tuple[float, ...] = ()

    def feed(self, disk: DiskRates) -> None:
        """Use the newest figures of the volume's device."""
        self.iops = tuple(rate_limits(self._promised, IOPS, disk, self._volumes))
        limits = rate_limits(self._promised, THROUGHPUT, disk, self._volumes)
        self.mib = tuple(bytes_s / MIB for bytes_s in limits)
        for gauge in self._gauges:
            gauge.feed(disk)

    @property
    def text(self) -> str:
        """The class, and what its credits allow."""
        texts = [text for gauge in self._gauges if (text := gauge.text())]
        return f"{self._promised.volume.name}{': ' if texts else ''}{'; '.join(texts)}"
