"""The formats of a report: an entry of ``FORMATS`` is all that one takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Format:
    """``render`` makes the text of at most ``most`` recordings, redacted (redact.py) if it is told
    to; ``suffixes`` of a file's name ask for it, the first is the usual one."""

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Sequence[Path], bool], str]
    most: int = 2


def _html(paths: Sequence[Path], redact: bool) -> str:
    from iopstui.report.html import html_page
    from iopstui.report.story import gather

    return html_page([gather(path, redact) for path in paths])


def _markdown(paths: Sequence[Path], redact: bool) -> str:
    from iopstui.report.markdown import markdown
    from iopstui.report.story import gather

    return markdown([gather(path, redact) for path in paths])


def _csv(paths: Sequence[Path], redact: bool) -> str:
    from iopstui.report.table import csv_text

    return csv_text(paths[0], redact)


def _json(paths: Sequence[Path], redact: bool) -> str:
    from iopstui.report.data import json_text
    from iopstui.report.story import gather

    return json_text([gather(path, redact) for path in paths])


FORMATS = {
    one.name: one
    for one in (
        Format("html", (".html", ".htm"), _html),
        Format("md", (".md", ".markdown"), _markdown),
        Format("csv", (".csv",), _csv, most=1),
        Format("json", (".json",), _json),
    )
}
DEFAULT = "md"


def either(names: Iterable[str]) -> str:
    """ "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
