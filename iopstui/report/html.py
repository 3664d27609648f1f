"""A report as one HTML page that needs nothing else: no network, no script.

The page is well-formed XML too. Everything recorded goes through ``html.escape``; the page's own
Content-Security-Policy forbids whatever could load something.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from iopstui import __version__
from iopstui import format as units
from iopstui.report.drawing.charts import Scales, charts
from iopstui.report.drawing.parts import pairs, table, titled
from iopstui.report.experiment_html import experiment_html
from iopstui.report.run import Run
from iopstui.report.series import points
from iopstui.report.story import Story
from iopstui.report.wording import comparing, repeating
from iopstui.report.wording import recording as words
from iopstui.text import printable

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
MOST_SECONDS = 120
MOST_OPEN = 3


def html_page(stories: Sequence[Story]) -> str:
    """The page of one recording, or of several side by side on the same scales."""
    title = "iopstui: " + " / ".join(words.heading(story) for story in stories)
    scales = Scales(stories)
    # of more than two each has the whole width
    sides = "two" if len(stories) == 2 else "one"
    parts = [
        *(_comparison(stories, scales) if len(stories) > 1 else ()),
        f'<div class="sides {sides}">',
        *(part for story in stories for part in _side(story, scales)),
        "</div>",
    ]
    return page_of(title, parts, ", ".join(printable(story.path.name) for story in stories))


def page_of(title: str, parts: Sequence[str], made_from: str) -> str:
    """A whole page with these ``parts`` in its body."""
    lines = [
        "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8"/>',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<title>{escape(title)}</title>", f"<style>{_style()}</style>", "</head>", "<body>",
        *parts,
        f'<p class="dim">Made by iopstui {escape(__version__)} from {escape(made_from)}.</p>',
        "</body>", "</html>",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _style() -> str:
    return (files("iopstui") / "data" / "report.css").read_text("utf-8")


def _side(story: Story, scales: Scales) -> list[str]:
    return [
        "<section>",
        f"<h1>{escape(words.heading(story))}</h1>",
        *_warnings(story),
        pairs(words.facts(story)),
        *(part for one in story.experiments for part in experiment_html(story, one)),
        *_folded("Runs", _runs(story), len(story.runs), _over_runs(story)),
        *_waits(story),
        *titled("Findings", words.findings(story)),
        *titled("Outcomes", (line for run in story.runs for line in words.verdicts(run))),
        *_charts(story, scales),
        *titled("What happened", words.happened(story)),
        *(["<h2>Settings</h2>", *_settings(story), "<h2>Repeat it</h2>"]
          if not story.foreign else ["<h2>Options</h2>"]),
        *(f"<pre>{escape(repeating.repeat_experiment(story, one))}</pre>"
          for one in story.experiments),
        *_folded("", [part for run in story.runs for part in _repeat(story, run)],
                 len(story.runs)),
        *_seconds(story),
        "</section>",
    ]  # fmt: skip


def _folded(title: str, parts: list[str], count: int, first: Sequence[str] = ()) -> list[str]:
    """Long parts of an experiment, folded: shown on request, so that they don't hide the
    rest. ``first`` stands before them in any case."""
    heading = [*([f"<h2>{title}</h2>"] if title else []), *first]
    if count <= MOST_OPEN:
        return [*heading, *parts]
    return [*heading, f"<details><summary>each of the {count} runs</summary>", *parts, "</details>"]


def _warnings(story: Story) -> list[str]:
    return [f'<p class="warn">{escape(printable(story.ends))}.</p>'] if story.ends else []


def _charts(story: Story, scales: Scales) -> list[str]:
    drawn = charts(story, scales)
    return ["<h2>Charts</h2>", '<div class="charts">', *drawn, "</div>"] if drawn else []


def _runs(story: Story) -> list[str]:
    if not story.runs:
        return ["<p>No job ran: these figures show other programs' I/O.</p>"]
    parts = []
    for run in story.runs:
        when = ""
        if run.begin is not None:
            when = f", {units.clock(run.begin)} to {units.clock(run.end)}"
        parts.append(
            f"<h3>Run {run.step}: {escape(words.name_of(run))}"
            f' <span class="dim">{escape(printable(run.title))}{when}</span></h3>'
        )
        ending = words.ending(run)
        parts += [f'<p class="warn">{escape(ending)}</p>'] if ending else []
        rows = list(words.run_rows(run))
        if rows:
            parts += [f"<p>{words.run_title(run)}</p>", table(words.RUN_HEAD, rows, left=3)]
        parts.append(f"<p>{escape(words.reconciled(run))}</p>")
        probed = list(words.probe_rows(run))
        if probed:
            parts += [f"<p>{words.PROBED}</p>", table(words.PROBE_HEAD, probed, left=2)]
        parts += [f"<p>{escape(words.bound(run))}</p>"] if words.bound(run) else []
    if story.foreign:
        return [*parts, *_histograms(story)]
    parts.append("<p>Device figures and latencies of each run, from all its frames:</p>")
    parts.append(
        table(words.DEVICE_HEAD, list(words.device_rows(story.header.target, story.runs)), left=1)
    )
    return parts


def _waits(story: Story) -> list[str]:
    head, rows = words.wait_table(story)
    if not rows:
        return []
    return [f"<h2>{words.WAITS}</h2>", f"<p>{escape(words.WAITS_MEAN)}</p>",
            table(head, rows, left=1)]  # fmt: skip


def _histograms(story: Story) -> list[str]:
    """Of results of fio: their histograms as tables (a chart shows them, too)."""
    parts = []
    for run in story.runs:
        if run.all_bins:
            rows = list(words.histogram_rows(run))
            parts += [f"<p>{escape(words.all_latencies(run))}</p>",
                      "<details><summary>the histogram as a table</summary>",
                      table(words.HISTOGRAM_HEAD, rows, left=1), "</details>"]  # fmt: skip
    return parts


def _side_by_side(story: Story) -> list[str]:
    rows = words.side_by_side(story)
    if not rows:
        return []
    return [f"<p>{escape(words.SIDE_BY_SIDE)}</p>", table(words.SIDE_HEAD, rows, left=2)]


def _over_runs(story: Story) -> list[str]:
    return [*_side_by_side(story), *_between_marks(story)]


def _between_marks(story: Story) -> list[str]:
    rows = list(words.stretch_rows(story))
    return [f"<p>{words.STRETCHES}</p>", table(words.STRETCH_HEAD, rows, left=2)] if rows else []


def _settings(story: Story) -> list[str]:
    parts = []
    for device in story.devices:
        parts.append(f"<h3>{escape(printable(device.name))}</h3>")
        parts.append(pairs(words.device_facts(device)))
    return parts or ["<p>No block device is visible under the target.</p>"]


def _repeat(story: Story, run: Run) -> list[str]:
    parts = [f"<h3>Run {run.step}</h3>"]
    again = "" if run.point else repeating.repeat(story, run)
    if again:
        parts.append(f"<pre>{escape(again)}</pre>")
    if run.started is not None and run.started.command:
        parts.append("<p>fio command:</p>")
        parts.append(f"<pre>{escape(repeating.command(run))}</pre>")
    if run.asked is not None and run.asked.text:
        text = escape(words.block(run.asked.text))
        parts.append(
            f"<details><summary>{words.job_file_title(story)} (save it as job.fio, name a file of "
            f"yours in it, and: fio job.fio)</summary><pre>{text}</pre></details>"
        )
    return parts


def _seconds(story: Story) -> list[str]:
    """The numbers behind the charts, for those who can't see them or want to copy them."""
    names = ("fio", "device", "p50", "p99", "p99.9", "aqu-sz", "busy")
    series = {name: points(story.series, name) for name in names}
    count = len(series["fio"])
    each = max(1, -(-count // MOST_SECONDS))
    rows = []
    for place in range(0, count, each):
        values = [series[name][place][1] for name in names]
        cells = [
            units.latency(value) if name.startswith("p") else units.number(value)
            for name, value in zip(names, values, strict=True)
        ]
        rows.append((units.clock(series["fio"][place][0]), *cells))
    head = ("time", "fio IOPS", "device IO/s", "p50", "p99", "p99.9", "aqu-sz", "CPU busy %")
    which = "every sample" if each == 1 else f"every {each}th point of the charts"
    return [
        f"<details><summary>Chart data ({which})</summary>",
        table(head, rows, left=1),
        "</details>",
    ]


def _comparison(stories: Sequence[Story], scales: Scales) -> list[str]:
    """All recordings' figures in one table."""
    head, rows = comparing.comparison(stories)
    parts = [f"<h1>{comparing.together(stories)}</h1>"]
    parts += [table(head, rows, left=1), f"<p>{escape(comparing.NO_PROOF)}</p>"] if rows else []
    aligned = comparing.alignment_note(stories, scales.times is not None)
    return [*parts, f"<p>{escape(aligned)}</p>"] if aligned else parts
