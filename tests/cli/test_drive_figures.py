"""A drive's counters from the reading at the run's end to the verdict and the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.cli.program import main
from iopstui.errors import EXIT_VERDICT
from iopstui.model.samples import DriveReading
from iopstui.session.tick.readers import DriveReader

BEGAN = {"kelvin": 310, "media_errors": 3, "units_read": 0}


def test_expectations_use_the_last_reading_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[str] = []
    now = {"kelvin": 320, "media_errors": 5, "units_read": 2000}
    last = {"nvme0": DriveReading(now, BEGAN)}
    monkeypatch.setattr(DriveReader, "begin", lambda _: calls.append("run"))
    monkeypatch.setattr(DriveReader, "take", lambda _: {})
    monkeypatch.setattr(DriveReader, "read_last", lambda *_: last)
    job = tmp_path / "read.fio"
    job.write_text("[read]\nrw=read\nbs=4k\nsize=1m\n")
    expected = ("nvme.media_errors<=1", "nvme.bytes_read>=1MB")
    arguments = [part for expectation in expected for part in ("--expect", expectation)]
    assert main(["run", str(tmp_path), "--job", str(job), *arguments]) == EXIT_VERDICT
    output = " ".join("".join(capsys.readouterr()).split())
    assert "FAIL nvme.media_errors <= 1: measured 2" in output
    assert "PASS nvme.bytes_read" in output
    assert "nvme0 (SMART): at most 47 °C, 977 MiB read, media errors +2" in output
    # before the file is created and before the run
    assert calls == ["run", "run"]
