"""Schemas of the JSON documents that only a fleet writes."""

from __future__ import annotations

from iopstui.features.fleet.merging.sums import LATENCIES, LOSS_COUNTS, WITH_BINS
from iopstui.model.figures.figure import TOTAL
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.probe import KINDS
from iopstui.model.samples import DIRECTIONS
from iopstui.output.schema import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Schema,
    array,
    keyed,
    or_null,
    overview_schema,
    record,
)

# The schema of the JSON report on many hosts.


PERCENTILE_SCHEMAS = {
    **dict.fromkeys(map(percentile_name, PERCENTILES), or_null(INTEGER)),
    "max": or_null(INTEGER),
}
"""Latencies in ns."""
BINS = {"bins": keyed(INTEGER)}
"""The number of I/Os by latency in ns."""


def fleet_report_schema(strict: bool) -> Schema:
    """The schema of the report. Rates are per second, sizes in bytes, latencies in ns."""
    fio = or_null(_fio(strict))
    count = {"ios": INTEGER, "bytes": INTEGER, "fio_ios": or_null(INTEGER),
             "fio_bytes": or_null(INTEGER), "verdict": or_null(TEXT)}  # fmt: skip
    host = {
        "host": TEXT, "outcome": or_null(TEXT), "ended": BOOLEAN, "error": or_null(TEXT),
        "seconds_not_counted": INTEGER, "count": record(count, strict), "fio": fio,
    }  # fmt: skip
    run = {"run": INTEGER, "job": TEXT, "hosts": INTEGER, "finished": INTEGER, "how": TEXT,
           "said": array(TEXT), "fio": fio}  # fmt: skip
    second = {
        "t": NUMBER, "wall_ms": NUMBER, "counted": INTEGER, "expected": INTEGER,
        "rates": keyed(NUMBER), "bw": NUMBER, "latencies": keyed(INTEGER), "slowest": TEXT,
        "kernel": keyed(NUMBER), "util": keyed(NUMBER),
    }  # fmt: skip
    return record(
        {
            "report": {"const": 1}, "iopstui": TEXT, "file": TEXT,
            "overview": overview_schema(strict), "interval_s": NUMBER,
            "words": array(TEXT), "spread_ms": NUMBER, "clocks_within_ms": NUMBER,
            "left_out": INTEGER, "fio": fio, "device": or_null(_device(strict)),
            "hosts": array(record(host, strict)),
            "verdicts": array({"type": "object"}), "runs": array(record(run, strict)),
            "seconds": array(record(second, strict)),
        },
        strict,
    )  # fmt: skip


def _fio(strict: bool) -> Schema:
    directions = {name: or_null(_direction_schema(True, strict)) for name in DIRECTIONS}
    return record({**directions, TOTAL: _direction_schema(False, strict)}, strict)


def _direction_schema(with_bins: bool, strict: bool) -> Schema:
    keys: dict[str, Schema] = {"iops": NUMBER, "bw": NUMBER, "ios": INTEGER, "bytes": INTEGER}
    for kind in LATENCIES:
        more = {**PERCENTILE_SCHEMAS, **(BINS if with_bins else {})} if kind in WITH_BINS else {}
        keys[kind] = record({"mean": NUMBER, "n": INTEGER, "sum_ns": INTEGER, **more}, strict)
    return record(keys, strict)


def _device(strict: bool) -> Schema:
    keys: dict[str, Schema] = {"hosts": INTEGER, "seconds": NUMBER}
    for kind in (*KINDS, TOTAL):
        more = BINS if kind != TOTAL else {}
        keys[kind] = record(
            {"iops": NUMBER, "ios": INTEGER, "mean": NUMBER, **PERCENTILE_SCHEMAS, **more}, strict
        )
    counts = dict.fromkeys(LOSS_COUNTS, INTEGER)
    return record({**keys, **counts, "missed": NUMBER, "missed_ios": INTEGER}, strict)


DOCUMENTS = {"fleet_report": fleet_report_schema}
