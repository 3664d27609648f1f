"""Key H: a report of the recording, or of the last minutes."""

from __future__ import annotations

import shutil
from pathlib import Path

import experiment_fakes as lab
import pytest
import ui_fakes as fakes
from test_app import do, make, running, shows, wait_until
from test_experiment_view import begin
from test_replay_screen import replay

from iopstui.recording.reader import recording_path
from iopstui.ui.app import IopstuiApp


async def test_the_report_of_a_recording_is_written_next_to_it(tmp_path: Path) -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        fake.recording = tmp_path / "mine.iops"
        shutil.copy(recording_path("demo"), fake.recording)
        await do(pilot, "report")
        await app.workers.wait_for_complete()
        await wait_until(pilot, lambda: shows(app, "Report: "))
        assert shows(app, "mine.html")
    assert "<html" in (tmp_path / "mine.html").read_text(encoding="utf-8")[:200].lower()


async def test_a_missing_report_is_explained(tmp_path: Path) -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        fake.recording = tmp_path / "broken.iops"
        fake.recording.write_bytes(b"no recording")
        await do(pilot, "report")
        await app.workers.wait_for_complete()
        await wait_until(pilot, lambda: shows(app, "Cannot write the report. "))
    assert not (tmp_path / "broken.html").exists()


async def test_without_a_recording_the_report_covers_the_last_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        await do(pilot, "report")
        await app.workers.wait_for_complete()
        assert shows(app, "Nothing measured yet")
        fake.kept = recording_path("demo")
        await do(pilot, "report")
        await app.workers.wait_for_complete()
        await wait_until(pilot, lambda: shows(app, "Report of the last 0:43: "))
    (recording,) = tmp_path.glob("*.iops")
    assert "<html" in recording.with_suffix(".html").read_text(encoding="utf-8")[:200].lower()


async def test_an_ended_recording_is_reported_first_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        fake.recording = tmp_path / "mine.iops"
        shutil.copy(recording_path("demo"), fake.recording)
        await do(pilot, "record")
        await do(pilot, "report")
        await app.workers.wait_for_complete()
        await wait_until(pilot, lambda: shows(app, "mine.html"))
        await do(pilot, "report")
        await app.workers.wait_for_complete()
        assert shows(app, "Nothing measured yet")


async def test_a_replay_reports_its_recording_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "second-demo.html").write_text("mine")
    app = replay()
    async with app.run_test(size=(160, 45)) as pilot:
        await wait_until(pilot, lambda: shows(app, "end of the recording"))
        await do(pilot, "report")
        await app.workers.wait_for_complete()
        await wait_until(pilot, lambda: shows(app, "second-demo-2.html"))
    assert (tmp_path / "second-demo.html").read_text() == "mine"
    assert "<html" in (tmp_path / "second-demo-2.html").read_text(encoding="utf-8")[:200].lower()


async def test_a_report_can_be_written_during_an_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    laboratory = lab.FakeLaboratory()
    async with lab.make(laboratory).run_test(size=(160, 45)) as pilot:
        app = pilot.app
        assert isinstance(app, IopstuiApp)
        await begin(pilot, lab.SWEEP, 3)
        fake = app.port.session
        assert isinstance(fake, fakes.FakeController)
        fake.kept = recording_path("demo")
        await do(pilot, "report")
        await app.workers.wait_for_complete()
        await wait_until(pilot, lambda: shows(app, "Report of the last 0:43: "))
