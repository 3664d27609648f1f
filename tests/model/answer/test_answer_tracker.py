"""When an answer is given again, and what it is compared with."""

from __future__ import annotations

from dataclasses import replace

from disks import changed
from evidence_frames import fio
from watch_frames import frame, rates

from iopstui.model.answer.answer import GOOD, WAITS, WARNING, Answer, AnswerTotal
from iopstui.model.answer.judge import AGAIN_S, AnswerTracker
from iopstui.model.answer.situation import HourMedian
from iopstui.model.answer.use import DiskUse, DiskUser, RingWaiter
from iopstui.model.block.target import DEVICE, DeviceLinks, Target
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.conditions import Conditions
from iopstui.model.findings.evidence import JobShape
from iopstui.model.metrics.frame import JobFrame
from iopstui.model.metrics.waits import Waits

TARGET = Target(DEVICE, "/dev/vda", "vda", ("vda",), links=(DeviceLinks("vda"),))
QUIET = rates(50, 0, 1)
HOG = changed(rates(4000, 4000, 4), aqu_sz=32.0, util=100.0)


def answers(seconds: list[DiskRates], tracker: AnswerTracker | None = None) -> list[Answer]:
    tracker = tracker or AnswerTracker(TARGET)
    fed = (
        tracker.feed(frame(n, {"vda": one}), {}, Conditions(), ())
        for n, one in enumerate(seconds, 1)
    )
    return [answer for answer in fed if answer is not None]


def test_an_answer_is_given_when_it_changes_and_not_each_second() -> None:
    assert [one.rule for one in answers([QUIET] * 30)] == ["quiet"]
    told = answers([QUIET] * 10 + [HOG] * 10)
    assert [one.state for one in told][-1] == WARNING
    assert [one.rule for one in told].count("queue") <= 10 / AGAIN_S


def test_on_a_screen_the_figures_are_those_of_each_second() -> None:
    tracker = AnswerTracker(TARGET, every_second=True)
    seconds = [changed(HOG, aqu_sz=20.0 + n) for n in range(10)]
    told = answers(seconds, tracker)
    assert len(told) == 8 and len({one.text for one in told}) >= 7
    assert [one.span for one in told] == ["over 3 s", "over 4 s", *["over 5 s"] * 6]
    assert told[-1].sentence_with_span == f"{told[-1].sentence} (over 5 s)"
    still = AnswerTracker(TARGET, every_second=True)
    assert [one.over_s for one in answers([QUIET] * 30, still)] == [3, 4, 5], "nothing is new"


