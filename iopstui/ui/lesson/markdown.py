"""A page of a lesson as Markdown, and its tables, in the order in which they are read.

The text of a lesson is Markdown: its paragraphs may have headings, emphasis, code and lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iopstui.lesson.page import READY, SKIPPED, AnswerVerdict, ShownPage
from iopstui.model.lesson.pages import RUN_STEP
from iopstui.tables import Table
from iopstui.text import printable
from iopstui.ui.draw.style import Charset
from iopstui.ui.lesson.rows import pane_name

PagePart = str | Table
"""Markdown, or a table of figures."""


def page_parts(
    page: ShownPage,
    verdicts: Sequence[AnswerVerdict],
    charset: Charset,
    repeatable: str = "",
    tabbed: bool = False,
) -> list[PagePart]:
    """Parts of the page, without the choices of a question. ``repeatable`` names a run that failed
    or was disturbed, ``tabbed``: the dashboard shows one pane at a time."""
    parts: list[PagePart] = []
    for part in _page_parts(page, verdicts, repeatable, tabbed):
        if isinstance(part, Table):
            parts.append(part)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += f"\n\n{charset.text(part)}"
        else:
            parts.append(charset.text(part))
    return parts


def _page_parts(
    page: ShownPage, verdicts: Sequence[AnswerVerdict], repeatable: str, tabbed: bool
) -> Iterator[PagePart]:
    yield f"# {printable(page.title)}"
    if page.state == SKIPPED:
        yield "**Not available here:**"
    judged = {verdict.text: verdict for verdict in verdicts}
    for block in page.blocks:
        if isinstance(block, Table):
            yield block
        elif block.kept:
            yield _fence(block.text)
        elif (verdict := judged.get(block.text)) is not None:
            yield f"> {_verdict_prefix(verdict)}{printable(block.text)}"
        else:
            yield printable(block.text)
    if page.look and page.state == READY:
        yield "### Look at"
        yield "\n".join(
            f"- **{pane_name(pane, tabbed)}**: {printable(sentence)}"
            for pane, sentence in page.look
        )
    if page.kind == RUN_STEP and page.state == READY:
        yield "*Enter starts the run.*"
    if repeatable:
        yield f"*r repeats run {printable(repeatable)}.*"


def _verdict_prefix(verdict: AnswerVerdict) -> str:
    if verdict.correct is None:
        return ""
    return "**Right.** " if verdict.correct else "**Wrong.** "


def _fence(text: str) -> str:
    lines = ["".join(c if c.isprintable() else "?" for c in line) for line in text.splitlines()]
    longest = max((len(run) for line in lines for run in line.split() if set(run) == {"`"}),
                  default=0)  # fmt: skip
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])
