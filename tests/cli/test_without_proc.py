"""Commands on a machine without /proc."""

from __future__ import annotations

import os

import pytest

from iopstui.cli import program
from iopstui.errors import EXIT_MISSING


@pytest.mark.parametrize(
    "line", ["run . --job randread-4k", "live", "watch", "doctor", "devices", "agent"]
)
def test_a_command_that_needs_proc_says_so(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    exists = os.path.exists
    monkeypatch.setattr(
        os.path, "exists", lambda path: not str(path).startswith("/proc") and exists(path)
    )
    assert program.main(line.split()) == EXIT_MISSING
    stderr = capsys.readouterr().err
    assert "/proc is not mounted" in stderr and "mount -t proc" in stderr
