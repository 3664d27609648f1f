"""A report of many hosts: a page, Markdown, JSON or a table (rows.py) of their JSON lines."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from iopstui import __version__
from iopstui.errors import UsageError
from iopstui.output.jsonl import clean
from iopstui.report.fleet import wording as words
from iopstui.report.fleet.charts import charts
from iopstui.report.fleet.report_data import FleetReportData, load_fleet_report
from iopstui.report.fleet.rows import write_csv, write_parquet
from iopstui.report.markup import Block, Charts, FoldedBlocks, Heading, Pairs, Text, html
from iopstui.report.page import html_of, markdown_of
from iopstui.report.report_options import ReportOptions
from iopstui.tables import Table

SCHEMA = 1
MAX_HOSTS = 200


def fleet_report(paths: Sequence[Path], kind: str, options: ReportOptions) -> str:
    """The report's text; errors as of ``write_fleet``."""
    if kind in ROWS:
        out = io.BytesIO()
        write_fleet(paths, kind, options, out)
        return out.getvalue().decode()
    if options.against is not None:
        raise UsageError("--against compares runs of one machine, and this is a fleet's recording.",
                         "Leave out --against.")  # fmt: skip
    return _RENDER[kind](load_fleet_report(_single_path(paths), options.redact))


def write_fleet(paths: Sequence[Path], kind: str, options: ReportOptions, out: BinaryIO) -> None:
    """Write one of ROWS. UsageError for several files, or one without frames."""
    ROWS[kind](_single_path(paths), options.redact, out)


def _single_path(paths: Sequence[Path]) -> Path:
    if len(paths) > 1:
        raise UsageError("A recording of many hosts cannot be combined with others in a report.",
                         "To add up several first: iopstui merge FILE... --format jsonl > ALL",
                         )  # fmt: skip
    return paths[0]


def _blocks(data: FleetReportData, drawn: Sequence[str], most: int) -> Iterator[Block]:
    """Its content, with at most ``most`` hosts."""
    yield from (Heading(1, words.heading(data)), Pairs([*words.facts(data)]))
    if data.runs:
        yield from (
            Heading(2, "Runs"),
            Table.from_rows(words.RUNS, words.run_rows(data), left_columns=2),
        )
    if rows := [*words.totals_rows(data)]:
        yield from (Heading(2, words.totals_title(data)), Table.from_rows(words.WHOLE, rows))
    if drawn:
        yield from (Heading(2, "Charts"), Charts(drawn))
    hosts = words.host_rows(data)
    yield from (
        Heading(2, "Hosts, slowest first"),
        Table.from_rows(words.HOSTS, hosts[:most], left_columns=2),
    )
    if len(hosts) > most:
        yield Text(f"{len(hosts) - most} more hosts: see CSV and JSON.")
    seconds = Table.from_rows(words.SECONDS, words.second_rows(data), left_columns=2)
    yield FoldedBlocks(f"Seconds ({words.which_seconds(data)})", [seconds])


def _markdown(data: FleetReportData) -> str:
    return markdown_of(_blocks(data, (), MAX_HOSTS), data.file)


def _html(data: FleetReportData) -> str:
    drawn = [f"<figure>{chart}</figure>" for chart in charts(data) if chart]
    body = [*html(_blocks(data, drawn, sys.maxsize))]
    return html_of(f"iopstui: {words.heading(data)}", body, data.file)


def _json(data: FleetReportData) -> str:
    hosts = [
        {"host": data.names(name), "outcome": host.outcome or None, "ended": host.has_ended,
         "error": data.errors.get(name), "seconds_not_counted": data.absent_seconds.get(name, 0),
         "count": host.io_totals.as_object(), "fio": host.run_sums().fio_object()}
        for name, host in data.hosts.items()
    ]  # fmt: skip
    document = {
        "report": SCHEMA, "iopstui": __version__, "file": data.file,
        "interval_s": data.interval_s, "words": [*words.endings(data)],
        "spread_ms": data.spread[0] if data.spread else None,
        "clocks_within_ms": data.spread[1] if data.spread else None,
        "left_out": data.broken_lines, "fio": data.totals.fio_object(),
        "device": data.totals.device.as_object(), "hosts": hosts,
        "runs": [
            {"run": row.number, "job": cells["job"], "hosts": row.hosts, "finished": row.finished,
             "how": row.ending, "said": [] if data.redact else list(row.messages),
             "fio": row.totals.fio_object()}
            for row, cells in zip(data.runs, words.run_rows(data), strict=True)
        ],
        "seconds": [asdict(row) for row in data.seconds],
    }  # fmt: skip
    return json.dumps(clean(document), indent=1, allow_nan=False) + "\n"


_RENDER: Mapping[str, Callable[[FleetReportData], str]] = {
    "html": _html, "md": _markdown, "json": _json
}  # fmt: skip
ROWS: Mapping[str, Callable[[Path, bool, BinaryIO], None]] = {
    "csv": write_csv, "parquet": write_parquet
}  # fmt: skip
"""What is a table."""
