from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes
from test_app import WIDE, make, running, screen_text, settle, shows

from iopstui.events import (
    AnswerGiven,
    FindingEnded,
    FindingReported,
    FrameReady,
    StepFinished,
    StepStarted,
)
from iopstui.model.answer.answer import GOOD, WARNING, Answer
from iopstui.model.findings.advice import Advice, advise
from iopstui.model.findings.finding import Finding, headline_of
from iopstui.ui.core.modal import Modal
from iopstui.ui.dashboard import finding_line
from iopstui.ui.dialogs.slow_list import LiveRows
from iopstui.ui.draw.style import UTF8
from iopstui.ui.state.live import LiveState

ONE_CPU = Finding("one-cpu", "CPU 1 runs 97 % of it", "try rq_affinity 2 (now 1)", "a")
DEPTH = Finding("depth", "iodepth=16 is not reached", "")
STARTED = StepStarted(1.0, 1, "j", "randread 4k", ("fio",), True)


def state(*events: object) -> LiveState:
    live_state = LiveState(("nvme0n1",))
    for event in events:
        live_state.apply(event)  # type: ignore[arg-type]
    return live_state


def text(live_state: LiveState, width: int = 100, height: int = 2) -> str:
    rows = finding_line.rows(live_state, width, height, UTF8)
    lines = ["".join(part for part, _ in row) for row in rows]
    assert [len(line) for line in lines] == [width] * height
    return "\n".join(lines)


def listed(live_state: LiveState) -> str:
    return "".join(part for row in finding_line.list_rows(live_state, 80, UTF8) for part, _ in row)


def test_an_empty_list_explains_where_findings_come_from() -> None:
    assert "Findings are listed here with their numbers." in " ".join(listed(state()).split())


@pytest.mark.parametrize("height", [1, 2])
def test_advice_that_is_cut_ends_with_dots_and_is_whole_in_the_list(height: int) -> None:
    words = " ".join(f"word{number:02}" for number in range(30))
    live_state = state(STARTED, FindingReported(9.0, replace(ONE_CPU, advice=Advice(words))))
    shown = text(live_state, 80, height)
    assert "…" in shown.split("\n")[-1] and "f: all" in shown
    assert words in " ".join(listed(live_state).split())


def test_advice_that_is_cut_in_a_box_ends_with_dots() -> None:
    words = " ".join(f"word{number:02}" for number in range(30))
    live_state = state(STARTED, FindingReported(9.0, replace(ONE_CPU, advice=Advice(words))))
    for height, last in ((4, "…"), (7, "word29")):
        rows = finding_line.box_rows(live_state, 80, height, UTF8)
        lines = ["".join(part for part, _ in row).strip("│ ") for row in rows]
        assert lines[-2].endswith(last), lines


def test_the_finding_line_has_headline_advice_and_key() -> None:
    live_state = state(STARTED, FindingReported(9.0, ONE_CPU))
    assert "▲ One CPU completes nearly all I/O: CPU 1 runs 97 % of it" in text(live_state)
    assert "Next: a  try rq_affinity 2 (now 1)" in text(live_state)
    assert "Next: a  try rq_affinity 2" in text(live_state, height=1)


def test_the_seconds_of_a_finding_are_whole_or_left_out() -> None:
    found = replace(ONE_CPU, since=1.0, until=4.0)
    live_state = state(STARTED, FindingReported(4.0, found))
    head = "▲ One CPU completes nearly all I/O"
    assert f"{head} (since 0:01): CPU 1" in text(live_state, width=80)
    assert f"{head}: CPU" in text(live_state, width=50)
    assert f"{head}    f: all" in text(live_state, width=46)


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("count", [4, 8, 12])
def test_advice_is_never_split_over_two_rows(width: int, count: int) -> None:
    sentence, advice = (
        " ".join(f"{stem}{number}" for number in range(count)) for stem in ("word", "thing")
    )
    live_state = state(STARTED, FindingReported(9.0, Finding("one-cpu", sentence * 3, advice, "a")))
    line = " ".join(text(live_state, width=width).replace("f: all", "").split())
    assert line.startswith("▲ One CPU completes nearly all I/O")
    assert f"Next: a {advice}" in line


