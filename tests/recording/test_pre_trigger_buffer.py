"""A recording that begins some seconds before it was requested."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import recordings as made
from hypothesis import given
from hypothesis import strategies as st

from iopstui import events
from iopstui.errors import UsageError
from iopstui.model.experiment.plan import Plan, expand_plan, parse_axis
from iopstui.model.experiment.point import Point, littles_law
from iopstui.model.samples import RawSample
from iopstui.recording import layout as form
from iopstui.recording import pre_trigger_buffer as module
from iopstui.recording.pre_trigger_buffer import BaselineSamples, PreTriggerBuffer
from iopstui.recording.writer import Recorder, RecordingBuffer

QUIET = [replace(raw, fio=None, step=0, jobs=()) for raw in made.long_run(40, made.RUN)]


def tape(keep_s: float) -> RecordingBuffer:
    return RecordingBuffer(made.TARGET, lambda: {"vda": made.VDA}, 1.0, True, keep_s=keep_s)


def marks(path: Path) -> list[events.Mark]:
    return [o.value for o in made.read(path)[1] if isinstance(o.value, events.Mark)]


def test_what_happened_in_that_time_is_in_it_and_nothing_older(tmp_path: Path) -> None:
    one = tape(10)
    one.event(events.Mark(0.0, "before the first sample"))
    for n, raw in enumerate(QUIET[:30]):
        one.sample(raw)
        if n in (5, 18, 25):
            one.event(events.Mark(n + 0.25, f"after sample {n}"))
    one.start(Recorder(tmp_path / "a"))
    one.event(events.Mark(29.5, "now"))
    one.stop()
    # sample 19 is the first with rates; it needs sample 18, which is second 0
    assert marks(tmp_path / "a") == [
        events.Mark(0.25, "after sample 18"), events.Mark(7.25, "after sample 25"),
        events.Mark(11.5, "now"),
    ]  # fmt: skip


def test_a_session_that_is_younger_than_that_is_recorded_from_its_first_sample(
    tmp_path: Path,
) -> None:
    one = tape(100)
    one.event(events.Mark(0.0, "first of all"))
    for raw in QUIET[:5]:
        one.sample(raw)
    one.start(Recorder(tmp_path / "a"))
    one.stop()
    samples, _, _ = made.read(tmp_path / "a")
    assert [s.raw for s in samples if s.is_shown] == QUIET[:5] and all(s.is_shown for s in samples)
    assert [mark.text for mark in marks(tmp_path / "a")] == ["first of all"]


def test_before_the_first_sample_it_waits_for_it(tmp_path: Path) -> None:
    one = tape(10)
    one.start(Recorder(tmp_path / "a"))
    one.sample(QUIET[0])
    one.stop()
    assert [s.raw for s in made.read(tmp_path / "a")[0]] == QUIET[:1]


def test_more_samples_than_may_wait_for_a_slow_disk_are_no_problem(tmp_path: Path) -> None:
    many = made.long_run(700, made.RUN)
    one = tape(1000)
    for raw in many:
        one.sample(raw)
    one.start(Recorder(tmp_path / "a"))
    assert one.stop().startswith("recorded to") and list(one.problems()) == []
    assert [s.raw for s in made.read(tmp_path / "a")[0]] == many


def test_a_part_is_closed_by_whoever_has_the_time(tmp_path: Path) -> None:
    one = tape(10)
    one.sample(QUIET[0])
    assert one.detach()() == ""
    one.start(Recorder(tmp_path / "a"))
    close = one.detach()
    assert one.path is None
    one.sample(QUIET[1])
    one.start(Recorder(tmp_path / "b"))
    assert close().startswith(f"recorded to {tmp_path / 'a'}: 1 samples")
    assert one.stop().startswith(f"recorded to {tmp_path / 'b'}: 2 samples")


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.floats(0.5, 30))
def test_no_more_is_kept_than_was_asked_for(gaps: list[int], seconds: float) -> None:
    kept, now, taken = PreTriggerBuffer(seconds), 10**9, []
    for n, gap in enumerate(gaps):
        now += gap * 10**9
        taken.append(replace(QUIET[0], seq=n, arrived_ns=now))
        kept.add(events.Mark(float(n), "before it"))
        kept.add(taken[-1])
        within = [raw for raw in taken if now - raw.arrived_ns <= int(seconds * 1e9)]
        assert [item for item in kept.items if isinstance(item, RawSample)] == within
        assert len(kept.items) == 2 * len(within)
        older = taken[: len(taken) - len(within)]
        assert kept.lead.samples() == older[-1:]


def test_however_often_is_sampled_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SAMPLES", 7)
    kept = PreTriggerBuffer(1e6)
    for raw in QUIET:
        kept.add(raw)
    assert kept.items == QUIET[-7:]


def test_a_lead_has_the_last_sample_with_what_not_every_sample_has() -> None:
    lead = BaselineSamples()
    bare = [replace(raw, kernel=replace(raw.kernel, ipi=None)) for raw in QUIET[1:3] if raw.kernel]
    for raw in (QUIET[0], *bare):
        lead.add(raw)
    assert lead.samples() == [QUIET[0], bare[1]]


def test_what_is_kept_is_saved_in_a_whole_recording(tmp_path: Path) -> None:
    one = tape(10)
    assert one.save_kept(Recorder(tmp_path / "none")) is None
    assert not (tmp_path / "none").exists()
    for raw in QUIET[:30]:
        one.sample(raw)
    assert one.save_kept(Recorder(tmp_path / "a")) == pytest.approx(11.0)
    assert one.path is None
    samples, others, damage = made.read(tmp_path / "a")
    assert [s.raw for s in samples if s.is_shown] == QUIET[19:30] and damage == ""
    assert isinstance(others[-1].value, form.RecordingEnd)


def test_what_cannot_be_saved_is_an_error(tmp_path: Path) -> None:
    one = tape(10)
    one.sample(QUIET[0])
    recorder = Recorder(tmp_path / "a")
    recorder.problem = "the disk is full"
    with pytest.raises(UsageError, match="the disk is full"):
        one.save_kept(recorder)


def test_a_run_that_began_before_and_ended_since_has_its_beginning(tmp_path: Path) -> None:
    one, taken = tape(5), made.long_run(40, made.RUN)
    before, after = made.others(made.RUN)
    made.tell(one, [taken[0], *before, *taken[1:30], *after, *taken[30:33]])
    one.save_kept(Recorder(tmp_path / "a"))
    values = [other.value for other in made.read(tmp_path / "a")[1]]
    begun = [value for value in values if isinstance(value, form.JobRun | events.StepStarted)]
    assert begun == before[:2]
    assert sum(isinstance(value, events.StepFinished) for value in values) == 1
    # once the run's end is too old as well, nothing of the run is left
    made.tell(one, taken[33:])
    one.save_kept(Recorder(tmp_path / "b"))
    later = [other.value for other in made.read(tmp_path / "b")[1]]
    assert [type(value) for value in later] == [form.RecordedDevices, form.RecordingEnd]


def sweep(points: int) -> list[events.Event]:
    """The events of a sweep of two points, up to number ``points``."""
    plan = Plan(("randread-4k",), {}, (parse_axis("iodepth=1,4"),))
    figures = Point(8.0, 80, 10.0, 40960.0, 10.0, 0.0, 1e5, "lat", 1e5, 2e5, 3e5)
    found: list[events.Event] = [events.ExperimentStarted(0.0, plan)]
    for n, step in enumerate(expand_plan(plan)):
        if n < points:
            settings = tuple((one.name, one.value) for one in step.settings)
            found += [
                events.PointStarted(0.0, n, 2, step.label, 20.0),
                events.PointFinished(
                    0.0, n, 2, step.label, step.job, settings, step.variant, step.repeat, figures,
                    littles_law(figures, 1, paced=False),
                ),
            ]  # fmt: skip
    return found


def points(one: RecordingBuffer, path: Path) -> list[type]:
    one.save_kept(Recorder(path))
    kinds = (events.ExperimentStarted, events.PointFinished, events.ExperimentFinished)
    return [type(o.value) for o in made.read(path)[1] if isinstance(o.value, kinds)]


def test_a_sweep_is_in_it_with_all_points_until_something_else_is_run(tmp_path: Path) -> None:
    one, taken = tape(5), iter(made.long_run(60, made.RUN))
    whole = [events.ExperimentStarted, *[events.PointFinished] * 2, events.ExperimentFinished]

    def happen(*what: object) -> None:
        made.tell(one, [*what, *(next(taken) for _ in range(10))])

    happen(*sweep(2))
    assert points(one, tmp_path / "a") == whole[:-1]
    happen(events.ExperimentFinished(20.0, 2, 2, False, ""))
    happen()
    assert points(one, tmp_path / "b") == whole
    happen(made.others(made.RUN)[0][0])
    assert points(one, tmp_path / "c") == []
