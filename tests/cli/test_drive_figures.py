"""A drive's counters from the reading at the run's end to the verdict and the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.cli.program import main
from iopstui.errors import EXIT_VERDICT
from iopstui.model.samples import DriveReading
from iopstui.session.tick.drives import DriveReader

BEGAN = {"kelvin": 310, "media_errors": 3, "units_read": 0}


def test_the_last_reading_of_a_run_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[str] = []
    now = {"kelvin": 320, "media_errors": 5, "units_read": 2000}
    last = {"nvme0": DriveReading(now, BEGAN)}
    monkeypatch.setattr(DriveReader, "begin", lambda _: begun.append("run"))
    monkeypatch.setattr(DriveReader, "take", lambda _: {})
    monkeypatch.setattr(DriveReader, "read_last", lambda *_: last)
    job = tmp_path / "read.fio"
    job.write_text("[read]\nrw=read\nbs=4k\nsize=1m\n")
    expected = ("nvme.media_errors<=1", "nvme.bytes_read>=1MB")
    arguments = [part for one in expected for part in ("--expect", one)]
    assert main(["run", str(tmp_path), "--job", str(job), *arguments]) == EXIT_VERDICT
    words = " ".join("".join(capsys.readouterr()).split())
    assert "FAIL nvme.media_errors <= 1: measured 2" in words
    assert "PASS nvme.bytes_read" in words
    assert "nvme0 (SMART): at most 47 °C, 977 MiB read, media errors +2" in words
    # before the file is laid out, and again before it is read
    assert begun == ["run", "run"]
