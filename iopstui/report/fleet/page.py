"""A report of many hosts: a page, Markdown, JSON or a table (rows.py) of their JSON lines."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import BinaryIO

from iopstui import __version__
from iopstui.errors import UsageError
from iopstui.output.jsonl import clean
from iopstui.report.drawing.parts import pairs, table
from iopstui.report.fleet import wording as words
from iopstui.report.fleet.charts import charts
from iopstui.report.fleet.rows import put_csv, put_parquet
from iopstui.report.fleet.story import FleetStory, gather_fleet
from iopstui.report.html import page_of
from iopstui.report.markdown import table as md_table
from iopstui.report.markdown import text as md_text

SCHEMA = 1
MOST_HOSTS = 200


def fleet_report(paths: Sequence[Path], kind: str, redact: bool) -> str:
    """The report's text; errors as of ``put_fleet``."""
    if kind in ROWS:
        out = io.BytesIO()
        put_fleet(paths, kind, redact, out)
        return out.getvalue().decode()
    return _RENDER[kind](gather_fleet(_one(paths), redact))


def put_fleet(paths: Sequence[Path], kind: str, redact: bool, out: BinaryIO) -> None:
    """Write one of ROWS. UsageError for several files, or one without frames."""
    ROWS[kind](_one(paths), redact, out)


def _one(paths: Sequence[Path]) -> Path:
    if len(paths) > 1:
        raise UsageError("A recording of many hosts cannot be combined with others in a report.",
                         "To add up several first: iopstui merge FILE... --format jsonl > ALL",
                         )  # fmt: skip
    return paths[0]


def _markdown(story: FleetStory) -> str:
    hosts = words.host_rows(story)
    left = len(hosts) - MOST_HOSTS
    parts = [f"# iopstui: {md_text(words.heading(story))}", "",
             *md_table(("", ""), words.facts(story)), ""]  # fmt: skip
    if story.runs:
        parts += ["## Runs", "", *md_table(words.RUN_HEAD, words.run_rows(story)), ""]
    whole = [*words.whole_rows(story)]
    if whole:
        parts += [f"## {words.whole_title(story)}", "", *md_table(words.WHOLE_HEAD, whole), ""]
    parts += ["## Hosts, slowest first", "", *md_table(words.HOST_HEAD, hosts[:MOST_HOSTS]), ""]
    parts += [f"{left} more hosts: see CSV and JSON.", ""] if left > 0 else []
    parts += [f"## Seconds ({words.which_seconds(story)})", "",
              *md_table(words.SECOND_HEAD, words.second_rows(story)), "",
              f"Made by iopstui {__version__} from {md_text(story.file)}."]  # fmt: skip
    return "\n".join(parts) + "\n"


def _html(story: FleetStory) -> str:
    whole = [*words.whole_rows(story)]
    parts = [f"<h1>{escape(words.heading(story))}</h1>", pairs(words.facts(story))]
    if story.runs:
        parts += ["<h2>Runs</h2>", table(words.RUN_HEAD, words.run_rows(story), left=2)]
    if whole:
        parts += [f"<h2>{words.whole_title(story)}</h2>", table(words.WHOLE_HEAD, whole, left=1)]
    drawn = [f"<figure>{one}</figure>" for one in charts(story) if one]
    parts += ["<h2>Charts</h2>", '<div class="charts">', *drawn, "</div>"] if drawn else []
    seconds = table(words.SECOND_HEAD, words.second_rows(story), left=2)
    parts += [
        "<h2>Hosts, slowest first</h2>", table(words.HOST_HEAD, words.host_rows(story), left=2),
        f"<details><summary>Chart data ({words.which_seconds(story)})</summary>",
        seconds, "</details>",
    ]  # fmt: skip
    return page_of(f"iopstui: {words.heading(story)}", parts, story.file)


def _json(story: FleetStory) -> str:
    hosts = [
        {"host": story.name(name), "outcome": host.outcome or None, "ended": host.ended,
         "error": story.errors.get(name), "seconds_not_counted": story.absent.get(name, 0),
         "count": host.counted.as_object(), "fio": host.rated().fio_object()}
        for name, host in story.hosts.items()
    ]  # fmt: skip
    whole = {
        "report": SCHEMA, "iopstui": __version__, "file": story.file,
        "interval_s": story.interval_s, "words": [*words.endings(story)],
        "spread_ms": story.spread[0] if story.spread else None,
        "clocks_within_ms": story.spread[1] if story.spread else None,
        "left_out": story.broken, "fio": story.whole.fio_object(),
        "device": story.whole.device.as_object(), "hosts": hosts,
        "runs": [
            {"run": row.number, "job": job, "hosts": row.hosts, "finished": row.finished,
             "how": row.how, "said": [] if story.redact else list(row.said),
             "fio": row.whole.fio_object()}
            for row, (_, job, *_) in zip(story.runs, words.run_rows(story), strict=True)
        ],
        "seconds": [asdict(row) for row in story.seconds],
    }  # fmt: skip
    return json.dumps(clean(whole), indent=1, allow_nan=False) + "\n"


_RENDER: Mapping[str, Callable[[FleetStory], str]] = {
    "html": _html, "md": _markdown, "json": _json
}  # fmt: skip
ROWS: Mapping[str, Callable[[Path, bool, BinaryIO], None]] = {
    "csv": put_csv, "parquet": put_parquet
}  # fmt: skip
"""What is a table."""
