from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_pages import WITHIN_S, Served, Start

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "system"))
from program import command, environment


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start `iopstui serve` and wait until it has printed ``pages`` addresses."""
    processes: list[subprocess.Popen[str]] = []

    def start(*args: str, cwd: Path | None = None, pages: int = 1) -> Served:
        workdir = cwd or tmp_path_factory.mktemp("served")
        process = subprocess.Popen(
            command("serve", "--port", "0", *args), cwd=workdir, env=environment(workdir.parent),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        processes.append(process)
        return Served(process, pages)

    yield start
    for process in processes:
        process.terminate()
        try:
            process.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
        if process.stderr is not None:
            process.stderr.close()
