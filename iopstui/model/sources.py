"""Further kernel counters: to add one, write one ``Source`` and list it in ``SOURCES``.

What reads them (linux/counters/sampler.py), the registry of fields, frames, JSON lines, CSV,
recordings, replay, ``--expect`` and sweeps' figures follow from this list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from iopstui.model.rates import delta, ratio

POWER = "power"
Counters = Mapping[str, int]
Rate = Callable[["int | None", "int | None", float], "float | None"]
"""From a counter now and before, and the seconds between."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a source, under ``kernel.SOURCE.NAME``. ``rate`` makes it from the counter of the
    same name."""

    name: str
    unit: str
    meaning: str
    rate: Rate


@dataclass(frozen=True, slots=True)
class Source:
    """A file below /proc, read with every sample. ``parse`` gives its counters (KeyError,
    ValueError or IndexError where the file is another than expected: then it was not read). With a
    ``place`` in words in place of a file a reader of its own gives them (linux/counters)."""

    name: str
    file: str
    parse: Callable[[bytes], Counters]
    figures: tuple[Figure, ...]
    place: str = ""


def per_second(now: int | None, before: int | None, seconds: float) -> float | None:
    """Growth of a counter per second; ``None`` where it went backwards."""
    return ratio(delta(now, before), seconds)


def percent_of_time(now: int | None, before: int | None, seconds: float) -> float | None:
    """Return the percentage of the interval, from microseconds."""
    rate = per_second(now, before, seconds)
    return None if rate is None else min(rate / 1e4, 100.0)


def watts(now: int | None, before: int | None, seconds: float) -> float | None:
    """Mean power of the interval, from microjoules."""
    rate = per_second(now, before, seconds)
    return None if rate is None else rate / 1e6


def _not_a_file(data: bytes) -> Counters:
    raise ValueError("its counters have a reader of their own")


def parse_pressure(data: bytes) -> Counters:
    """/proc/pressure/io or memory (Documentation/accounting/psi.rst): the totals in µs of "some"
    and "full"."""
    lines = (line.split() for line in data.decode("ascii").splitlines())
    return {
        words[0]: int(dict(word.split("=", 1) for word in words[1:])["total"]) for words in lines
    }


SOURCES: tuple[Source, ...] = (
    Source(
        "pressure",
        "pressure/io",
        parse_pressure,
        (
            Figure("some", "%", "share of the time in which at least one task waited for I/O (of "
                                "any disk)",
                   percent_of_time),
            Figure("full", "%", "share of the time in which all tasks with work to do waited for "
                                "I/O",
                   percent_of_time),
        ),
    ),
    Source(
        "memory",
        "pressure/memory",
        parse_pressure,
        (
            Figure("some", "%", "share of the time in which at least one task waited for memory "
                                "(reclaim, swap)",
                   percent_of_time),
            Figure("full", "%", "share of the time in which all tasks with work to do waited for "
                                "memory",
                   percent_of_time),
        ),
    ),
    Source(
        POWER,
        "",
        _not_a_file,
        (
            Figure("package", "W", "mean power of all CPU packages; null without RAPL, or if not "
                                   "root",
                   watts),
            Figure("dram", "W", "mean power of the memory, where the CPU counts it", watts),
            Figure("platform", "W", "mean power of the whole machine, where the CPU counts it "
                                    "(psys)",
                   watts),
        ),
        place="/sys/class/powercap",
    ),
)  # fmt: skip
BY_NAME = {source.name: source for source in SOURCES}


def figures(
    now: Mapping[str, Counters], before: Mapping[str, Counters], seconds: float
) -> dict[str, dict[str, float | None]]:
    """All figures of the sources that were read, by source and name."""
    return {
        source.name: {
            figure.name: figure.rate(
                now[source.name].get(figure.name), before[source.name].get(figure.name), seconds
            )
            for figure in source.figures
        }
        for source in SOURCES
        if source.name in now and source.name in before
    }  # fmt: skip
