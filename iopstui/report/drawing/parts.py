"""Pieces of a report's page: lists and tables. Everything goes through ``html.escape``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def bullets(lines: Iterable[str]) -> list[str]:
    """A list; nothing if it is empty."""
    found = [f"<li>{escape(line)}</li>" for line in lines]
    return ["<ul>", *found, "</ul>"] if found else []


def titled(title: str, lines: Iterable[str]) -> list[str]:
    """A list with its heading; nothing if it is empty."""
    found = bullets(lines)
    return [f"<h2>{title}</h2>", *found] if found else []


def pairs(found: Iterable[tuple[str, str]]) -> str:
    """A table of names and values."""
    rows = "".join(
        f'<tr><th class="left" scope="row">{escape(name)}</th>'
        f'<td class="words">{escape(value)}</td></tr>'
        for name, value in found
    )
    return f'<div class="wide"><table><tbody>{rows}</tbody></table></div>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """``left`` columns are words, the others numbers."""

    def cells(row: Sequence[str], tag: str, scope: str) -> str:
        return "".join(
            f"<{tag}{scope}{_left(column < left)}>{escape(text)}</{tag}>"
            for column, text in enumerate(row)
        )

    lines = "".join(f"<tr>{cells(row, 'td', '')}</tr>" for row in rows)
    scope = ' scope="col"'
    return (
        f'<div class="wide"><table><thead><tr>{cells(head, "th", scope)}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _left(words: bool) -> str:
    return ' class="left"' if words else ""
