"""The cases of the other files here that need devices to fail or be pulled, in a virtual machine.

IOPSTUI_LAB is a command that runs its arguments there as root, e.g. "ssh root@lab"; the checkout
and Python must be at the same paths. Without it these cases are skipped.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.long
LAB = shlex.split(os.environ.get("IOPSTUI_LAB", ""))


@pytest.mark.skipif(not LAB, reason="IOPSTUI_LAB names no command")
@pytest.mark.parametrize("cases", ["test_devices_that_fail.py", "test_refusals.py",
                                   "test_layers.py", "test_nfs_servers.py"])  # fmt: skip
def test_in_the_lab(cases: str) -> None:
    more = ["-k", "lvm or md_ or crypt or swap"] if cases == "test_refusals.py" else []
    pytest_words = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *more,
                    "--basetemp=/tmp/iopstui-faults", str(HERE / cases)]  # fmt: skip
    environment = ["env", "IOPSTUI_FAULTS=1", "XDG_STATE_HOME=/tmp/iopstui-state"]
    there = ["sh", "-c", 'cd "$0" && exec "$@"', str(HERE.parents[1])]
    done = subprocess.run([*LAB, *there, *environment, *pytest_words], capture_output=True,
                          text=True)  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    # if all cases were skipped, nothing would be tested
    assert " passed" in done.stdout, done.stdout
    # few machines have the programs for all layers; the skipped ones are printed
    assert " skipped" not in done.stdout or cases == "test_layers.py", done.stdout
