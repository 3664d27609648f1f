"""The formats of a report: to add one, add an entry to ``FORMATS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from iopstui.report.report_options import ReportOptions

if TYPE_CHECKING:
    from iopstui.report.sources import Source

MAX_SOURCES = 26
"""Sources of a report: they are told apart by letters."""


@dataclass(frozen=True, slots=True)
class Format:
    """``render`` makes the text of at most ``most`` sources (sources.py) with the report's options;
    what is no text is written by ``stream`` instead. ``suffixes`` of a file's name ask for it, the
    first is the usual one."""

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Sequence[Source], ReportOptions], str] | None
    most: int = MAX_SOURCES
    stream: Callable[[Sequence[Source], ReportOptions, BinaryIO], None] | None = None


def _html(found: Sequence[Source], options: ReportOptions) -> str:
    from iopstui.report.page import html_page
    from iopstui.report.stories import stories

    return html_page(stories(found, options))


def _markdown(found: Sequence[Source], options: ReportOptions) -> str:
    from iopstui.report.page import markdown
    from iopstui.report.stories import stories

    return markdown(stories(found, options))


def _csv(found: Sequence[Source], options: ReportOptions) -> str:
    from iopstui.report.table import csv_text

    return csv_text(found[0], options.redact)


def _json(found: Sequence[Source], options: ReportOptions) -> str:
    from iopstui.report.data import json_text
    from iopstui.report.stories import stories

    return json_text(stories(found, options))


def _parquet(found: Sequence[Source], options: ReportOptions, out: BinaryIO) -> None:
    from iopstui.report.parquet import put_parquet

    put_parquet(found[0], options.redact, out)


FORMATS = {
    one.name: one
    for one in (
        Format("html", (".html", ".htm"), _html),
        Format("md", (".md", ".markdown"), _markdown),
        Format("csv", (".csv",), _csv, most=1),
        Format("json", (".json",), _json),
        Format("parquet", (".parquet",), None, most=1, stream=_parquet),
    )
}
TEXTS = tuple(one.name for one in FORMATS.values() if one.render)
"""Those that are texts."""
DEFAULT = "md"


def called(kind: str) -> str:
    """A format's name at the beginning of a sentence."""
    return kind.upper() if FORMATS[kind].render else kind.capitalize()


def or_list(names: Iterable[str]) -> str:
    """ "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
