"""How often each interrupt came to each CPU, between two readings of the counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import compress

from iopstui.model.rates import per_second
from iopstui.model.samples import IrqCounts

Counts = Mapping[int, int]


class IrqRates(Mapping[int, Mapping[int, float]]):
    """Interrupts a second by their number and CPU, of those that both readings have.

    A wide machine has ten thousands of these figures, most of them 0 and few of them shown: an
    interrupt's are made when somebody asks for it. What all of them came to is known without.
    """

    __slots__ = ("_before", "_changes", "_found", "_now", "_seconds")

    def __init__(
        self, now: Mapping[int, Counts], before: Mapping[int, Counts], seconds: float
    ) -> None:
        self._now = {irq: counts for irq, counts in now.items() if irq in before}
        self._changes = now if isinstance(now, IrqCounts) else IrqCounts()
        self._before = before
        self._seconds = seconds
        self._found: dict[int, Mapping[int, float]] = {}

    def __getitem__(self, irq: int) -> Mapping[int, float]:
        found = self._found.get(irq)
        if found is None:
            found = per_second(self._now[irq], self._before[irq], self._seconds)
            self._found[irq] = found
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)

    def __repr__(self) -> str:
        return repr(dict(self))

    def by_cpu(self) -> dict[int, float]:
        """All interrupts on each CPU that any of them counts."""
        total: dict[int, float] = {}
        known: list[int] = []
        for irq, now in self._now.items():
            counts = self._moved(irq, now)
            columns = now if counts is not None else self[irq]
            if len(known) != len(columns) or known != [*columns]:
                known = [*columns]
                total = {**dict.fromkeys(columns, 0.0), **total}
            if counts is None:
                counts = self[irq]
            for cpu in compress(counts, counts.values()):
                total[cpu] += counts[cpu]
        return total

    def _moved(self, irq: int, now: Counts) -> Mapping[int, float] | None:
        """The rates that are not 0; ``None`` where all columns have to be looked at."""
        before = self._before[irq]
        if now is before:
            return {}
        changed = self._changes.grown(irq, self._before)
        if changed is None:
            return None
        grown = {cpu: count - before[cpu] for cpu, count in changed.items()}
        # one that went backwards has no rate
        if min(grown.values(), default=0) < 0:
            return None
        return {cpu: count / self._seconds for cpu, count in grown.items()}
