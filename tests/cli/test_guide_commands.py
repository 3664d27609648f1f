"""Commands of README and the guide that need neither root, nor a device, nor time: they work."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_cli_commands import shown

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
"""The reader's own, each stood for by the demo."""
SWEEP = ROOT / "tests/fixtures/recordings/sweep.iops"
OTHERS = [["lesson"], ["lesson", "--figures"], ["fleet", "k8s", "--print-manifest"]]


def runs_here(words: list[str]) -> bool:
    """Whether this needs nothing but files that the test has."""
    name, *rest = words
    if any(word.startswith("/") for word in rest) or "--follow" in rest:
        return False
    if name in ("report", "replay"):
        # a replay without a format is a screen
        files = [word for word in rest if word.endswith((".iops", ".json", ".log", ".jsonl"))]
        known = {*files} <= {*RECORDED, "sweep.iops"}
        return known and (name == "report" or "--format" in rest)
    return name in QUICK or "--dry-run" in rest or words[:3] in OTHERS


EXAMPLES = [*dict.fromkeys(tuple(words) for _, words in shown(ROOT) if runs_here(words))]


def test_there_are_many() -> None:
    assert {words[0] for words in EXAMPLES} == QUICK | {"compare", "fleet", "lesson"}
    assert len(EXAMPLES) > 25


@pytest.mark.parametrize("words", EXAMPLES, ids=" ".join)
def test_it_works(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in RECORDED:
        shutil.copyfile(recording_path("demo"), name)
    shutil.copyfile(SWEEP, "sweep.iops")
    assert main(list(words)) == 0
    told = capsys.readouterr()
    assert told.out or "-o" in words
    for word in ("Traceback", "internal error"):
        assert word not in told.err
