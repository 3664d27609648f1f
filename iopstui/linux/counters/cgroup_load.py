"""Rates of cgroups since the previous reading, for counters that are read only while shown."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from iopstui.linux.counters.cgroup import CgroupReader
from iopstui.linux.roots import Roots
from iopstui.model.cgroups.rates import GroupRates, group_rates


class CgroupLoad:
    """``rates`` returns the I/O of the groups on ``disks`` since the previous reading. To be used
    by one thread."""

    def __init__(self, disks: Sequence[str], roots: Roots, least_s: float = 0.9) -> None:
        self._reader = CgroupReader(disks, roots)
        self._min_interval_s = least_s
        self._at = 0.0
        self._before: Mapping[str, int] | None = None
        self._rates: tuple[GroupRates, ...] | None = None

    @property
    def disks(self) -> tuple[str, ...]:
        return self._reader.disks

    @property
    def why_not(self) -> str:
        """Why I/O is not counted by cgroup, in words; "" if it is."""
        return self._reader.why_not

    def rates(self) -> tuple[GroupRates, ...] | None:
        """The busiest first; ``None`` until there are two readings."""
        now = time.monotonic()
        if self.why_not or (self._at and now - self._at < self._min_interval_s):
            return self._rates
        counts = self._reader.read()
        if self._at:
            self._rates = group_rates(counts, self._before, now - self._at)
        self._at, self._before = now, counts
        return self._rates
