"""A report as Markdown, for tickets and mails."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from iopstui import __version__
from iopstui import format as units
from iopstui.report import experiment as experiment
from iopstui.report.experiment import Experiment
from iopstui.report.run import Run
from iopstui.report.story import Story
from iopstui.report.wording import comparing, repeating
from iopstui.report.wording import recording as words
from iopstui.text import printable

# an underscore inside a word is none of emphasis
_ACTIVE = re.compile(r"([\\`*{}\[\]<>#|!~$&]|(?<!\w)_|_(?!\w))")


def markdown(stories: Sequence[Story]) -> str:
    """One recording after the other; of several, what they have in common stands first."""
    parts: list[str] = []
    if len(stories) > 1:
        parts += [f"# iopstui: {comparing.together(stories).lower()}", ""]
        head, rows = comparing.comparison(stories)
        parts += [*table(head, rows), "", comparing.NO_PROOF, ""] if rows else []
    for story in stories:
        parts += _story(story)
    names = ", ".join(text(story.path.name) for story in stories)
    parts += [f"Made by iopstui {__version__} from {names}."]
    return "\n".join(parts) + "\n"


def text(raw: str) -> str:
    """Recorded text with all markup escaped."""
    return _ACTIVE.sub(r"\\\1", printable(raw))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; the first column is left-aligned."""
    lines = ["| " + " | ".join(text(cell) for cell in head) + " |"]
    lines.append("|---|" + "---:|" * (len(head) - 1))
    return lines + ["| " + " | ".join(text(cell) for cell in row) + " |" for row in rows]


def fenced(content: str) -> list[str]:
    """Text as it is; the fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, content, fence]


def _story(story: Story) -> Iterator[str]:
    yield from (f"# iopstui: {text(words.heading(story))}", "")
    if story.ends:
        yield from (f"**{text(story.ends)}.**", "")
    yield from table(("", ""), words.facts(story))
    yield ""
    for one in story.experiments:
        yield from _experiment(one)
    yield from ("## Runs", "")
    if not story.runs:
        yield from ("No job ran: these figures show other programs' I/O.", "")
    side = words.side_by_side(story)
    if side:
        yield from (words.SIDE_BY_SIDE, "", *table(words.SIDE_HEAD, side), "")
    between = list(words.stretch_rows(story))
    if between:
        yield from (words.STRETCHES, "", *table(words.STRETCH_HEAD, between), "")
    for run in story.runs:
        yield from _run(run)
    if story.foreign:
        yield from _histogram(story)
    elif story.runs:
        yield from ("Device figures and latencies of each run, from all its frames:", "")
        yield from table(words.DEVICE_HEAD, words.device_rows(story.header.target, story.runs))
        yield ""
    head, waits = words.wait_table(story)
    if waits:
        yield from (f"## {words.WAITS}", "", words.WAITS_MEAN, "", *table(head, waits), "")
    yield from _list("Findings", words.findings(story))
    yield from _list("Outcomes", (line for run in story.runs for line in words.verdicts(run)))
    yield from _list("What happened", words.happened(story))
    if story.foreign:
        yield from _options(story)
        return
    yield from ("## Settings", "")
    for device in story.devices:
        yield from table((device.name, ""), words.device_facts(device))
        yield ""
    yield from ("## Repeat it", "")
    for one in story.experiments:
        yield from (*fenced(repeating.repeat_experiment(story, one)), "")
    for run in story.runs:
        yield from _repeat(story, run)


def _histogram(story: Story) -> Iterator[str]:
    for run in story.runs:
        if run.all_bins:
            yield from (text(words.all_latencies(run)), "")
            yield from (*table(words.HISTOGRAM_HEAD, words.histogram_rows(run)), "")


def _options(story: Story) -> Iterator[str]:
    for run in story.runs:
        if run.asked is not None and run.asked.text:
            title = words.job_file_title(story)
            yield from (f"## {title}", "")
            yield from (*fenced(words.block(run.asked.text)), "")


def _experiment(one: Experiment) -> Iterator[str]:
    yield from (f"## {text(one.title)}", "")
    ending = experiment.ending(one)
    if ending:
        yield from (f"**{text(ending)}**", "")
    if not one.points:
        return
    yield from (*(f"- {text(line)}" for line in experiment.result_sentences(one)), "")
    yield f"Each point: {one.plan.settle:g} s to settle, then {one.plan.measure:g} s measured."
    yield from ("", *table(*experiment.points_table(one)), "")
    if one.plan.variants:
        for head, rows in (*experiment.differences(one), *experiment.cpu_tables(one)):
            yield from (*table(head, rows), "")
        yield from (text(experiment.method(one)), "")
        return
    head, rows = experiment.point_cpus(one)
    if rows:
        yield from (*table(head, rows), "")
    grid = experiment.verdict_grid(one)
    if grid:
        yield from (*fenced(grid), "")
    verdicts = experiment.outcome_lines(one)
    if verdicts:
        yield from (*(f"- {text(line)}" for line in verdicts), "")


def _run(run: Run) -> Iterator[str]:
    when = ""
    if run.begin is not None:
        when = f", {units.clock(run.begin)} to {units.clock(run.end)}"
    yield from (f"### Run {run.step}: {text(words.name_of(run))} ({text(run.title)}{when})", "")
    ending = words.ending(run)
    if ending:
        yield from (f"**{text(ending)}**", "")
    rows = list(words.run_rows(run))
    if rows:
        yield from (words.run_title(run), "")
        yield from table(words.RUN_HEAD, rows)
        yield ""
    yield from (text(words.reconciled(run)), "")
    probed = list(words.probe_rows(run))
    if probed:
        yield from (words.PROBED, "")
        yield from table(words.PROBE_HEAD, probed)
        yield ""
    if words.bound(run):
        yield from (text(words.bound(run)), "")


def _list(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield from (f"## {title}", "", *(f"- {text(line)}" for line in found), "")


def _repeat(story: Story, run: Run) -> Iterator[str]:
    yield from (f"Run {run.step}:", "")
    again = "" if run.point else repeating.repeat(story, run)
    if again:
        yield from (*fenced(again), "")
    if run.started is not None:
        yield from ("fio command:", "", *fenced(repeating.command(run)), "")
    if run.asked is not None:
        yield from ("Job file:", "", *fenced(words.block(run.asked.text)), "")
