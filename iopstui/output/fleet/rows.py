"""Totals as plain data, for JSON lines, CSV and further merging."""

from __future__ import annotations

from iopstui import __version__
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.merger import MergedInterval, Merger
from iopstui.fleet.merging.sums import Object
from iopstui.format import utc
from iopstui.model.metrics.paths import SCHEMA


def session_object(label: str) -> Object:
    """The first line: totals follow."""
    return {
        "event": "session", "host": label, "schema": SCHEMA, "iopstui": __version__, "merged": True,
    }  # fmt: skip


def second_object(second: MergedInterval, label: str) -> Object:
    """A second's totals; ``label`` is whose."""
    slowest = second.sums.slowest
    return {
        "event": "total",
        "host": label,
        "schema": SCHEMA,
        "second": second.number,
        "interval_s": second.interval_s,
        "wall_ms": second.wall_ms,
        "utc": utc(second.wall_ms),
        "hosts": {
            "expected": second.expected,
            "counted": second.counted,
            "missing": list(second.missing),
            "incomplete": list(second.incomplete),
        },
        "flags": dict(sorted(second.flags.items())),
        "slowest": {"host": slowest[1], "p99": slowest[0]} if slowest else None,
        "fio": second.sums.fio_object(),
        "kernel": second.sums.kernel.as_object(),
        "device": second.sums.device.as_object(),
    }


def merged_object(merger: Merger, label: str) -> Object:
    """Totals of all hosts from start to end, and whether they are complete."""
    rates = merger.run_sums()
    certificate = certify_merge(merger).as_object()
    slowest = rates.slowest
    return {
        "event": "merged",
        "host": label,
        "schema": SCHEMA,
        "interval_s": merger.interval_s,
        "hosts": certificate["hosts"],
        "lost": certificate["lost"],
        "late": dict(sorted(merger.late_frames.items())),
        "count": certificate["count"],
        "slowest": {"host": slowest[1], "p99": slowest[0]} if slowest else None,
        "fio": rates.fio_object(),
        "kernel": None,
        "device": rates.device.as_object(),
    }
