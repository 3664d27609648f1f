"""The formats of a report, and its options: to add a format, add an entry to ``FORMATS``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from iopstui import __version__
from iopstui.features.reports.experiment import as_data
from iopstui.features.reports.overview import overview
from iopstui.features.reports.report_data import ReportData
from iopstui.features.reports.run import Run
from iopstui.features.reports.series import points
from iopstui.features.reports.words import fio_command, reconciled, repeat, repeat_experiment
from iopstui.model.figures.figure import as_object
from iopstui.model.metrics.probe import SLOW_REQUEST, SlowRequest
from iopstui.model.metrics.shares import OPERATION, SMB_DATA, SMB_OTHER, SMB_PROTOCOL
from iopstui.model.metrics.slow.common_properties import common_properties
from iopstui.model.metrics.waits import WAITS, Waits
from iopstui.output.jsonl import clean

if TYPE_CHECKING:
    from iopstui.events import ExpectationChecked
    from iopstui.features.reports.foreign import Source
    from iopstui.model.volumes.promised import PromisedFigures


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The options of a report. ``redact``: leave out what identifies the machine (redact.py).
    ``against``: a bought volume, whose limits are shown beside the measurement. ``outcomes`` are
    those of --expect, by file."""

    redact: bool = False
    against: PromisedFigures | None = None
    outcomes: dict[Path, Sequence[ExpectationChecked]] = field(default_factory=dict)


DEFAULT_OPTIONS = ReportOptions()


MAX_SOURCES = 26
"""Limit for the sources of a report, because letters distinguish them."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format. ``render`` makes the text for at most ``most`` sources (sources.py) with the
    report's options; ``stream`` writes a binary format instead. A file name with one of the
    ``suffixes`` selects it; the first is the usual one."""

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Sequence[Source], ReportOptions], str] | None
    most: int = MAX_SOURCES
    stream: Callable[[Sequence[Source], ReportOptions, BinaryIO], None] | None = None


def _loaded(sources: Sequence[Source], options: ReportOptions) -> list[ReportData]:
    """Load the data of each source. If there are several, times in their charts count from the
    start of each source's longest run."""
    from iopstui.features.reports.foreign import load_foreign_report
    from iopstui.features.reports.report_data import load_report_data

    reports = [
        load_report_data(source.path, options.redact)
        if source.recorded
        else load_foreign_report(source, options.redact)
        for source in sources
    ]
    for source, data in zip(sources, reports, strict=True):
        data.promised = options.against
        _add_outcomes(data, options.outcomes.get(source.path, ()))
        run = data.longest
        if len(reports) > 1 and run is not None and not data.experiments:
            data.origin_t = run.begin or 0.0
    return reports


def _add_outcomes(data: ReportData, outcomes: Sequence[ExpectationChecked]) -> None:
    """Put the outcomes of --expect before the recorded ones, without repetitions."""
    for run in data.runs:
        own = [each for each in outcomes if each.step == run.step]
        known = {(each.expectation, each.limit) for each in own}
        run.outcomes = own + [each for each in run.outcomes
                              if (each.expectation, each.limit) not in known]  # fmt: skip


def _html(sources: Sequence[Source], options: ReportOptions) -> str:
    from iopstui.features.reports.content import html_page

    return html_page(_loaded(sources, options))


def _markdown(sources: Sequence[Source], options: ReportOptions) -> str:
    from iopstui.features.reports.content import markdown

    return markdown(_loaded(sources, options))


def _csv(sources: Sequence[Source], options: ReportOptions) -> str:
    from iopstui.features.reports.rows import csv_text

    return csv_text(sources[0], options.redact)


def _json(sources: Sequence[Source], options: ReportOptions) -> str:
    return json_text(_loaded(sources, options))


def _parquet(sources: Sequence[Source], options: ReportOptions, out: BinaryIO) -> None:
    from iopstui.features.reports.rows import write_parquet

    write_parquet(sources[0], options.redact, out)


FORMATS = {
    format_.name: format_
    for format_ in (
        Format("html", (".html", ".htm"), _html),
        Format("md", (".md", ".markdown"), _markdown),
        Format("csv", (".csv",), _csv, most=1),
        Format("json", (".json",), _json),
        Format("parquet", (".parquet",), None, most=1, stream=_parquet),
    )
}
TEXTS = tuple(format_.name for format_ in FORMATS.values() if format_.render)
"""The names of the text formats."""
DEFAULT = "md"


def display_name(kind: str) -> str:
    """A format's name for the beginning of a sentence."""
    return kind.upper() if FORMATS[kind].render else kind.capitalize()


