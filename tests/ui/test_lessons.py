from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lesson_fakes import TEXT, Session, Shelf, lesson, lesson_keys, make
from rich.cells import cell_len
from test_app import screen_text, settle, shows, wait_until
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from iopstui.errors import UsageError
from iopstui.features.lessons.model.pages import VisibleParagraph
from iopstui.features.lessons.play.lesson_state import AnswerVerdict, ShownPage
from iopstui.features.lessons.play.library import Lessons
from iopstui.features.lessons.screen.list import LessonList
from iopstui.features.lessons.screen.page import LessonPage, SideCharts, page_parts
from iopstui.features.lessons.screen.rows import wrap_words
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.model.block.tunable import TunableRequest
from iopstui.tables import Table
from iopstui.ui.app import IopstuiApp
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.draw import layout
from iopstui.ui.draw.style import ASCII, UTF8

SMALL, MIDDLE = (80, 24), (120, 36)


async def ready(app: IopstuiApp, pilot: Pilot[int]) -> None:
    await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()


async def press(pilot: Pilot[int], *keys: str) -> None:
    await pilot.press(*keys)
    await ready(pilot.app, pilot)  # type: ignore[arg-type]


async def measured(session: Session, pilot: Pilot[int], seconds: int = 6) -> None:
    session.tick(seconds)
    session.finish()
    await settle(pilot)


async def test_a_lesson_from_the_list_to_its_end() -> None:
    app, session, _ = make()
    async with app.run_test(size=SMALL) as pilot:
        await ready(app, pilot)
        session.tick(2)
        await press(pilot, "l")
        assert isinstance(app.screen, LessonList)
        assert "Two runs, one question" in str(
            app.screen.query_one("#lessons-text", Static).render()
        )
        await press(pilot, "enter")
        assert isinstance(app.screen, LessonPage)
        assert shows(app, "page 1 of 6") and shows(app, "A page of words, the first of the lesson,")
        await press(pilot, "enter", "b")
        assert shows(app, "[ ] a) the shallow one") and shows(app, "[x] b) the deep one")
        await press(pilot, "enter")
        assert shows(app, "fio options: iodepth=1") and shows(app, "Enter Start the run")
        await press(pilot, "enter")
        assert isinstance(app.screen, Dashboard) and app.screen.tab == 2
        assert session.requests[-1].overrides["iodepth"] == "1"
        assert shows(app, "run 1 of 2: One at a time")
        assert shows(app, "3 Numbers: aqu-sz stays below 1")
        assert shows(app, "1 IOPS: the line")
        session.tick(3)
        await settle(pilot)
        assert shows(app, "3 s of 5 s")
        await measured(session, pilot, 3)
        assert shows(app, "measured: ") and shows(app, "Enter: continue the lesson")
        assert not shows(app, "press r to run it again")
        await press(pilot, "enter", "enter")
        assert session.requests[-1].knobs == (TunableRequest("rq_affinity", "2"),)
        assert isinstance(app.screen, Dashboard) and app.screen.tab == 1
        await measured(session, pilot)
        await press(pilot, "enter")
        assert shows(app, "I/Os per second, reads and writes") and shows(app, "Side by side")
        await press(pilot, "y")
        lesson, title, heads, rates, *_ = filter(None, app.clipboard.splitlines())
        assert lesson == "Two runs, one question, page 5 of 6"
        assert title == "# Side by side" and heads.split() == ["one", "deep"]
        assert rates.startswith("I/Os the jobs keep in flight") and len(rates) == len(heads)
        await press(pilot, "enter")
        assert shows(app, "Right. You said b)") and not session.back
        await press(pilot, "enter")
        assert shows(app, "1 of 1 answer confirmed") and shows(app, "2 of 2 runs")
        assert session.back == [(("rq_affinity", "1"),)]
        await press(pilot, "enter")
        assert isinstance(app.screen, Dashboard) and app.screen.tab == 0
        assert shows(app, "lesson finished") and shows(app, "r starts mixed-4k with bs=8k at once")
        assert app.jobs.overrides == {"bs": "8k"} and app.jobs.job == "mixed-4k"
        await press(pilot, "r")
        assert session.calls[-1] == ("run", "mixed-4k", {"bs": "8k"})
        await press(pilot, "r", "l")
        first = app.screen.query_one(OptionList).get_option_at_index(0)
        assert str(first.prompt).rstrip().endswith("played")


