"""The content of a report, as blocks for all formats that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iopstui import format as units
from iopstui.report import experiment as experiment_pages
from iopstui.report.drawing.charts import Scales, charts
from iopstui.report.drawing.experiment_charts import experiment_charts
from iopstui.report.experiment import Experiment
from iopstui.report.folding.run import Run
from iopstui.report.folding.series import points
from iopstui.report.markup import (
    Block,
    Bullets,
    Charts,
    Code,
    FoldedBlocks,
    Heading,
    Pairs,
    Table,
    Text,
    list_with_heading,
)
from iopstui.report.story import Story
from iopstui.report.wording import recording as words
from iopstui.report.wording import repeat_command, side_by_side, slowest_requests
from iopstui.session.run_rows import MARK_COLUMNS, run_columns

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures

MAX_SECONDS = 120
MAX_OPEN = 3


def comparison(stories: Sequence[Story], scales: Scales | None) -> Iterator[Block]:
    """Comparison of several recordings; no charts without ``scales``."""
    yield Heading(1, side_by_side.subject(stories))
    head, rows = side_by_side.comparison(stories)
    if rows:
        yield from (Table(head, rows), Text(side_by_side.NO_PROOF))
    note = "" if scales is None else side_by_side.alignment_note(stories, scales.times is not None)
    if note:
        yield Text(note)


def story_blocks(story: Story, scales: Scales | None) -> Iterator[Block]:
    """One recording; without ``scales`` there are no charts, and not their numbers."""
    yield Heading(1, words.heading(story))
    if story.ending:
        yield Text(f"{story.ending}.", "warn")
    yield Pairs([*words.facts(story)])
    for experiment in story.experiments:
        yield from _experiment(story, experiment, scales)
    yield Heading(2, "Runs")
    yield from _several_runs(story)
    yield from _folded(story, [*_runs(story)])
    head, waits = words.wait_table(story)
    if waits:
        yield from (Heading(2, words.WAITS), Text(words.WAITS_MEAN), Table(head, waits))
    yield from _slowest(story)
    yield from _other_counters(story)
    if story.promised is not None:
        yield from _promised(story, story.promised)
    yield from list_with_heading("Findings", words.findings(story))
    yield from list_with_heading(
        "Outcomes", (line for run in story.runs for line in words.verdicts(run))
    )
    drawn = charts(story, scales) if scales is not None else ()
    if drawn:
        yield from (Heading(2, "Charts"), Charts(drawn))
    yield from list_with_heading("Events", words.event_lines(story))
    if story.foreign:
        yield Heading(2, "Options")
    else:
        yield from (Heading(2, "Settings"), *_settings(story), Heading(2, "Repeat it"))
    for experiment in story.experiments:
        yield Code(repeat_command.repeat_experiment(story, experiment))
    yield from _folded(story, [block for run in story.runs for block in _repeat(story, run)])
    if scales is not None:
        yield _seconds(story)


def _slowest(story: Story) -> Iterator[Block]:
    rows = [*slowest_requests.rows(story)]
    if rows:
        yield from (Heading(2, slowest_requests.TITLE), Text(slowest_requests.NOTE))
        yield Table(slowest_requests.HEAD, rows, left_columns=slowest_requests.LEFT)
        claims = slowest_requests.claims(story)
        if claims:
            yield from (Text(slowest_requests.COMMON), Bullets(claims))
    of_fio = [*slowest_requests.io_rows(story)]
    if of_fio:
        yield from (Heading(2, slowest_requests.IOS_TITLE), Text(slowest_requests.IOS_NOTE))
        yield Table(slowest_requests.IOS_HEAD, of_fio, left_columns=2)
        shared = slowest_requests.io_claims(story)
        if shared:
            yield from (Text(slowest_requests.IOS_COMMON), Bullets(shared))


def _other_counters(story: Story) -> Iterator[Block]:
    """What the runs did to drives, power and mounts, by counters that are not the disks'."""
    drives = words.drive_rows(story)
    if drives:
        yield Heading(2, words.DRIVES)
        yield from (Text(words.DRIVES_NOTE), Table(words.DRIVE_HEAD, drives, left_columns=2))
    energy = words.energy_rows(story)
    if energy:
        yield Heading(2, words.ENERGY)
        yield from (Text(words.ENERGY_NOTE), Table(words.ENERGY_HEAD, energy, left_columns=1))
    for protocol, note in words.SHARE_NOTES.items():
        shares = words.share_rows(story, protocol)
        if shares:
            yield Heading(2, f"{protocol} mount")
            yield from (Text(note), Table(words.share_head(protocol), shares, left_columns=2))


def _promised(story: Story, figures: PromisedFigures) -> Iterator[Block]:
    from iopstui.report.wording import promised_volume

    rows = [*promised_volume.rows(story, figures)]
    yield Heading(2, promised_volume.title(figures))
    if rows:
        yield from (
            Table(promised_volume.HEAD, rows, left_columns=4),
            Text(promised_volume.NOTE, "dim"),
        )
    else:
        yield Text("No run did any I/O.")


def _folded(story: Story, blocks: Sequence[Block]) -> Sequence[Block]:
    """The many runs of an experiment are folded, so that they don't hide the rest."""
    count = len(story.runs)
    return blocks if count <= MAX_OPEN else [FoldedBlocks(f"All {count} runs, one by one", blocks)]


