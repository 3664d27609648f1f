"""A lesson's pages as rows of text, and the strip above the dashboard's footer while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells
from rich.style import Style

from iopstui.format import counted, latency, number
from iopstui.lesson.page import READY, SKIPPED, AnswerVerdict, ShownPage, Table
from iopstui.model.lesson.pages import ASK
from iopstui.model.lesson.text import ShownParagraph
from iopstui.text import printable, tied, untied
from iopstui.ui.draw.rows import Line, Piece, Row, pad, rule
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FINDING, KEY, SELECTED, WARNING, Charset
from iopstui.ui.lesson.state import END, Playing

TEXT_WIDTH = 76
INDENT = 2
PANES = {
    "iops": ("IOPS", 0), "latency": ("latency", 1), "heat": ("heat map", 1),
    "fio": ("fio, this second", 2), "kernel": ("kernel, this second", 2),
    "cpus": ("CPUs, this second", 3), "queues": ("queue map (key o)", None),
    "findings": ("finding", None),
}  # fmt: skip
STRIP_MOST = 4
"""Rows of the strip that leave a terminal of 36 rows all its panes."""

Styled = tuple[str, "Style | None"]


def flow(text: str, width: int) -> list[str]:
    """Words broken between them into lines of at most ``width`` cells; a word that is longer is
    broken itself."""
    lines, current = [], ""
    for word in map(untied, tied(text).split(" ")):
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            lines.append(current)
        *whole, current = chop_cells(word, max(2, width)) or [""]
        lines += whole
    return [*lines, current] if current else lines


def folded(line: str, width: int) -> list[str]:
    """A line whose blanks are kept; what does not fit goes on in the next one, further in."""
    safe = "".join(char if char.isprintable() else "?" for char in line.rstrip())
    if cell_len(safe) <= width:
        return [safe]
    inner = len(safe) - len(safe.lstrip(" "))
    inner = min(inner, width // 2)
    body = flow(safe.strip(" "), max(8, width - inner - 2))
    return [" " * inner + body[0], *(" " * (inner + 2) + more for more in body[1:])]


def page_rows(
    page: ShownPage, verdicts: Sequence[AnswerVerdict], fixed: bool, width: int, charset: Charset
) -> list[Row]:
    """All of it; ``fixed``: it was read before, and what was answered stays."""
    build = _Builder(width, charset)
    build.blank()
    build.text(page.title, BOLD)
    build.blank()
    if page.state == SKIPPED:
        build.text("Not available here:", WARNING)
    told = {verdict.text: verdict for verdict in verdicts}
    for block in page.blocks:
        if isinstance(block, Table):
            build.table(block)
        elif block.kept:
            build.kept(block)
        else:
            _paragraph(build, block, told.get(block.text))
        build.blank()
    _choices(build, page, fixed)
    if page.look and page.state == READY:
        build.text("Look at:", DIM)
        for pane, sentence in page.look:
            build.pieces([(f"{PANES[pane][0]}: ", BOLD), (printable(sentence), None)], 2, 4)
    return build.rows


def _paragraph(build: _Builder, block: ShownParagraph, verdict: AnswerVerdict | None) -> None:
    label: Styled = ("", None)
    if verdict is not None and verdict.correct is not None:
        label = ("Right. ", FINDING) if verdict.correct else ("Not so. ", WARNING)
    build.pieces([label, (printable(block.text), BOLD if verdict is not None else None)])


def _choices(build: _Builder, page: ShownPage, fixed: bool) -> None:
    for letter, text in page.choices:
        chosen = letter == page.chosen
        build.pieces(
            [("[x] " if chosen else "[ ] ", KEY if chosen else DIM), (f"{letter}) ", KEY),
             (printable(text), BOLD if chosen else None)], INDENT, INDENT + 7,
        )  # fmt: skip
    if fixed and page.kind == ASK:
        build.blank()
        build.text("What was answered stays.", DIM)


class _Builder:
    """Collects rows of a width."""

    def __init__(self, width: int, charset: Charset) -> None:
        self.rows: list[Row] = []
        self._width = width
        self._charset = charset

    @property
    def room(self) -> int:
        """Cells for text."""
        return max(8, self._width - 2 * INDENT)

    def blank(self) -> None:
        """An empty row, unless there is one already at the end."""
        if not self.rows or any(text.strip() for text, _ in self.rows[-1]):
            self._row([])

    def text(self, text: str, style: Style | None = None) -> None:
        """Flowing text of one style."""
        self.pieces([(printable(text), style)])

    def pieces(self, pieces: Sequence[Styled], first: int = INDENT, more: int = INDENT) -> None:
        """Flowing text of several styles; the first row begins at ``first``, others at ``more``."""
        width = min(TEXT_WIDTH, self.room) - (max(first, more) - INDENT)
        words = "".join(text for text, _ in pieces)
        for number_, line in enumerate(_styled(pieces, flow(words, width))):
            self._row([(" " * (more if number_ else first), None), *line])

    def kept(self, block: ShownParagraph) -> None:
        """Lines as they are."""
        for line in block.text.splitlines():
            for part in folded(line, self.room - 2):
                self._row([(" " * (INDENT + 2) + part, None)])

    def table(self, table: Table) -> None:
        """Columns aligned; what a row is, is broken into several where there is no room."""
        columns = range(1, len(table.head))
        widths = [max(cell_len(row[n]) for row in (table.head, *table.rows)) for n in columns]
        used = sum(width + 2 for width in widths)
        label = max((cell_len(row[0]) for row in table.rows), default=0)
        label = max(12, min(label, self.room - used))
        for row in (table.head, *table.rows):
            style = BOLD if row is table.head else None
            words = flow(printable(row[0]), label) or [""]
            cells = "".join("  " + _right(row[n], widths[n - 1]) for n in columns)
            for part in words[:-1]:
                self._row([(" " * INDENT + part, style)])
            gap = " " * (label - cell_len(words[-1]))
            self._row([(" " * INDENT + words[-1] + gap, DIM), (cells, style)])

    def _row(self, pieces: Sequence[Styled]) -> None:
        line = Line(self._width, self._charset)
        for text, style in pieces:
            line.add(text, style)
        self.rows.append(line.done())


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + printable(text)


def _styled(pieces: Sequence[Styled], lines: Sequence[str]) -> Iterator[list[Piece]]:
    """Lines of the pieces' joined text, in the styles that they had: only blanks are lost where
    a line ends."""
    left = [(char, style) for text, style in pieces for char in text]
    at = 0
    for line in lines:
        found: list[Piece] = []
        for char in line:
            while left[at][0] != char:
                at += 1
            style = left[at][1]
            if found and found[-1][1] == style:
                found[-1] = (found[-1][0] + char, style)
            else:
                found.append((char, style))
            at += 1
        yield found


def end_page(playing: Playing) -> ShownPage:
    """What came of the lesson."""
    run = playing.run
    good, judged = playing.score()
    made = [one.name for one in run.lesson.runs if one.name in run.points]
    words = [f"{len(made)} of {counted(len(run.lesson.runs), 'run')} measured."]
    if judged:
        words.append(f"{good} of {counted(judged, 'answer')} confirmed by the measurement.")
    for name, why in run.failed.items():
        words.append(f"Run {name} has no figures: {why}")
    words.append(
        "Tunables that the lesson changed have their old values again, its files are removed."
    )
    total = len(run.lesson.steps)
    blocks = tuple(ShownParagraph(text) for text in words)
    return ShownPage(END, END, f"The end of: {run.lesson.title}", blocks, total, total)


# -- the strip


def strip_rows(
    playing: Playing, tabbed: bool, layout: bool, width: int, height: int, charset: Charset
) -> list[Row]:
    """What is measured, how far it is and what to look at; when it has ended, what came of it.
    As many rows whichever of the two it says, and with tabs as without; only a failure may need
    more. ``height`` is the terminal's."""
    run = playing.measured
    if run is None:
        return []
    most = STRIP_MOST if height >= 16 else 2
    looks, others = (_looks(playing, way, width, most - 1) for way in (tabbed, not tabbed))
    after = _after(playing, width)
    body = looks if playing.run.running else after
    room = max(len(looks), len(others), 2 if most > 2 else 1, len(after))
    title: list[Piece] = [("lesson", SELECTED), (f"  {playing.run_place}: ", BOLD)]
    title.append((printable(run.title), BOLD))
    progress = _progress(playing, layout)
    shown = [rule(width, charset, *title, right=((progress, BOLD),) if progress else ())]
    for pieces in body:
        line = Line(width, charset).add(" ")
        for text, style in pieces:
            line.add(text, style)
        shown.append(line.done())
    return pad(shown, 1 + room, width)


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


