"""Key H: a report of the recording, or of the last minutes."""

from __future__ import annotations

import shutil
from pathlib import Path

import experiment_fakes as lab
import pytest
import ui_fakes as fakes
from test_app import make, running, shows
from test_experiment_view import begin
from test_lessons import until
from test_replay_screen import replay

from iopstui.recording.reader import recording_path
from iopstui.ui.app import IopstuiApp


async def test_the_report_of_a_recording_is_written_beside_it(tmp_path: Path) -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        fake.recording = tmp_path / "mine.iops"
        shutil.copy(recording_path("demo"), fake.recording)
        await pilot.press("H")
        await app.workers.wait_for_complete()
        await until(pilot, lambda: shows(app, "Report: "))
        assert shows(app, "mine.html")
    assert "<html" in (tmp_path / "mine.html").read_text(encoding="utf-8")[:200].lower()


async def test_why_there_is_no_report_is_said(tmp_path: Path) -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        fake.recording = tmp_path / "broken.iops"
        fake.recording.write_bytes(b"no recording")
        await pilot.press("H")
        await app.workers.wait_for_complete()
        await until(pilot, lambda: shows(app, "Cannot write the report. "))
    assert not (tmp_path / "broken.html").exists()


async def test_without_a_recording_it_is_of_the_last_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        await pilot.press("H")
        await app.workers.wait_for_complete()
        assert shows(app, "Nothing measured yet")
        fake.kept = recording_path("demo")
        await pilot.press("H")
        await app.workers.wait_for_complete()
        await until(pilot, lambda: shows(app, "Report of the last 0:43: "))
    (recording,) = tmp_path.glob("*.iops")
    assert "<html" in recording.with_suffix(".html").read_text(encoding="utf-8")[:200].lower()


async def test_a_recording_that_has_ended_comes_first_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        fake.recording = tmp_path / "mine.iops"
        shutil.copy(recording_path("demo"), fake.recording)
        await pilot.press("R", "H")
        await app.workers.wait_for_complete()
        await until(pilot, lambda: shows(app, "mine.html"))
        await pilot.press("H")
        await app.workers.wait_for_complete()
        assert shows(app, "Nothing measured yet")


async def test_a_replay_s_is_of_the_recording_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "second-demo.html").write_text("mine")
    app = replay()
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: shows(app, "end of the recording"))
        await pilot.press("H")
        await app.workers.wait_for_complete()
        await until(pilot, lambda: shows(app, "second-demo-2.html"))
    assert (tmp_path / "second-demo.html").read_text() == "mine"
    assert "<html" in (tmp_path / "second-demo-2.html").read_text(encoding="utf-8")[:200].lower()


async def test_over_an_experiment_the_report_is_written_too(
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
        await pilot.press("H")
        await app.workers.wait_for_complete()
        await until(pilot, lambda: shows(app, "Report of the last 0:43: "))
