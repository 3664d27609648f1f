"""Rate of each interrupt on each CPU between two readings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from iopstui.model.rates import per_second
from iopstui.model.samples import IrqCounts, IrqReading

Counts = Mapping[int, int]


class IrqRates(Mapping[int, Mapping[int, float]]):
    """Interrupts a second by their number and CPU, of those that both readings have.

    A wide machine has ten thousands of these figures, most of them 0 and few of them shown: an
    interrupt's are made when somebody asks for it. What all of them came to is known without.
    """

    __slots__ = ("_counts", "_earlier_counts", "_irqs", "_rates_by_irq", "_seconds")

    def __init__(
        self, now: Mapping[int, Counts], before: Mapping[int, Counts], seconds: float
    ) -> None:
        self._irqs = [irq for irq in now if irq in before]
        self._counts = now
        self._earlier_counts = before
        self._seconds = seconds
        self._rates_by_irq: dict[int, Mapping[int, float]] = {}

    def __getitem__(self, irq: int) -> Mapping[int, float]:
        rates = self._rates_by_irq.get(irq)
        if rates is None:
            rates = self._rates_by_irq[irq] = self._rates(irq)
        return rates

    def __iter__(self) -> Iterator[int]:
        return iter(self._irqs)

    def __len__(self) -> int:
        return len(self._irqs)

    def __repr__(self) -> str:
        return repr(dict(self))

    def by_cpu(self) -> dict[int, float]:
        """All interrupts on each CPU that any of them counts."""
        total: dict[int, float] = {}
        last_columns: object = None
        for irq in self._irqs:
            columns, rates = self._changed_rates(irq)
            # mostly the very same for all
            if columns is not last_columns:
                last_columns = columns
                total = {**dict.fromkeys(columns, 0.0), **total}
            for cpu, rate in rates.items():
                total[cpu] += rate
        return total

    def _rates(self, irq: int) -> Mapping[int, float]:
        columns, rates = self._changed_rates(irq)
        return rates if columns is rates else {**dict.fromkeys(columns, 0.0), **rates}

    def _changed_rates(self, irq: int) -> tuple[Collection[int], Mapping[int, float]]:
        """The CPUs that have a rate, and all of these that are not 0."""
        reading, before = _reading(self._counts, irq), _reading(self._earlier_counts, irq)
        increase = (
            reading.increase_since(before) if reading is not None and before is not None else None
        )
        # one that went backwards has no rate
        if reading is None or increase is None or min(increase.values(), default=0) < 0:
            rates = per_second(self._counts[irq], self._earlier_counts[irq], self._seconds)
            return rates, rates
        return reading.cpus, {cpu: count / self._seconds for cpu, count in increase.items()}


def _reading(counts: Mapping[int, Counts], irq: int) -> IrqReading | None:
    return counts.reading(irq) if isinstance(counts, IrqCounts) else None
