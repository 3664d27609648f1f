"""The formats of a report, and its options: to add a format, add an entry to ``FORMATS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from iopstui.events import ExpectationChecked
    from iopstui.features.reports.foreign import Source
    from iopstui.features.reports.report_data import ReportData
    from iopstui.model.volumes.promised import PromisedFigures


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The options of a report. ``redact``: leave out what tells whose machine it is about
    (redact.py). ``against``: a bought volume whose limits are shown beside what was measured.
    ``outcomes``: those of --expect, by file."""

    redact: bool = False
    against: PromisedFigures | None = None
    outcomes: dict[Path, Sequence[ExpectationChecked]] = field(default_factory=dict)


DEFAULT_OPTIONS = ReportOptions()


MAX_SOURCES = 26
"""Sources of a report: they are told apart by letters."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format. ``render`` makes the text for at most ``most`` sources (sources.py) with the
    report's options; a binary format is written by ``stream`` instead. A file name with one of the
    ``suffixes`` selects it; the first one is the usual one."""

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Sequence[Source], ReportOptions], str] | None
    most: int = MAX_SOURCES
    stream: Callable[[Sequence[Source], ReportOptions, BinaryIO], None] | None = None


def _loaded(sources: Sequence[Source], options: ReportOptions) -> list[ReportData]:
    """The data of each source. If there are several, the charts of each count from where its
    longest run began."""
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
    """Put the outcomes of --expect before those that were recorded, each once."""
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
    from iopstui.features.reports.data import json_text

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
"""Those that are texts."""
DEFAULT = "md"


def display_name(kind: str) -> str:
    """A format's name at the beginning of a sentence."""
    return kind.upper() if FORMATS[kind].render else kind.capitalize()


def or_list(names: Iterable[str]) -> str:
    """ "a, b or c"."""
    *firsts, last = names
    return f"{', '.join(firsts)} or {last}" if firsts else last
