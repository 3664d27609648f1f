"""A report of many hosts: a page, Markdown, CSV or JSON of their JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from iopstui import __version__
from iopstui import format as units
from iopstui.errors import UsageError
from iopstui.model.rates import MIB
from iopstui.output.jsonl import clean
from iopstui.report.drawing.parts import pairs, table
from iopstui.report.drawing.svg import Curve, Times, chart, heat, linear, logarithmic
from iopstui.report.fleet import wording as words
from iopstui.report.fleet.story import FleetStory, gather_fleet
from iopstui.report.html import page_of
from iopstui.report.markdown import table as md_table
from iopstui.report.markdown import text as md_text
from iopstui.report.story import HEAT_ROWS_PER_DECADE

SCHEMA = 1
MOST_HOSTS = 200
RANKS = (("p99.9", "p999"), ("p99", "p99"), ("p50", "p50"))


def fleet_report(paths: Sequence[Path], kind: str, redact: bool) -> str:
    """The report's text. UsageError for several files, or one without frames."""
    if len(paths) > 1:
        raise UsageError("A recording of many hosts is reported by itself.",
                         "To add several up first: iopstui merge FILE... --format jsonl > ALL",
                         )  # fmt: skip
    return _RENDER[kind](gather_fleet(paths[0], redact))


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
    parts += ["## Hosts, the slowest first", "", *md_table(words.HOST_HEAD, hosts[:MOST_HOSTS]), ""]
    parts += [f"{left} more are in CSV and JSON.", ""] if left > 0 else []
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
    drawn = [f"<figure>{one}</figure>" for one in _charts(story) if one]
    parts += ["<h2>Charts</h2>", '<div class="charts">', *drawn, "</div>"] if drawn else []
    seconds = table(words.SECOND_HEAD, words.second_rows(story), left=2)
    parts += [
        "<h2>Hosts, the slowest first</h2>", table(words.HOST_HEAD, words.host_rows(story), left=2),
        f"<details><summary>the numbers behind the charts ({words.which_seconds(story)})</summary>",
        seconds, "</details>",
    ]  # fmt: skip
    return page_of(f"iopstui: {words.heading(story)}", parts, story.file)


def _charts(story: FleetStory) -> list[str]:
    if not story.seconds:
        return []
    times = Times(0.0, max(story.length_s, story.interval_s))
    rows, middle = story.seconds, story.interval_s / 2
    curves = [
        Curve(name, style, [(row.t + middle, row.rates.get(name)) for row in rows])
        for name, style in (("read", "fio"), ("write", "device"))
        if any(row.rates.get(name) for row in rows)
    ]
    top = linear([value or 0.0 for curve in curves for _, value in curve.points])
    moved = [(row.t + middle, row.bw / MIB if row.bw is not None else None) for row in rows]
    ranks = [
        Curve(name, style, [(row.t + middle, row.latencies.get(name)) for row in rows])
        for name, style in RANKS
    ]
    seen = [value for curve in ranks for _, value in curve.points if value]
    drawn = [
        chart("IOPS of all hosts that are counted", curves, top, units.number, times),
        chart("MiB/s", [Curve("all", "fio", moved)], linear([v or 0.0 for _, v in moved]),
              units.number, times),
        chart("hosts that are counted",
              [Curve("hosts", "fio", [(row.t + middle, float(row.counted)) for row in rows])],
              linear([float(row.expected) for row in rows]), units.number, times),
    ]  # fmt: skip
    if seen:
        drawn.insert(1, chart("latency of all I/Os of all hosts, logarithmic", ranks,
                              logarithmic(seen), units.latency, times))  # fmt: skip
    return [*drawn, _heat(story, times)]


def _heat(story: FleetStory, times: Times) -> str:
    cells = story.heat.cells
    if not cells:
        return ""
    lows = [row for _, row in cells]
    covered = Times(0.0, story.heat.columns * story.heat.width * story.interval_s)
    return heat(
        "latency, every I/O of all hosts: the stronger the colour, the more of that moment's I/Os",
        cells, (min(lows), max(lows)), story.heat.columns, HEAT_ROWS_PER_DECADE, units.latency,
        Times(0.0, max(times.end, covered.end)), covered=covered,
    )  # fmt: skip


def _csv(story: FleetStory) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    ranks = ("p50", "p99", "p99.9", "p99.99")
    writer.writerow(("t", "wall_ms", "utc", "counted", "expected", "read.iops", "write.iops",
                     "trim.iops", "bw", *ranks, "slowest"))  # fmt: skip
    for row in story.seconds:
        cells = [
            row.t, row.wall_ms, units.utc(row.wall_ms), row.counted, row.expected,
            *(row.rates.get(name) for name in ("read", "write", "trim")), row.bw,
            *(row.latencies.get(name) for name in ranks), row.slowest,
        ]  # fmt: skip
        writer.writerow("" if cell is None else cell for cell in cells)
    return out.getvalue()


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
    "html": _html, "md": _markdown, "csv": _csv, "json": _json
}  # fmt: skip
