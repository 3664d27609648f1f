"""A lesson's pages as rows of text, and the strip above the dashboard's footer while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells
from rich.style import Style

from iopstui.format import counted, latency, number
from iopstui.lesson.page import ShownPage
from iopstui.model.lesson.text import ShownParagraph
from iopstui.text import printable, with_breaks, without_breaks
from iopstui.ui.draw.rows import Line, Piece, Row, pad, rule
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FINDING, KEY, SELECTED, WARNING, Charset
from iopstui.ui.lesson.state import END, Playing

TEXT_WIDTH = 76
INDENT = 2
PANES = {
    "iops": ("IOPS", 0), "latency": ("latency", 1), "heat": ("heat map", 1),
    "fio": ("fio, this second", 2), "kernel": ("Device (iostat)", 2),
    "cpus": ("CPUs, this second", 3), "queues": ("queue map (key o)", None),
    "findings": ("finding", None),
}  # fmt: skip
MAX_STRIP_ROWS = 4
"""Rows of the strip that leave a terminal of 36 rows all its panes."""

Styled = tuple[str, "Style | None"]


def flow(text: str, width: int) -> list[str]:
    """Words broken between them into lines of at most ``width`` cells; a word that is longer is
    broken itself."""
    lines, current = [], ""
    for word in map(with_breaks, without_breaks(text).split(" ")):
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        *chunks, current = chop_cells(word, max(2, width)) or [""]
        lines += chunks
    return [*lines, current] if current else lines


def _styled(pieces: Sequence[Styled], lines: Sequence[str]) -> Iterator[list[Piece]]:
    """Lines of the pieces' joined text, in the styles that they had: only blanks are lost where
    a line ends."""
    chars = [(char, style) for text, style in pieces for char in text]
    at = 0
    for line in lines:
        row: list[Piece] = []
        for char in line:
            while chars[at][0] != char:
                at += 1
            style = chars[at][1]
            if row and row[-1][1] == style:
                row[-1] = (row[-1][0] + char, style)
            else:
                row.append((char, style))
            at += 1
        yield row


def end_page(playing: Playing) -> ShownPage:
    """Result of the lesson."""
    run = playing.run
    good, judged = playing.score()
    measured = [page.name for page in run.lesson.runs if page.name in run.points]
    paragraphs = [f"{len(measured)} of {counted(len(run.lesson.runs), 'run')} measured."]
    if judged:
        paragraphs.append(f"{good} of {counted(judged, 'answer')} confirmed by the measurement.")
    for name, why in run.failed.items():
        paragraphs.append(f"Run {name} has no figures: {why}")
    paragraphs.append("Tunables are restored, and the lesson's files are removed.")
    total = len(run.lesson.steps)
    blocks = tuple(ShownParagraph(text) for text in paragraphs)
    return ShownPage(END, END, f"The end of: {run.lesson.title}", blocks, total, total)


# -- the strip


def strip_rows(
    playing: Playing, tabbed: bool, layout: bool, width: int, height: int, charset: Charset
) -> list[Row]:
    """Rows of the strip: the measurement, its progress and what to look at; afterwards the result.
    As many rows whichever of the two it says, and with tabs as without; only a failure may need
    more. ``height`` is the terminal's."""
    run = playing.measured
    if run is None:
        return []
    most = MAX_STRIP_ROWS if height >= 16 else 2
    looks, others = (
        _look_rows(playing, with_tabs, width, most - 1) for with_tabs in (tabbed, not tabbed)
    )
    after = _result_rows(playing, width)
    body = looks if playing.run.running else after
    body_rows = max(len(looks), len(others), 2 if most > 2 else 1, len(after))
    title: list[Piece] = [("lesson", SELECTED), (f"  {playing.run_place}: ", BOLD)]
    title.append((printable(run.title), BOLD))
    progress = _progress(playing, layout)
    rows = [rule(width, charset, *title, right=((progress, BOLD),) if progress else ())]
    for pieces in body:
        line = Line(width, charset).add(" ")
        for text, style in pieces:
            line.add(text, style)
        rows.append(line.build())
    return pad(rows, 1 + body_rows, width)


def _progress(playing: Playing, layout: bool) -> str:
    run = playing.measured
    if run is None or not playing.run.running:
        return ""
    if playing.stopping:
        return "stopping"
    if layout:
        return "creating its file"
    total = run.settle + run.seconds
    return f"{min(total, playing.run.elapsed_s):.0f} s of {total:.0f} s"


def _look_rows(playing: Playing, tabbed: bool, width: int, most: int) -> list[list[Piece]]:
    """A row for each thing to look at, if there is room for that; else all in a row."""
    run = playing.measured
    looks: list[list[Styled]] = []
    for pane, sentence in run.look if run is not None else ():
        name, tab = PANES[pane]
        if tabbed and tab is not None:
            name = f"{tab + 1} {name.removesuffix(', this second')}"
        looks.append([(f"{name}: ", BOLD), (printable(sentence), None)])
    if not looks:
        return [[("measuring", DIM)]]
    rows = [row for look in looks for row in _broken(look, width - 2)]
    if len(rows) > most:
        joined = [piece for look in looks for piece in (*look, ("   ", None))]
        rows = _broken(joined, width - 2)
    return rows


def _broken(pieces: Sequence[Styled], width: int) -> list[list[Piece]]:
    text = " ".join("".join(part for part, _ in pieces).split())
    return list(_styled(pieces, flow(text, width)))


def _result_rows(playing: Playing, width: int) -> list[list[Piece]]:
    """Result of the run, and the next steps."""
    run = playing.measured
    if run is None or playing.run.running:
        return []
    if playing.can_repeat:
        message: list[Styled] = [("stopped: ", WARNING), ("the run has no figures", None)]
        if not playing.stopping:
            why = playing.run.failed.get(run.name, "it was not measured")
            message = [("failed: ", ERROR), (printable(why), None)]
        keys = _keys(("Enter", "continue without it"), ("r", "run it again"), ("Esc", "leave"))
        return [*_broken(message, width - 2), keys]
    point = playing.run.points.get(run.name)
    if point is None:
        return []
    figures = f"{number(point.iops)} IOPS, mean latency {latency(point.latency_ns)}"
    measured: list[Piece] = [("measured: ", FINDING), (f"{figures}, {point.seconds:.1f} s", None)]
    return [measured, _keys(("Enter", "continue the lesson"), ("Esc", "leave it"))]


def _keys(*keys: tuple[str, str]) -> list[Piece]:
    return [piece for key, does in keys for piece in ((key, KEY), (f": {does}   ", None))]
