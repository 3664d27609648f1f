"""A captured workload: text for people, and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from iopstui.features.capture.model import shape
from iopstui.features.capture.model.job import DEPTH_MEANING, describe
from iopstui.features.capture.model.phases import Distance, Phase
from iopstui.features.capture.model.workload import Stream, Workload
from iopstui.format import counted, duration, number, percent, size
from iopstui.tables import aligned
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
    workload: Workload, disk_counted: int | None, comparison: Sequence[Distance] | None,
    files: Sequence[tuple[str, Path]], width: int, phases: Sequence[Phase] = (),
) -> str:  # fmt: skip
    """Text about the captured workload, the written jobs, and how close a job comes to it."""
    lines = [_head(workload, disk_counted), ""]
    for process in workload.processes[:MAX_SHOWN]:
        lines.append(printable(process))
        for stream in workload.streams_of(process).values():
            lines.append(f"  {_line(stream)}")
    more = workload.processes[MAX_SHOWN:]
    if more:
        lines.append(f"and {counted(len(more), 'process', 'processes')} with fewer requests")
    if len(phases) > 1:
        lines += ["", "phases:", *map(_phase, phases)]
    lines += ["", *_caveats(workload)]
    if any(stream.depth is not None for stream in workload.streams):
        lines.append(DEPTH_MEANING)
    for loop, path in files:
        lines.append(f"{printable(str(path))}: {loop} loop, {_LOOPS[loop]}")
    if files:
        lines.append(f"Run it:  iopstui run DIR --job {printable(_as_job(files[0][1]))}")
    if comparison is not None:
        lines += ["", *_table(comparison), "", *_verdict(comparison, width)]
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def workload_json(
    workload: Workload, disk_counted: int | None, comparison: Sequence[Distance] | None,
    phases: Sequence[Phase] = (),
) -> dict[str, Any]:  # fmt: skip
    """The same for programs, as JSON; unknown figures are ``null``."""
    return {
        "device": workload.device,
        "seconds": workload.seconds,
        "requests": workload.ios,
        "disk_counted": disk_counted,
        "lost": workload.lost,
        "missed": workload.missed,
        "requeued": workload.requeued,
        "unknown_process": workload.unknown,
        "filtered": workload.filtered,
        "in_flight": workload.depth,
        "cgroups": {str(count_): count for count_, count in workload.cgroups.items()},
        "total": {kind: _stream_json(totals) for kind, totals in workload.totals.items()},
        "streams": [_stream_json(stream) for stream in workload.streams],
        "phases": [_phase_json(phase) for phase in phases],
        "comparison": None
        if comparison is None
        else [_distance_json(distance) for distance in comparison],
    }


def _head(workload: Workload, disk_counted: int | None) -> str:
    text = (f"Captured on {printable(workload.device)} in {duration(workload.seconds)}: "
            f"{workload.ios + workload.lost:,} requests")  # fmt: skip
    if workload.filtered:
        return f"{text} of the chosen processes"
    if disk_counted is None:
        return text
    flushes = workload.total("flush").sizes.get(0, 0)
    return f"{text} (the disk's own counters: {max(0, disk_counted - flushes):,})"


def _line(stream: Stream) -> str:
    if stream.kind == "flush":
        return f"{number(stream.rate)} flushes/s"
    workers = f", {stream.workers:.1f} at once" if stream.workers >= 1.5 else ""
    return describe(stream) + workers


def _phase(phase: Phase) -> str:
    """A phase in a line: " 0 s to 5 min: 1.2k reads/s of 16 KiB, 90 flushes/s"."""
    parts = []
    for kind, total in phase.workload.totals.items():
        if total.ios:
            mean_size = f" of {size(total.bytes / total.ios)}" if total.bytes else ""
            plural = "flushes" if kind == "flush" else f"{kind}s"
            parts.append(f"{number(total.rate)} {plural}/s{mean_size}")
    text = ", ".join(parts) or "no requests"
    return f"  {duration(phase.start_s)} to {duration(phase.end_s)}: {text}"


def _phase_json(phase: Phase) -> dict[str, Any]:
    totals = {kind: _stream_json(total) for kind, total in phase.workload.totals.items()}
    return {"start": phase.start_s, "end": phase.end_s, "total": totals}


def _caveats(workload: Workload) -> Iterator[str]:
    if workload.lost:
        share = percent(100 * workload.lost / (workload.lost + workload.ios))
        yield (f"{workload.lost:,} requests ({share} %) came too fast to be examined: only the "
               "rates include them.")  # fmt: skip
    if workload.missed > workload.ios / 100:
        yield (f"The beginning of {workload.missed:,} requests was not seen, so the depth shown is "
               "too low.")  # fmt: skip
    if workload.unknown > workload.ios / 100:
        yield f"{workload.unknown:,} requests may belong to another process than the one shown."


def _as_job(path: Path) -> str:
    text = str(path)
    return text if "/" in text else f"./{text}"


def _table(comparison: Sequence[Distance]) -> Iterator[str]:
    rows = [_HEAD, *((distance.name, distance.captured, distance.replayed, _distance(distance),
                      _word(distance)) for distance in comparison)]  # fmt: skip
    yield from aligned(rows, right=(1, 2, 3))


def _distance(distance: Distance) -> str:
    if distance.distance is None:
        return "–"
    return f"x {distance.distance:.2f}" if distance.ratio else f"{distance.distance:.3f}"


def _word(distance: Distance) -> str:
    if distance.bound is None:
        return "result"
    return {None: "not known", True: "close", False: "differs"}[distance.is_close]


def _verdict(comparison: Sequence[Distance], width: int) -> Iterator[str]:
    distant = [distance.name for distance in comparison if distance.is_close is False]
    first = f"Not close: {', '.join(distant)}." if distant else "All figures are close."
    bounds = ("Close means: shares within 5 points, sizes with a Kolmogorov distance up to 0.05, "
              "other figures within a factor of 1.15 (depth: 1.5, burstiness: 2).")  # fmt: skip
    yield from textwrap.wrap(f"{first} {bounds} {_CANNOT}", max(width, _NARROWEST))


def _stream_json(stream: Stream) -> dict[str, Any]:
    random = shape.random_percentage(stream)
    return {
        "process": stream.process or None, "kind": stream.kind, "requests": stream.ios,
        "bytes": stream.bytes, "rate": stream.rate, "sequential": stream.sequential_share,
        "fua": stream.fua, "sync": stream.sync, "depth": stream.depth,
        "workers": stream.workers, "dispersion": stream.dispersion,
        "working_set": stream.working_set, "arrivals": shape.process_of(stream),
        "sizes": {str(length): count for length, count in stream.sizes.items()},
        "depths": {str(depth): count for depth, count in stream.depths.items()},
        "zones": [list(zone) for zone in shape.zones(stream.regions, random)],
    }  # fmt: skip


def _distance_json(distance: Distance) -> dict[str, Any]:
    return {"figure": distance.name, "captured": distance.captured,
            "replayed": distance.replayed, "distance": distance.distance,
            "bound": distance.bound, "close": distance.is_close}  # fmt: skip