def test_two_good_answers_do_not_alternate_on_a_screen() -> None:
    little, more = rates(300, 0, 2), rates(700, 0, 2)
    tracker = AnswerTracker(TARGET, every_second=True)
    told = answers([*[little] * 5, *[more, more, more, little, little, little] * 4], tracker)
    changes = [one.rule for n, one in enumerate(told) if not n or one.rule != told[n - 1].rule]
    assert changes == ["quiet", "busy"] * (len(changes) // 2) + ["quiet"] * (len(changes) % 2)
    assert len(changes) - 1 <= 24 / AGAIN_S
    used = AnswerTracker(TARGET, every_second=True)
    rules = [one.rule for one in answers([*[QUIET] * 5, changed(HOG, aqu_sz=7.0)], used)]
    assert rules[-1] != "quiet", "a hog is no small difference"


def test_who_it_was_long_ago_is_not_who_it_is() -> None:
    tracker = AnswerTracker(TARGET)
    answers([HOG] * 14, tracker)
    dd = DiskUser(7, "dd", write_s=9e7, devices=frozenset({"vda"}))
    hog = DiskUser(965, "fio", write_s=3e7, devices=frozenset({"vda"}))
    for t, user in ((2.0, dd), (6.0, dd), (10.0, dd), (14.0, hog)):
        tracker.note_use(DiskUse(t, 4.0, (user,), disks={"vda": (0.0, user.write_s, 32.0)}))
    now = tracker.feed(frame(15.0, {"vda": HOG}), {}, Conditions(), ())
    assert now is not None and now.who == "fio (965) does all of its bytes"


def test_who_does_it_is_not_called_unseen_before_it_was_looked_for() -> None:
    for read, said in ((0.0, ""), (1e9, "who uses it cannot be seen")):
        tracker = AnswerTracker(TARGET)
        tracker.note_use(DiskUse(1.0, 1.0, hidden=1, as_root=True,
                                 disks={"vda": (read, 0.0, 0.0)}))  # fmt: skip
        assert answers([HOG] * 3, tracker)[-1].who == said


def test_who_does_it_is_news_once_it_is_known() -> None:
    tracker = AnswerTracker(TARGET)
    assert [one.who for one in answers([HOG] * 3, tracker)] == [""]
    hog = DiskUser(965, "fio", write_s=3e7, devices=frozenset({"vda"}))
    tracker.note_use(DiskUse(4.0, 1.0, (hog,), disks={"vda": (0.0, 3e7, 32.0)}))
    now = tracker.feed(frame(4.0, {"vda": HOG}), {}, Conditions(), ())
    assert now is not None and now.who == "fio (965) does all of its bytes"


def test_a_disk_is_not_called_idle_once_it_is_used() -> None:
    tracker = AnswerTracker(TARGET)
    assert "is idle" in answers([rates()] * 4, tracker)[-1].text
    used = tracker.feed(frame(5.0, {"vda": QUIET}), {}, Conditions(), ())
    assert used is not None and "is idle" not in used.text
    hog = DiskUser(965, "dd", read_s=50.0, devices=frozenset({"vda"}))
    tracker.note_use(DiskUse(6.0, 1.0, (hog,), disks={"vda": (50.0, 0.0, 1.0)}))
    named = tracker.feed(frame(6.0, {"vda": QUIET}), {}, Conditions(), ())
    assert named is not None and "dd (965)" in named.who


def test_other_iops_of_fio_are_said_at_once_and_the_same_ones_are_not() -> None:
    tracker = AnswerTracker(TARGET)
    for n, iops, is_said in ((3, 400, True), (4, 410, False), (5, 8000, True), (6, 7900, False)):
        for second in (n,) if n > 3 else (1, 2, 3):
            one = replace(frame(second, {"vda": QUIET}), step=1, fio=fio(iops))
            answer = tracker.feed(one, {}, Conditions(), ())
        assert (answer is not None) == is_said, n


def test_a_job_that_holds_itself_back_is_known_by_its_shape() -> None:
    tracker = AnswerTracker(TARGET)
    waits = Waits(0.1, 0.0, 0.0, {"vda": 0.1}, None, None, 0.0)
    for n in (1, 2, 3):
        one = replace(frame(n, {"vda": QUIET}), step=1, fio=fio(500), waits=waits,
                      jobs=(JobFrame(0, 1, False, 3.0, None),))  # fmt: skip
        answer = tracker.feed(one, {}, Conditions(), (), shape=JobShape(pace="rate_iops=500"))
    assert answer is not None and "as its rate_iops=500 allows" in answer.text


def test_a_burst_of_a_second_is_no_news() -> None:
    assert {one.state for one in answers([QUIET] * 10 + [HOG] + [QUIET] * 10)} == {GOOD}


def test_who_is_read_only_while_a_disk_is_used() -> None:
    tracker = AnswerTracker(TARGET)
    assert tracker.needs_use and tracker.needs_tasks, "the first answer must know"
    answers([rates()] * 5, tracker)
    assert not tracker.needs_use and not tracker.needs_tasks
    answers([HOG] * 5, tracker)
    assert tracker.needs_use and tracker.needs_tasks
    tracker = AnswerTracker(TARGET)
    answers([changed(rates(600), aqu_sz=0.05, util=0.4)] * 5, tracker)
    assert tracker.needs_use and not tracker.needs_tasks, "quick, and hardly busy as sampled"


def test_programs_in_io_uring_are_named_only_while_nothing_else_waits() -> None:
    tracker = AnswerTracker(TARGET)
    ring = DiskUse(3.0, 1.0, disks={"vda": (0.0, 0.0, 0.0)},
                   ring_waiters=(RingWaiter(812, "dragonfly"),))  # fmt: skip

    def named(n: int, second: DiskRates) -> tuple[str, ...]:
        tracker.note_use(replace(ring, t=float(n)))
        under_pressure = replace(frame(n, {"vda": second}), more={"pressure": {"some": 50.0}})
        tracker.feed(under_pressure, {}, Conditions(), ())
        return tracker.idle_rings

    assert [named(n, rates()) for n in range(1, 6)][-1] == ("dragonfly (812)",)
    assert [named(n, HOG) for n in range(6, 11)][-1] == ()


def test_a_reading_over_a_long_pause_is_of_another_time() -> None:
    tracker = AnswerTracker(TARGET)
    tracker.note_use(DiskUse(1.0, 500.0))
    assert not tracker._uses


def test_a_disk_is_compared_with_its_own_past_at_this_load() -> None:
    slow = changed(QUIET, r_await=9.0, aqu_sz=1.5)
    few = changed(QUIET, r_await=9.0, aqu_sz=0.4)
    assert "median" not in answers([QUIET] * 60 + [slow] * 10)[-1].text, "too short a past"
    last = answers([QUIET] * 200 + [slow] * 10)[-1]
    assert last.text.startswith("vda answers slower than usual: ")
    assert answers([QUIET] * 200 + [few] * 10)[-1].state == GOOD
    assert "9× its median at this load (last 3 min)" in last.text


def test_a_disk_is_compared_with_this_hour_of_other_days() -> None:
    def last(ms: float, seconds: list[DiskRates]) -> Answer:
        tracker = AnswerTracker(TARGET)
        tracker.hours = {"vda": HourMedian(ms, 3)}
        return answers(seconds, tracker)[-1]

    slow = changed(QUIET, r_await=6.0, aqu_sz=0.4)
    told = last(0.5, [QUIET, slow, *[QUIET] * 8])
    assert "slowest second 12× the usual of this hour (last 3 recorded days)" in told.text
    assert told.state == GOOD, "the load may have been another one: no disk is accused"
    assert "usual" not in last(3.0, [QUIET, slow, *[QUIET] * 8]).text, "twice is a usual day"
    assert "hour" not in last(0.5, [slow, *[QUIET] * 70]).text, "it was more than a minute ago"
    assert "hour" not in last(0.5, [QUIET] * 200 + [slow] * 5).text, "the load itself is known"


def test_of_a_watch_the_worst_and_the_last_answer_stay() -> None:
    total = AnswerTotal()
    bad = Answer("vda", "queue", WARNING, "vda is busy", WAITS)
    for t, answer in ((3.0, Answer("vda", "quiet", GOOD, "a")), (9.0, bad),
                      (20.0, Answer("vda", "busy", GOOD, "b"))):  # fmt: skip
        total.add(t, answer)
    assert [(t, answer.text) for t, answer in total.answers] == [(9.0, "vda is busy"), (20.0, "b")]
    total.add(30.0, bad)
    assert [t for t, _ in total.answers] == [30.0]


def test_a_second_that_is_not_looked_at_counts_in_the_next_look() -> None:
    tracker = AnswerTracker(TARGET)
    told = {
        n: answer
        for n in range(1, 13)
        if (answer := tracker.feed(frame(n, {"vda": HOG}), {}, Conditions(), (), n % 5 == 0))
    }
    assert [*told] == [5] and told[5].state == WARNING
