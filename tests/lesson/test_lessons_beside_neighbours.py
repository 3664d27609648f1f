"""Lessons 1 and 3 on a simulated disk that another program uses, too: no wrong grade."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import evidence_frames as made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iopstui.events import Event, FrameReady, StepFinished, StepStarted
from iopstui.features.lessons.model.pages import QuestionPage, RunPage
from iopstui.features.lessons.play.facts import TargetFacts
from iopstui.features.lessons.play.library import find_lesson
from iopstui.features.lessons.play.player import LessonRun
from iopstui.model.block.target import DEVICE, Target

TARGET = Target(DEVICE, "/dev/vda", "vda", ("vda",))
FACTS = {
    "device.name": "vda", "device.queues": 1.0, "device.cpus_per_queue": 4.0, "host.cpus": 4.0,
    "device.far_cpu": 1.0, "device.irq_cpu": 0.0, "device.rq_affinity": 1.0,
    "device.nr_requests": 128.0, "target.kind": DEVICE, "matters.rq_affinity": True,
    "can.rq_affinity": True, "can.scheduler": True, "device.other_scheduler": "mq-deadline",
}  # fmt: skip
LATENCY_S, PARALLEL = 0.001, 16
SECONDS = 8
TRUE = {"1": {"eight": ("a",), "deep": ("b",)}, "3": {"can": ("a",), "two": ("a",), "iops": ("c",)}}
"""The right answers without a neighbour: the disk serves 16 I/Os at a time, each in 1 ms, and
rq_affinity moves completions without changing IOPS."""
SHARES = st.sampled_from([0.0, 0.0, 0.1, 0.3, 0.6])


def seconds_of(depth: int, share: float, affinity: str | None, lost: float) -> Iterator[Event]:
    """A run beside a neighbour, which does ``share`` of the I/O and takes the part ``lost`` of that
    from the job. The neighbour's I/O completes on CPU 0, which gets the interrupt."""
    alone = min(depth, PARALLEL) / LATENCY_S
    iops = alone * (1 - lost * share)
    others = iops * share / (1 - share)
    yield StepStarted(0.0, 1, "job", "title", ("fio",), True)
    for second in range(SECONDS):
        wobble = 1 + 0.01 * (-1) ** second
        fio = made.fio(iops * wobble, lat_ns=1e9 * depth / iops)
        total = replace(fio.total, samples={"lat": fio.total.ios})
        fio = replace(fio, total=total, directions={"read": total})
        disks = {"vda": made.disk(iops * wobble + others, aqu=depth)}
        own = {1: 1.0} if affinity == "2" else {0: 1.0}
        block = {cpu: iops * part for cpu, part in own.items()}
        block[0] = block.get(0, 0.0) + others
        frame = made.frame(second + 1, fio, disks=disks, block=block, jobs=((1, 30.0),))
        yield FrameReady(second + 1, replace(frame, opened=("vda",), skew_ms=5.0))
    yield StepFinished(SECONDS, 1, 0, "", False)


def played(name: str, shares: dict[str, float], lost: float) -> LessonRun:
    run = LessonRun(find_lesson(name), TARGET, TargetFacts(FACTS, {"rq_affinity": "1"}))
    while not run.is_over:
        page = run.step
        if isinstance(page, QuestionPage) and (shown := run.page()) is not None and shown.choices:
            run.answer("a")
        elif isinstance(page, RunPage) and page.header not in run.skipped:
            request = run.request()
            depth = int(request.overrides["iodepth"])
            affinity = {knob.name: knob.value for knob in request.knobs}.get("rq_affinity")
            for event in seconds_of(depth, shares.get(page.name, 0.0), affinity, lost):
                run.feed(event)
        run.advance()
    return run


def grades(name: str, shares: dict[str, float], lost: float) -> dict[str, tuple[str, ...]]:
    run = played(name, shares, lost)
    verdicts = {question: run.verdict(question) for question in TRUE[name]}
    run.close()
    return {question: verdict.right for question, verdict in verdicts.items() if verdict}


@pytest.mark.parametrize("name", ["1", "3"])
def test_without_a_neighbour_every_answer_is_graded(name: str) -> None:
    assert grades(name, {}, 1.0) == TRUE[name]


@settings(max_examples=30)
@given(
    st.sampled_from(["1", "3"]),
    st.fixed_dictionaries(
        {run: SHARES for run in ("one", "eight", "deep", "zero", "two")}
    ),
    st.floats(0, 1),
)  # fmt: skip
def test_beside_a_neighbour_no_answer_is_graded_wrong(
    name: str, shares: dict[str, float], lost: float
) -> None:
    for question, right in grades(name, shares, lost).items():
        assert right in ((), TRUE[name][question]), (question, shares)


def test_a_neighbour_in_one_run_leaves_the_questions_of_the_others() -> None:
    told = grades("1", {"deep": 0.6}, 1.0)
    assert told == {"eight": ("a",), "deep": ()}


def test_a_disturbed_run_is_not_called_one_that_was_not_made() -> None:
    run = played("6", {"other": 0.6}, 1.0)
    page = next(step for step in run.lesson.steps if step.header == "explain: scheduler")
    told = " ".join(text.text for text in run.conclusions(page.paragraphs))
    assert run.points["other"].disturbed and "was measured here" not in told
    run.close()


def test_grades_would_be_wrong_if_nobody_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated neighbour is strong enough to make grades wrong."""
    monkeypatch.setattr("iopstui.model.experiment.disturbance.DISTURBING_SHARE", 2.0)
    assert grades("1", {"one": 0.6}, 1.0)["deep"] == ("b",)
    assert grades("1", {"eight": 0.6}, 1.0)["eight"] != ("a",)
    assert grades("3", {"two": 0.6}, 1.0)["iops"] != ("c",)