@pytest.mark.parametrize("height", [4, 5, 8])
@pytest.mark.parametrize("width", [60, 88, 160])
def test_a_box_shows_the_complete_finding(width: int, height: int) -> None:
    advice = "jobs on other CPUs reach its other queues; or use a smaller depth"
    live_state = state(
        STARTED, FindingReported(9.0, Finding("tags", "CPU 1 runs " * 30, advice, "a"))
    )
    rows = finding_line.box_rows(live_state, width, height, UTF8)
    lines = ["".join(part for part, _ in row) for row in rows]
    assert [len(line) for line in lines] == [width] * height
    box = " ".join(" ".join(lines).replace("│", "").split())
    assert "▲ Finding" in lines[0] and "more I/Os in flight than fit" in box
    assert f"Next: a {advice}" in box or height == 4


def test_the_sign_shows_the_severity() -> None:
    for rule, sign in (("saturated", "●"), ("tags", "▲"), ("scsi-errors", "■"), ("x", "●")):
        assert text(state(STARTED, FindingReported(9.0, Finding(rule, "words")))).startswith(
            f" {sign} "
        )


def test_the_most_important_finding_of_a_second_comes_first() -> None:
    live_state = state(STARTED, FindingReported(9.0, ONE_CPU), FindingReported(9.0, DEPTH))
    assert "CPU 1 runs" in text(live_state) and "f: 1 more" in text(live_state)


def test_a_finding_that_continues_is_listed_once() -> None:
    live_state = state(STARTED, FindingReported(9.0, ONE_CPU), FindingReported(39.0, ONE_CPU))
    assert [(entry.first, entry.t) for entry in live_state.findings.entries] == [(9.0, 39.0)]
    moved = Finding("moved", "rq_affinity 1 → 2")
    live_state = state(STARTED, FindingReported(9.0, moved), FindingReported(19.0, moved))
    assert len(live_state.findings.entries) == 2


def test_an_ended_finding_leaves_the_line_but_stays_in_the_list() -> None:
    live_state = state(STARTED, FindingReported(9.0, ONE_CPU))
    live_state.t = 60.0
    assert "CPU 1" not in text(live_state) and len(live_state.findings.entries) == 1
    next_run = state(
        STARTED, FindingReported(9.0, ONE_CPU), StepStarted(12.0, 2, "j", "x", ("fio",), True)
    )
    assert "CPU 1" not in text(next_run)


def test_a_finished_run_keeps_its_last_findings() -> None:
    live_state = state(STARTED, FindingReported(9.0, ONE_CPU), StepFinished(11.0, 1, 0, "", False))
    live_state.t = 500.0
    assert "CPU 1 runs" in text(live_state)


def test_a_finding_of_an_ended_run_names_the_run() -> None:
    found = replace(ONE_CPU, since=6.0, until=9.0)
    during = [STARTED, FindingReported(9.0, found)]
    assert "(ended)" not in text(state(*during)) + listed(state(*during))
    after = state(*during, StepFinished(11.0, 1, 0, "", False))
    after.t = 31.0
    assert text(after).startswith(
        " ▲ In run 1 (ended): One CPU completes nearly all I/O (0:06-0:09): CPU 1"
    )
    assert "run 1 (ended)  seconds 0:06-0:09" in listed(after)
    (line,) = finding_line.texts(after, None)
    assert line.startswith("In run 1 (ended): ") and ". Next: a  try rq_affinity" in line
    # a finding between two runs has not ended
    later = state(*during, StepFinished(11.0, 1, 0, "", False), FindingReported(20.0, found))
    assert "(ended)" not in text(later)


@pytest.mark.parametrize("height", [2, 4])
def test_no_finding_is_not_said_of_the_answer(height: int) -> None:
    draw = finding_line.rows if height == 2 else finding_line.box_rows
    live_state = state(STARTED)
    for answer, besides in (
        (None, False),
        (Answer("vda", "quiet", GOOD, "vda is idle"), False),
        (Answer("vda", "cpus", GOOD, "Not the disk", next=advise("log")), True),
        (Answer("vda", "busy", WARNING, "vda is busy"), True),
    ):
        rows = draw(live_state, 100, height, UTF8, answer)
        shown = "".join(part for row in rows for part, _ in row)
        assert "No findings" in shown and ("besides the answer at the top" in shown) is besides