def or_list(names: Iterable[str]) -> str:
    """The names as "a, b or c"."""
    *firsts, last = names
    return f"{', '.join(firsts)} or {last}" if firsts else last


# A report as JSON, with all data that the page shows.


SCHEMA = 1


def json_text(reports: Sequence[ReportData]) -> str:
    """All data of the page as JSON."""
    recordings = [_report_object(data) for data in reports]
    document = {"report": SCHEMA, "iopstui": __version__, "recordings": recordings}
    return json.dumps(clean(document), indent=1, allow_nan=False) + "\n"


def _report_object(data: ReportData) -> dict[str, Any]:
    series = {name: points(data.series, name) for name in data.series
              if name not in ("t", "seconds")}  # fmt: skip
    return {
        "file": data.path.name,
        "overview": overview(data).as_object(),
        "answers": [{"t": given.t, **asdict(given.answer)} for given in data.answers.values()],
        "header": asdict(data.header),
        "duration_s": data.duration,
        "samples": data.samples,
        "incomplete": data.ending or None,
        "devices": [asdict(device) for device in data.devices],
        "foreign": data.foreign or None,
        "not_in_it": data.missing_facts,
        "experiments": [
            {**as_data(experiment), "repeat": repeat_experiment(data, experiment)}
            for experiment in data.experiments
        ],
        "runs": [_run(data, run) for run in data.runs],
        "side_by_side": [asdict(row) for row in data.rows],
        "wait_without_job": _waits(data.idle_waits.value),
        "findings": _findings(data),
        "slowest": [
            as_object(SLOW_REQUEST, SlowRequest(each, t)) for t, each in data.slowest.all()
        ],
        "slowest_in_common": [
            asdict(claim) for claim in common_properties(data.slowest.selection())
        ],
        "stalls": [asdict(stall) for stall in data.stalls],
        "marks": [asdict(mark) for mark in data.marks],
        "between_marks": [asdict(interval) for interval in data.mark_intervals],
        "changes": [asdict(change) for change in data.changes],
        "notices": [asdict(notice) for notice in data.notices],
        "series": {
            "t": [t for t, _ in series["fio"]],
            **{name: [value for _, value in points] for name, points in series.items()},
        },
    }


def _findings(data: ReportData) -> list[dict[str, Any]]:
    ends = data.finding_ends
    return [
        {
            "t": finding.t,
            **asdict(finding.finding),
            "ceased": asdict(ends[place]) if place in ends else None,
        }
        for place, finding in enumerate(data.findings)
    ]


def _run(data: ReportData, run: Run) -> dict[str, Any]:
    finished = run.finished
    return {
        "step": run.step,
        "point": run.point or None,
        "job": run.name,
        "title": run.title,
        "begin": run.begin,
        "end": run.end,
        "whole": not run.is_partial,
        "error": finished.error if finished else None,
        "interrupted": finished.interrupted if finished else None,
        "disturbed": [*finished.disturbed] if finished else [],
        "summary": finished.summary if finished else None,
        "frames": {"count": run.total.frames, "ios": run.total.ios, "bytes": run.total.bytes},
        "reconciled": reconciled(run),
        "latencies_ns": run.latencies(),
        "bins": run.bins,
        "wait": _waits(run.measured.waits.value),
        "nvme": dict(run.drives.rows()) or None,
        "energy": run.energy.data(),
        **_shares(run),
        "verdicts": [asdict(judged) for judged in run.outcomes],
        "steady": asdict(run.steady_state) if run.steady_state else None,
        "repeat": None if run.point else repeat(data, run) or None,
        "command": fio_command(run) or None,
        "job_file": run.job_run.text if run.job_run else None,
        "overrides": run.job_run.overrides if run.job_run else None,
        "captured": [asdict(row) for row in run.captured] or None,
        "binding": asdict(run.job_run.binding) if run.job_run and run.job_run.binding else None,
    }


def _shares(run: Run) -> dict[str, Any]:
    """The run's operations on its NFS or SMB mount."""
    is_smb = run.share.protocol == SMB_PROTOCOL
    data, other = (SMB_DATA, SMB_OTHER) if is_smb else (OPERATION, OPERATION)
    objects = {name: as_object(other if name == "other" else data, rates)
               for name, rates in run.share.operations.items()}  # fmt: skip
    return {"nfs": None, "smb": objects} if is_smb else {"nfs": objects or None, "smb": None}


def _waits(waits: Waits | None) -> dict[str, Any] | None:
    return None if waits is None else as_object(WAITS, waits)
