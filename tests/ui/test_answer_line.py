"""The answer line on the dashboard and the home screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import ui_fakes as fakes
from disks import changed
from made_sweeps import finished as made_points
from watch_frames import frame, rates

from iopstui.events import (
    AnswerGiven,
    ExperimentFinished,
    ExperimentStarted,
    FindingReported,
    FrameReady,
    Notice,
    PointStarted,
    StepFinished,
    StepStarted,
)
from iopstui.model.answer.answer import (
    CRITICAL,
    GOOD,
    OF_A_SECOND,
    UNKNOWN,
    WARNING,
    Answer,
    short_who,
)
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.experiment.plan import Plan, parse_axis
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.finding import Finding
from iopstui.ui.dashboard import finding_line
from iopstui.ui.dashboard.bars import answer_of
from iopstui.ui.dashboard.run_result import run_result
from iopstui.ui.draw.rows import answer_row, cells
from iopstui.ui.draw.style import ASCII, UTF8
from iopstui.ui.home.rows import HomeAnswer
from iopstui.ui.state.live import LiveState

WHO = "fio --name=hog --rw=randread --bs=4k (965) does 64 % of its bytes"
BUSY = Answer("vda", "queue", WARNING, "vda is busy: I/Os take 8.4 ms on average", "waits", WHO)
DEVICES = {name: BlockDevice(name, f"/dev/{name}", 8, n, "scsi", 1 << 30)
           for n, name in enumerate(("sda", "sdb"))}  # fmt: skip
HOG = changed(rates(4000, 4000, 9), aqu_sz=32.0, util=100.0)


def text(answer: Answer | None, width: int, ascii_only: bool = False) -> str:
    row = answer_row(answer, width, ASCII if ascii_only else UTF8)
    assert sum(cells(piece) for piece, _ in row) == width
    return "".join(piece for piece, _ in row).rstrip()


def test_who_is_said_in_fewer_words_where_there_is_no_room() -> None:
    assert text(BUSY, 160).endswith(WHO)
    assert (
        text(BUSY, 80) == " ▲ vda is busy: I/Os take 8.4 ms on average · fio (965): 64 % of bytes"
    )
    assert text(BUSY, 40) == " ▲ vda is busy: I/Os take 8.4 ms on…"
    assert text(BUSY, 80, ascii_only=True).isascii()
    assert text(None, 80) == ""


def test_the_time_of_the_figures_is_said_where_there_is_room() -> None:
    busy = replace(BUSY, over_s=5)
    assert WHO in text(busy, 160) and text(busy, 160).endswith("   over 5 s")
    assert text(busy, 86).endswith("· fio (965): 64 % of bytes       over 5 s"), "cut"
    assert text(busy, 80) == f"{text(BUSY, 80):73}in 5 s", "in two words"
    assert text(busy, 74) == text(BUSY, 74), "and after everything else"
    assert text(replace(busy, who=""), 60).endswith("on average        over 5 s")


def test_where_all_is_well_the_time_matters_more_than_the_last_parts() -> None:
    """The panels below show only the last second, so the line has to show that its figures are of
    more."""
    quick = "vda answers in 243 µs on average at 2.3 % busy; no queue (0.09 in flight)"
    well = Answer("vda", "well", GOOD, quick, over_s=5)
    assert text(well, 84) == f" ● {quick} in 5 s"
    assert text(well, 80) == f" ● {quick.partition(' (0.09')[0]:68}over 5 s"
    mean = quick.partition(" at 2.3")[0]
    assert text(well, 58) == f" ● {mean}; no queue    over 5 s"
    assert text(well, 44) == f" ● {mean.partition(' on')[0]}; no queue   in 5 s"
    assert text(well, 24) == f" ● {mean.partition(' on')[0]}"
    assert text(well, 22).endswith("…"), "the text has no figure without a time"
    who = f"{quick.partition(' (0.09')[0]} · fio (965): 64 % of bytes"
    assert text(replace(well, who=WHO), 100) == f" ● {who:88}over 5 s", "who stays"
    waiting = replace(well, text="loop0 answers in 528 µs on average (device p99 2.31 ms) at 34 % "
                                 "busy; tasks wait for I/O 1 % of the time")  # fmt: skip
    hog = "backupd --name=hog --filename=/dev/loop0 (5294) does 99 % of its bytes"
    for more in ("", "f: all"):
        row = "".join(one for one, _ in answer_row(replace(waiting, who=hog), 80, UTF8, more))
        assert "528 µs; tasks wait for I/O 1 % · backupd (5294): 99 %" in row, (
            "a newcomer missed it"
        )
    through = "backupd --all (31151) through loop0 does 92 % of its bytes"
    mean = replace(well, text="vda answers in 405 µs on average", who=through)
    assert text(mean, 80).endswith("on average · backupd (31151) through loop0: 92 %")
    assert text(mean, 90).endswith("92 % of bytes in 5 s")


def test_short_names() -> None:
    contained = "fio --name=hog (965, container docker 8c1d2f0a9b7e) does all of its bytes"
    assert short_who(contained) == "fio (965): 100 % of bytes"
    several = "container docker 8c1d2f0a9b7e (7 processes) does 95 % of its bytes"
    assert short_who(several).startswith("container docker 8c1d2f0a9b7e (7 processes): 95 %")
    assert (
        short_who("bash -c x (812) with its children does all of its bytes")
        == "bash (812): 100 % of bytes"
    )
    assert short_who("dd (7 processes) does 91 % of its bytes") == "dd (7 processes): 91 % of bytes"
    assert short_who("dd if=x (7) does at least 64 % of its bytes") == "dd (7): ≥ 64 % of bytes"
    assert short_who("resync of md0 (md) is under way").startswith("resync of md0")


def test_home_names_the_disk_that_needs_attention_first() -> None:
    home = HomeAnswer()
    quiet = {"sda": rates(), "sdb": rates()}

    def feed(t: float, seen: Mapping[str, DiskRates]) -> Answer | None:
        home.add(t, seen, DEVICES)
        return home.now(DEVICES)

    assert feed(0, {}) is None
    home.forget()
    for second in (1, 2):
        short = feed(second, quiet)
        assert short is not None and short.text.endswith(" measured, too short to tell")
        assert short.verdict == UNKNOWN
    idle = feed(3, quiet)
    assert idle is not None and idle.text == "2 disks are idle: nothing is in flight"
    for t in range(4, 10):
        answer = feed(t, {"sda": rates(50, 0, 1), "sdb": HOG, "sdb1": HOG})
    assert answer is not None and (answer.disk, answer.state) == ("sdb", WARNING)
    for t in range(10, 16):
        answer = feed(t, {"sda": rates(50, 0, 1), "sdb": rates()})
    assert answer is not None and (answer.disk, answer.state) == ("sda", GOOD)


def test_the_answer_on_a_run_is_of_the_past_once_it_has_ended() -> None:
    for rule, before, after in (
        (OF_A_SECOND, "fio does 9 IOPS", "Before the run ended: fio did 9 IOPS"),
        (
            OF_A_SECOND,
            "fio does 9 IOPS; in flight 4.0: vda 2.0",
            "Before the run ended: fio did 9 IOPS; in flight 4.0: vda 2.0",
        ),
        ("finding-tags", "tags: fio does 9", "Before the run ended: tags: fio did 9"),
        ("silent", "vda has answered nothing", "vda has answered nothing"),
    ):
        state = LiveState(answer=Answer("vda", rule, GOOD, before))
        state.apply(StepFinished(9.0, 1, 0, "", False))
        assert state.answer is not None and state.answer.text == after


@pytest.mark.parametrize("last_step", [0, 1])
def test_a_replay_that_has_ended_answers_of_its_run(last_step: int) -> None:
    """The seconds after the last run are too few for an answer; some are counted as the run's."""
    target, said = Target(DEVICE, "/dev/sda", "sda", ("sda",)), []
    state = LiveState()
    for n in range(1, 9):
        end = StepFinished(n - 0.5, 1, 0, "", False)
        if n == 7:
            state.apply(end)
        second = replace(frame(n, {"sda": rates(50)}), step=1 if n < 7 else last_step)
        state.apply(FrameReady(n, second))
        answer = answer_of(state, target, DEVICES)
        said.append(answer and answer.text)
    assert "2 seconds measured" in str(said[1]) and "too short" not in str(said[5])
    assert said[6] == said[7] == f"Before the run ended: {said[5]}"


