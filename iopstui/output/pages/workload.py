"""A captured workload: text for people, and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from iopstui.format import counted, duration, number, percent, size
from iopstui.model.workload import shape
from iopstui.model.workload.fidelity import Distance
from iopstui.model.workload.job import describe
from iopstui.model.workload.phases import Phase
from iopstui.model.workload.workload import Stream, Workload
from iopstui.text import printable

MAX_SHOWN = 12
_NARROWEST = 40
_HEAD = ("FIGURE", "CAPTURED", "REPLAYED", "DISTANCE", "")
_LOOPS = {"open": "keeps the rate", "closed": "keeps the requests in flight"}
_CANNOT = (
    "fio does not imitate requests that wait for others, pauses that depend on latency, or "
    "metadata of the file system. Nothing beyond these figures was compared."
)


def workload_text(
    found: Workload, disk_counted: int | None, comparison: Sequence[Distance] | None,
    written: Sequence[tuple[str, Path]], width: int, phases: Sequence[Phase] = (),
) -> str:  # fmt: skip
    """What was captured, its jobs, and how close they are."""
    lines = [_head(found, disk_counted), ""]
    for process in found.processes[:MAX_SHOWN]:
        lines.append(printable(process))
        for stream in found.of(process).values():
            lines.append(f"  {_line(stream)}")
    more = found.processes[MAX_SHOWN:]
    if more:
        lines.append(f"and {counted(len(more), 'process', 'processes')} with fewer requests")
    if len(phases) > 1:
        lines += ["", "phases:", *map(_phase, phases)]
    lines += ["", *_caveats(found)]
    for loop, path in written:
        lines.append(f"{printable(str(path))}: {loop} loop, {_LOOPS[loop]}")
    if written:
        lines.append(f"Run it:  iopstui run DIR --job {printable(_as_job(written[0][1]))}")
    if comparison is not None:
        lines += ["", *_table(comparison), "", *_verdict(comparison, width)]
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def workload_json(
    found: Workload, disk_counted: int | None, comparison: Sequence[Distance] | None,
    phases: Sequence[Phase] = (),
) -> dict[str, Any]:  # fmt: skip
    """For programs; of figures that are not known ``null``."""
    return {
        "device": found.device,
        "seconds": found.seconds,
        "requests": found.ios,
        "disk_counted": disk_counted,
        "lost": found.lost,
        "missed": found.missed,
        "requeued": found.requeued,
        "unknown_process": found.unknown,
        "filtered": found.filtered,
        "in_flight": found.depth,
        "cgroups": {str(one): count for one, count in found.cgroups.items()},
        "total": {kind: _stream_json(one) for kind, one in found.totals.items()},
        "streams": [_stream_json(one) for one in found.streams],
        "phases": [_phase_json(one) for one in phases],
        "comparison": None if comparison is None else [_distance_json(one) for one in comparison],
    }


def _head(found: Workload, disk_counted: int | None) -> str:
    text = (f"Captured on {printable(found.device)} in {duration(found.seconds)}: "
            f"{found.ios + found.lost:,} requests")  # fmt: skip
    if found.filtered:
        return f"{text} of the chosen processes"
    if disk_counted is None:
        return text
    flushes = found.total("flush").sizes.get(0, 0)
    return f"{text} (the disk's own counters: {max(0, disk_counted - flushes):,})"


def _line(stream: Stream) -> str:
    if stream.kind == "flush":
        return f"{number(stream.rate)} flushes/s"
    workers = f", {stream.workers:.1f} at once" if stream.workers >= 1.5 else ""
    return describe(stream) + workers


def _phase(one: Phase) -> str:
    """ "  0 s to 5 min: 1.2k reads/s of 16 KiB, 90 flushes/s"."""
    words = []
    for kind, total in one.workload.totals.items():
        if total.ios:
            each = f" of {size(total.bytes / total.ios)}" if total.bytes else ""
            plural = "flushes" if kind == "flush" else f"{kind}s"
            words.append(f"{number(total.rate)} {plural}/s{each}")
    what = ", ".join(words) or "no requests"
    return f"  {duration(one.start_s)} to {duration(one.end_s)}: {what}"


def _phase_json(one: Phase) -> dict[str, Any]:
    totals = {kind: _stream_json(total) for kind, total in one.workload.totals.items()}
    return {"start": one.start_s, "end": one.end_s, "total": totals}


def _caveats(found: Workload) -> Iterator[str]:
    if found.lost:
        share = percent(100 * found.lost / (found.lost + found.ios))
        yield (f"{found.lost:,} requests ({share} %) came too fast to be looked at: they count in "
               "no figure but the rates.")  # fmt: skip
    if found.missed > found.ios / 100:
        yield f"{found.missed:,} requests ended whose beginning was not seen: the depth is too low."
    if found.unknown > found.ios / 100:
        yield f"{found.unknown:,} requests may belong to another process than is shown."


def _as_job(path: Path) -> str:
    text = str(path)
    return text if "/" in text else f"./{text}"


def _table(comparison: Sequence[Distance]) -> Iterator[str]:
    rows = [_HEAD, *((one.name, one.captured, one.replayed, _distance(one), _word(one))
                     for one in comparison)]  # fmt: skip
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEAD))]
    for row in rows:
        first = row[0].ljust(widths[0])
        yield "  ".join([first, *(cell.rjust(w) for cell, w in
                                  zip(row[1:4], widths[1:4], strict=True)), row[4]])  # fmt: skip


def _distance(one: Distance) -> str:
    if one.distance is None:
        return "–"
    return f"x {one.distance:.2f}" if one.ratio else f"{one.distance:.3f}"


def _word(one: Distance) -> str:
    if one.bound is None:
        return "result"
    return {None: "not known", True: "close", False: "differs"}[one.close]


def _verdict(comparison: Sequence[Distance], width: int) -> Iterator[str]:
    apart = [one.name for one in comparison if one.close is False]
    first = f"Not close: {', '.join(apart)}." if apart else "All figures are close."
    bounds = ("Close means: shares within 5 points, sizes with a Kolmogorov distance up to 0.05, "
              "other figures within a factor of 1.15 (depth: 1.5, burstiness: 2).")  # fmt: skip
    yield from textwrap.wrap(f"{first} {bounds} {_CANNOT}", max(width, _NARROWEST))


def _stream_json(one: Stream) -> dict[str, Any]:
    random = shape.random_percentage(one)
    return {
        "process": one.process or None, "kind": one.kind, "requests": one.ios, "bytes": one.bytes,
        "rate": one.rate, "sequential": one.sequential_share, "fua": one.fua, "sync": one.sync,
        "depth": one.depth, "workers": one.workers, "dispersion": one.dispersion,
        "working_set": one.working_set, "arrivals": shape.process_of(one),
        "sizes": {str(length): count for length, count in one.sizes.items()},
        "depths": {str(depth): count for depth, count in one.depths.items()},
        "zones": [list(zone) for zone in shape.zones(one.regions, random)],
    }  # fmt: skip


def _distance_json(one: Distance) -> dict[str, Any]:
    return {"figure": one.name, "captured": one.captured, "replayed": one.replayed,
            "distance": one.distance, "bound": one.bound, "close": one.close}  # fmt: skip
