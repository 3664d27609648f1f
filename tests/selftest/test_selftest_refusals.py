"""What the self-test refuses before it runs anything."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from iopstui.errors import UsageError
from iopstui.features.selftest.collect import NEEDED_BYTES, collect
from iopstui.features.selftest.devices import run_command, run_guarded_fio


def test_a_directory_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=NEEDED_BYTES - 1))
    said: list[str] = []
    with pytest.raises(UsageError, match="has 191 MiB free; the self-test needs 192 MiB"):
        collect(tmp_path, said.append)
    assert not said and not list(tmp_path.iterdir())


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "fio").write_text("no program")
    code, messages = run_guarded_fio([str(tmp_path / "fio")], tmp_path)
    assert code and "fio: Permission denied" in messages[-1]
    assert "fio: Permission denied" in run_command(str(tmp_path / "fio")).stderr
