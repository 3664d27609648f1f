"""The home screen's answer: the disk that needs attention first."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from iopstui import format as f
from iopstui.model.answer.answer import GOOD, UNKNOWN, Answer
from iopstui.model.answer.judge import Seen, judge
from iopstui.model.answer.tracker import WINDOW
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, DeviceLinks, TargetPath, combine_targets
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.evidence import ENOUGH_SECONDS
from iopstui.model.metrics.frame import Frame


class HomeAnswer:
    """Judges all disks for the home screen; feed each second's rates."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque(maxlen=WINDOW)

    @property
    def is_short(self) -> bool:
        """Whether too few seconds were fed to judge."""
        return len(self._frames) < ENOUGH_SECONDS

    def feed(
        self, t: float, rates: Mapping[str, DiskRates], devices: Mapping[str, BlockDevice]
    ) -> Answer | None:
        """The answer for the last seconds, up to ``t``; ``None`` if there is no disk."""
        disks = {name: row for name, row in rates.items() if _is_disk(devices.get(name))}
        seconds = max((row.seconds for row in disks.values()), default=1.0)
        self._frames.append(
            Frame(seq=0, step=0, t=t, wall_ms=0.0, seconds=seconds, flags=frozenset(), fio=None,
                  fio_age_s=None, skew_ms=None, disks=disks)
        )  # fmt: skip
        if not disks:
            return None
        if self.is_short:
            measured = f.counted(len(self._frames), "second")
            return Answer("", "short", GOOD, f"{measured} measured, too short to tell", UNKNOWN)
        active = [name for name in disks if any(map(_does_io, self._rates_of(name)))]
        if not active:
            looked = f.counted(len(disks), "disk is idle", "disks are idle")
            return Answer("", "quiet", GOOD, f"{looked}: nothing is in flight")
        places = [_place(devices[name], devices) for name in active]
        seen = Seen(combine_targets(places), list(self._frames), devices)
        return judge(seen)[0][1]

    def _rates_of(self, name: str) -> list[DiskRates]:
        return [frame.disks[name] for frame in self._frames if name in frame.disks]


def _is_disk(device: BlockDevice | None) -> bool:
    return device is not None and bool(device.size) and not device.disk and not device.hidden


def _does_io(rates: DiskRates) -> bool:
    return bool(rates.ios_s or rates.in_flight)


def _place(device: BlockDevice, devices: Mapping[str, BlockDevice]) -> TargetPath:
    below = tuple(
        devices[name].disk or name for name in device.slaves if name in devices
    )  # fmt: skip
    return TargetPath(DEVICE, device.path, device.name, (device.name, *below),
                      links=(DeviceLinks(device.name, below, device.layer),))  # fmt: skip
