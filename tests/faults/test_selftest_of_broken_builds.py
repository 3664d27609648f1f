"""`iopstui selftest` of a copy of the program with one mistake in it: it must fail there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import iopstui

SOURCE = Path(iopstui.__file__).parent


@pytest.mark.parametrize(
    ("file", "right", "wrong", "check"),
    [
        ("model/rates.py", "r_await=ratio(delta_ms(current.read_ms, previous.read_ms), reads)",
         "r_await=ratio(2 * delta_ms(current.read_ms, previous.read_ms), reads)",
         "device: ms of r_await"),
        ("model/rates.py", "SECTOR = 512", "SECTOR = 1024", "device: sectors of rMB/s"),
        ("linux/devices/irqmap.py", "return int(match[1])\n    return None",
         "return int(match[1]) + 1\n    return None", "queue map: queue of each interrupt"),
        ("fio/fence_exec.py", "_enter_landlock(spec, grants)", "pass", "fence: write outside"),
        ("safety/tunables.py", "_, failed = _restore(entries, snapshots, self._roots)",
         "failed = []", "tunables: restored after it"),
    ],
    ids=["await", "sectors", "queues", "fence", "restore"],
)  # fmt: skip
def test_a_broken_build_fails(
    tmp_path: Path, file: str, right: str, wrong: str, check: str
) -> None:
    copy, place = tmp_path / "build", tmp_path / "place"
    shutil.copytree(SOURCE, copy / "iopstui")
    shutil.copytree(SOURCE.parent / "jobs", copy / "iopstui" / "jobs")
    place.mkdir()
    path = copy / "iopstui" / file
    text = path.read_text()
    assert text.count(right) >= 1
    path.write_text(text.replace(right, wrong))
    done = subprocess.run(
        [sys.executable, "-m", "iopstui", "selftest", str(place), "--json"],
        cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and done.stdout, done.stderr
    rows = {one["check"]: one["result"] for one in json.loads(done.stdout)["checks"]}
    assert rows[check] == "FAIL"