def test_without_recorded_answers_a_finding_counts_for_its_seconds_only() -> None:
    """An older recording does not say when a finding ended."""
    target, rules = Target(DEVICE, "/dev/sda", "sda", ("sda",)), []
    state = LiveState()
    for n in range(1, 13):
        if n == 4:
            state.apply(FindingReported(n, Finding("scsi-errors", "sda: 3 errors", disk="sda")))
        state.apply(FrameReady(n, frame(n, {"sda": rates(50)})))
        answer = answer_of(state, target, DEVICES)
        rules.append(answer and answer.rule)
    assert rules[3] == rules[7] == "finding-scsi-errors" and "finding" not in str(rules[8:])


def test_nothing_is_said_of_parts_of_seconds() -> None:
    told = []
    for seconds in (1.0, 0.25):
        state = LiveState()
        for n in range(1, 9):
            part = frame(n * seconds, {"sda": rates(seconds=seconds)}, seconds)
            state.apply(FrameReady(n * seconds, part))
        answer = answer_of(state, Target(DEVICE, "/dev/sda", "sda", ("sda",)), DEVICES)
        told.append(None if answer is None else answer.rule)
    assert told == ["quiet", None]


def run_that_ended(*later: Answer) -> LiveState:
    """A run of one second, what was said of it, and what was said after it."""
    state = LiveState()
    state.apply(StepStarted(1.0, 1, "randread-4k", "randread 4k", (), True))
    state.apply(FrameReady(2.0, fakes.frame(2, fakes.interval(2, 60))))
    state.apply(
        AnswerGiven(2.0, Answer("vda", OF_A_SECOND, GOOD, "fio does 9 IOPS; in flight 4.0"))
    )
    state.apply(StepFinished(2.5, 1, 0, "", False))
    for answer in later:
        state.apply(AnswerGiven(42.5, answer))
    state.apply(Notice(42.5, "info", "later"))
    return state


