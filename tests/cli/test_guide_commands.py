"""Run the commands of README and the guide that need neither root, a device nor much time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_cli_commands import documented_commands

from iopstui.cli import main
from iopstui.recording.reader import recording_path

ROOT = Path(__file__).parents[2]
QUICK = {
    "completion",
    "config",
    "devices",
    "doctor",
    "fields",
    "jobs",
    "replay",
    "report",
    "volumes",
}
RECORDED = ("before.iops", "after.iops", "now.iops", "run.iops", "slow.iops")
"""Recordings of the reader. The demo replaces them."""
SWEEP = ROOT / "tests/fixtures/recordings/sweep.iops"
OTHERS = [["lesson"], ["lesson", "--figures"], ["fleet", "k8s", "--print-manifest"]]


def runs_here(args: list[str]) -> bool:
    """Whether the command needs only files that the test has."""
    name, *options = args
    if any(option.startswith("/") for option in options) or "--follow" in options:
        return False
    if name in ("report", "replay"):
        # replay without a format opens the screen
        files = [
            option for option in options if option.endswith((".iops", ".json", ".log", ".jsonl"))
        ]
        has_files = {*files} <= {*RECORDED, "sweep.iops"}
        return has_files and (name == "report" or "--format" in options)
    return name in QUICK or "--dry-run" in options or args[:3] in OTHERS


EXAMPLES = [*dict.fromkeys(tuple(args) for _, args in documented_commands(ROOT) if runs_here(args))]


def test_many_commands_are_tested() -> None:
    assert {args[0] for args in EXAMPLES} == QUICK | {"compare", "fleet", "lesson"}
    assert len(EXAMPLES) > 25


@pytest.mark.parametrize("args", EXAMPLES, ids=" ".join)
def test_the_documented_command_works(
    args: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in RECORDED:
        shutil.copyfile(recording_path("demo"), name)
    shutil.copyfile(SWEEP, "sweep.iops")
    assert main(list(args)) == 0
    captured = capsys.readouterr()
    assert captured.out or "-o" in args
    for text in ("Traceback", "internal error"):
        assert text not in captured.err