def test_answers_of_the_last_minute_are_listed_below_that_of_now() -> None:
    """A newcomer pressed f to read a headline to its end, and found another one there."""
    answers = [(1, "cpus", "The CPUs are full (tasks wait 97 % of the time)"),
               (70, "cpus", "The CPUs are full (tasks wait 93 % of the time)"),
               (80, "busy", "vda is busy"), (90, "well", "vda answers in 1 ms")]  # fmt: skip
    live_state = state()
    for t, rule, words in answers:
        live_state.apply(AnswerGiven(float(t), Answer("vda", rule, GOOD, words)))
        live_state.apply(FrameReady(float(t), fakes.frame(t, None)))
    rows = finding_line.list_rows(live_state, 120, UTF8, live_state.answer)
    lines = ["".join(part for part, _ in row).strip() for row in rows]
    assert lines[:4] == ["● vda answers in 1 ms", "", "Up to 1:20: vda is busy",
                         "Up to 1:10: The CPUs are full (tasks wait 93 % of the time)"]  # fmt: skip
    for t in range(141, 143):
        live_state.apply(FrameReady(float(t), fakes.frame(t, None)))
    assert not any("Up to 1:" in "".join(part for part, _ in row)
                   for row in finding_line.list_rows(live_state, 120, UTF8, live_state.answer)), (
        "that is long ago"
    )  # fmt: skip


@pytest.mark.parametrize("height", [2, 4])
def test_after_a_run_without_findings_the_box_says_so(height: int) -> None:
    draw = finding_line.rows if height == 2 else finding_line.box_rows

    def shown(live_state: LiveState) -> str:
        rows = draw(live_state, 100, height, UTF8, None)
        return "".join(part for row in rows for part, _ in row)

    end = StepFinished(11.0, 1, 0, "", False)
    assert "No findings in run 1 " in shown(state(STARTED, end))
    later = replace(end, t=300.0)
    earlier = state(
        STARTED, FindingReported(3.0, ONE_CPU), FindingEnded(4.0, "one-cpu", "", 3.0, 4.0), later
    )
    assert "No findings at the end of run 1; f: earlier ones" in shown(earlier)


def test_in_one_row_no_next_is_left_without_its_words() -> None:
    live_state = state(STARTED, FindingReported(9.0, ONE_CPU))
    for width in range(30, 130):
        (row,) = finding_line.rows(live_state, width, 1, UTF8)
        line = "".join(part for part, _ in row)
        _, mark, advice = line.removesuffix("  f: all ").partition("Next: ")
        assert not mark or len(advice.strip(" a…")) > 10, line


@pytest.mark.parametrize("height", [2, 4])
def test_a_finding_that_the_answer_quotes_is_not_repeated(height: int) -> None:
    draw = finding_line.rows if height == 2 else finding_line.box_rows
    evidence = "CPU 1 runs 97 % of it"
    answer = Answer("vda", "finding-one-cpu", WARNING, f"One CPU completes it: {evidence}")

    def shown(width: int, *found: Finding) -> str:
        live_state = state(STARTED, *(FindingReported(9.0, one) for one in found))
        rows = draw(live_state, width, height, UTF8, answer)
        return "".join(part for row in rows for part, _ in row)

    wide, narrow = shown(100, ONE_CPU), shown(40, ONE_CPU)
    assert "Next: a" in wide and "Next: a" in narrow and "completes" not in wide + narrow
    assert evidence not in wide and evidence[:12] in narrow, "the answer is cut there"
    timed = shown(40, replace(ONE_CPU, since=1.0, until=4.0))
    assert f"0:01-0:04: {evidence[:3]}" in timed, "the answer's figures may be of other seconds"
    assert "iodepth=16 is not reached" in shown(100, ONE_CPU, DEPTH)
    ended = state(STARTED, FindingReported(8.0, DEPTH), FindingReported(9.0, ONE_CPU))
    ended.apply(FindingEnded(9.0, "depth", "", 8.0, 9.0))
    below = "".join(part for row in draw(ended, 100, height, UTF8, answer) for part, _ in row)
    assert "Next: a" in below and "iodepth=16" not in below, "it no longer holds"
    assert "No findings besides" in shown(100, replace(ONE_CPU, advice="", key=""))


