"""The schema of the JSON report on many hosts (report/fleet/page.py)."""

from __future__ import annotations

from iopstui.fleet.merging.probe_sums import COUNTS
from iopstui.fleet.merging.sums import LATENCIES, WITH_BINS
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.paths import TOTAL
from iopstui.model.metrics.probe import KINDS
from iopstui.model.samples import DIRECTIONS
from iopstui.output.schema.notation import (
    NUMBER,
    TEXT,
    TRUTH,
    WHOLE,
    Schema,
    array,
    keyed,
    or_null,
    record,
)

RANKS = {**dict.fromkeys(map(percentile_name, PERCENTILES), or_null(WHOLE)), "max": or_null(WHOLE)}
"""In ns."""
BINS = {"bins": keyed(WHOLE)}
"""Counts by latency in ns."""


def fleet_report_schema(strict: bool) -> Schema:
    """The whole schema. Rates are per second, sizes in bytes, latencies in ns."""
    fio = or_null(_fio(strict))
    count = {"ios": WHOLE, "bytes": WHOLE, "fio_ios": or_null(WHOLE), "fio_bytes": or_null(WHOLE),
             "verdict": or_null(TEXT)}  # fmt: skip
    host = {
        "host": TEXT, "outcome": or_null(TEXT), "ended": TRUTH, "error": or_null(TEXT),
        "seconds_not_counted": WHOLE, "count": record(count, strict), "fio": fio,
    }  # fmt: skip
    run = {"run": WHOLE, "job": TEXT, "hosts": WHOLE, "finished": WHOLE, "how": TEXT,
           "said": array(TEXT), "fio": fio}  # fmt: skip
    second = {
        "t": NUMBER, "wall_ms": NUMBER, "counted": WHOLE, "expected": WHOLE,
        "rates": keyed(NUMBER), "bw": NUMBER, "latencies": keyed(WHOLE), "slowest": TEXT,
        "kernel": keyed(NUMBER), "util": keyed(NUMBER),
    }  # fmt: skip
    return record(
        {
            "report": {"const": 1}, "iopstui": TEXT, "file": TEXT, "interval_s": NUMBER,
            "words": array(TEXT), "spread_ms": NUMBER, "clocks_within_ms": NUMBER,
            "left_out": WHOLE, "fio": fio, "device": or_null(_device(strict)),
            "hosts": array(record(host, strict)), "runs": array(record(run, strict)),
            "seconds": array(record(second, strict)),
        },
        strict,
    )  # fmt: skip


def _fio(strict: bool) -> Schema:
    found = {name: or_null(_direction_schema(True, strict)) for name in DIRECTIONS}
    return record({**found, TOTAL: _direction_schema(False, strict)}, strict)


def _direction_schema(with_bins: bool, strict: bool) -> Schema:
    keys: dict[str, Schema] = {"iops": NUMBER, "bw": NUMBER, "ios": WHOLE, "bytes": WHOLE}
    for kind in LATENCIES:
        more = {**RANKS, **(BINS if with_bins else {})} if kind in WITH_BINS else {}
        keys[kind] = record({"mean": NUMBER, "n": WHOLE, "sum_ns": WHOLE, **more}, strict)
    return record(keys, strict)


def _device(strict: bool) -> Schema:
    keys: dict[str, Schema] = {"hosts": WHOLE, "seconds": NUMBER}
    for kind in (*KINDS, TOTAL):
        more = BINS if kind != TOTAL else {}
        keys[kind] = record({"iops": NUMBER, "ios": WHOLE, "mean": NUMBER, **RANKS, **more}, strict)
    counts = dict.fromkeys(COUNTS, WHOLE)
    return record({**keys, **counts, "missed": NUMBER, "missed_ios": WHOLE}, strict)
