"""`make monitoring`: the real Prometheus, node_exporter and InfluxDB read what iopstui exports.

IOPSTUI_MONITORING names the directory of these programs. Each is started only for the tests, on a
free port of this machine, with its data in a temporary directory."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "system"))

PROGRAMS = os.environ.get("IOPSTUI_MONITORING", "")
if not PROGRAMS:
    collect_ignore_glob = ["test_*.py"]
WITHIN_S = 30.0

Serve = Callable[..., str]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def program(name: str) -> str:
    path = Path(PROGRAMS).absolute() / name
    assert path.exists(), f"{path} is missing: make monitoring"
    return str(path)


def get_json(url: str, **parameters: str) -> Any:
    """Get JSON from ``url``."""
    query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
    with urllib.request.urlopen(url + query, timeout=WITHIN_S) as answer:
        return json.load(answer)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a server, wait until it listens, and stop it after the test."""
    with contextlib.ExitStack() as stack:

        def started(port: int, ready: str, name: str, *args: str) -> str:
            log = stack.enter_context((tmp_path / f"{name}.log").open("w"))
            process = subprocess.Popen(
                [program(name), *args], cwd=tmp_path, stdout=log, stderr=log,
                env={**os.environ, "HOME": str(tmp_path)},
            )  # fmt: skip
            stack.callback(process.wait)
            stack.callback(process.terminate)
            address = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + WITHIN_S
            while time.monotonic() < deadline and process.poll() is None:
                with contextlib.suppress(OSError), urllib.request.urlopen(address + ready):
                    return address
                time.sleep(0.05)
            raise AssertionError(Path(log.name).read_text()[-3000:])

        yield started