def test_the_result_of_a_run_stays_until_the_next_one() -> None:
    idle = Answer("vda", "quiet", GOOD, "vda is idle: no I/O for 5 s")
    state = run_that_ended(idle)
    said = answer_of(state, None, {})
    assert said is not None
    assert said.text.startswith("Run 1 ended 40 s ago: ") and " IOPS, " in said.text
    assert said.text.endswith("; at its end in flight 4.0; now vda is idle")
    assert text(said, 80) == " ● Run 1 ended 40 s ago: 46.6k IOPS, 182 MiB/s, p99 569 µs"
    state.apply(StepStarted(50.0, 2, "randread-4k", "randread 4k", (), True))
    said = answer_of(state, None, {})
    assert said is None, "the next run has no answer yet"


@pytest.mark.parametrize(("seconds", "compared"), [(4, True), (1, False)])
def test_a_result_is_not_compared_with_a_point_of_a_second(seconds: int, compared: bool) -> None:
    """Compared with the last point of a sweep, at another depth, a run had +411 % IOPS."""
    state, t = LiveState(), 1.0
    for step, length in ((1, seconds), (2, 4)):
        state.apply(StepStarted(t, step, "randread-4k", "randread 4k", (), True))
        for second in range(length):
            t += 1.0
            made = fakes.frame(int(t), fakes.interval(second + 2, 60))
            state.apply(FrameReady(t, replace(made, step=step)))
        t += 0.5
        state.apply(StepFinished(t, step, 0, "", False))
    said = run_result(state)
    assert said is not None and ("to run 1" in said.text) is compared


def test_the_sign_of_a_result_is_explained_before_it_is_compared() -> None:
    """A warning about the end stood before "-25.4 % to run 11", which was asked for."""
    state = LiveState()
    why = Answer("vda", "finding-cpu", WARNING, "The job waits for a CPU")
    for step, second in ((1, 4), (2, 2)):
        state.apply(StepStarted(10.0 * step, step, "j", f"randread 4k QD {step} × 1 job", (), True))
        for n in range(4):
            made = fakes.frame(10 * step + n + 1, fakes.interval(second, 60))
            state.apply(FrameReady(made.t, replace(made, step=step)))
        state.apply(AnswerGiven(10.0 * step + 4, why))
        state.apply(StepFinished(10.0 * step + 4.5, step, 0, "", False))
    said = run_result(state)
    assert said is not None and said.state == WARNING
    end, change = said.text.index("at its end the job waits"), said.text.index(" % to run 1")
    assert end < change and said.text.endswith("(iodepth 1 → 2)")