def _experiment(story: Story, experiment: Experiment, scales: Scales | None) -> Iterator[Block]:
    yield Heading(2, experiment.title)
    ending = experiment_pages.ending(experiment)
    if ending:
        yield Text(ending, "warn")
    if not experiment.points:
        return
    yield Bullets(experiment_pages.result_sentences(experiment))
    if scales is not None:
        yield Charts(experiment_charts(story, experiment))
    yield Text(
        f"Each point: {experiment.plan.settle:g} s to settle, then "
        f"{experiment.plan.measure:g} s measured.",
        "dim",
    )
    yield Table(
        *experiment_pages.points_table(experiment),
        left_columns=3 if experiment.plan.variants else 1,
    )
    if experiment.plan.variants:
        for head, rows in (
            *experiment_pages.differences(experiment),
            *experiment_pages.cpu_tables(experiment),
        ):
            yield Table(head, rows)
        yield Text(experiment_pages.method(experiment), "dim")
        return
    head, rows = experiment_pages.point_cpus(experiment)
    if rows:
        yield Table(head, rows, left_columns=2)
    grid = experiment_pages.verdict_grid(experiment)
    if grid:
        yield Code(grid)
    outcomes = experiment_pages.outcome_lines(experiment)
    if outcomes:
        yield FoldedBlocks("Checks at each point", [Bullets(outcomes)])


def _several_runs(story: Story) -> Iterator[Block]:
    side = words.side_by_side(story)
    if side:
        yield from (
            Text(words.SIDE_BY_SIDE),
            Table.from_rows(run_columns(side), side, left_columns=2),
        )
    if story.mark_intervals:
        yield from (
            Text(words.MARK_INTERVALS),
            Table.from_rows(MARK_COLUMNS, story.mark_intervals, left_columns=2),
        )


def _runs(story: Story) -> Iterator[Block]:
    if not story.runs:
        yield Text("No job ran: these figures show other programs' I/O.")
        return
    for run in story.runs:
        yield from _run(run)
    if not story.foreign:
        yield Text("Device figures and latencies of each run, from all its intervals:")
        yield Table(words.DEVICE_HEAD, [*words.device_rows(story.header.target, story.runs)])
        return
    for run in story.runs:
        if run.all_bins:
            yield Text(words.all_latencies(run))
            table = Table(words.HISTOGRAM_HEAD, [*words.histogram_rows(run)])
            yield FoldedBlocks("The histogram as a table", [table])


def _run(run: Run) -> Iterator[Block]:
    when = ""
    if run.begin is not None:
        when = f", {units.clock(run.begin)} to {units.clock(run.end)}"
    yield Heading(3, f"Run {run.step}: {words.name_of(run)}", f"{run.title}{when}")
    ending = words.ending(run)
    if ending:
        yield Text(ending, "warn")
    rows = [*words.run_rows(run)]
    if rows:
        yield from (Text(words.run_title(run)), Table(words.RUN_HEAD, rows, left_columns=3))
    yield Text(words.reconciled(run))
    captured = [*words.captured_rows(run)]
    if captured:
        yield from (Text(words.CAPTURED), Table(words.CAPTURED_HEAD, captured, left_columns=2))
    probed = [*words.probe_rows(run)]
    if probed:
        yield from (Text(words.PROBED), Table(words.PROBE_HEAD, probed, left_columns=2))
    if bound := words.bound_cpus(run):
        yield Text(bound)


def _settings(story: Story) -> Iterator[Block]:
    for device in story.devices:
        yield from (Heading(3, device.name), Pairs([*words.device_facts(device)]))
    if not story.devices:
        yield Text("No block device is visible under the target.")


def _repeat(story: Story, run: Run) -> Iterator[Block]:
    yield Heading(3, f"Run {run.step}")
    command = "" if run.point else repeat_command.repeat(story, run)
    if command:
        yield Code(command)
    if run.started is not None and run.started.command:
        yield from (Text("fio command:"), Code(repeat_command.command(run)))
    if run.job_run is not None and run.job_run.text:
        summary = (
            f"{words.job_file_title(story)} (save it as job.fio, name a file of yours in it, and: "
            "fio job.fio)"
        )
        yield FoldedBlocks(summary, [Code(words.block(run.job_run.text))])


def _seconds(story: Story) -> Block:
    """The numbers behind the charts, for those who can't see them or want to copy them."""
    names = ("fio", "device", "p50", "p99", "p99.9", "aqu-sz", "busy")
    series = {name: points(story.series, name) for name in names}
    count = len(series["fio"])
    step = max(1, -(-count // MAX_SECONDS))
    rows = []
    for place in range(0, count, step):
        values = [series[name][place][1] for name in names]
        cells = [
            units.latency(value) if name.startswith("p") else units.number(value)
            for name, value in zip(names, values, strict=True)
        ]
        rows.append((units.clock(series["fio"][place][0]), *cells))
    head = ("time", "fio IOPS", "device IO/s", "p50", "p99", "p99.9", "aqu-sz", "CPU busy %")
    step_text = "every sample" if step == 1 else f"every {step}th point of the charts"
    return FoldedBlocks(f"Chart data ({step_text})", [Table(head, rows)])
