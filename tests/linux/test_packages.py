"""A missing package is reported before anything begins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iopstui import cli
from iopstui.errors import Missing
from iopstui.linux.process.programs import SCREEN_PACKAGES, require_packages


def test_all_are_there() -> None:
    require_packages(*SCREEN_PACKAGES)


def test_several_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(Missing, match="packages rich, no_such_package are missing") as told:
        require_packages("rich", "pyudev", "no_such_package")
    assert told.value.hint.endswith("-m pip install rich no_such_package")


def test_a_run_needs_no_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("psutil", *SCREEN_PACKAGES):
        monkeypatch.setitem(sys.modules, name, None)
    options = ("--set", "runtime=1", "--size", "1m", "--format", "jsonl")
    assert cli.main(["run", "--job", "randread-4k", *options]) == 0, capsys.readouterr().err
    assert "step_finished" in capsys.readouterr().out
