"""One slow request as a timeline: where it waited, and what the disk did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from rich.style import Style

from iopstui import format as f
from iopstui.model.metrics.slow.slow_requests import SLOW_KINDS
from iopstui.model.samples import Exemplar
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Row, fit, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, FIO, P99, WARNING, Charset

LABEL, FIGURE = 22, 9
MAX_OTHERS = 24
STAGES: tuple[tuple[str, str, Style | None], ...] = (
    ("tried", "x", WARNING), ("plugged", "░", FIO), ("queued", "▒", P99), ("device", "█", DEVICE),
)  # fmt: skip
NO_SAMPLE = "No random requests of this direction to compare with in this second."
NO_OTHERS = "No other kept request overlaps with it."
NOTE = (
    "Kept are the 10 slowest and 10 random requests of each direction and second; others that "
    "overlap are not shown."
)


def stage_times(request: Exemplar) -> tuple[int, int, int, int]:
    """How long (ns) a request was in earlier tries, plugged, queued, and in the device; 0 if not
    known."""
    return (
        request.tried_ns or 0,
        request.plugged_ns or 0,
        request.queued_ns or 0,
        request.device_ns,
    )


def timeline(
    request: Exemplar, others: Sequence[Exemplar], when: str, width: int, charset: Charset
) -> list[Row]:
    """Rows about a request; ``others`` were kept in the same second and the adjacent ones."""
    page = [*_fact_rows(request, when, width, charset), message(width, charset, "")]
    page += _sample_rows(request, others, width, charset)
    page.append(message(width, charset, ""))
    return [*page, *_overlap_rows(request, others, width, charset)]


def _fact_rows(request: Exemplar, when: str, width: int, charset: Charset) -> Iterator[Row]:
    place = f"{f.size(request.size)} " if request.size else ""
    if request.sector is not None:
        offset = f"{request.offset} ({f.size(request.offset)})"
        place += f"at sector {request.sector}, offset {offset} of {printable(request.disk)}, "
    else:
        place += f"of {printable(request.disk)}, "
    yield from wrap(width, charset, f"{when}  {request.kind} {place}flags {request.flags}", BOLD)
    sender = f"{printable(request.comm) or f.MISSING}, process {request.pid}, thread {request.tid}"
    group = f"cgroup {printable(request.group) or f.MISSING}"
    yield from wrap(width, charset, f"sent by {sender}, {group}", None)
    cpus = f"sent on CPU {request.cpu}, completed on CPU {request.cpu_done}"
    yield from wrap(width, charset, f"{cpus}, hardware queue {request.hctx}", None)
    if request.error:
        yield from wrap(width, charset, f"it failed: status {request.error}", WARNING)


def _sample_rows(
    request: Exemplar, others: Sequence[Exemplar], width: int, charset: Charset
) -> Iterator[Row]:
    line = Line(width, charset).add(" " * LABEL).add("total".rjust(FIGURE), DIM)
    for name, mark, style in STAGES:
        line.add(f"{mark} {name}".rjust(FIGURE + 2), style)
    yield line.build()
    longest = max(1, request.total_ns)
    yield from _bar("this request", stage_times(request), longest, width, charset)
    sample = [stage_times(o) for o in others if o.sampled and o.kind == request.kind]
    if not sample:
        yield from wrap(width, charset, NO_SAMPLE)
        return
    middle = [round(median(column)) for column in zip(*sample, strict=True)]
    label = f"median of {len(sample)} random"
    yield from _bar(label, middle, longest, width, charset)


def _bar(
    label: str, parts: Sequence[int], longest: int, width: int, charset: Charset
) -> Iterator[Row]:
    line = Line(width, charset).add(fit(label, LABEL - 1) + " ", BOLD)
    line.add(f.latency(sum(parts)).rjust(FIGURE), BOLD)
    for ns in parts:
        line.add((f.latency(ns) if ns else f.MISSING).rjust(FIGURE + 2))
    yield line.build()
    bar_width, bar = max(10, width - 2), Line(width, charset).add(" ")
    for ns, (_, mark, style) in zip(parts, STAGES, strict=True):
        bar.add(mark * round(bar_width * ns / longest), style)
    yield bar.build()


def _overlap_rows(
    request: Exemplar, others: Sequence[Exemplar], width: int, charset: Charset
) -> Iterator[Row]:
    span = f" ({f.latency(request.total_ns)})"
    yield rule(width, charset, ("meanwhile", BOLD), (span, DIM))
    beside = [
        other for other in others
        if other is not request and other.began_ns < request.completed_ns
        and other.completed_ns > request.began_ns
    ]  # fmt: skip
    if not beside:
        yield from wrap(width, charset, NO_OTHERS)
    lane_width = max(10, width - LABEL - FIGURE - 2)
    for other in sorted(beside, key=_order)[:MAX_OTHERS]:
        yield _lane(other, request, lane_width, width, charset)
    if len(beside) > MAX_OTHERS:
        yield message(width, charset, f"and {len(beside) - MAX_OTHERS} more")
    yield from wrap(width, charset, NOTE)


def _order(request: Exemplar) -> tuple[bool, int]:
    # flushes and discards first, because they delay other requests
    return request.kind in SLOW_KINDS[:2], request.began_ns


def _lane(other: Exemplar, request: Exemplar, lane_width: int, width: int, charset: Charset) -> Row:
    """The request ``other`` on the time axis of ``request``."""
    label = f"{other.kind} {printable(other.comm) or f.MISSING}"
    line = Line(width, charset).add(fit(label, LABEL - 1) + " ")
    line.add(f.latency(other.total_ns).rjust(FIGURE)).add("  ")
    begins, scale = line.used, lane_width / max(1, request.total_ns)
    edges = [other.began_ns]
    for ns in stage_times(other):
        edges.append(edges[-1] + ns)
    for place, (_, mark, style) in enumerate(STAGES):
        first = begins + _cell((edges[place] - request.began_ns) * scale, lane_width - 1)
        last = begins + _cell((edges[place + 1] - request.began_ns) * scale, lane_width)
        line.fill_to(first)
        # draw even a very short part
        shortest = 1 if place == len(STAGES) - 1 else 0
        line.add(mark * max(shortest, last - max(first, line.used)), style)
    return line.build()


def _cell(at: float, lane_width: int) -> int:
    return min(lane_width, max(0, round(at)))