async def test_pages_can_be_reread_and_answers_stay() -> None:
    app, _, _ = make(begin=lesson())
    async with app.run_test(size=SMALL) as pilot:
        await ready(app, pilot)
        assert shows(app, "page 1 of 6")
        await press(pilot, "left")
        assert shows(app, "this is the first page")
        await press(pilot, "right", "enter")
        assert shows(app, "no answer yet (a, b); Enter again skips the question")
        await press(pilot, "a", "b", "a", "enter")
        assert shows(app, "page 3 of 6")
        await press(pilot, "left")
        assert shows(app, "page 2 of 6, read before") and shows(app, "[x] a)")
        await press(pilot, "b")
        assert shows(app, "[x] a)") and shows(app, "[ ] b)")
        await press(pilot, "left")
        assert shows(app, "page 1 of 6, read before")
        await press(pilot, "enter", "enter")
        assert shows(app, "page 3 of 6") and shows(app, "Enter Start the run")


async def test_a_second_enter_skips_an_unanswered_question() -> None:
    app, _, shelf = make(begin=lesson())
    async with app.run_test(size=SMALL) as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "enter", "enter")
        assert shows(app, "page 3 of 6") and shelf.begun[0].answers == {}


async def test_keys_that_would_disturb_a_lesson_are_refused_with_a_message() -> None:
    app, session, _ = make(begin=lesson())
    keys = ("r", "j", "]", "{", "b", "a", "k", "w", "c", ":", "l")

    async def held(message: str) -> None:
        for key in keys:
            app.state.log.notice = None
            calls = list(session.calls)
            await pilot.press(key)
            assert isinstance(app.screen, Dashboard) and session.calls == calls, key
            assert shows(app, message), key

    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        for key in keys:
            await pilot.press(key)
            assert shows(app, "a lesson is running: Esc leaves it") and shows(app, "page 1 of 6")
            await pilot.press("down")
            assert not shows(app, "a lesson is running")
        await press(pilot, "enter", "enter", "enter", "enter")
        session.tick(2)
        await held("a lesson is running: Esc stops the run")
        await measured(session, pilot)
        await held("Esc leaves it")


async def test_looking_around_is_free_during_a_run() -> None:
    app, session, _ = make(begin=lesson())
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "enter", "enter", "enter")
        session.tick(2)
        await press(pilot, "m", "enter")
        assert ("mark", "mark 1") in session.calls
        await press(pilot, "f")
        session.tick(1)
        await press(pilot, "enter")
        assert not isinstance(app.screen, Dashboard) and session.running
        await press(pilot, "escape")
        assert isinstance(app.screen, Dashboard) and session.running
        assert [hint.description for hint in app.actions.footer("lesson") if hint.key == "Esc"] == [
            "Stop the run"
        ]


async def test_a_stopped_run_can_be_repeated_or_skipped() -> None:
    app, session, shelf = make(begin=lesson())
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "enter", "enter", "enter")
        session.tick(2)
        await press(pilot, "escape")
        assert ("stop",) in session.calls and shows(app, "stopped: the run has no figures")
        await press(pilot, "r")
        assert len(session.requests) == 2 and shows(app, "run 1 of 2")
        session.tick(2)
        session.finish(error="fio could not open the device [red]x[/red].")
        await settle(pilot)
        assert shows(app, "failed: fio could not open the device [red]x[/red].")
        await press(pilot, "enter")
        assert shows(app, "Many at a time") and "one" in shelf.begun[0].failed
        await press(pilot, "left")
        assert shows(app, "This run failed: fio could not open")


