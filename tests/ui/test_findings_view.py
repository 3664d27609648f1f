from __future__ import annotations

import pytest
import ui_fakes as fakes
from test_app import WIDE, make, running, screen_text, settle, shows

from iopstui.events import FindingEnded, FindingReported, StepFinished, StepStarted
from iopstui.model.findings.finding import Finding
from iopstui.ui.dashboard import finding_line
from iopstui.ui.dialogs.live_rows import LiveRows
from iopstui.ui.draw.style import UTF8
from iopstui.ui.state.live import LiveState

ONE_CPU = Finding("one-cpu", "CPU 1 runs 97 % of it", "try rq_affinity 2 (now 1)", "a")
DEPTH = Finding("depth", "iodepth=16 is not reached", "")
STARTED = StepStarted(1.0, 1, "j", "randread 4k", ("fio",), True)


def state(*events: object) -> LiveState:
    found = LiveState(("nvme0n1",))
    for event in events:
        found.apply(event)  # type: ignore[arg-type]
    return found


def text(found: LiveState, width: int = 100, height: int = 2) -> str:
    rows = finding_line.rows(found, width, height, UTF8)
    lines = ["".join(piece for piece, _ in row) for row in rows]
    assert [len(line) for line in lines] == [width] * height
    return "\n".join(lines)


def listed(found: LiveState) -> str:
    return "".join(piece for row in finding_line.list_rows(found, 80, UTF8) for piece, _ in row)


def test_the_line_has_sentence_advice_and_key() -> None:
    found = state(STARTED, FindingReported(9.0, ONE_CPU))
    assert "▲ One CPU completes nearly all I/O: CPU 1 runs 97 % of it" in text(found)
    assert "Next: a  try rq_affinity 2 (now 1)" in text(found)
    assert "Next: a  try rq_affinity 2" in text(found, height=1)


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("count", [4, 8, 12])
def test_what_to_do_next_is_never_cut_in_two_rows(width: int, count: int) -> None:
    words, advice = (
        " ".join(f"{stem}{number}" for number in range(count)) for stem in ("word", "thing")
    )
    found = state(STARTED, FindingReported(9.0, Finding("one-cpu", words * 3, advice, "a")))
    shown = " ".join(text(found, width=width).replace("f: all", "").split())
    assert shown.startswith("▲ One CPU completes nearly all I/O")
    assert f"Next: a {advice}" in shown


@pytest.mark.parametrize("height", [4, 5, 8])
@pytest.mark.parametrize("width", [60, 88, 160])
def test_in_a_box_all_of_it_is_there(width: int, height: int) -> None:
    advice = "jobs on other CPUs reach its other queues; or use a smaller depth"
    found = state(STARTED, FindingReported(9.0, Finding("tags", "CPU 1 runs " * 30, advice, "a")))
    rows = finding_line.box_rows(found, width, height, UTF8)
    lines = ["".join(piece for piece, _ in row) for row in rows]
    assert [len(line) for line in lines] == [width] * height
    shown = " ".join(" ".join(lines).replace("│", "").split())
    assert "▲ Finding" in lines[0] and "more I/Os in flight than fit" in shown
    assert f"Next: a {advice}" in shown or height == 4


def test_the_sign_says_how_serious_it_is() -> None:
    for rule, sign in (("saturated", "●"), ("tags", "▲"), ("scsi-errors", "■"), ("x", "●")):
        assert text(state(STARTED, FindingReported(9.0, Finding(rule, "words")))).startswith(
            f" {sign} "
        )


def test_of_one_second_the_most_telling_comes_first_and_the_others_are_counted() -> None:
    found = state(STARTED, FindingReported(9.0, ONE_CPU), FindingReported(9.0, DEPTH))
    assert "CPU 1 runs" in text(found) and "f: 1 more" in text(found)


def test_a_rule_that_goes_on_is_listed_once() -> None:
    found = state(STARTED, FindingReported(9.0, ONE_CPU), FindingReported(39.0, ONE_CPU))
    assert [(entry.first, entry.t) for entry in found.findings.entries] == [(9.0, 39.0)]
    moved = Finding("moved", "rq_affinity 1 → 2")
    found = state(STARTED, FindingReported(9.0, moved), FindingReported(19.0, moved))
    assert len(found.findings.entries) == 2


def test_what_no_longer_holds_leaves_the_line_but_not_the_list() -> None:
    found = state(STARTED, FindingReported(9.0, ONE_CPU))
    found.t = 60.0
    assert "CPU 1" not in text(found) and len(found.findings.entries) == 1
    again = state(
        STARTED, FindingReported(9.0, ONE_CPU), StepStarted(12.0, 2, "j", "x", ("fio",), True)
    )
    assert "CPU 1" not in text(again)


