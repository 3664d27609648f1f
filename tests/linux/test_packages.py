"""A package that is not installed is told before anything begins; ours is whole."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from iopstui import cli
from iopstui.errors import Missing
from iopstui.linux.process.packages import SCREEN_PACKAGES, require_packages


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


def test_a_wheel_has_all_that_is_needed(root: Path, tmp_path: Path) -> None:
    (built,) = WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        names = set(wheel.namelist())
    assert {"iopstui/py.typed", "iopstui/data/demo.iops"} <= names
    for folder, suffix in (("jobs", ".fio"), ("lessons", ".ini")):
        kept = {path.name for path in (root / folder).glob(f"*{suffix}")}
        assert kept and {f"iopstui/{folder}/{name}" for name in kept} <= names


def test_a_source_package_has_the_documents(root: Path, tmp_path: Path) -> None:
    (built,) = SdistBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(built) as package:
        names = {name.partition("/")[2] for name in package.getnames()}
    for path in (root / "docs").rglob("*.*"):
        assert str(path.relative_to(root)) in names
