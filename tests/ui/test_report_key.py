"""Key H: a report of what was recorded, written beside the recording."""

from __future__ import annotations

import shutil
from pathlib import Path

from test_app import make, running, shows
from test_lessons import until

from iopstui.recording.reader import recording_path


async def test_the_report_of_a_recording_is_written_beside_it(tmp_path: Path) -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot)
        await pilot.press("H")
        assert shows(app, "Nothing recorded yet. R starts")
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
