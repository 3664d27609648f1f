"""Running fio as iopstui does, with a log line for every I/O beside it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from iopstui.fio.stream.framing import Document, Framer
from iopstui.fio.stream.status import parse_status
from iopstui.model.fio.interval_time import is_repetition
from iopstui.model.fio.jobfile import effective_sections
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.samples import FioStatus, RawSample
from iopstui.session.fio.fio_run import status_interval
from jobs import Job

INTERVAL_S = 0.5
DIRECTIONS = ("read", "write", "trim")
NUMBER = re.compile(r"log_(clat|lat)\.(\d+)\.log")


@dataclass(frozen=True, slots=True)
class Logged:
    """What one fio job logged: (direction, ns) of every I/O in the order of completion."""

    clat: list[tuple[str, int]]
    lat: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one job gave: iopstui's frames, fio's last document, the logs of fio's jobs."""

    job: Job
    frames: list[Frame]
    final: FioStatus
    logs: list[Logged]


def run(fio: str, job: Job, place: Path) -> Measured:
    """Run it in ``place``. RuntimeError with fio's own words if it fails."""
    path, output = place / "job.fio", place / "out.json"
    for old in (output, *place.glob("log_*")):
        old.unlink(missing_ok=True)
    path.write_text(job.text.replace("[global]\n", "[global]\nwrite_lat_log=log\n", 1))
    command = [
        fio, f"--status-interval={status_interval(INTERVAL_S)}", "--output-format=json+",
        "--eta=never", f"--output={output}", str(path),
    ]  # fmt: skip
    process = subprocess.run(
        command, cwd=place, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if process.returncode:
        raise RuntimeError(f"fio failed: {(process.stderr or process.stdout).strip()}\n{job.text}")
    statuses = _statuses(output.read_bytes(), job.text)
    return Measured(job, _frames(statuses), statuses[-1], _logs(place))


def lay_out(fio: str, name: str, size: int, place: Path) -> None:
    """The file that all jobs work on."""
    subprocess.run(
        [fio, "--name=layout", f"--filename={name}", f"--size={size}", "--rw=write", "--bs=1m",
         "--ioengine=psync", "--output=/dev/null"],
        cwd=place, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _statuses(data: bytes, text: str) -> list[FioStatus]:
    framer, documents = Framer(), []
    sections = effective_sections(text)
    for item in (*framer.feed(data), *framer.close()):
        status = parse_status(item.data, sections) if isinstance(item, Document) else None
        if status is None:
            continue
        # the session takes a last word said twice for one, too
        soon = documents and status.timestamp_ms - documents[-1].timestamp_ms < 300
        if soon and is_repetition(status, documents[-1]):
            documents.pop()
        documents.append(status)
    return documents


def _frames(statuses: list[FioStatus]) -> list[Frame]:
    builder = FrameBuilder()
    return [
        builder.feed(
            RawSample(
                seq=number, arrived_ns=status.timestamp_ms * 1_000_000,
                wall_ms=status.timestamp_ms, kernel=None, fio=status,
                final=number == len(statuses) - 1, step=1, interval_s=INTERVAL_S,
            )
        )
        for number, status in enumerate(statuses)
    ]  # fmt: skip


def _logs(place: Path) -> list[Logged]:
    logs: dict[int, Logged] = {}
    for path in place.glob("log_*.log"):
        match = NUMBER.fullmatch(path.name)
        if match is not None:
            logged = logs.setdefault(int(match[2]), Logged([], []))
            lines = logged.clat if match[1] == "clat" else logged.lat
            for line in path.read_text().splitlines():
                _, value, direction, *_ = line.split(",")
                lines.append((DIRECTIONS[int(direction)], int(value)))
    return [logs[number] for number in sorted(logs)]
