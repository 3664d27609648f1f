"""A lesson's pages as lines of text."""

from __future__ import annotations

import textwrap

from iopstui.format import counted
from iopstui.lesson.page import READY, SKIPPED, Block, ShownPage
from iopstui.model.lesson.pages import Lesson
from iopstui.tables import Table
from iopstui.text import printable, with_breaks, without_breaks

WIDTH = 80


def head_lines(lesson: Lesson) -> list[str]:
    """Introduction of a lesson, before its first page."""
    return [
        *flowed(printable(lesson.title), ""),
        *flowed(f"Teaches: {printable(lesson.teaches)}", ""),
        *flowed(f"Sources: {printable(lesson.source)}", ""),
        f"{counted(len(lesson.runs), 'run')}, {lesson.seconds:.0f} s of fio in all",
    ]


def page_lines(page: ShownPage) -> list[str]:
    """A page as lines of text."""
    lines = ["", f"======== {page.number} of {page.total}: {printable(page.title)}", ""]
    if page.state == SKIPPED:
        lines += ["  Not available here:"]
    for block in page.blocks:
        lines += [*_block_lines(block), ""]
    for letter, text in page.choices:
        lines += flowed(f"{letter}) {text}", "  ", "     ")
    for pane, sentence in page.look if page.state == READY else ():
        lines += flowed(f"on the live screen, {pane}: {sentence}", "  ", "    ")
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _block_lines(block: Block) -> list[str]:
    if isinstance(block, Table):
        return ["  " + line for line in block.lines()]
    if block.kept:
        return ["    " + _printable_line(line) for line in block.text.splitlines()]
    return flowed(block.text, "  ")


def _printable_line(line: str) -> str:
    """Text with its blanks, without anything that could act on a terminal."""
    return "".join(char if char.isprintable() else "?" for char in line)


def flowed(text: str, indent: str, more: str | None = None) -> list[str]:
    """Foreign text in lines of at most ``WIDTH`` columns, as far as its words allow."""
    lines = textwrap.wrap(
        without_breaks(printable(text)), WIDTH, initial_indent=indent,
        subsequent_indent=indent if more is None else more, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
    return [with_breaks(line) for line in lines] or [indent]
