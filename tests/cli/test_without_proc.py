"""Where /proc is not mounted."""

from __future__ import annotations

import os

import pytest

from iopstui.cli import program
from iopstui.cli.registry import commands
from iopstui.errors import EXIT_MISSING


@pytest.mark.parametrize(
    "word", ["run . --job randread-4k", "live", "watch", "doctor", "devices", "agent"]
)
def test_a_command_that_looks_at_the_machine_says_so(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = os.path.exists
    monkeypatch.setattr(
        os.path, "exists", lambda path: not str(path).startswith("/proc") and there(path)
    )
    assert program.main(word.split()) == EXIT_MISSING
    said = capsys.readouterr().err
    assert "/proc is not mounted" in said and "mount -t proc" in said


def test_others_run_without_it() -> None:
    assert {one.name for one in commands() if not one.needs_proc} == {
        "completion", "config", "fields", "fleet", "jobs", "merge", "replay", "report",
        "volumes",
    }  # fmt: skip