async def test_a_disturbed_run_is_marked_and_repeated_from_where_it_is_judged() -> None:
    app, session, shelf = make(begin=lesson())
    async with app.run_test(size=SMALL) as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "enter", "enter", "enter")
        await measured(session, pilot)
        await press(pilot, "enter", "enter")
        await measured(session, pilot)
        run = shelf.begun[0]
        why = ("54.6k of 82.2k I/Os a second on nvme0n1 were not this job's (reads)",)
        run.points["deep"] = replace(run.points["deep"], disturbed=why)
        await settle(pilot)
        session.tick(1)
        await settle(pilot)
        assert shows(app, "disturbed: 54.6k of 82.2k") and shows(app, "r: run it again")
        await press(pilot, "enter", "enter")
        assert shows(app, "Not graded: run deep was disturbed")
        assert shows(app, "r repeats run deep") and shows(app, "r Again")
        await press(pilot, "r")
        assert len(session.requests) == 3 and shows(app, "run 2 of 2")
        await measured(session, pilot)
        await press(pilot, "enter")
        assert shows(app, "page 6 of 6") and not shows(app, "Not graded")


async def test_a_lesson_resumes_where_it_was_left() -> None:
    app, session, shelf = make(begin=lesson())
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "b", "enter", "enter")
        await measured(session, pilot)
        await press(pilot, "enter", "escape")
        assert isinstance(app.screen, Dashboard)
        assert shows(app, "left the lesson on page 4 of 6; l continues it")
        session.mark("rq_affinity 2 → 1")
        await settle(pilot)
        assert shows(app, "left the lesson on page 4 of 6; l continues it")
        await press(pilot, "a", "enter")
        session.mark("rq_affinity 1 → 2")
        await settle(pilot)
        assert shows(app, "mark: rq_affinity 1 → 2")
        await wait_until(pilot, lambda: bool(session.back))
        assert session.back == [(("rq_affinity", "1"),)]
        shelf.affinity = "0"
        await press(pilot, "l")
        await press(pilot, "enter")
        assert shows(app, "page 4 of 6") and len(shelf.begun) == 1
        await press(pilot, "enter")
        await measured(session, pilot)
        await press(pilot, "escape")
        await wait_until(pilot, lambda: len(session.back) > 1)
        # a value that the user has changed meanwhile is restored to the user's value
        assert session.back[-1] == (("rq_affinity", "0"),)
        assert shelf.begun[0].answers == {"guess": "b"}
        await press(pilot, "l")
        await press(pilot, "n")
        assert shows(app, "page 1 of 6") and len(shelf.begun) == 2


@pytest.mark.parametrize("watched", [False, True])
async def test_quitting_a_lesson_leaves_no_scratch_file(tmp_path: Path, watched: bool) -> None:
    target = Target(DIRECTORY, str(tmp_path), "nvme0n1", ("nvme0n1",), "", "ext4", "/")
    app, session, _ = make(Shelf(target), Session(target=target), lesson())
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "enter", "enter", "enter")
        assert list(tmp_path.iterdir()) and session.lent[0] is not None
        if not watched:
            await measured(session, pilot)
            await press(pilot, "enter")
        await pilot.press("q")
        await settle(pilot)
    assert session.calls[-1] == ("close",) and not list(tmp_path.iterdir())


async def test_the_scratch_file_is_removed_when_the_lesson_is_left(tmp_path: Path) -> None:
    target = Target(DIRECTORY, str(tmp_path), "nvme0n1", ("nvme0n1",), "", "ext4", "/")
    app, session, _ = make(Shelf(target), Session(target=target), lesson())
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "enter", "enter", "enter")
        await measured(session, pilot)
        await press(pilot, "escape")
        assert lesson_keys(app).cleanup_task is not None
        await lesson_keys(app).cleanup_task
        assert not list(tmp_path.iterdir())


async def test_a_lesson_needs_a_target_and_no_running_job() -> None:
    app, session, shelf = make()
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        await press(pilot, "r", "l")
        assert shows(app, "a job is running: stop it first (r), then choose a lesson (l)")
        session.finish()
        await settle(pilot)
        shelf.target = None
        await press(pilot, "l")
        assert isinstance(app.screen, Dashboard) and shows(app, "There is no target. Name one.")
        lesson_keys(app).lessons, app.state.log.notice = None, None
        await press(pilot, "l")
        assert shows(app, "no lesson can be played in this session")


