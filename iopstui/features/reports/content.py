"""The content of a report as blocks, for all formats that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iopstui import format as units
from iopstui.features.reports import comparisons, words
from iopstui.features.reports import experiment as experiment_pages
from iopstui.features.reports.charts import Scales, charts, experiment_charts
from iopstui.features.reports.experiment import Experiment
from iopstui.features.reports.overview import overview
from iopstui.features.reports.report_data import ReportData
from iopstui.features.reports.run import Run
from iopstui.features.reports.series import QUEUE, points
from iopstui.model.figures.figure import by_name
from iopstui.model.metrics.probe import SLOW_REQUEST, SlowRequest
from iopstui.model.metrics.slow.common_properties import common_properties
from iopstui.model.metrics.slow.slow_ios import slow_ios
from iopstui.output.page.markup import (
    Block,
    Bullets,
    Charts,
    Code,
    FoldedBlocks,
    Heading,
    Pairs,
    Text,
    html,
    html_of,
    list_with_heading,
    markdown_of,
)
from iopstui.output.summary import rate_times_text
from iopstui.session.run_rows import MARK_COLUMNS, run_columns
from iopstui.tables import Column, Table
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.model.volumes.promised import PromisedFigures

_ROWS = by_name(SLOW_REQUEST)
SLOW_COLUMNS = (
    Column("t", "time", form=units.clock), _ROWS["disk"].column(form=printable),
    *(_ROWS[name].column() for name in ("direction", "rwbs", "sector", "offset", "size")),
    Column("exemplar", "process",
           form=lambda each: f"{printable(each.comm) or units.MISSING} ({each.pid})"),
    _ROWS["cgroup"].column(form=lambda name: printable(name) or units.MISSING),
    Column("exemplar", "CPUs", form=lambda each: f"{each.cpu} → {each.cpu_done}"),
    *(_ROWS[name].column() for name in ("total", "tried", "plugged", "queued", "device")),
)  # fmt: skip
IOS_COLUMNS = (
    Column("run", "run"), Column("io/direction", "direction"),
    Column("io/latency_ns", "clat", form=units.latency),
    Column("io/size", "size", form=units.size), Column("io/offset", "offset", form=units.size),
    Column("io/job", "job"), Column("io/t", "s into the job", form="{:.3f}".format),
)  # fmt: skip
NOTE = (
    "From allocation to completion: tried until the driver last sent it back, plugged until "
    "inserted into the scheduler or queue, queued until issued to the driver, then in the device. "
    "Process: who sent it."
)
IOS_NOTE = "From fio's own log of each I/O, which shows the job's side only, not the kernel's."
MAX_SECONDS = 120
MAX_OPEN = 3


def markdown(reports: Sequence[ReportData]) -> str:
    """The report as Markdown, one recording after another. If there are several, their comparison
    comes first."""
    blocks = [*comparison(reports, None)] if len(reports) > 1 else []
    blocks += [block for data in reports for block in report_blocks(data, None)]
    return markdown_of(blocks, _names(reports))


def html_page(reports: Sequence[ReportData]) -> str:
    """The HTML page of one recording, or of several side by side with the same scales."""
    title = "iopstui: " + " / ".join(words.heading(data) for data in reports)
    scales = Scales(reports)
    # only two recordings are side by side
    sides = "two" if len(reports) == 2 else "one"
    body = [*html(comparison(reports, scales))] if len(reports) > 1 else []
    body.append(f'<div class="sides {sides}">')
    for data in reports:
        body += ["<section>", *html(report_blocks(data, scales)), "</section>"]
    return html_of(title, [*body, "</div>"], _names(reports))


def _names(reports: Sequence[ReportData]) -> str:
    return ", ".join(printable(data.path.name) for data in reports)


def comparison(reports: Sequence[ReportData], scales: Scales | None) -> Iterator[Block]:
    """The comparison of several recordings; without ``scales`` it has no charts."""
    yield Heading(1, comparisons.subject(reports))
    table = comparisons.comparison(reports)
    if table.rows:
        yield from (table, Text(comparisons.NO_PROOF))
    note = "" if scales is None else comparisons.alignment_note(reports, scales.times is not None)
    if note:
        yield Text(note)


def report_blocks(data: ReportData, scales: Scales | None) -> Iterator[Block]:
    """The blocks of one recording; without ``scales`` there are neither charts nor tables of their
    numbers."""
    yield Heading(1, words.heading(data))
    if data.ending:
        yield Text(f"{data.ending}.", "warn")
    drawn = [] if scales is None else charts(data, scales)
    curves = [[] if scales is None else experiment_charts(data, experiment)
              for experiment in data.experiments]  # fmt: skip
    yield from overview(data).blocks(next(filter(None, [*curves, drawn]), []))
    yield Pairs([*words.facts(data)])
    for experiment, curve in zip(data.experiments, curves, strict=True):
        yield from _experiment(experiment, curve)
    yield Heading(2, "Runs")
    yield from _several_runs(data)
    yield from _folded(data, [*_runs(data)])
    yield from _section(words.WAITS, words.WAITS_MEAN, words.wait_table(data))
    yield from _slowest(data)
    yield from _other_counters(data)
    if data.promised is not None:
        yield from _promised(data, data.promised)
    yield from list_with_heading("Findings", words.findings(data))
    yield from list_with_heading(
        "Outcomes", (line for run in data.runs for line in words.verdicts(run))
    )
    if drawn:
        yield from (Heading(2, "Charts"), Charts(drawn))
    yield from list_with_heading("Events", words.event_lines(data))
    if data.foreign:
        yield Heading(2, "Options")
    else:
        yield from (Heading(2, "Settings"), *_settings(data), Heading(2, "Repeat it"))
    for experiment in data.experiments:
        yield Code(words.repeat_experiment(data, experiment))
    yield from _folded(data, [block for run in data.runs for block in _repeat(data, run)])
    if scales is not None:
        yield _seconds(data)


def _slowest(data: ReportData) -> Iterator[Block]:
    requests = [SlowRequest(request, t) for t, request in data.slowest.all()]
    yield from _section("Slowest requests", NOTE, Table.from_rows(SLOW_COLUMNS, requests, 4))
    if requests and (claims := common_properties(data.slowest.selection())):
        yield Text("What the slowest of the whole recording have in common beyond chance (not "
                   "necessarily the cause):")  # fmt: skip
        yield Bullets([f"{printable(claim.text)}." for claim in claims])
    ios = [{"run": run.step, "io": io} for run in data.runs for io in slow_ios(run.slowest_ios)]
    yield from _section("Slowest I/Os", IOS_NOTE, Table.from_rows(IOS_COLUMNS, ios, 2))
    common = [
        f"{f'run {run.step}: ' if len(data.runs) > 1 else ''}{printable(claim)}."
        for run in data.runs for claim in run.slowest_ios.get("in_common", ())
    ]  # fmt: skip
    if ios and common:
        yield Text("What they have in common beyond chance (not necessarily the cause):")
        yield Bullets(common)


def _section(title: str, note: str, table: Table) -> Iterator[Block]:
    """A table with its heading and a note; nothing if the table is empty."""
    if table.rows:
        yield from (Heading(2, title), Text(note), table)


def _other_counters(data: ReportData) -> Iterator[Block]:
    """What the runs did to drives, energy and mounts, by counters other than those of the disks."""
    drives = Table.from_rows(words.DRIVE_COLUMNS, words.drive_rows(data), left_columns=2)
    yield from _section(words.DRIVES, words.DRIVES_NOTE, drives)
    counted = [run for run in data.runs if run.energy.joules]
    energy = Table.from_rows(words.ENERGY_COLUMNS, counted)
    yield from _section(words.ENERGY, words.ENERGY_NOTE, energy)
    for protocol, note in words.SHARE_NOTES.items():
        yield from _section(f"{protocol} mount", note, words.share_table(data, protocol))


def _promised(data: ReportData, figures: PromisedFigures) -> Iterator[Block]:
    rows = [*comparisons.promised_rows(data, figures)]
    yield Heading(2, comparisons.promised_title(figures))
    if rows:
        yield from (
            Table(comparisons.PROMISED_HEAD, rows, left_columns=4),
            Text(comparisons.PROMISED_NOTE, "dim"),
        )
    else:
        yield Text(comparisons.why_nothing_promised(data))


def _folded(data: ReportData, blocks: Sequence[Block]) -> Sequence[Block]:
    """``blocks``, collapsed if they are the many runs of an experiment, so that they don't hide the
    rest."""
    count = len(data.runs)
    return blocks if count <= MAX_OPEN else [FoldedBlocks(f"All {count} runs, one by one", blocks)]


def _experiment(experiment: Experiment, curves: Sequence[str]) -> Iterator[Block]:
    yield Heading(2, experiment.title)
    ending = experiment_pages.ending(experiment)
    if ending:
        yield Text(ending, "warn")
    if not experiment.points:
        return
    yield Bullets(experiment_pages.result_sentences(experiment))
    if curves:
        yield Charts(curves)
    yield Text(
        f"Each point: {experiment.plan.settle:g} s to settle, then "
        f"{experiment.plan.measure:g} s measured.",
        "dim",
    )
    yield experiment_pages.points_table(experiment)
    if experiment.plan.variants:
        yield from experiment_pages.compared_tables(experiment)
        yield Text(experiment_pages.method(experiment), "dim")
        return
    cpus = experiment_pages.point_cpus(experiment)
    if cpus.rows:
        yield cpus
    grid = experiment_pages.verdict_grid(experiment)
    if grid:
        yield Code(grid)
    outcomes = experiment_pages.outcome_lines(experiment)
    if outcomes:
        yield FoldedBlocks("Checks at each point", [Bullets(outcomes)])


def _several_runs(data: ReportData) -> Iterator[Block]:
    side = words.side_by_side(data)
    if side:
        yield from (
            Text(words.SIDE_BY_SIDE),
            Table.from_rows(run_columns(side), side, left_columns=2),
        )
    if data.mark_intervals:
        yield from (
            Text(words.MARK_INTERVALS),
            Table.from_rows(MARK_COLUMNS, data.mark_intervals, left_columns=2),
        )


def _runs(data: ReportData) -> Iterator[Block]:
    if not data.runs:
        yield Text("The readable part has no run." if data.ending
                   else "No job ran: these figures show other programs' I/O.")  # fmt: skip
        return
    for run in data.runs:
        yield from _run(run)
    if not data.foreign:
        yield Text("Device figures and latencies of each run, from all its intervals:")
        yield Table(words.DEVICE_HEAD, [*words.device_rows(data.header.target, data.runs)])
        return
    for run in data.runs:
        if run.all_bins:
            of_run = f"Run {run.step}: " if len(data.runs) > 1 else ""
            yield Text(of_run + words.all_latencies(run))
            yield FoldedBlocks("The histogram as a table", [words.histogram_table(run)])


def _run(run: Run) -> Iterator[Block]:
    when = ""
    if run.begin is not None:
        when = f", {units.clock(run.begin)} to {units.clock(run.end)}"
    yield Heading(3, f"Run {run.step}: {words.name_of(run)}", f"{run.title}{when}")
    ending = words.ending(run)
    if ending:
        yield Text(ending, "warn")
    table = words.run_table(run)
    if table is not None:
        yield from (Text(words.run_title(run)), table)
        if times := rate_times_text(run.summary):
            yield Text(f"{times}.")
    yield Text(words.reconciled(run))
    for title, columns, rows in (
        (words.CAPTURED, words.CAPTURED_COLUMNS, run.captured),
        (words.PROBED, words.PROBE_COLUMNS, words.probe_rows(run)),
    ):
        if rows:
            yield from (Text(title), Table.from_rows(columns, rows, left_columns=2))
    if bound := words.bound_cpus(run):
        yield Text(bound)


def _settings(data: ReportData) -> Iterator[Block]:
    for device in data.devices:
        yield from (Heading(3, device.name), Pairs([*words.device_facts(device)]))
    if not data.devices:
        yield Text("No block device is visible under the target.")


def _repeat(data: ReportData, run: Run) -> Iterator[Block]:
    yield Heading(3, f"Run {run.step}")
    command = "" if run.point else words.repeat(data, run)
    if command:
        yield Code(command)
    if run.started is not None and run.started.command:
        yield from (Text("fio command:"), Code(words.fio_command(run)))
    if run.job_run is not None and run.job_run.text:
        summary = (
            f"{words.job_file_title(data)} (save it as job.fio, name a file of yours in it, then "
            "run: fio job.fio)"
        )
        yield FoldedBlocks(summary, [Code(words.block(run.job_run.text))])


def _seconds(data: ReportData) -> Block:
    """The numbers in the charts, for readers who can't see them or want to copy them."""
    names = ("fio", "device", "p50", "p99", "p99.9", QUEUE, "busy")
    series = {name: points(data.series, name) for name in names}
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
    head = ("time", "fio IOPS", "device IO/s", "p50", "p99", "p99.9", QUEUE, "CPU busy %")
    step_text = "every sample" if step == 1 else f"every {step}th point of the charts"
    return FoldedBlocks(f"Chart data ({step_text})", [Table(head, rows)])
