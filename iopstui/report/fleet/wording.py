"""Wording shared by all formats of a report on many hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from iopstui.fleet.merging.sums import LatencySum
from iopstui.format import MISSING, counted, duration, latency, number, utc
from iopstui.model.metrics.paths import DEVICE
from iopstui.model.samples import DIRECTIONS
from iopstui.model.sizes import MIB
from iopstui.output.fleet.wording import ending, executed_text
from iopstui.report.fleet.report_data import FleetReportData
from iopstui.report.redact import REDACTED

SHOWN = ("p50", "p99", "p99.9", "p99.99")
WHOLE_HEAD = ("", "IOPS", "MiB/s", "mean", *SHOWN, "max")
HOST_HEAD = (
    "host",
    "ended",
    "IOPS",
    "MiB/s",
    *SHOWN,
    "max",
    "seconds not counted",
    "fio's count",
)
SECOND_HEAD = ("UTC", "hosts", "read", "write", "MiB/s", "p50", "p99", "p99.9", "slowest")
RUN_HEAD = ("run", "job", "hosts", "IOPS", "MiB/s", "p50", "p99", "p99.9", "ended")
MAX_SECONDS = 120
Row = tuple[str, ...]


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


def totals_rows(data: FleetReportData) -> Iterator[Row]:
    """The whole run of all hosts by direction: fio's I/Os, and the requests that probes counted."""
    for name in DIRECTIONS:
        part = data.totals.fio.get(name)
        if part is not None:
            yield name, number(part.iops), number(part.bw / MIB), *_latencies(part.main)
    device = data.totals.device
    for kind, direction in device.directions():
        hosts = f"{device.hosts} of {counted(data.certificate.hosts, 'host')}"
        yield (f"device {kind} ({hosts})", number(direction.iops), MISSING,
               *_latencies(direction.latency(DEVICE)))  # fmt: skip


def _latencies(latencies: LatencySum) -> Row:
    """The mean, percentiles and the maximum."""
    ranks = latencies.percentiles
    return (latency(latencies.mean), *(latency(ranks.get(rank)) for rank in SHOWN),
            latency(latencies.max_ns or None))  # fmt: skip


def totals_title(data: FleetReportData) -> str:
    """The title of ``totals_rows``."""
    return f"All I/Os of all hosts{', of all runs together' if data.has_several_runs else ''}"


def run_rows(data: FleetReportData) -> list[Row]:
    """A row for each of several runs, with what was said of it."""
    rows = []
    for row in data.runs:
        total = row.totals.total
        ranks = total.main.percentiles if total is not None else {}
        # what was said names hosts
        text = "; ".join((row.ending, *(() if data.redact else row.messages)))
        rows.append((
            str(row.number), data.names.text(row.job),
            f"{row.finished}/{row.hosts}",
            number(total.iops if total else None), number(total.bw / MIB if total else None),
            *(latency(ranks.get(rank)) for rank in ("p50", "p99", "p99.9")), text,
        ))  # fmt: skip
    return rows


def host_rows(data: FleetReportData) -> list[Row]:
    """A row for each host, the one with the highest p99 first."""
    rows = []
    for name, host in data.hosts.items():
        total = host.run_sums().total
        main = total.main if total is not None else None
        ranks = main.percentiles if main is not None else {}
        outcome = host.outcome or ("ended" if host.has_ended else "lost")
        error = data.errors.get(name, "")
        rows.append((-ranks.get("p99", 0), (
            data.names(name), f"{outcome}: {error}" if error and error != REDACTED else outcome,
            number(total.iops if total else None), number(total.bw / MIB if total else None),
            *(latency(ranks.get(rank)) for rank in SHOWN), latency(main.max_ns if main else None),
            str(data.absent_seconds.get(name, 0)), host.io_totals.verdict,
        )))  # fmt: skip
    return [row for _, row in sorted(rows)]


def second_rows(data: FleetReportData) -> list[Row]:
    """Totals by second; of many every n-th."""
    step = max(1, -(-len(data.seconds) // MAX_SECONDS))
    return [
        (
            (utc(row.wall_ms) or "")[11:19], f"{row.counted}/{row.expected}",
            *(number(row.rates.get(name)) for name in ("read", "write")),
            number(row.bw / MIB if row.bw is not None else None),
            *(latency(row.latencies.get(name)) for name in ("p50", "p99", "p99.9")), row.slowest,
        )
        for row in data.seconds[::step]
    ]  # fmt: skip


def which_seconds(data: FleetReportData) -> str:
    """Which of them ``second_rows`` has."""
    step = max(1, -(-len(data.seconds) // MAX_SECONDS))
    return "every row" if step == 1 else f"every {step}th row; CSV and JSON have all"
