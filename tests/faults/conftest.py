"""`make faults`: real fio on real devices, with everything that can go wrong. Needs root.

Only loop devices on files of its own, device-mapper targets on them, scsi_debug and null_blk are
touched. Cases that need a kernel module this machine lacks are skipped here and run in the lab: see
test_lab.py."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "system")]

from machine import Traces  # noqa: E402

if os.environ.get("IOPSTUI_FAULTS") != "1":
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    if any(str(item.path).startswith(here) for item in items) and os.geteuid() != 0:
        raise pytest.UsageError("the fault suite makes devices and needs root: sudo make faults")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which iopstui is started; its state and private directories are beside
    it."""
    directory = tmp_path / "work"
    directory.mkdir()
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    return directory


@pytest.fixture(autouse=True)
def traces(here: Path) -> Iterator[Traces]:
    """Check that each case leaves nothing: no process, file, note, lock or changed setting."""
    before = Traces(here)
    yield before
    before.compare(Traces(here))