def _looks(playing: Playing, tabbed: bool, width: int, most: int) -> list[list[Piece]]:
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
    words = " ".join("".join(text for text, _ in pieces).split())
    return list(_styled(pieces, flow(words, width)))


def _after(playing: Playing, width: int) -> list[list[Piece]]:
    """What came of the run, and what can be done now."""
    run = playing.measured
    if run is None or playing.run.running:
        return []
    if playing.can_repeat:
        said: list[Styled] = [("stopped: ", WARNING), ("the run has no figures", None)]
        if not playing.stopping:
            why = playing.run.failed.get(run.name, "it was not measured")
            said = [("failed: ", ERROR), (printable(why), None)]
        keys = _keys(("Enter", "go on without it"), ("r", "run it again"), ("Esc", "leave"))
        return [*_broken(said, width - 2), keys]
    point = playing.run.points.get(run.name)
    if point is None:
        return []
    words = f"{number(point.iops)} IOPS, mean latency {latency(point.latency_ns)}"
    measured: list[Piece] = [("measured: ", FINDING), (f"{words}, {point.seconds:.1f} s", None)]
    return [measured, _keys(("Enter", "go on with the lesson"), ("Esc", "leave it"))]


def _keys(*keys: tuple[str, str]) -> list[Piece]:
    return [piece for key, does in keys for piece in ((key, KEY), (f": {does}   ", None))]


def foot_keys(playing: Playing, page: ShownPage, more: bool) -> list[tuple[str, str]]:
    """The keys that do something on a page; ``more``: there is more of it below."""
    if more:
        following = "reads on"
    elif playing.can_run:
        following = "runs it"
    elif playing.can_repeat:
        following = "goes on without"
    elif page.kind == END:
        following = "dashboard"
    else:
        following = "goes on"
    keys = [("Enter", following)]
    if playing.can_repeat and not more:
        keys.append(("r", "again"))
    if page.choices and not playing.reading_back and page.state != SKIPPED:
        keys.insert(0, (f"{page.choices[0][0]}-{page.choices[-1][0]}", "answer"))
    if playing.has_earlier:
        keys.append(("left", "reads back"))
    keys.append(("Esc", "dashboard" if page.kind == END else "leaves the lesson"))
    return [*keys, ("q", "quits")]
