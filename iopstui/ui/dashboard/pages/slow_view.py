"""One slow request as a timeline: where it waited, and what else the disk did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from rich.style import Style

from iopstui import format as f
from iopstui.model.metrics.slow.slow_requests import SLOW_KINDS
from iopstui.model.samples import Exemplar
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Row, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, FIO, P99, WARNING, Charset

LABEL, FIGURE = 22, 9
MAX_OTHERS = 24
PARTS: tuple[tuple[str, str, Style | None], ...] = (
    ("tried", "x", WARNING), ("plugged", "░", FIO), ("queued", "▒", P99), ("device", "█", DEVICE),
)  # fmt: skip
NO_SAMPLE = "No random requests of this direction to compare with in this second."
NO_OTHERS = "No other kept request overlaps with it."
NOTE = (
    "Kept are the 10 slowest and 10 random requests of each direction and second; others that "
    "overlap are not shown."
)


def parts_of(one: Exemplar) -> tuple[int, int, int, int]:
    """Nanoseconds of earlier tries, plugged, queued and in the device; what is not known is 0."""
    return one.tried_ns or 0, one.plugged_ns or 0, one.queued_ns or 0, one.device_ns


def timeline(
    one: Exemplar, others: Sequence[Exemplar], when: str, width: int, charset: Charset
) -> list[Row]:
    """Rows of a request; ``others`` are those kept in the same second and the next to it."""
    found = [*_facts(one, when, width, charset), message(width, charset, "")]
    found += _against_sample(one, others, width, charset)
    found.append(message(width, charset, ""))
    return [*found, *_meanwhile(one, others, width, charset)]


def _facts(one: Exemplar, when: str, width: int, charset: Charset) -> Iterator[Row]:
    place = f"{f.size(one.size)} " if one.size else ""
    if one.sector is not None:
        offset = f"{one.offset} ({f.size(one.offset)})"
        place += f"at sector {one.sector}, offset {offset} of {printable(one.disk)}, "
    yield from wrap(width, charset, f"{when}  {one.kind} {place}flags {one.flags}", BOLD)
    who = f"{printable(one.comm) or f.MISSING}, process {one.pid}, thread {one.tid}"
    group = f"cgroup {printable(one.group) or f.MISSING}"
    yield from wrap(width, charset, f"sent by {who}, {group}", None)
    where = f"sent on CPU {one.cpu}, completed on CPU {one.cpu_done}, hardware queue {one.hctx}"
    yield from wrap(width, charset, where, None)
    if one.error:
        yield from wrap(width, charset, f"it failed: status {one.error}", WARNING)


def _against_sample(
    one: Exemplar, others: Sequence[Exemplar], width: int, charset: Charset
) -> Iterator[Row]:
    line = Line(width, charset).add(" " * LABEL).add("total".rjust(FIGURE), DIM)
    for name, mark, style in PARTS:
        line.add(f"{mark} {name}".rjust(FIGURE + 2), style)
    yield line.finished()
    longest = max(1, one.total_ns)
    yield from _bar("this request", parts_of(one), longest, width, charset)
    sample = [parts_of(o) for o in others if o.sampled and o.kind == one.kind]
    if not sample:
        yield from wrap(width, charset, NO_SAMPLE)
        return
    middle = [round(median(column)) for column in zip(*sample, strict=True)]
    words = f"median of {len(sample)} random"
    yield from _bar(words, middle, longest, width, charset)


def _bar(
    label: str, parts: Sequence[int], longest: int, width: int, charset: Charset
) -> Iterator[Row]:
    line = Line(width, charset).add(f.cut(label, LABEL - 1).ljust(LABEL), BOLD)
    line.add(f.latency(sum(parts)).rjust(FIGURE), BOLD)
    for ns in parts:
        line.add((f.latency(ns) if ns else f.MISSING).rjust(FIGURE + 2))
    yield line.finished()
    room, bar = max(10, width - 2), Line(width, charset).add(" ")
    for ns, (_, mark, style) in zip(parts, PARTS, strict=True):
        bar.add(mark * round(room * ns / longest), style)
    yield bar.finished()


def _meanwhile(
    one: Exemplar, others: Sequence[Exemplar], width: int, charset: Charset
) -> Iterator[Row]:
    span = f" ({f.latency(one.total_ns)})"
    yield rule(width, charset, ("meanwhile", BOLD), (span, DIM))
    beside = [
        other for other in others
        if other is not one and other.began_ns < one.completed_ns
        and other.completed_ns > one.began_ns
    ]  # fmt: skip
    if not beside:
        yield from wrap(width, charset, NO_OTHERS)
    room = max(10, width - LABEL - FIGURE - 2)
    for other in sorted(beside, key=_order)[:MAX_OTHERS]:
        yield _lane(other, one, room, width, charset)
    if len(beside) > MAX_OTHERS:
        yield message(width, charset, f"and {len(beside) - MAX_OTHERS} more")
    yield from wrap(width, charset, NOTE)


def _order(one: Exemplar) -> tuple[bool, int]:
    # flushes and discards hold up others: first
    return one.kind in SLOW_KINDS[:2], one.began_ns


def _lane(other: Exemplar, one: Exemplar, room: int, width: int, charset: Charset) -> Row:
    """A request on the time axis of ``one``."""
    label = f"{other.kind} {printable(other.comm) or f.MISSING}"
    line = Line(width, charset).add(f.cut(label, LABEL - 1).ljust(LABEL))
    line.add(f.latency(other.total_ns).rjust(FIGURE)).add("  ")
    begins, scale = line.used, room / max(1, one.total_ns)
    edges = [other.began_ns]
    for ns in parts_of(other):
        edges.append(edges[-1] + ns)
    for place, (_, mark, style) in enumerate(PARTS):
        first = begins + _cell((edges[place] - one.began_ns) * scale, room - 1)
        last = begins + _cell((edges[place + 1] - one.began_ns) * scale, room)
        line.fill_to(first)
        # a short part that lies within is not left out altogether
        shortest = 1 if place == len(PARTS) - 1 else 0
        line.add(mark * max(shortest, last - max(first, line.used)), style)
    return line.finished()


def _cell(at: float, room: int) -> int:
    return min(room, max(0, round(at)))
