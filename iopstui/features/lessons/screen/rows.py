"""A lesson on the screen: its progress, and its pages as rows of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells
from rich.style import Style

from iopstui.features.lessons.model.pages import (
    RUN_STEP,
    AnswerPage,
    Page,
    RunPage,
    VisibleParagraph,
)
from iopstui.features.lessons.play.lesson_state import READY, AnswerVerdict, ShownPage
from iopstui.features.lessons.play.player import LessonRun
from iopstui.format import counted, latency, number
from iopstui.text import printable, with_breaks, without_breaks
from iopstui.ui.draw.layout import TABS
from iopstui.ui.draw.rows import Line, Piece, Row, capital, pad, rule
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FINDING, KEY, SELECTED, WARNING, Charset

END = "end"


class LessonProgress:
    """The progress of a lesson on the screen. ``watching`` is True from the start of a run until
    the user continues: the screen then shows the dashboard, otherwise a page. ``stopping`` is True
    after a stop was requested."""

    def __init__(self, run: LessonRun) -> None:
        self.run = run
        self.watching = False
        self.stopping = False
        self._read_pages: list[ShownPage] = []
        self._pages_back = 0

    # -- pages

    @property
    def page(self) -> ShownPage | None:
        """The page that the user reads; ``None`` after the last one."""
        return self._read_pages[-self._pages_back] if self._pages_back else self.run.page()

    @property
    def reading_back(self) -> bool:
        """Whether the user reads a page again."""
        return self._pages_back > 0

    @property
    def has_earlier(self) -> bool:
        """Whether there is a previous page."""
        return self._pages_back < len(self._read_pages)

    def previous_page(self) -> bool:
        """Go to the previous page. Returns False on the first one."""
        if self.has_earlier:
            self._pages_back += 1
            return True
        return False

    def next_page(self) -> None:
        if self._pages_back:
            self._pages_back -= 1
            return
        page = self.run.page()
        self.watching = False
        self.run.advance()
        if page is not None:
            self._read_pages.append(page)

    def leave(self) -> None:
        """Pause the lesson on its current page, even if an earlier one is shown."""
        self._pages_back = 0
        self.watching = False
        self.run.end_repeat()

    @property
    def position(self) -> str:
        """The position in words: "page 5 of 12"."""
        page = self.run.page()
        return f"page {page.number} of {page.total}" if page is not None else "its end"

    def step_of(self, page: ShownPage) -> Page | None:
        """The page in the lesson's file that a shown page was made from."""
        steps = self.run.lesson.steps
        return next((s for s in steps if (s.kind, s.name) == (page.kind, page.name)), None)

    def verdicts(self, page: ShownPage) -> list[AnswerVerdict]:
        step = self.step_of(page)
        names = step.answers if isinstance(step, AnswerPage) else ()
        return self.run.verdicts(names)

    def score(self) -> tuple[int, int]:
        """The number of answers that the measurements confirmed, and of answers that could be
        judged."""
        verdicts = [self.run.verdict(name) for name in self.run.answers]
        judged = [v.correct for v in verdicts if v is not None and v.correct is not None]
        return sum(judged), len(judged)

    # -- runs

    def watch(self) -> None:
        """Note that a run starts: from now on the screen shows the dashboard."""
        self.watching, self.stopping = True, False

    def stop(self) -> None:
        """Note that a stop of the run was requested."""
        self.stopping = True
        self.run.stop()

    @property
    def run_page(self) -> RunPage | None:
        """The run that is being watched or belongs to the shown page."""
        return self.run.run_page

    @property
    def can_run(self) -> bool:
        """Whether the shown page has a run that has not been made yet."""
        return self._on_run(READY)

    @property
    def can_repeat(self) -> bool:
        """Whether a run can be repeated, because it failed, was stopped or was disturbed."""
        return bool(self.repeatable)

    @property
    def repeatable(self) -> str:
        """The run that can be repeated from this page; "" if there is none."""
        run = None if self._pages_back else self.run.repeatable
        return run.name if run is not None else ""

    @property
    def has_failed(self) -> bool:
        """Whether the last run failed or was stopped."""
        return self.run_page is not None and self.run_page.name in self.run.failed

    def _on_run(self, state: str) -> bool:
        page = None if self._pages_back else self.run.page()
        return page is not None and page.kind == RUN_STEP and page.state == state

    @property
    def run_position(self) -> str:
        """The run's position in words: "run 2 of 3"."""
        runs = self.run.lesson.runs
        step = self.run_page
        number = runs.index(step) + 1 if step is not None else len(runs)
        return f"run {number} of {len(runs)}"


PANES = {
    "iops": ("IOPS", 0), "latency": ("latency", 1), "heat": ("heat map", 1),
    "fio": ("fio, this second", 2), "kernel": ("Device (iostat)", 2),
    "cpus": ("CPUs, this second", 3), "queues": ("queue map (key o)", None),
    "findings": ("finding", None),
}  # fmt: skip
MAX_STRIP_ROWS = 4
"""The rows of the strip; with these a terminal of 36 rows still shows all panes."""

StyledText = tuple[str, "Style | None"]


def wrap_words(text: str, width: int) -> list[str]:
    """Wrap a text into lines of at most ``width`` cells; longer words are divided."""
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


