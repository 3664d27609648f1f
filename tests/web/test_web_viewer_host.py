"""What a viewer's process may do, tested in such a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iopstui.fio.fence_exec import landlock_abi

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import asyncio, json, os, socket, sys
from pathlib import Path
from iopstui.features.serve.viewer_host import ViewerHost

outside, inside = sys.argv[1:]

def tried(do):
    try:
        do()
    except (OSError, ValueError) as error:
        return type(error).__name__ + " " + str(getattr(error, "errno", ""))
    return "done"

def write(path):
    with open(path, "wb") as file:
        file.write(b"x")

def execute():
    pid = os.fork()
    if pid == 0:
        try:
            os.execv("/bin/true", ["true"])
        finally:
            os._exit(9)
    code = os.waitpid(pid, 0)[1]
    if code:
        raise OSError(code >> 8, "")

def show(fds):
    print(json.dumps({
        "write": tried(lambda: write(outside + "/new")),
        "temporary": tried(lambda: write("/tmp/iopstui-viewer-test")),
        "change": tried(lambda: os.open(inside, os.O_WRONLY)),
        "read": tried(lambda: os.open(inside, os.O_RDONLY)),
        "list": tried(lambda: os.unlink(inside)),
        "execute": tried(execute),
        "recording": os.read(fds[0], 9).decode(),
        "twice": os.read(fds[1], 9).decode(),
        "uid": os.getuid(), "environment": sorted(os.environ), "more": os.environ.get("SECRET"),
    }), flush=True)

host = ViewerHost(show)
started = asyncio.run(host.start(80, 24, Path(inside)))
sys.stdout.write(os.fdopen(started.output).read())
host.kill(os.getpid())
host.close()
"""


@pytest.fixture(scope="module")
def sandbox_report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("outside")
    recording = place / "recording"
    recording.write_text("recording of root's")
    recording.chmod(0o600)
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(place), str(recording)], text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT), "SECRET": "s"}, timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert [path.name for path in place.iterdir()] == ["recording"]
    assert not Path("/tmp/iopstui-viewer-test").exists()
    return dict(json.loads(result.stdout))


def test_it_writes_no_file(sandbox_report: dict[str, Any]) -> None:
    # without Landlock and as an ordinary user an empty file can be made, but nothing can be written
    assert sandbox_report["write"] != "done" and sandbox_report["temporary"] != "done"
    if landlock_abi() or os.geteuid() == 0:
        assert sandbox_report["change"].startswith("PermissionError")
        assert sandbox_report["list"].startswith("PermissionError")


def test_it_reads_only_its_recording(sandbox_report: dict[str, Any]) -> None:
    assert (sandbox_report["recording"], sandbox_report["twice"]) == ("recording", "recording")
    if landlock_abi():
        assert sandbox_report["read"].startswith("PermissionError")


def test_it_executes_nothing(sandbox_report: dict[str, Any]) -> None:
    if landlock_abi():
        assert sandbox_report["execute"] == "OSError 9"


def test_it_is_not_root_and_has_no_other_environment(sandbox_report: dict[str, Any]) -> None:
    assert (
        sandbox_report["uid"] != 0
        and sandbox_report["more"] is None
        and "TEXTUAL_DRIVER" in sandbox_report["environment"]
    )
