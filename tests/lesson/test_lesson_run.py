"""A lesson being played, with events as a session gives them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from disks import changed
from hypothesis import given
from hypothesis import strategies as st
from session_frames import session

from iopstui.errors import EXIT_INTERRUPTED, UsageError
from iopstui.events import Event, FrameReady, StepFinished
from iopstui.features.lessons.model.file import parse_lesson
from iopstui.features.lessons.model.formula import Value
from iopstui.features.lessons.plain_player import LessonPlayer
from iopstui.features.lessons.play.facts import TargetFacts
from iopstui.features.lessons.play.lesson_state import DONE, FAILED, READY, RUNNING, SKIPPED
from iopstui.features.lessons.play.library import Lessons, shipped_lessons
from iopstui.features.lessons.play.player import LessonRun
from iopstui.model.block.target import DIRECTORY, Target, combine_targets
from iopstui.model.experiment.run_request import RunRequest
from iopstui.safety.signals import STOP_SIGNALS
from iopstui.tables import Table

TEXT = """
[lesson]
title = T
teaches = x
source = y
settle = 0
fio =
    [global]
    rw=randread
    [a]
    bs=4k
    [b]
    bs=8k

[let]
gain = deep.iops / one.iops

[tell: start]
text = On {device.name}.

[ask: more]
text = More?
a = yes
right a = gain > 1.5
b = no
right b = gain <= 1.5 and gain > 0.5
c = fewer
right c = gain <= 0.5

[run: one]
set = iodepth=1
    cpus_allowed={device.far_cpu}

[run: deep]
set = iodepth=4
knob = nomerges=2
    scheduler=none
needs = can.nomerges
why = Not turned: {why.nomerges}.

[see: both]
runs = one, deep
figures = iops, p99, merges

[explain: more]
answers = more
text =
    when gain > 1.5: Much more.

    otherwise: {one.iops} and {deep.iops}.

    p99 {deep.p99}