@pytest.mark.parametrize("height", [1, 2, 4])
def test_a_headline_that_is_cut_from_a_run_s_result_is_repeated(height: int) -> None:
    draw = finding_line.rows if height < 4 else finding_line.box_rows
    live_state = state(STARTED, FindingReported(9.0, ONE_CPU))
    headline = headline_of(ONE_CPU)
    result = "Run 1 ended 1 s ago: 5.16k IOPS, 20.1 MiB/s, p99 10.4 ms; at its end "
    text = f"{result}{headline[:1].lower()}{headline[1:]}: CPU 1 97 %"
    answer = Answer("vda", "finding-one-cpu", WARNING, text)

    def shown(width: int) -> str:
        rows = draw(live_state, width, height, UTF8, answer)
        return "".join(part for row in rows for part, _ in row)

    assert headline in shown(80) and headline not in shown(150)


def test_a_finding_is_not_active_after_its_run_or_at_the_end_of_a_replay() -> None:
    def listed(live_state: LiveState) -> str:
        return "".join(p for row in finding_line.list_rows(live_state, 80, UTF8) for p, _ in row)

    running_state = state(STARTED, FindingReported(9.0, ONE_CPU))
    assert "active now" in listed(running_state)
    finished = state(STARTED, FindingReported(9.0, ONE_CPU), StepFinished(11.0, 1, 0, "", False))
    assert "active now" not in listed(finished)
    running_state.ended = True
    running_state.t = 30.0
    assert "active now" not in listed(running_state)


def test_control_characters_in_findings_are_removed() -> None:
    live_state = state(STARTED, FindingReported(9.0, Finding("x", "a\x1b[2Jb", "c\x07d")))
    listed = finding_line.list_rows(live_state, 80, UTF8)
    assert "\x1b" not in text(live_state) and not any("\x07" in p for row in listed for p, _ in row)


async def test_the_layout_does_not_move_when_a_finding_appears_and_f_lists_all() -> None:
    for size in ((80, 24), WIDE):
        app = make()
        async with app.run_test(size=size) as pilot:
            fake = await running(app, pilot)
            before = {w.id: w.box for w in app.screen.canvas.lines}
            fake.sink(FindingReported(fake.second, ONE_CPU))
            fake.tick(1)
            await settle(pilot)
            assert shows(app, "CPU 1 runs 97 %")
            assert before == {w.id: w.box for w in app.screen.canvas.lines}
            await pilot.press("f")
            await settle(pilot)
            assert isinstance(app.screen, LiveRows) and shows(app, "active now")
            fake.sink(FindingReported(fake.second, DEPTH))
            await settle(pilot)
            assert "iodepth=16 is not reached" in screen_text(app)
            await pilot.press("escape")
            await settle(pilot)
            assert shows(app, "q Quit")


async def test_a_long_list_is_scrolled() -> None:
    app = make(fakes.FakeController())
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        for number in range(30):
            fake.sink(FindingReported(fake.second, Finding(f"rule{number}", f"number {number}.")))
        await pilot.press("f")
        await settle(pilot)
        assert shows(app, "number 0.") and not shows(app, "number 29.")
        await pilot.press("end")
        await settle(pilot)
        assert shows(app, "number 29.") and shows(app, "of 123")


# -- without a job, and findings that a run decides


IN_DOUBT = Finding("cap", "depth 8 → 32: stays", "twice the block size", "", (("bs", "8k"),), 2, 5)


def test_a_finding_without_a_job_is_shown_with_its_age() -> None:
    live_state = state(FindingReported(9.0, ONE_CPU))
    live_state.t = 9.0
    assert "CPU 1 runs" in text(live_state)
    assert any(
        "no job" in part for row in finding_line.list_rows(live_state, 80, UTF8) for part, _ in row
    )
    live_state.t = 60.0
    assert "CPU 1" not in text(live_state)


def test_an_ended_finding_is_shown_after_the_current_ones() -> None:
    ended = FindingEnded(46.0, ONE_CPU.rule, ONE_CPU.text, 12.0, 36.0)
    live_state = state(FindingReported(14.0, ONE_CPU), ended)
    live_state.t = 47.0
    assert "(ended at 0:36, after 24 s): CPU 1 runs" in text(live_state)
    # nothing is left to fix, neither in the line nor in the list
    for view in (text(live_state), text(live_state, height=1), listed(live_state)):
        assert "CPU 1 runs" in view and "rq_affinity" not in view and "key" not in view
    live_state.apply(FindingReported(47.0, DEPTH))
    assert "iodepth=16" in text(live_state) and "ceased" not in text(live_state)
    assert "0:14  no job  ended at 0:36, after 24 s" in listed(live_state)
    live_state.apply(FindingReported(48.0, ONE_CPU))
    assert "rq_affinity" in listed(live_state)
    assert [bool(finding.ceased) for finding in live_state.current_findings()] == [
        False,
        False,
        True,
    ]
    live_state.t = 100.0
    assert live_state.current_findings() == []


