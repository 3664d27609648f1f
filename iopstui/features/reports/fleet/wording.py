"""Wording shared by all formats of a report on many hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from iopstui.features.reports.fleet.report_data import FleetReportData, SecondRow
from iopstui.features.reports.redact import REDACTED
from iopstui.fleet.merging.sums import Object
from iopstui.format import counted, duration, latency, number, utc
from iopstui.model.metrics.paths import DEVICE
from iopstui.model.samples import DIRECTIONS
from iopstui.output.fleet.wording import (
    direction_cells,
    direction_columns,
    ending,
    executed_text,
)
from iopstui.tables import Column, texts

SHOWN = ("p50", "p99", "p99.9", "p99.99")
_IOPS, _BW, _MEAN, *_RANKS, _MAX = direction_columns(SHOWN)
WHOLE = (Column("name", ""), *direction_columns(SHOWN))
HOSTS = (
    Column("host", "host"), Column("outcome", "ended"), _IOPS, _BW, *_RANKS, _MAX,
    Column("absent", "seconds not counted"), Column("verdict", "fio's count"),
)  # fmt: skip
RUNS = (
    Column("run", "run"), Column("job", "job"), Column("hosts", "hosts"), _IOPS, _BW, *_RANKS[:3],
    Column("ended", "ended"),
)  # fmt: skip
SECONDS = (
    Column("wall_ms", "UTC", form=lambda wall_ms: (utc(wall_ms) or "")[11:19]),
    Column("", "hosts", read=lambda row: f"{row.counted}/{row.expected}"),
    *(Column(f"rates/{name}", name, form=number) for name in ("read", "write")), _BW,
    *(Column(f"latencies/{name}", name, form=latency) for name in SHOWN[:3]),
    Column("slowest", "slowest"),
)  # fmt: skip
MAX_SECONDS = 120


def heading(data: FleetReportData) -> str:
    """Return its title."""
    return f"{counted(data.certificate.hosts, 'host')} together"


def facts(data: FleetReportData) -> Iterator[tuple[str, str]]:
    """Names and values."""
    yield "file", data.file
    if data.seconds:
        begin, end = data.seconds[0].wall_ms, data.seconds[-1].wall_ms
        yield "from", f"{utc(begin)} to {utc(end + data.interval_s * 1000)}"
        full = sum(row.counted == row.expected for row in data.seconds)
        yield (
            "measured",
            (
                f"{duration(data.length_s)}; in {full} of {len(data.seconds)} rows of "
                f"{data.interval_s:g} s all hosts that took part are counted"
            ),
        )
    if data.spread is not None:
        yield "started", executed_text(*data.spread, f"{len(data.start_times)} hosts")
    yield "hosts", " ".join(endings(data))
    yield from data.omissions


def endings(data: FleetReportData) -> Iterator[str]:
    """Describe how the hosts ended, and whether the sums match fio's."""
    certificate = data.certificate
    shown = replace(certificate)
    for kind in ("failed", "interrupted", "lost", "differs", "unchecked", "ramp"):
        setattr(shown, kind, tuple(map(data.names, getattr(certificate, kind))))
    for line in ending(shown):
        yield f"{line[0].upper()}{line[1:].rstrip('.')}."


def totals_rows(data: FleetReportData) -> Iterator[Object]:
    """The whole run of all hosts by direction: fio's I/Os, and the requests that probes counted."""
    for name in DIRECTIONS:
        if name in data.totals.fio:
            yield {"name": name, **direction_cells(data.totals.fio[name])}
    device = data.totals.device
    for kind, direction in device.directions():
        hosts = f"{device.hosts} of {counted(data.certificate.hosts, 'host')}"
        yield {"name": f"device {kind} ({hosts})", **direction_cells(direction, DEVICE)}


def totals_title(data: FleetReportData) -> str:
    """The title of ``totals_rows``."""
    return f"All I/Os of all hosts{', of all runs together' if data.has_several_runs else ''}"


def run_rows(data: FleetReportData) -> list[Object]:
    """A row for each of several runs, with what was said of it."""
    return [
        {"run": row.number, "job": data.names.text(row.job), "hosts": f"{row.finished}/{row.hosts}",
         # what was said names hosts
         "ended": "; ".join((row.ending, *(() if data.redact else row.messages))),
         **direction_cells(row.totals.total)}
        for row in data.runs
    ]  # fmt: skip


def host_rows(data: FleetReportData) -> list[Object]:
    """A row for each host, the one with the highest p99 first."""
    rows = []
    for name, host in data.hosts.items():
        outcome = host.outcome or ("ended" if host.has_ended else "lost")
        error = data.errors.get(name, "")
        row = {
            "host": data.names(name), "absent": data.absent_seconds.get(name, 0),
            "outcome": f"{outcome}: {error}" if error and error != REDACTED else outcome,
            "verdict": host.io_totals.verdict, **direction_cells(host.run_sums().total),
        }  # fmt: skip
        rows.append((-row["latencies"].percentiles.get("p99", 0), texts(HOSTS, row), row))
    return [row for *_, row in sorted(rows, key=lambda placed: placed[:2])]


def second_rows(data: FleetReportData) -> list[SecondRow]:
    """Totals by second; of many every n-th."""
    return data.seconds[:: max(1, -(-len(data.seconds) // MAX_SECONDS))]


def which_seconds(data: FleetReportData) -> str:
    """Which of them ``second_rows`` has."""
    step = max(1, -(-len(data.seconds) // MAX_SECONDS))
    return "every row" if step == 1 else f"every {step}th row; CSV and JSON have all"