"""
FACTS: dict[str, Value | None] = {
    "device.name": "vda", "device.far_cpu": 1.0, "can.nomerges": True, "why.nomerges": None,
}  # fmt: skip
KNOBS = {"nomerges": "0", "scheduler": "mq-deadline", "nr_requests": "256", "rq_affinity": "1"}
FULL, GTOD = "3.42-a-randread-grp", "3.42-b-randrw-gtod"


def lesson_run(tmp_path: Path, **facts: Value | None) -> LessonRun:
    target = Target("file", str(tmp_path / "f"), "vda", ("vda",))
    known = {**FACTS, **{name.replace("_", ".", 1): value for name, value in facts.items()}}
    return LessonRun(parse_lesson(TEXT, "own", "own.ini"), target, TargetFacts(known, KNOBS))


@pytest.fixture
def play(tmp_path: Path) -> Iterator[LessonRun]:
    run = lesson_run(tmp_path)
    yield run
    run.close()


def measure(run: LessonRun, name: str = FULL, **finished: object) -> None:
    run.request()
    for event in session(name):
        if isinstance(event, StepFinished):
            event = replace(event, **finished)  # type: ignore[arg-type]
        assert run.feed(event) == isinstance(event, StepFinished)
        if isinstance(event, StepFinished):
            return


def measure_beside_a_neighbour(run: LessonRun) -> None:
    """Measure while another program writes to the device."""
    run.request()
    for event in session(FULL):
        if isinstance(event, FrameReady) and event.frame.fio is not None:
            ios = 2 * event.frame.fio.total.ios
            disks = {
                name: changed(disk, w_s=float(ios), w_bytes_s=4096.0 * ios)
                for name, disk in event.frame.disks.items()
            }
            event = replace(event, frame=replace(event.frame, disks=disks))
        if run.feed(event):
            return


def to(run: LessonRun, header: str) -> None:
    while run.step is not None and run.step.header != header:
        run.advance()
    assert run.step is not None, header


def words(run: LessonRun) -> str:
    page = run.page()
    assert page is not None
    return "\n".join(getattr(block, "text", "") for block in page.blocks)


def test_predict_run_see_explain(play: LessonRun) -> None:
    assert words(play) == "On vda."
    play.advance()
    page = play.page()
    assert page is not None and page.choices == (("a", "yes"), ("b", "no"), ("c", "fewer"))
    play.answer("a")
    assert play.page().chosen == "a"  # type: ignore[union-attr]
    play.advance()
    assert play.page().state == READY  # type: ignore[union-attr]
    measure(play)
    assert play.page().state == DONE  # type: ignore[union-attr]
    play.advance()
    measure(play)
    play.advance()
    (table,) = play.page().blocks  # type: ignore[union-attr]
    assert isinstance(table, Table) and table.head == ("", "one", "deep")
    assert [row[0] for row in table.rows] == [
        "I/Os per second, reads and writes", "99th percentile",
        "requests merged into others per second",
    ]  # fmt: skip
    assert table.rows[0][1] == table.rows[0][2]
    play.advance()
    said = words(play)
    assert said.startswith("You said a) yes. Measured: b) no.")
    assert "Much more" not in said and "p99 " in said
    verdict = play.verdict("more")
    assert verdict is not None and verdict.right == ("b",) and verdict.correct is False
    play.advance()
    assert play.is_over and play.page() is None
    play.advance()
    assert play.is_over


@pytest.mark.parametrize(
    ("answer", "begins"),
    [
        ("b", "You said b) no. The measurement confirms it."),
        ("c", "You said c) fewer. Measured: b) no."),
        (None, "Measured: b) no."),
    ],
)
def test_right_wrong_and_no_answer(play: LessonRun, answer: str | None, begins: str) -> None:
    to(play, "ask: more")
    play.answer(answer)
    for run in ("run: one", "run: deep"):
        to(play, run)
        measure(play)
    to(play, "explain: more")
    assert words(play).startswith(begins)


def test_a_disturbed_run_is_not_graded_until_it_is_repeated(play: LessonRun) -> None:
    to(play, "ask: more")
    play.answer("b")
    to(play, "run: one")
    measure(play)
    assert play.repeatable is None and "disturbed" not in words(play)
    to(play, "run: deep")
    measure_beside_a_neighbour(play)
    assert play.repeatable is play.step and "Run deep was disturbed (" in words(play)
    to(play, "see: both")
    assert "others did at least" in words(play)
    to(play, "explain: more")
    verdict = play.verdict("more")
    assert verdict is not None and verdict.correct is None and verdict.right == ()
    assert words(play).startswith("You said b) no. Not graded: run deep was disturbed (")
    assert "Much more" not in words(play) and "p99 " not in words(play)

    run = play.repeatable
    assert run is not None and run.name == "deep"
    play.repeat()
    measure(play)
    assert play.repeatable is None and play.run_page is run
    play.end_repeat()
    assert play.step is not None and play.step.header == "explain: more"
    assert words(play).startswith("You said b) no. The measurement confirms it.")


def test_a_reason_for_two_questions_is_given_once_and_r_repeats_the_run_of_the_questions(
    tmp_path: Path,
) -> None:
    asked = TEXT[TEXT.index("[ask: more]") : TEXT.index("[run: one]")].replace("gain", "deep.iops")
    asked += asked.replace("more", "deeper")
    text = TEXT[: TEXT.index("[ask: more]")] + asked + TEXT[TEXT.index("[run: one]") :]
    text = text.replace("answers = more", "answers = more, deeper")
    target = Target("file", str(tmp_path / "f"), "vda", ("vda",))
    lesson = parse_lesson(text, "own", "own.ini")
    with closing(LessonRun(lesson, target, TargetFacts(FACTS, KNOBS))) as play:
        for header in ("ask: more", "ask: deeper"):
            to(play, header)
            play.answer("b")
        for header in ("run: one", "run: deep"):
            to(play, header)
            measure_beside_a_neighbour(play)
        to(play, "explain: more")
        first, second = words(play).splitlines()[:2]
        assert first.startswith("You said b) no. Not graded: run deep was disturbed (")
        assert second == "You said b) no. Not graded: run deep was disturbed."
        # the page also shows figures of run one, which was disturbed, too
        assert play.repeatable is not None and play.repeatable.name == "deep"


def test_an_interrupt_that_moved_between_the_runs_leaves_a_question_open(play: LessonRun) -> None:
    for header in ("run: one", "run: deep"):
        to(play, header)
        measure(play)
    for cpu, name in enumerate(("one", "deep")):
        play.points[name] = replace(play.points[name], irq_cpus={"40": cpu})
    to(play, "explain: more")
    assert "run deep was disturbed (interrupt 40 moved from CPU 0 to CPU 1" in words(play)


def test_the_text_player_repeats_a_disturbed_run(
    play: LessonRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    to(play, "run: one")
    answers, runs = ["", "r", ""], [measure_beside_a_neighbour, measure]
    player = LessonPlayer(play, None, {}, is_interactive=True)  # type: ignore[arg-type]
    monkeypatch.setattr(player, "_read", lambda text: print(text) or answers.pop(0))
    monkeypatch.setattr(player, "_measure", lambda: runs.pop(0)(play))
    player._play_page()
    assert "[Enter continues, r repeats run one]" in capsys.readouterr().out
    assert not runs and play.step is not None and play.step.header == "run: deep"
    assert play.points["one"].disturbed == ()


def test_an_answer_that_there_is_not(play: LessonRun) -> None:
    with pytest.raises(ValueError, match="no question"):
        play.answer("a")
    to(play, "ask: more")
    with pytest.raises(ValueError, match="no answer"):
        play.answer("d")


def test_what_was_not_measured_is_not_said_and_that_is(play: LessonRun) -> None:
    to(play, "run: one")
    measure(play)
    to(play, "run: deep")
    measure(play, GTOD)
    to(play, "explain: more")
    # IOPS are known without latencies, p99 is not
    assert "p99 " not in words(play)
    assert "unknown: deep.p99" in words(play)
    verdict = play.verdict("more")
    assert verdict is not None and verdict.right


def test_a_question_that_the_measurement_does_not_decide(tmp_path: Path) -> None:
    text = TEXT.replace("gain <= 1.5 and gain > 0.5", "gain < 0.5")
    target = Target("file", str(tmp_path / "f"), "vda", ("vda",))
    run = LessonRun(parse_lesson(text, "own", "own.ini"), target, TargetFacts(FACTS, KNOBS))
    to(run, "ask: more")
    run.answer("a")
    for name in ("run: one", "run: deep"):
        to(run, name)
        measure(run)
    to(run, "explain: more")
    assert words(run).startswith("You said a) yes. This measurement confirms none")
    verdict = run.verdict("more")
    assert verdict is not None and verdict.right == () and verdict.correct is None
    run.close()


def test_a_run_that_fails_in_the_middle(play: LessonRun) -> None:
    to(play, "ask: more")
    play.answer("b")
    to(play, "run: one")
    measure(play)
    play.advance()
    measure(play, error="fio's job failed: No space left", hint="Make room.", exit_code=1)
    page = play.page()
    assert page is not None and page.state == FAILED
    assert "No space left Make room." in words(play)
    play.advance()
    (table,) = play.page().blocks  # type: ignore[union-attr]
    assert isinstance(table, Table) and table.head == ("", "one")
    play.advance()
    assert words(play) == (
        "You said b) no. This cannot be decided here: a required figure is unknown."
    )
    play.advance()
    assert play.is_over


def test_what_can_t_be_shown_says_why(tmp_path: Path) -> None:
    run = lesson_run(tmp_path, can_nomerges=False, why_nomerges="it needs root")
    assert run.impossible_runs() == {"deep": "Not turned: it needs root."}
    seen = []
    while run.step is not None:
        seen.append(run.step.header)
        if run.step.header == "run: deep":
            page = run.page()
            assert page is not None and page.state == SKIPPED
            assert words(run) == "Not turned: it needs root."
            with pytest.raises(UsageError):
                run.request()
        run.advance()
    # the question is not asked, and its explanation is not shown
    assert seen == ["tell: start", "run: one", "run: deep"]
    assert run.verdict("more") is None
    assert "deep" not in run.failed, "what can't be shown has not failed"
    run.close()


def test_the_end_of_an_earlier_run_is_not_this_one_s(play: LessonRun) -> None:
    to(play, "run: one")
    play.request()
    assert not play.feed(StepFinished(1.0, 3, 130, "", True))
    assert play.running and play.page().state == RUNNING  # type: ignore[union-attr]
    play.advance()
    assert play.step is not None and play.step.header == "run: one", "it is being measured"
    # a run that can't start has no StepStarted
    assert play.feed(StepFinished(1.0, 4, 5, "fio is missing.", False, hint="Install it."))
    assert play.failed["one"] == "fio is missing. Install it."


def test_a_run_that_is_stopped_before_it_begins_is_over(play: LessonRun) -> None:
    """It is stopped while its job is examined, or while it waits for an earlier run to end."""
    to(play, "run: one")
    play.request()
    play.stop()
    assert play.feed(StepFinished(1.0, 3, 130, "", True))
    assert play.failed["one"] == "it was stopped" and not play.running
    play.request()
    assert not play.feed(StepFinished(1.0, 4, 130, "", True)), "nobody has stopped this one"


def settings(request: RunRequest) -> tuple[tuple[str, str], ...]:
    """The tunables of a run, and their values."""
    return tuple((knob.name, knob.value) for knob in request.knobs)


def test_what_a_session_is_asked_to_run(play: LessonRun) -> None:
    to(play, "run: one")
    first = play.request()
    text = Path(first.job).read_text()
    assert text == "[global]\nrw=randread\n[a]\nbs=4k\n[b]\nbs=8k\n"
    assert first.overrides == {
        "iodepth": "1", "cpus_allowed": "1", "runtime": "5000ms", "time_based": "1",
    }  # fmt: skip
    # tunables that another run sets have the value they had before the lesson
    assert settings(first) == (
        ("scheduler", "mq-deadline"),
        ("nomerges", "0"),
        ("nr_requests", "256"),
    )
    play.give_up("x")
    to(play, "run: deep")
    second = play.request()
    assert settings(second) == (("scheduler", "none"), ("nomerges", "2"))
    assert play.jobs.original_knobs() == settings(first)
    play.give_up("x")
    play.close()
    assert not os.path.exists(first.job)


def test_a_fact_that_is_not_known_can_t_be_set(tmp_path: Path) -> None:
    run = lesson_run(tmp_path, device_far_cpu=None)
    to(run, "run: one")
    with pytest.raises(UsageError, match=r"Cannot set cpus_allowed: device.far_cpu"):
        run.request()
    assert "Cannot set" in words(run)
    run.close()


@given(st.lists(st.sampled_from(["advance", "answer", "measure", "gtod", "fail", "stop", "page"])))
def test_any_way_through_it_ends(ways: list[str]) -> None:
    """Any actions on any pages: no exception, and no page is empty."""
    run = lesson_run(Path("/none"))
    try:
        for way in [*ways, *["advance"] * 10]:
            page = run.page()
            assert page is None or page.blocks or page.choices
            kind = page.kind if page else ""
            if way == "answer" and kind == "ask":
                run.answer("c")
            elif way in ("measure", "gtod") and kind == "run":
                measure(run, GTOD if way == "gtod" else FULL)
            elif way in ("fail", "stop") and kind == "run":
                measure(run, error="x" if way == "fail" else "", interrupted=way == "stop")
            elif way == "advance":
                run.advance()
        assert run.is_over
    finally:
        run.close()


@pytest.mark.parametrize("lesson", shipped_lessons(), ids=lambda one: one.name)
@pytest.mark.parametrize("known", [True, False])
def test_every_shipped_lesson_can_be_played_wherever_one_is(
    lesson: object, known: bool, tmp_path: Path
) -> None:
    facts: dict[str, Value | None] = {}
    if known:
        facts = {
            **FACTS, "device.queues": 1.0, "host.cpus": 2.0, "device.irq_cpu": 0.0,
            "can.rq_affinity": True, "matters.rq_affinity": True, "can.scheduler": True,
            "device.other_scheduler": "none", "device.scheduler": "mq-deadline",
            "target.direct": True, "host.memory": 2.0**34,
        }  # fmt: skip
    target = Target("file", str(tmp_path / "f"), "vda" if known else None, ("vda",) * known)
    run = LessonRun(lesson, target, TargetFacts(facts, KNOBS if known else {}))  # type: ignore[arg-type]
    while (page := run.page()) is not None:
        assert page.blocks or page.choices
        if page.state == READY:
            measure(run)
        run.advance()
    assert known or run.skipped or run.lesson.name[:2] not in ("03", "04", "06")
    run.close()


def test_a_job_file_that_goes_away_meanwhile_costs_nothing(tmp_path: Path) -> None:
    job = tmp_path / "own.fio"
    job.write_text("[a]\nrw=randread\n")
    text = f"""