@pytest.mark.parametrize(
    ("reasons", "brief"),
    [
        (("others did at least 35.7 MiB of 169 MiB a second on vda, on which loop2 lies (reads)",),
         " (beside ≥ 35.7 MiB/s of others on vda)"),
        (("others did at least 53.0k of 82.2k I/Os a second on vda (reads)", "CPU 1 was full: x"),
         " (beside ≥ 53.0k I/Os/s of others on vda)"),
        (("CPU 0, 1 were full: other programs used at least 86 % of a CPU there",),
         " with CPUs full of other programs"),
        (("interrupt 9 moved from CPU 1 to CPU 0",), ", disturbed"),
    ],
)  # fmt: skip
def test_a_short_line_has_what_disturbed_the_run(reasons: tuple[str, ...], brief: str) -> None:
    state, t = LiveState(), 10.0
    state.apply(ExperimentStarted(0.0, Plan(("j",), {}, (parse_axis("iodepth=1,4"),))))
    state.apply(PointStarted(0.0, 0, 2, "iodepth=1", 0.0))
    for step in (1, 2):
        state.apply(StepStarted(t, step, "randread-4k", "randread 4k", (), True))
        for second in range(2):
            made = fakes.frame(int(t) + second + 1, fakes.interval(second + 2, 60))
            state.apply(FrameReady(made.t, replace(made, step=step)))
        t += 10.0
        state.apply(StepFinished(t, step, 0, "", False, disturbed=reasons))
        state.apply(ExperimentFinished(t, 1, 2))
    state.experiment = None
    said = run_result(state)
    assert said is not None and said.text.startswith("Run 2 ended 0 s ago: 4")
    assert f" IOPS{brief}, p99" in said.text and f"disturbed: {'; '.join(reasons)}" in said.text
    assert f"IOPS{brief}" in text(said, 80) and len(text(said, 80)) <= 80


def test_what_is_worse_than_a_result_is_said_first() -> None:
    busy = Answer("vda", "busy", WARNING, "vda is busy: I/Os take 9 ms")
    said = answer_of(run_that_ended(busy), None, {})
    assert said is not None and said.who == "now ▲ vda is busy"
    dead = Answer("vda", "silent", CRITICAL, "vda has answered nothing for 3 s")
    said = answer_of(run_that_ended(dead), None, {})
    assert said == dead


def test_right_after_a_run_its_answer_has_no_other_beside_it() -> None:
    said = answer_of(run_that_ended(), None, {})
    assert said is not None and not said.who and "now" not in said.text


def test_after_a_sweep_the_answer_is_on_the_sweep() -> None:
    plan = Plan(("randread-4k",), {}, (parse_axis("iodepth=1,4"),))
    state = LiveState()
    state.apply(ExperimentStarted(0.0, plan))
    for event in made_points(plan):
        state.apply(event)
    state.apply(StepStarted(1.0, 2, "randread-4k", "randread 4k", (), True))
    state.apply(StepFinished(9.0, 2, 0, "", False))
    state.apply(ExperimentFinished(9.5, 2, 2))
    state.apply(Notice(20.0, "info", "later"))
    said = answer_of(state, None, {})
    assert said is not None and said.state == GOOD
    assert said.text.startswith("The sweep ended 10 s ago: iodepth=4 (w shows it): Take iodepth=4")


def test_a_shortened_answer_names_the_key_that_shows_all_of_it() -> None:
    quick = Answer("vda", "well", GOOD, "vda answers in 243 µs at 2.3 % busy; no queue")
    row = "".join(part for part, _ in answer_row(quick, 47, UTF8, "f: all"))
    assert row == f" ● {'vda answers in 243 µs; no queue':37}f: all "
    assert "f: all" not in "".join(part for part, _ in answer_row(quick, 80, UTF8, "f: all"))
    page = finding_line.list_rows(LiveState(devices=("vda",)), 40, UTF8, quick)
    listed = " ".join("".join(part for part, _ in one).strip() for one in page)
    assert "● vda answers in 243 µs at 2.3 % busy; no queue" in " ".join(listed.split())
