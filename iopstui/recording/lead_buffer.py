"""A buffer of a session's last seconds, so that a recording can start in the past."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

from iopstui.model.samples import RawSample

MOST_SAMPLES = 2400
"""However often is sampled: one takes 4 kB with 2 CPUs and one disk, and grows with both."""


class DeltaBase:
    """What differences of the next sample need: the one before it, and the last ones that have what
    not every sample has. fio repeats its last document, so two of them."""

    def __init__(self) -> None:
        self._found: dict[str, RawSample] = {}

    def add(self, raw: RawSample) -> None:
        """The next sample comes after this one."""
        if raw.fio is not None:
            before = self._found.get("fio")
            same_run = before is not None and before.step == raw.step
            self._found["fio before"] = before if before is not None and same_run else raw
            self._found["fio"] = raw
        if raw.kernel is not None:
            self._found["kernel"] = raw
            if raw.kernel.ipi is not None:
                self._found["ipi"] = raw
        self._found["last"] = raw

    def forget_run(self) -> None:
        """Nothing is subtracted from a run that is over."""
        self._found = {
            what: dataclasses.replace(raw, fio=None)
            for what, raw in self._found.items()
            if not what.startswith("fio")
        }

    def samples(self) -> list[RawSample]:
        """All of them in their order."""
        seen = {raw.seq: raw for raw in self._found.values()}
        return sorted(seen.values(), key=lambda raw: raw.seq)


class LeadBuffer:
    """The last ``seconds`` of samples and of what happened between them, oldest first, and before
    them the ``lead`` of the oldest. At most MOST_SAMPLES."""

    def __init__(self, seconds: float) -> None:
        self.lead = DeltaBase()
        self.items: deque[Any] = deque()
        self._span_ns = int(seconds * 1e9)
        self._samples = 0

    def add(self, item: Any) -> None:
        """A sample was taken, or something happened."""
        self.items.append(item)
        if not isinstance(item, RawSample):
            return
        self._samples += 1
        while self._samples > 1 and self._too_old(item.arrived_ns):
            self._drop()

    def _too_old(self, now_ns: int) -> bool:
        first = next(item for item in self.items if isinstance(item, RawSample))
        return now_ns - first.arrived_ns > self._span_ns or self._samples > MOST_SAMPLES

    def _drop(self) -> None:
        """The oldest sample, with what happened before it."""
        while not isinstance(first := self.items.popleft(), RawSample):
            continue
        self._samples -= 1
        self.lead.add(first)
