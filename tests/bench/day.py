"""(f) Memory over a simulated day: the real application, without a terminal, gets frames faster
than real time, while keys are pressed and every screen is opened again and again. A program of its
own, which prints JSON."""

from __future__ import annotations

import gzip
import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import asyncio  # noqa: E402

from iopstui import events  # noqa: E402
from iopstui.fio.library import shipped_jobs  # noqa: E402
from iopstui.fio.stream.framing import Document, Framer  # noqa: E402
from iopstui.fio.stream.status import parse_status  # noqa: E402
from iopstui.model.block.device import BlockDevice  # noqa: E402
from iopstui.model.block.target import DEVICE, Target  # noqa: E402
from iopstui.model.block.topology import Topology  # noqa: E402
from iopstui.model.metrics.frame import Frame, FrameBuilder  # noqa: E402
from iopstui.model.samples import (  # noqa: E402
    CpuTimes,
    DiskCounters,
    FioStatus,
    KernelSample,
    RawSample,
)
from iopstui.session.tick.context import OverheadMonitor  # noqa: E402
from iopstui.session.tick.findings import FindingTracker  # noqa: E402
from iopstui.ui.app import IopstuiApp  # noqa: E402
from iopstui.ui.core.backend import Backend, FirstView  # noqa: E402

CPUS = 8
PAINT_EVERY = 5
OPENED = ("j", "k", "b", "question_mark", "e", "f", "o", "colon", "w", "c", "ctrl+p")
PRESSED = ("h", "p", "minus", "plus", "space", "space", "m", "1", "2", "3", "4")
FIXTURE = ROOT / "tests" / "fixtures" / "fio" / "3.42-a-randread-grp.json.gz"


def rss_mib() -> float:
    """Resident memory now, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


class Controller:
    """A session that does nothing."""

    disk_use = None

    def __init__(self) -> None:
        self.target = Target(DEVICE, "/dev/nvme0n1", "nvme0n1", ("nvme0n1",))
        self.devices = {"nvme0n1": BlockDevice("nvme0n1", "/dev/nvme0n1", 259, 0, "nvme", None)}
        self.running = True
        self.bind = False
        self.recording = None
        self.left_behind = ""
        self.job: str | None = "day"
        self.overrides: dict[str, str] = {}
        self.sink: Callable[[events.Event], None] = lambda event: None

    def start(self, sink: Callable[[events.Event], None]) -> None:
        self.sink = sink

    def topology(self) -> Topology:
        return Topology(online=tuple(range(CPUS)))

    def knobs(self) -> tuple[()]:
        return ()

    def __getattr__(self, name: str) -> Any:
        """All other methods of a controller do nothing."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: None


def status(first: FioStatus, n: int) -> FioStatus:
    """fio's document in second ``n``: every count has grown, and the histogram's shape varies."""
    job = first.jobs[0]
    directions = {
        name: replace(
            one, issued=one.issued * n, completed=one.completed and one.completed * n,
            io_bytes=one.io_bytes * n, runtime_ms=1000 * n,
            bins=one.bins and {v: c * n + n % 7 for v, c in one.bins.items()},
        )
        for name, one in job.directions.items()
    }  # fmt: skip
    row = replace(job, directions=directions, job_runtime_ms=1000 * n, elapsed_s=n)
    return replace(first, timestamp_ms=first.timestamp_ms + 1000 * n, jobs=(row,))


def sample(n: int, wall_ms: float) -> KernelSample:
    """The kernel's counters in second ``n``."""
    disk = DiskCounters("nvme0n1", 259, 0, *(n * k + n % k for k in range(2, 19)))
    times = CpuTimes(30 * n, 0, 20 * n, 40 * n, 2 * n, 0, 8 * n, 0)
    counts = {cpu: n * (cpu + 1000) for cpu in range(CPUS)}
    return KernelSample(
        n * 10**9, wall_ms, 10**5, {"nvme0n1": disk}, {cpu: times for cpu in range(CPUS)},
        counts, {30: counts}, counts, n * 10**9,
    )  # fmt: skip


def raws() -> Iterator[RawSample]:
    """A day's samples, one a second."""
    framer = Framer()
    first = next(
        found
        for item in framer.feed(gzip.decompress(FIXTURE.read_bytes()))
        if isinstance(item, Document) and (found := parse_status(item.data))
    )
    for n in itertools.count(1):
        fio = status(first, n)
        yield RawSample(
            n, n * 10**9, fio.timestamp_ms, sample(n, fio.timestamp_ms + 1), fio, False, 1,
            own_busy_s=0.015 * n,
        )  # fmt: skip


def frames(count: int) -> Any:
    """A day's frames."""
    builder = FrameBuilder()
    for raw in itertools.islice(raws(), count):
        yield builder.feed(raw)


async def day(seconds: int, press_every: int) -> Mapping[str, Any]:
    """RSS in MiB at ten moments, and the bytes of Python's objects."""
    controller = Controller()
    app = IopstuiApp(
        Backend(lambda path: controller, dict, shipped_jobs()),
        FirstView(["/dev/nvme0n1"], pick=False, run_at_once=False),
    )
    findings, cost, device = FindingTracker(), OverheadMonitor(), controller.devices["nvme0n1"]
    rss, opened = [], 0
    keys = itertools.cycle(zip(OPENED, PRESSED, strict=True))
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause(0.5)
        findings.begin_run("[day]\nrw=randread\n")
        controller.sink(events.StepStarted(0.0, 1, "day", "randread 4k", ("fio",), True))
        frame: Frame
        for n, frame in enumerate(frames(seconds), 1):
            controller.sink(events.FrameReady(frame.t, frame))
            for finding in findings.feed(frame, [device]):
                controller.sink(events.FindingReported(frame.t, finding))
            for words in cost.feed(frame):
                controller.sink(events.Notice(frame.t, "warning", words))
            if n % 3600 == 0:
                controller.sink(events.Mark(frame.t, f"hour {n // 3600}"))
            # never more than a few frames wait: more would use memory that no real second needs
            if n % PAINT_EVERY == 0:
                await pilot.pause()
            if n % press_every == 0:
                for screen, key in itertools.islice(keys, 4):
                    await pilot.press(screen, "escape", key)
                    opened += 1
            if n % max(1, seconds // 12) == 0:
                rss.append(round(rss_mib(), 1))
    return {
        "seconds": seconds,
        "rss_mib": rss,
        "opened": opened,
        "threads": threading.active_count(),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(day(int(sys.argv[1]), int(sys.argv[2])))))
