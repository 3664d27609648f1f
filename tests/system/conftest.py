from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

LOOP_MIB = 16


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """The current directory of the program."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def loop() -> Iterator[Path]:
    """A loop device with writable settings, which no other program uses; skips without one (no
    root, a container)."""
    losetup = shutil.which("losetup", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if os.geteuid() != 0 or losetup is None:
        pytest.skip("only root can make a loop device")
    if "/dev/shm tmpfs" not in Path("/proc/mounts").read_text():
        pytest.skip("no tmpfs for its file")
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as image:
        image.write(os.urandom(1 << 20) * (LOOP_MIB))
        image.flush()
        losetup_result = subprocess.run(
            [losetup, "--show", "-f", image.name], capture_output=True, text=True
        )
        if losetup_result.returncode:
            pytest.skip(f"no loop device can be made here: {losetup_result.stderr.strip()}")
        device = Path(losetup_result.stdout.strip())
        try:
            # a loop device keeps its settings when it is detached: a killed test may have left 2
            affinity = Path("/sys/block") / device.name / "queue/rq_affinity"
            affinity.write_text("1")
            if not os.access(affinity, os.W_OK):
                pytest.skip("/sys can't be written here")
            yield device
        finally:
            subprocess.run([losetup, "-d", str(device)], check=False)
