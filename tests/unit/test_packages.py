"""A package that is not installed is told before anything begins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iopstui import cli
from iopstui.errors import Missing
from iopstui.linux.process.packages import FOR_THE_SCREEN, require


def test_all_are_there() -> None:
    require(*FOR_THE_SCREEN)


def test_several_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(Missing, match="packages psutil, no_such_package are missing") as told:
        require("psutil", "pyudev", "no_such_package")
    assert told.value.hint.endswith("-m pip install psutil no_such_package")


@pytest.mark.parametrize(
    "words",
    [("run", "--job", "randread-4k"), ("sweep", "--job", "randread-4k", "--axis", "iodepth=1,2"),
     ("compare", "--job", "randread-4k", "--variant", "as-is", "--variant", "iodepth=2"),
     ("lesson", "1", "--plain")],
)  # fmt: skip
def test_nothing_is_begun_without_psutil(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert cli.main(list(words)) == 5
    said = capsys.readouterr()
    assert said.err.startswith("iopstui: The Python package psutil is missing")
    assert said.out == ""
    assert list(tmp_path.iterdir()) == []
