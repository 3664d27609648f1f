"""Start iopstui and fio as a user does, and read what fio measured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from terminal import Terminal, children, command_line

ROOT = Path(__file__).resolve().parents[2]
CPUS = len(os.sched_getaffinity(0))
LARGEST, BIG, SMALL = (200, 50), (160, 45), (80, 24)


def fio() -> str:
    """The fio that iopstui would use."""
    found = os.environ.get("IOPSTUI_FIO") or shutil.which("fio")
    if not found:
        raise SystemExit("bench: fio is not installed")
    return found


def environment(place: Path) -> dict[str, str]:
    """The user's state is neither read nor written. Compiled modules are kept, as in an
    installation."""
    return {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(place / "pycache"),
        "XDG_STATE_HOME": str(place / "state"),
    }


def iopstui(*arguments: str) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "iopstui", *arguments]


def live(place: Path, arguments: Sequence[str], size: tuple[int, int] = BIG,
         bytes_per_s: float | None = None) -> Terminal:  # fmt: skip
    """The live screen in a pseudo-terminal of its own."""
    return Terminal(
        iopstui("live", *arguments), *size, cwd=place, env=environment(place),
        bytes_per_s=bytes_per_s,
    )  # fmt: skip


def run(place: Path, *arguments: str, **options: Any) -> str:
    """Run iopstui to its end without a terminal. Returns its standard output."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        iopstui(*arguments), cwd=place, env=environment(place), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, **options,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"iopstui {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def frames(jsonl: str) -> list[dict[str, Any]]:
    """The frames among JSON lines."""
    return [e for line in jsonl.splitlines() if (e := json.loads(line)).get("event") == "frame"]


def job_file(place: Path, name: str, options: Mapping[str, object]) -> Path:
    """A job file of one section."""
    path = place / f"{name}.fio"
    lines = [key if value is True else f"{key}={value}" for key, value in options.items()]
    path.write_text("\n".join([f"[{name}]", *lines]) + "\n")
    return path


def measuring(pid: int, within: float = 20.0) -> list[str]:
    """The command line of the measuring fio below ``pid``, once it runs."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        for child in children(pid):
            words = command_line(child)
            if (
                words
                and "fio" in words[0]
                and words[1:2] != ["-I"]
                and any(word.startswith("--status-interval") for word in words)
            ):
                return words
        time.sleep(0.02)
    raise TimeoutError("fio did not start")


def alive(pid: int) -> bool:
    """Whether there is still a fio below ``pid``."""
    return any("fio" in Path(words[0]).name for c in children(pid) if (words := command_line(c)))


def last_document(data: bytes) -> dict[str, Any]:
    """fio's last complete status document in a file with several."""
    text = data.lstrip(b"\0").decode("utf-8", "replace")
    position = text.rfind("\n{\n")
    start = position + 1 if position >= 0 else text.index("{")
    document: dict[str, Any] = json.JSONDecoder().raw_decode(text[start:])[0]
    return document


def iops(document: Mapping[str, Any]) -> float:
    """The mean IOPS of all jobs together."""
    return float(sum(job[w]["iops"] for job in document["jobs"] for w in ("read", "write", "trim")))
