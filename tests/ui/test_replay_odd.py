"""Recordings from other programs: they are played or refused with a message."""

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
from test_app import settle, wait_until
from test_replay_screen import WIDE

from iopstui.errors import EXIT_JOB_FAILED, EXIT_USAGE, UsageError
from iopstui.model.samples import RawSample
from iopstui.output.replay import replay_headless
from iopstui.recording import layout as form
from iopstui.recording.reader import Recording, SampleRecord
from iopstui.recording.replay import ReplaySession
from iopstui.ui.parts.replay import ReplayKeys
from iopstui.ui.replay import ReplayApp, run_replay

pytestmark = pytest.mark.paints

COUNTS = (0, (1 << 53) + 1, (1 << 64) - 1)
NO_COUNTS: tuple[Any, ...] = (0.5, 1e30, 1 << 64, 10**400, None, "1", True)


def with_bins(raw: RawSample, change: Callable[[int], Any]) -> RawSample:
    """Change every count of every histogram."""
    if raw.fio is None:
        return raw
    jobs = []
    for job in raw.fio.jobs:
        directions = {
            name: replace(
                counts, bins=counts.bins and {v: change(c) for v, c in counts.bins.items()}
            )
            for name, counts in job.directions.items()
        }
        jobs.append(replace(job, directions=directions))
    return replace(raw, fio=replace(raw.fio, jobs=tuple(jobs)))


def write_recording(path: Path, samples: list[RawSample]) -> Path:
    made.write(path, taken=samples)
    return path


def refused_headless(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        replay_headless(str(path), "jsonl")
    return caught.value.message


@pytest.mark.parametrize("count", NO_COUNTS)
def test_impossible_counts_are_refused_on_reading(count: Any, tmp_path: Path) -> None:
    samples = made.raws(made.RUN)
    path = write_recording(
        tmp_path / "odd.iops", [*samples[:2], with_bins(samples[2], lambda c: count)]
    )
    assert "it contains impossible figures" in refused_headless(path)


@pytest.mark.parametrize("name", ["wall_ms", "interval_s", "own_busy_s"])
@pytest.mark.parametrize("figure", [1e30, float("inf"), float("nan")])
def test_unmeasurable_figures_are_refused_on_reading(
    name: str, figure: float, tmp_path: Path
) -> None:
    samples = made.raws(made.RUN)
    path = write_recording(
        tmp_path / "odd.iops", [*samples[:2], replace(samples[2], **{name: figure})]
    )
    assert "beyond all that can be measured" in refused_headless(path)


@pytest.mark.parametrize("t", [1e9, -1e9, 1e20])
def test_an_event_of_an_impossible_time_is_refused(t: float, tmp_path: Path) -> None:
    path = write_recording(tmp_path / "odd.iops", made.raws(made.RUN)[:3])
    payload = zlib.compress(form.pack(["Notice", [t, "info", "from nowhere", False]]))
    with open(path, "ab") as file:
        file.write(form.head(form.EVENT, 3.0, payload) + payload)
    assert "a Notice at" in refused_headless(path)
    with pytest.raises(UsageError, match="a Notice at"):
        ReplaySession(path)


async def test_impossible_figures_end_the_screen_with_a_message(tmp_path: Path) -> None:
    samples = made.raws(made.RUN)
    path = write_recording(
        tmp_path / "odd.iops", [*samples[:2], with_bins(samples[2], lambda c: 0.5)]
    )
    session = ReplaySession(path, 1000.0)
    app = ReplayApp(session)
    stderr = io.StringIO()
    app.error_console = Console(file=stderr, width=400)
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: app._exit)
    session.close()
    assert app.return_value == EXIT_USAGE
    assert stderr.getvalue().startswith("iopstui: ") and "it contains impossible figures" in (
        stderr.getvalue()
    )


@pytest.mark.parametrize("count", COUNTS)
async def test_extreme_counts_are_painted_and_q_quits(count: int, tmp_path: Path) -> None:
    samples = [with_bins(raw, lambda c: min(count, c * count)) for raw in made.raws(made.RUN)]
    await played_to_the_end(write_recording(tmp_path / "large.iops", samples))


async def played_to_the_end(path: Path) -> None:
    session = ReplaySession(path, 1000.0)
    app = ReplayApp(session)
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(
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
    """Copies of the sample, each with another figure replaced by ``value``."""
    yield from _odd(raw, value)


def _odd(item: Any, value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        for field in dataclasses.fields(item):
            for changed in _odd(getattr(item, field.name), value):
                yield replace(item, **{field.name: changed})
    elif isinstance(item, Mapping):
        for key in list(item)[:2]:
            for changed in _odd(item[key], value):
                yield {**item, key: changed}
    elif isinstance(item, tuple):
        for index in range(min(len(item), 2)):
            for changed in _odd(item[index], value):
                yield (*item[:index], changed, *item[index + 1 :])
    elif type(item) in (int, float):
        yield value


@pytest.mark.parametrize("value", [-1, 0, (1 << 64) - 1, 1e20, -0.5])
async def test_any_figure_of_a_sample_may_be_extreme(value: float, tmp_path: Path) -> None:
    """Each odd sample is placed between two valid ones; all are played or refused."""
    samples = made.raws(made.RUN)
    odd_recording = []
    for number, sample in enumerate(odd_samples(samples[2], value)):
        moment = samples[2].arrived_ns + number * 10**9
        if sample.arrived_ns != samples[2].arrived_ns:
            continue  # the recorder puts a sample where it arrived
        odd_recording += [replace(sample, arrived_ns=moment, seq=number)]
    path = write_recording(tmp_path / "odd.iops", [samples[0], *odd_recording])
    with Recording(path) as recording:
        believed = []
        try:
            believed += [r.raw for r in recording.records() if isinstance(r, SampleRecord)]
        except UsageError:
            assert isinstance(value, float), "64 bits are what kernel and fio count in"
    if isinstance(value, int):
        assert len(believed) == len(odd_recording) + 1
        await played_to_the_end(path)


def test_a_crash_of_the_replay_never_exits_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ReplayKeys) -> None:
        raise ZeroDivisionError("a paint")

    monkeypatch.setattr(ReplayKeys, "_refresh", broken)
    monkeypatch.setattr(ReplayApp, "on_ready", lambda self: self.action_freeze(), raising=False)
    monkeypatch.setattr(
        ReplayApp, "run", functools.partialmethod(ReplayApp.run, headless=True)
    )  # fmt: skip
    assert run_replay("demo", 1.0) == EXIT_JOB_FAILED


def test_a_crash_of_the_replay_thread_never_exits_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: ReplaySession, record: object) -> None:
        raise ZeroDivisionError("a record")

    monkeypatch.setattr(ReplaySession, "_show", broken)
    monkeypatch.setattr(
        ReplayApp, "run", functools.partialmethod(ReplayApp.run, headless=True)
    )  # fmt: skip
    assert run_replay("demo", 1.0) == EXIT_JOB_FAILED
    assert "ZeroDivisionError: a record" in capsys.readouterr().err.replace("\n", " ")