async def test_a_session_that_ends_ends_the_run() -> None:
    app, session, _ = make(begin=lesson())
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        await press(pilot, "enter", "enter", "enter", "enter")
        session.close()
        await settle(pilot)
        assert shows(app, "failed: the session has ended")
        await press(pilot, "r")
        assert len(session.requests) == 1 and shows(app, "the session has ended")


async def test_the_palette_offers_what_a_lesson_allows() -> None:
    app, session, _ = make(begin=lesson())

    def titles() -> set[str]:
        return {command.title for command in app.get_system_commands(app.screen)}

    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        assert titles() == {"Continue the lesson", "Leave the lesson", "Messages", "Quit"}
        await press(pilot, "enter", "enter", "enter", "enter")
        assert {"Stop the lesson's run", "Mark this moment"} < titles()
        assert not {"Choose a job", "Block size", "Sweep", "Lessons"} & titles()
        await measured(session, pilot)
        await press(pilot, "escape")
        assert {"Choose a job", "Lessons"} < titles()


async def test_enter_scrolls_a_long_page_before_it_goes_on() -> None:
    long = TEXT.replace("A page of words,", " ".join(f"word{n}" for n in range(400)) + " A page,")
    app, _, _ = make(begin=lesson(long))
    async with app.run_test(size=SMALL) as pilot:
        await ready(app, pilot)
        assert shows(app, "Enter Read on") and not shows(app, "word399")
        for _ in range(6):
            if shows(app, "Enter Continue"):
                break
            await press(pilot, "enter")
            assert shows(app, "page 1 of 6")
        assert shows(app, "word399")
        await press(pilot, "enter")
        assert shows(app, "page 2 of 6")


def test_lessons_of_a_job_with_own_files_explain_what_is_missing() -> None:
    with pytest.raises(UsageError, match="names its own files"):
        Lessons(None, lambda: {}).offers()


def test_facts_that_cannot_be_shown_are_known_in_advance(tmp_path: Path) -> None:
    # not a device with a request queue, so there is no scheduler to set
    target = Target(DIRECTORY, str(tmp_path), None, (), "no block device", "tmpfs", "/")
    needs = TEXT.replace("[run: deep]", "[run: deep]\nneeds = can.scheduler\nwhy = no scheduler")
    shelf = Lessons(target, lambda: {}, load_lessons=lambda: [lesson(needs)])
    assert shelf.offers()[0].impossible_runs == {"deep": "no scheduler"}
    assert not list(tmp_path.iterdir())