def test_a_finished_run_keeps_its_last_findings() -> None:
    found = state(STARTED, FindingReported(9.0, ONE_CPU), StepFinished(11.0, 1, 0, "", False))
    found.t = 500.0
    assert "CPU 1 runs" in text(found)


def test_text_of_findings_is_never_raw() -> None:
    found = state(STARTED, FindingReported(9.0, Finding("x", "a\x1b[2Jb", "c\x07d")))
    listed = finding_line.list_rows(found, 80, UTF8)
    assert "\x1b" not in text(found) and not any("\x07" in p for row in listed for p, _ in row)


async def test_nothing_jumps_when_a_finding_comes_and_f_lists_all() -> None:
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
            assert shows(app, "q quit")


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
        assert shows(app, "number 29.") and shows(app, "of 120")


# -- without a job, and what a run decides


IN_DOUBT = Finding("cap", "depth 8 → 32: stays", "twice the block size", "", (("bs", "8k"),), 2, 5)


def test_a_finding_without_a_job_is_shown_and_ages() -> None:
    found = state(FindingReported(9.0, ONE_CPU))
    found.t = 9.0
    assert "CPU 1 runs" in text(found)
    assert any(
        "no job" in piece for row in finding_line.list_rows(found, 80, UTF8) for piece, _ in row
    )
    found.t = 60.0
    assert "CPU 1" not in text(found)


def test_one_that_ceased_says_so_behind_those_that_hold() -> None:
    over = FindingEnded(46.0, ONE_CPU.rule, ONE_CPU.text, 12.0, 36.0)
    found = state(FindingReported(14.0, ONE_CPU), over)
    found.t = 47.0
    assert "(ended at 0:36, after 24 s): CPU 1 runs" in text(found)
    # there is nothing left to be mended, neither in the line nor in the list
    for shown in (text(found), text(found, height=1), listed(found)):
        assert "CPU 1 runs" in shown and "rq_affinity" not in shown and "key" not in shown
    found.apply(FindingReported(47.0, DEPTH))
    assert "iodepth=16" in text(found) and "ceased" not in text(found)
    assert "0:14  no job  ended at 0:36, after 24 s" in listed(found)
    found.apply(FindingReported(48.0, ONE_CPU))
    assert "rq_affinity" in listed(found)
    assert [bool(one.ceased) for one in found.current_findings()] == [False, False, True]
    found.t = 100.0
    assert found.current_findings() == []


def test_what_is_found_after_a_run_ages_as_well() -> None:
    found = state(STARTED, StepFinished(11.0, 1, 0, "", False), FindingReported(20.0, ONE_CPU))
    found.t = 21.0
    assert "CPU 1 runs" in text(found)
    found.t = 90.0
    assert "CPU 1" not in text(found)


def test_a_finding_says_its_seconds_and_the_key_that_decides_it() -> None:
    shown = text(state(STARTED, FindingReported(5.0, IN_DOUBT)))
    assert "(0:02-0:05): depth 8 → 32: stays" in shown
    assert "Next: t runs bs=8k  twice the block size" in shown


def test_a_finding_that_is_not_news_any_more_says_how_long_ago_it_was() -> None:
    found = state(STARTED, FindingReported(5.0, IN_DOUBT))
    found.t = 9.0
    assert "(0:02-0:05): depth" in text(found)
    found.t = 17.0
    assert "(0:02-0:05, 0:12 ago): depth" in text(found)
    # what is said of a run that is over was true at its end
    found.apply(StepFinished(18.0, 1, 0, "", False))
    found.t = 30.0
    assert "(0:02-0:05): depth" in text(found)


async def test_t_runs_what_decides_the_finding() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        await pilot.press("t")
        await settle(pilot)
        assert shows(app, "no finding needs a test run")
        fake.sink(FindingReported(fake.second, IN_DOUBT))
        fake.tick(1)
        await settle(pilot)
        assert shows(app, "t test it")
        await pilot.press("t")
        await settle(pilot)
        asked = fake.calls.index(("ask", "cap"))
        run = next(call for call in fake.calls[asked:] if call[0] == "run")
        assert run[2]["bs"] == "8k"  # type: ignore[index]
        assert ("mark", "test: bs=8k") in fake.calls


def test_an_older_recording_s_advice_names_its_key_once() -> None:
    advice = "find the program: u on the live screen, iotop, or pidstat -d 1"
    found = state(STARTED, FindingReported(9.0, Finding("disagree", "1.2k more", advice, "u")))
    assert "Next: u  find the program with iotop, or pidstat -d 1" in text(found)