def test_a_finding_after_a_run_ages_too() -> None:
    live_state = state(STARTED, StepFinished(11.0, 1, 0, "", False), FindingReported(20.0, ONE_CPU))
    live_state.t = 21.0
    assert "CPU 1 runs" in text(live_state)
    live_state.t = 90.0
    assert "CPU 1" not in text(live_state)


def test_a_finding_shows_since_when_it_holds_and_the_key_of_its_test() -> None:
    live_state = state(STARTED, FindingReported(5.0, IN_DOUBT))
    assert "(since 0:02): depth 8 → 32: stays" in text(live_state)
    assert "Next: t runs bs=8k  twice the block size" in text(live_state)
    # reported again, with the figures of later seconds
    live_state.apply(FindingReported(35.0, replace(IN_DOUBT, since=32.0, until=35.0)))
    live_state.t = 64.0
    assert "(since 0:02): depth" in text(live_state)
    assert "0:02  run 1  active now  seconds 0:32-0:35" in listed(live_state)
    # after the end of its run the line shows the seconds of its figures
    live_state.apply(StepFinished(65.0, 1, 0, "", False))
    assert "(0:32-0:35): depth" in text(live_state)
    assert "0:02 to 0:35  run 1 (ended)" in listed(live_state)


def test_where_there_is_little_room_the_end_of_a_finding_has_it() -> None:
    found = replace(ONE_CPU, since=1.0, until=4.0)
    live_state = state(STARTED, FindingReported(4.0, found))
    live_state.apply(FindingEnded(18.0, found.rule, found.text, 1.0, 8.0))
    assert "(ended at 0:08, after 7 s)" in text(live_state, width=80)
    assert "One CPU completes nearly all I/O (ended at 0:08)" in text(live_state, width=64)


async def test_t_runs_the_test_of_a_finding() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        await pilot.press("t")
        await settle(pilot)
        assert shows(app, "no finding needs a test run")
        fake.sink(FindingReported(fake.second, IN_DOUBT))
        fake.tick(1)
        await settle(pilot)
        assert shows(app, "t Test it")
        await pilot.press("t")
        await settle(pilot)
        question = fake.calls.index(("ask", "cap"))
        run = next(call for call in fake.calls[question:] if call[0] == "run")
        assert run[2]["bs"] == "8k"  # type: ignore[index]
        assert ("mark", "test: bs=8k") in fake.calls


def test_advice_of_an_older_recording_names_its_key_once() -> None:
    advice = "find the program: u on the live screen, iotop, or pidstat -d 1"
    live_state = state(STARTED, FindingReported(9.0, Finding("disagree", "1.2k more", advice, "u")))
    assert "Next: u  find the program with iotop, or pidstat -d 1" in text(live_state)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_keys_of_pages_lead_from_one_to_another(size: tuple[int, int]) -> None:
    """A newcomer pressed f on the page of processes, because the line at the top names it, and
    another one pressed the number of a tab: both had filtered the list."""
    app = make()
    async with app.run_test(size=size) as pilot:
        fake = await running(app, pilot)
        long = Answer("nvme0n1", "well", GOOD, f"nvme0n1 is quick; {'that is all ' * 9}")
        fake.sink(AnswerGiven(4.0, long))
        fake.tick(1)
        await settle(pilot)
        titles = []
        for name in ("u", "3", "3", "f", "o", "2", "9", "v", "u", "u"):
            await pilot.press(name)
            await settle(pilot)
            assert shows(app, "f: all")
            page = app.screen
            titles.append(page.copied_title if isinstance(page, Modal) else "")
            if isinstance(page, Modal) and page.tabs is not None and page.tabs.name == "Who":
                third = f"Who › {page.tabs.titles[2]}"
            assert len(app.screen_stack) == (3 if titles[-1] else 2), "Esc leads to the dashboard"
        assert titles == [
            "Who › Processes", third, third, "Findings", "Where › Waits",
            "Where › Queue map", "Where › Queue map", "Runs", "Who › Processes", "",
        ]  # fmt: skip
