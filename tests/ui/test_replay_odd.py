"""Recordings that something else has written: they are played, or end in a sentence."""

from __future__ import annotations

import dataclasses
import functools
import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import recordings as made
from rich.console import Console
from test_app import settle
from test_replay_screen import WIDE, until

from iopstui.errors import EXIT_JOB_FAILED, EXIT_USAGE, UsageError
from iopstui.model.samples import RawSample
from iopstui.output.replay import replay_headless
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording, SampleRecord
from iopstui.recording.replay import ReplaySession
from iopstui.ui.parts.replay import ReplayKeys
from iopstui.ui.replay import ReplayApp, run_replay

pytestmark = pytest.mark.paints

COUNTS = (0, 1 << 32, (1 << 53) + 1, (1 << 63) - 1, (1 << 64) - 1)
NO_COUNTS: tuple[Any, ...] = (0.5, 1e30, 1 << 64, 10**400, None, "1", True)


def with_bins(raw: RawSample, change: Callable[[int], Any]) -> RawSample:
    """Every count of every histogram is another."""
    if raw.fio is None:
        return raw
    jobs = []
    for job in raw.fio.jobs:
        directions = {
            name: replace(one, bins=one.bins and {v: change(c) for v, c in one.bins.items()})
            for name, one in job.directions.items()
        }
        jobs.append(replace(job, directions=directions))
    return replace(raw, fio=replace(raw.fio, jobs=tuple(jobs)))


def written(path: Path, taken: list[RawSample]) -> Path:
    made.write(path, taken=taken)
    return path


def refused_headless(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        replay_headless(str(path), "jsonl")
    return caught.value.message


@pytest.mark.parametrize("odd", NO_COUNTS)
def test_what_is_no_count_is_refused_on_reading(odd: Any, tmp_path: Path) -> None:
    taken = made.raws(made.RUN)
    path = written(tmp_path / "odd.iops", [*taken[:2], with_bins(taken[2], lambda c: odd)])
    assert "it contains impossible figures" in refused_headless(path)


@pytest.mark.parametrize("name", ["wall_ms", "interval_s", "own_busy_s"])
@pytest.mark.parametrize("odd", [1e30, float("inf"), float("nan")])
def test_what_nothing_can_measure_is_refused_on_reading(
    name: str, odd: float, tmp_path: Path
) -> None:
    taken = made.raws(made.RUN)
    path = written(tmp_path / "odd.iops", [*taken[:2], replace(taken[2], **{name: odd})])
    assert "beyond all that can be measured" in refused_headless(path)


@pytest.mark.parametrize("t", [1e9, -1e9, 1e20])
def test_an_event_of_no_time_that_can_be_is_refused(t: float, tmp_path: Path) -> None:
    path = written(tmp_path / "odd.iops", made.raws(made.RUN)[:3])
    payload = zlib.compress(form.pack(["Notice", [t, "info", "from nowhere"]]))
    with open(path, "ab") as file:
        file.write(form.head(form.EVENT, 3.0, payload) + payload)
    assert "a Notice at" in refused_headless(path)
    with pytest.raises(UsageError, match="a Notice at"):
        ReplaySession(path)


async def test_figures_that_can_t_be_end_the_screen_with_a_sentence(tmp_path: Path) -> None:
    taken = made.raws(made.RUN)
    path = written(tmp_path / "odd.iops", [*taken[:2], with_bins(taken[2], lambda c: 0.5)])
    session = ReplaySession(path, 1000.0)
    app = ReplayApp(session)
    said = io.StringIO()
    app.error_console = Console(file=said, width=400)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: app._exit)
    session.close()
    assert app.return_value == EXIT_USAGE
    assert said.getvalue().startswith("iopstui: ") and "it contains impossible figures" in (
        said.getvalue()
    )


@pytest.mark.parametrize("count", COUNTS)
async def test_whatever_is_counted_is_painted_and_q_leaves(count: int, tmp_path: Path) -> None:
    taken = [with_bins(raw, lambda c: min(count, c * count)) for raw in made.raws(made.RUN)]
    await played_to_the_end(written(tmp_path / "large.iops", taken))


async def played_to_the_end(path: Path) -> None:
    session = ReplaySession(path, 1000.0)
    app = ReplayApp(session)
    async with app.run_test(size=WIDE) as pilot:
        await until(
            pilot,
            lambda: any(
                "end of the recording; space: play again" in e.text for e in app.state.log.entries
            ),
        )
        await pilot.press("h", "minus", "f", "escape", "2", "o", "escape")
        await settle(pilot)
        await pilot.press("q")
    session.close()
    assert app.return_value == 0


def odd_samples(raw: RawSample, value: Any) -> Iterator[RawSample]:
    """The sample with one figure after another being ``value``, deep inside."""
    yield from _odd(raw, value)


def _odd(one: Any, value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        for field in dataclasses.fields(one):
            for odd in _odd(getattr(one, field.name), value):
                yield replace(one, **{field.name: odd})
    elif isinstance(one, Mapping):
        for key in list(one)[:2]:
            for odd in _odd(one[key], value):
                yield {**one, key: odd}
    elif isinstance(one, tuple):
        for index in range(min(len(one), 2)):
            for odd in _odd(one[index], value):
                yield (*one[:index], odd, *one[index + 1 :])
    elif type(one) in (int, float):
        yield value


@pytest.mark.parametrize("value", [-1, 0, 1 << 32, (1 << 63) - 1, (1 << 64) - 1, 1e20, -0.5])
async def test_any_figure_of_a_sample_may_be_odd(value: float, tmp_path: Path) -> None:
    """One after the other, each between two that are right: all are played or refused."""
    whole = made.raws(made.RUN)
    taken = []
    for number, odd in enumerate(odd_samples(whole[2], value)):
        moment = whole[2].arrived_ns + number * 10**9
        if odd.arrived_ns != whole[2].arrived_ns:
            continue  # the recorder puts a sample where it arrived
        taken += [replace(odd, arrived_ns=moment, seq=number)]
    path = written(tmp_path / "odd.iops", [whole[0], *taken])
    with Recording(path) as recording:
        believed = []
        try:
            believed += [r.raw for r in recording.records() if isinstance(r, SampleRecord)]
        except UsageError:
            assert isinstance(value, float), "64 bits are what kernel and fio count in"
    if isinstance(value, int):
        assert len(believed) == len(taken) + 1
        await played_to_the_end(path)


def test_a_crash_of_the_replay_never_ends_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ReplayKeys) -> None:
        raise ZeroDivisionError("a paint")

    monkeypatch.setattr(ReplayKeys, "_refresh", broken)
    monkeypatch.setattr(ReplayApp, "on_ready", lambda self: self.action_freeze(), raising=False)
    monkeypatch.setattr(
        ReplayApp, "run", functools.partialmethod(ReplayApp.run, headless=True)
    )  # fmt: skip
    assert run_replay("demo", 1.0) == EXIT_JOB_FAILED


def test_a_crash_of_its_thread_never_ends_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: ReplaySession, record: object) -> None:
        raise ZeroDivisionError("a record")

    monkeypatch.setattr(ReplaySession, "_emit", broken)
    monkeypatch.setattr(
        ReplayApp, "run", functools.partialmethod(ReplayApp.run, headless=True)
    )  # fmt: skip
    assert run_replay("demo", 1.0) == EXIT_JOB_FAILED
    assert "ZeroDivisionError: a record" in capsys.readouterr().err.replace("\n", " ")
