"""Blocks of a report, and their rendering as HTML or Markdown. Only this file escapes text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from iopstui import __version__
from iopstui.tables import Table
from iopstui.text import printable

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# an underscore inside a word does not begin emphasis
_ACTIVE = re.compile(r"([\\`*{}\[\]<#|!~$&]|^>|(?<!\w)_|_(?!\w))")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, with a ``note`` that is less important."""

    level: int
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; its ``style`` is "warn", "dim", "light STATE" or ""."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and values."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Code:
    """Text whose lines stay as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Charts:
    """Finished SVG, which Markdown leaves out. ``style`` is "charts", or "first" for a wide one."""

    drawings: Sequence[str]
    style: str = "charts"


@dataclass(frozen=True, slots=True)
class FoldedBlocks:
    """Blocks that HTML shows on request."""

    title: str
    blocks: Sequence[Block]


Block = Heading | Text | Bullets | Pairs | Table | Code | Charts | FoldedBlocks


def list_with_heading(title: str, lines: Iterable[str]) -> Iterator[Block]:
    if rows := list(lines):
        yield from (Heading(2, title), Bullets(rows))


def markdown_of(content: Iterable[Block], made_from: str) -> str:
    blocks = [*content, _origin(made_from)]
    return "\n".join(markdown(blocks))


def html_of(title: str, body: Sequence[str], made_from: str) -> str:
    """A whole page with these lines in its body."""
    style = (files("iopstui") / "data" / "report.css").read_text("utf-8")
    lines = [
        "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8"/>',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<title>{escape(title)}</title>", f"<style>{style}</style>", "</head>", "<body>",
        *body, *html([_origin(made_from)]), "</body>", "</html>",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _origin(made_from: str) -> Text:
    return Text(f"Made by iopstui {__version__} from {made_from}.", "dim")


def html(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading(level, text, note):
                more = f' <span class="dim">{_html(note)}</span>' if note else ""
                yield f"<h{level}>{_html(text)}{more}</h{level}>"
            case Text(text, style):
                yield f"<p{_class(style)}>{_html(text)}</p>"
            case Bullets(lines):
                yield from ("<ul>", *(f"<li>{_html(line)}</li>" for line in lines), "</ul>")
            case Pairs(rows):
                yield _html_table("", (
                    f'<th class="left" scope="row">{_html(name)}</th>'
                    f'<td class="words">{_html(value)}</td>' for name, value in rows
                ))  # fmt: skip
            case Table(head, rows, left):
                yield _html_table(_cells("th", head, left, ' scope="col"'),
                                  (_cells("td", row, left) for row in rows))  # fmt: skip
            case Code(text):
                yield f"<pre>{escape(text)}</pre>"
            case Charts(drawings, style):
                yield from (f"<div{_class(style)}>", *drawings, "</div>")
            case FoldedBlocks(summary, inner):
                yield f"<details><summary>{_html(summary)}</summary>"
                yield from (*html(inner), "</details>")


def markdown(blocks: Iterable[Block]) -> Iterator[str]:
    """The lines of these blocks, with an empty line after each block."""
    for block in blocks:
        match block:
            case Heading(level, text, note):
                begin = "# iopstui:" if level == 1 else "#" * level
                yield f"{begin} {markdown_text(text)}{f' ({markdown_text(note)})' if note else ''}"
            case Text(text, style):
                yield markdown_text(text) if style in ("", "dim") else f"**{markdown_text(text)}**"
            case Bullets(lines):
                yield from (f"- {markdown_text(line)}" for line in lines)
            case Pairs(rows):
                yield from ("|  |  |", "|---|---|", *map(_md_row, rows))
            case Table(head, rows, left):
                yield _md_row(head)
                yield f"|{'---|' * left}{'---:|' * (len(head) - left)}"
                yield from map(_md_row, rows)
            case Code(text):
                # the fence must be longer than any run of backticks in the text
                fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+|$", text)))
                yield from (fence, text, fence)
            case Charts():
                continue
            case FoldedBlocks(summary, inner):
                yield from (f"{markdown_text(summary)}:", "", *markdown(inner))
                continue
        yield ""


def _html(text: str) -> str:
    return escape(printable(text))


def markdown_text(text: str) -> str:
    """``text``, escaped so that Markdown shows it unchanged."""
    return _ACTIVE.sub(r"\\\1", printable(text))


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _cells(tag: str, cells: Sequence[str], left_columns: int, scope: str = "") -> str:
    return "".join(
        f"<{tag}{scope}{_class('left' if column < left_columns else '')}>{_html(text)}</{tag}>"
        for column, text in enumerate(cells)
    )


def _html_table(head: str, rows: Iterable[str]) -> str:
    above = f"<thead><tr>{head}</tr></thead>" if head else ""
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="wide"><table>{above}<tbody>{lines}</tbody></table></div>'


def _md_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_text, cells))} |"