# -- rows


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C"])), st.integers(8, 90))
def test_no_text_is_cut_off(text: str, width: int) -> None:
    lines = wrap_words(" ".join(text.split()), width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(text.split())


def test_a_page_is_markdown_with_tables_between_the_texts() -> None:
    table = Table(("", "one"), (("I/Os", "1"),))
    text = VisibleParagraph("Depth is `iodepth`, **not** a < b.")
    paragraph = VisibleParagraph("a  b\n``` c", True)
    page = ShownPage("run", "r", "Title", (text, paragraph, table, text), 1, 1, state="ready",
                     look=(("iops", "grows"),))  # fmt: skip
    first, between, last = page_parts(page, (), UTF8)
    assert between is table and isinstance(first, str) and isinstance(last, str)
    assert first.startswith("# Title\n\nDepth is `iodepth`, **not** a < b.\n\n")
    assert "````text\na  b\n``` c\n````" in first, "a fence that its text can't end"
    assert "### Look at\n\n- **IOPS**: grows" in last


def test_an_answer_is_judged_in_words() -> None:
    paragraph = VisibleParagraph("You said a).")
    page = ShownPage("explain", "e", "E", (paragraph,), 1, 1)
    for correct, start in ((True, "> **Right.** You"), (False, "> **Wrong.** You"),
                           (None, "> You")):  # fmt: skip
        verdict = AnswerVerdict("a", (), correct, paragraph.text)
        assert start in str(page_parts(page, [verdict], UTF8)[0])


def test_control_characters_of_lessons_never_reach_the_terminal() -> None:
    blocks = (VisibleParagraph("x\x1b]0;y\x07"), VisibleParagraph(" k\x1b[m", True))
    [text] = page_parts(ShownPage("tell", "t", "a\x1b[2Jb", blocks, 1, 1), (), UTF8)
    assert isinstance(text, str) and all(line.isprintable() for line in text.split("\n"))
    [plain] = page_parts(ShownPage("tell", "t", "→ µs", (), 1, 1), (), ASCII)
    assert isinstance(plain, str) and plain.isascii()


async def test_html_in_a_lesson_is_text() -> None:
    app, _, _ = make(begin=lesson(TEXT.replace("A page of words", "If a <b>c</b> < 3, **bold**")))
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        assert shows(app, "If a <b>c</b> < 3, bold")


async def test_answers_and_keys_can_be_clicked() -> None:
    app, _, shelf = make(begin=lesson())
    async with app.run_test(size=SMALL) as pilot:
        await ready(app, pilot)
        await click(pilot, "Enter Continue")
        assert shows(app, "page 2 of 6")
        await click(pilot, "b) the deep one")
        assert shows(app, "[x] b) the deep one") and shelf.begun[0].answers == {"guess": "b"}
        await click(pilot, "Esc Leave")
        assert isinstance(app.screen, Dashboard)


async def click(pilot: Pilot[int], label: str) -> None:
    app = cast(IopstuiApp, pilot.app)
    rows = screen_text(app).split("\n")
    y = next(number for number, row in enumerate(rows) if label in row)
    await pilot.click(offset=(rows[y].index(label) + 1, y))
    await ready(app, pilot)


async def test_charts_are_beside_the_text_from_120_columns_on() -> None:
    app, session, _ = make(begin=lesson())
    async with app.run_test(size=(119, 36)) as pilot:
        await ready(app, pilot)
        session.tick(3)
        await settle(pilot)
        assert not shows(app, "IOPS ─")
        await pilot.resize_terminal(120, 36)
        await ready(app, pilot)
        assert shows(app, "╭─ IOPS ─") and shows(app, "╭─ Latency ─")
        assert shows(app, "─ while a job runs ─╮"), "why it is empty"
        before = screen_text(app)
        session.tick(1)
        await settle(pilot)
        assert screen_text(app) != before, "live"


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (118, 33), (120, 36), (200, 50)])
@pytest.mark.parametrize("strip", [0, 2, 4])
def test_the_strip_covers_nothing(size: tuple[int, int], strip: int) -> None:
    width, height = size
    plan = layout.plan(width, height, 1, 4, 0, strip)
    names = ("header", "summary", "tabs", "iops", "latency", "fio", "kernel", "cpus", "strip",
             "message", "finding", "footer")  # fmt: skip
    boxes = [box for name in names if (box := getattr(plan, name)).width and box.height > 0]
    cells = [(x, y) for b in boxes for x in range(b.x, b.x + b.width)
             for y in range(b.y, b.y + b.height)]  # fmt: skip
    assert len(cells) == len(set(cells)) and max(y for _, y in cells) == height - 1
    assert plan.strip.height == strip
    assert plan.tabbed == (width < layout.FULL_WIDTH or height - strip < layout.FULL_HEIGHT)


async def test_long_lines_and_wide_tables_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("random", "sequential", "batched", "unmerged", "other")
    table = Table(("", *names), (("CPU time of the whole machine for each I/O", *["33.2 µs"] * 5),))
    fence = f"```text\n     fio options: {'iodepth_batch_submit=16, ' * 4}rw=last\n```"
    monkeypatch.setattr(
        "iopstui.features.lessons.screen.page.page_parts", lambda *_: [table, fence]
    )
    for size in (SMALL, MIDDLE):
        app, _, _ = make(begin=lesson())
        async with app.run_test(size=size) as pilot:
            await ready(app, pilot)
            assert all(shows(app, name) for name in names)
            assert shows(app, "rw=last"), screen_text(app)


async def test_the_charts_beside_a_lesson_have_one_time_axis() -> None:
    app, _, _ = make(begin=lesson())
    async with app.run_test(size=MIDDLE) as pilot:
        await ready(app, pilot)
        charts = app.screen.query_one(SideCharts)
        assert charts._rates.columns == charts._latency.columns > 0