[lesson]
title = T
teaches = x
source = y
settle = 0

[run: one]
job = {job}
"""
    target = Target("file", str(tmp_path / "f"), "vda", ("vda",))
    run = LessonRun(parse_lesson(text, "own", "own.ini"), target, TargetFacts(FACTS, KNOBS))
    run.request()
    job.unlink()
    for event in session(FULL):
        run.feed(event)
    assert run.points["one"].iops > 0


def test_a_job_in_a_lesson_is_utf_8_wherever_it_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEXT.replace("    [a]", "    description=größer →\n    [a]")
    target = Target("file", str(tmp_path / "f"), "vda", ("vda",))
    run = LessonRun(parse_lesson(text, "own", "own.ini"), target, TargetFacts(FACTS, KNOBS))
    to(run, "run: one")
    real = Path.write_text
    monkeypatch.setattr(
        Path, "write_text", lambda path, text, encoding="ascii": real(path, text, encoding)
    )
    job = run.request().job
    monkeypatch.undo()
    assert "größer" in Path(job).read_text("utf-8")
    run.close()


def test_impatience_does_not_keep_settings_from_being_put_back(
    play: LessonRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone: list[str] = []

    class Session:
        def start(self, sink: object) -> None:
            """Nothing happens."""

        def close(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            undone.append("settings")

    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    monkeypatch.setattr(play, "close", lambda: undone.append("files"))
    try:
        player = LessonPlayer(play, Session(), {}, is_interactive=False)  # type: ignore[arg-type]
        monkeypatch.setattr(player, "_play_page", lambda: os.kill(os.getpid(), signal.SIGINT))
        assert player.play() == EXIT_INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert undone == ["settings", "files"]


def test_a_signal_while_a_run_is_asked_for_stops_it(play: LessonRun) -> None:
    calls: list[str] = []

    class Session:
        runs = 0

        def start(self, sink: Callable[[Event], None]) -> None:
            self.tell = sink

        def run_request(self, request: object, lent: object) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            calls.append("run")

        def stop_job(self) -> None:
            calls.append("stop")
            if "run" in calls:
                self.tell(StepFinished(1.0, 1, EXIT_INTERRUPTED, "", True))

        def close(self) -> None:
            calls.append("close")

    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    to(play, "run: one")
    try:
        player = LessonPlayer(play, Session(), {}, is_interactive=False)  # type: ignore[arg-type]
        assert player.play() == EXIT_INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert calls == ["stop", "run", "stop", "close"]


def test_a_lesson_explains_one_target(tmp_path: Path) -> None:
    places = [Target(DIRECTORY, str(tmp_path / name), None) for name in ("one", "two")]
    lessons = Lessons(combine_targets(places), dict)
    with pytest.raises(UsageError, match="several targets"):
        lessons.offers()
