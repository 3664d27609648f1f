"""Further kernel counters: to add one, write one ``Source`` and list it in ``SOURCES``. The reader
(linux/counters/sampler.py), the registry of fields, frames, JSON lines, CSV, recordings, replay,
``--expect`` and sweeps' figures all follow from this list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace

from iopstui.model.figures.figure import SECONDS, Figure
from iopstui.model.rates import delta

POWER = "power"
Counters = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """A file below /proc, read with every sample. ``figures``, under ``kernel.SOURCE.NAME``, are
    made from the growth of the counter of the same name. ``parse`` returns its counters (KeyError,
    ValueError or IndexError mean that the file has an unexpected format: it counts as not read). A
    source without a file has a ``place`` in words, and a separate reader provides the counters
    (linux/counters)."""

    name: str
    file: str
    parse: Callable[[bytes], Counters]
    figures: tuple[Figure, ...]
    place: str = ""


def _share(name: str, meaning: str) -> Figure:
    """A share of the time in percent, from a growth in microseconds."""
    return Figure(name, "%", f"share of the time in which {meaning}", name, SECONDS, per=1e4,
                  most=100.0)  # fmt: skip


def _watts(name: str, meaning: str) -> Figure:
    """Mean power of the interval in watts, from a growth in microjoules."""
    return Figure(name, "W", f"mean power of {meaning}", name, SECONDS, per=1e6)


def _not_a_file(data: bytes) -> Counters:
    raise ValueError("its counters have a reader of their own")


def parse_pressure(data: bytes) -> Counters:
    """Parse /proc/pressure/io or memory (Documentation/accounting/psi.rst): the totals in µs of
    "some" and "full"."""
    lines = (line.split() for line in data.decode("ascii").splitlines())
    return {
        words[0]: int(dict(word.split("=", 1) for word in words[1:])["total"]) for words in lines
    }


SOURCES: tuple[Source, ...] = (
    Source("pressure", "pressure/io", parse_pressure, (
        _share("some", "at least one task waited for I/O (of any disk)"),
        _share("full", "all tasks with work to do waited for I/O"),
    )),
    Source("memory", "pressure/memory", parse_pressure, (
        _share("some", "at least one task waited for memory (reclaim, swap)"),
        _share("full", "all tasks with work to do waited for memory"),
    )),
    Source(POWER, "", _not_a_file, (
        _watts("package", "all CPU packages; null without RAPL, or if not root"),
        _watts("dram", "the memory, where the CPU counts it"),
        _watts("platform", "the whole machine, where the CPU counts it (psys)"),
    ), place="/sys/class/powercap"),
)  # fmt: skip
BY_NAME = {source.name: source for source in SOURCES}


def figures(
    now: Mapping[str, Counters], before: Mapping[str, Counters], seconds: float
) -> dict[str, dict[str, float | None]]:
    """All figures of the sources that were read, by source and name."""
    return {
        source.name: _values(source, now[source.name], before[source.name], seconds)
        for source in SOURCES
        if source.name in now and source.name in before
    }


def _values(
    source: Source, now: Counters, before: Counters, seconds: float
) -> dict[str, float | None]:
    names = [figure.name for figure in source.figures]
    growths = {name: delta(now.get(name), before.get(name)) for name in names}
    row = SimpleNamespace(seconds=seconds, **growths)
    return {figure.name: figure.value(row) for figure in source.figures}
