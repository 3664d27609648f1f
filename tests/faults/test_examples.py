"""fio's own examples: each works on a scratch directory, or is refused for the right reason.

They are in the package fio-examples (or in IOPSTUI_FIO_EXAMPLES, a directory)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from program import start

pytestmark = pytest.mark.long

PACKAGED = Path("/usr/share/doc/fio/examples")


@cache
def examples() -> list[Path]:
    place = Path(os.environ.get("IOPSTUI_FIO_EXAMPLES", PACKAGED))
    if not place.is_dir() and shutil.which("apt-get"):
        place = Path(tempfile.mkdtemp())
        subprocess.run(["apt-get", "download", "-qq", "fio-examples"], cwd=place, check=False)
        for package in place.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, place], check=True)
    return sorted(place.rglob("*.fio"))


NAMES = [path.name for path in examples()] if os.environ.get("IOPSTUI_FAULTS") == "1" else []
# message of a refusal: text that the job file must then contain
REASONS = {
    r"ioengine=(\S+) ": "ioengine",
    r"needs the variable (\w+)": r"\$\{",
    r"(File too large|may grow to)": "offset|size|nrfiles|bs",
    r"zbd": "zonemode=zbd",
    r"numa": "numa",
    r"Inappropriate ioctl": "trim",
    r"killed": "",
    r"would write its log": "write_",
}


def test_there_are_examples() -> None:
    if not NAMES:
        pytest.skip("fio's examples are not here, and apt-get can't bring them")
    assert len(NAMES) > 50


@pytest.mark.parametrize("name", NAMES)
def test_it_works_or_says_why(name: str, here: Path) -> None:
    path = next(one for one in examples() if one.name == name)
    place = here / "scratch"
    place.mkdir()
    process = start("run", str(place), "--job", str(path), "--set", "runtime=1", "--size", "8m",
                    cwd=here)  # fmt: skip
    try:
        _, said = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "Traceback" not in said and "internal error" not in said
    assert list(place.iterdir()) == []
    if process.returncode not in (0, 130):
        sentence = next(line for line in said.split("\n") if line.startswith("iopstui: "))
        found = [part for pattern, part in REASONS.items() if re.search(pattern, sentence)]
        assert found, sentence
        text = path.read_text()
        assert any(re.search(part, text) for part in found), sentence
    place.rmdir()
    for left in here.glob("*.log"):
        left.unlink()