def _restyle(pieces: Sequence[StyledText], lines: Sequence[str]) -> Iterator[list[Piece]]:
    """Apply the styles of ``pieces`` to ``lines``, which have the same text, joined and wrapped."""
    chars = [(char, style) for text, style in pieces for char in text]
    index = 0
    for line in lines:
        row: list[Piece] = []
        for char in line:
            while chars[index][0] != char:
                index += 1
            style = chars[index][1]
            if row and row[-1][1] == style:
                row[-1] = (row[-1][0] + char, style)
            else:
                row.append((char, style))
            index += 1
        yield row


def end_page(progress: LessonProgress) -> ShownPage:
    run = progress.run
    confirmed, judged = progress.score()
    measured = [page.name for page in run.lesson.runs if page.name in run.points]
    paragraphs = [f"{len(measured)} of {counted(len(run.lesson.runs), 'run')} measured."]
    if judged:
        paragraphs.append(
            f"{confirmed} of {counted(judged, 'answer')} confirmed by the measurement."
        )
    for name, reason in run.failed.items():
        paragraphs.append(f"Run {name} has no figures: {reason}")
    paragraphs.append("Tunables are restored, and the lesson's files are removed.")
    total = len(run.lesson.steps)
    blocks = tuple(VisibleParagraph(text) for text in paragraphs)
    return ShownPage(END, END, f"The end of: {run.lesson.title}", blocks, total, total)


# -- the strip


def pane_name(pane: str, tabbed: bool) -> str:
    """The title of a pane; with tabs also the title and the key of the tab that shows it."""
    name, tab = PANES[pane]
    return f"{tab + 1} {capital(TABS[tab])}" if tabbed and tab is not None else name


def strip_rows(
    progress: LessonProgress, tabbed: bool, layout: bool, width: int, height: int, charset: Charset
) -> list[Row]:
    """The rows of the strip: the run, its progress and where to look; afterwards its result. Their
    number stays the same during and after the run, with and without tabs; only a failure may need
    more. ``height`` is that of the terminal."""
    run = progress.run_page
    if run is None:
        return []
    max_rows = MAX_STRIP_ROWS if height >= 16 else 2
    looks, others = (
        _look_rows(progress, with_tabs, width, max_rows - 1) for with_tabs in (tabbed, not tabbed)
    )
    result_rows = _result_rows(progress, width)
    body = looks if progress.run.running else result_rows
    body_rows = max(len(looks), len(others), 2 if max_rows > 2 else 1, len(result_rows))
    title: list[Piece] = [("lesson", SELECTED), (f"  {progress.run_position}: ", BOLD)]
    title.append((printable(run.title), BOLD))
    status = _progress_text(progress, layout)
    rows = [rule(width, charset, *title, right=((status, BOLD),) if status else ())]
    for pieces in body:
        line = Line(width, charset).add(" ")
        for text, style in pieces:
            line.add(text, style)
        rows.append(line.build())
    return pad(rows, 1 + body_rows, width)


def _progress_text(progress: LessonProgress, layout: bool) -> str:
    run = progress.run_page
    if run is None or not progress.run.running:
        return ""
    if progress.stopping:
        return "stopping"
    if layout:
        return "creating its file"
    total = run.settle + run.seconds
    return f"{min(total, progress.run.elapsed_s):.0f} s of {total:.0f} s"


def _look_rows(
    progress: LessonProgress, tabbed: bool, width: int, max_rows: int
) -> list[list[Piece]]:
    """A row for each pane to look at if all rows fit, else one text."""
    run = progress.run_page
    looks: list[list[StyledText]] = []
    for pane, sentence in run.look if run is not None else ():
        looks.append([(f"{pane_name(pane, tabbed)}: ", BOLD), (printable(sentence), None)])
    if not looks:
        return [[("measuring", DIM)]]
    rows = [row for look in looks for row in _wrap(look, width - 2)]
    if len(rows) > max_rows:
        joined = [piece for look in looks for piece in (*look, ("   ", None))]
        rows = _wrap(joined, width - 2)
    return rows


def _wrap(pieces: Sequence[StyledText], width: int) -> list[list[Piece]]:
    text = " ".join("".join(part for part, _ in pieces).split())
    return list(_restyle(pieces, wrap_words(text, width)))


def _result_rows(progress: LessonProgress, width: int) -> list[list[Piece]]:
    """The result of the run, and the next steps."""
    run = progress.run_page
    if run is None or progress.run.running:
        return []
    if progress.has_failed:
        message: list[StyledText] = [("stopped: ", WARNING), ("the run has no figures", None)]
        if not progress.stopping:
            reason = progress.run.failed.get(run.name, "it was not measured")
            message = [("failed: ", ERROR), (printable(reason), None)]
        keys = _keys(("Enter", "continue without it"), ("r", "run it again"), ("Esc", "leave"))
        return [*_wrap(message, width - 2), keys]
    point = progress.run.points.get(run.name)
    if point is None:
        return []
    figures = f"{number(point.iops)} IOPS, mean latency {latency(point.latency_ns)}"
    measured: list[Piece] = [("measured: ", FINDING), (f"{figures}, {point.seconds:.1f} s", None)]
    if point.disturbed:
        why: list[StyledText] = [("disturbed: ", WARNING), ("; ".join(point.disturbed), None)]
        keys = _keys(("r", "run it again"), ("Enter", "continue the lesson"), ("Esc", "leave it"))
        return [measured, *_wrap(why, width - 2), keys]
    return [measured, _keys(("Enter", "continue the lesson"), ("Esc", "leave it"))]


def _keys(*keys: tuple[str, str]) -> list[Piece]:
    return [piece for key, label in keys for piece in ((key, KEY), (f": {label}   ", None))]
