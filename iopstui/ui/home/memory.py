"""What the home screen keeps while another screen is open: the order of its rows, and figures that
go on being measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.figures.disk import Loads
from iopstui.ui.home.rows import Activity, HomeAnswer, present_names

BEGAN_S = monotonic()
"""The charts' axes begin when the program does."""
LIVE_S = 1.0
"""Seconds between two measurements."""
USE_LASTS_S = 15.0
"""So long a reading of who uses the disks is shown when home is opened anew."""


@dataclass
class HomeMemory:
    """``order`` has the keys of the disks as they were last shown, ``alarming`` the disk that was
    put first, ``column`` and ``reverse`` what they are sorted by. ``was_used``: a key was pressed,
    so no row moves from now on. ``measured_s`` is when the last second was measured."""

    devices: Mapping[str, BlockDevice] | None = None
    activity: dict[str, Activity] = field(default_factory=dict)
    answer: HomeAnswer = field(default_factory=HomeAnswer)
    measured_s: float | None = None
    use: DiskUse | None = None
    order: list[str] = field(default_factory=list)
    alarming: str = ""
    column: str = ""
    reverse: bool = False
    partitions: bool = False
    was_used: bool = False

    def measure(self, loads: Loads, now_s: float) -> None:
        """Measure a second of the disks that are there: many systems have hundreds of loop devices
        without a file. A disk that is gone has no rates, also not its last ones."""
        names = None if self.devices is None else present_names(self.devices)
        rates = loads(names)
        for name in names or ():
            if name not in self.activity:
                self.activity[name] = Activity()
        for name, activity in self.activity.items():
            activity.add(rates.get(name), now_s)
        self.answer.add(now_s, rates, self.devices or {})
        self.measured_s = now_s

    def last_use(self, now_s: float) -> DiskUse | None:
        """The last reading of who uses the disks, if it is of the last seconds."""
        return self.use if self.use is not None and now_s - self.use.t <= USE_LASTS_S else None

    def is_fresh(self, now_s: float) -> bool:
        """Whether the last second is of now."""
        return self.measured_s is not None and now_s - self.measured_s < 2 * LIVE_S

    def forget_figures(self) -> None:
        """Drop what is not of now."""
        self.answer.forget()
        for activity in self.activity.values():
            activity.rates = None
