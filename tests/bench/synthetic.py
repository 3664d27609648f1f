"""(d) One kernel sample and one frame on machines with many CPUs, (e) fio documents of many
jobs."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import program
from statistic import interval

from iopstui.events import FrameReady
from iopstui.fio.stream.framing import Document, Framer
from iopstui.fio.stream.status import parse_status
from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.kernel_files import Roots
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.samples import KernelSample, RawSample
from iopstui.ui.state.live import LiveState

QUEUES, IRQS, DISKS = 64, 2000, 200
FIXTURE = program.ROOT / "tests" / "fixtures" / "fio" / "3.42-c-numjobs4-nogroup.json.gz"


@contextmanager
def tree(cpus: int) -> Iterator[Roots]:
    """/proc and /sys of a machine with ``cpus`` CPUs, in memory."""
    base = Path(tempfile.mkdtemp(prefix="bench-", dir="/dev/shm"))
    try:
        roots = Roots.under(base)
        roots.proc.mkdir(parents=True)
        header = " " * 12 + " ".join(f"CPU{cpu:<7}" for cpu in range(cpus)) + "\n"
        row = " ".join(f"{12345678 + 7 * cpu:>10}" for cpu in range(cpus))
        (roots.proc / "diskstats").write_text(_diskstats())
        (roots.proc / "stat").write_text(_stat(cpus))
        names = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED",
                 "HRTIMER", "RCU")  # fmt: skip
        (roots.proc / "softirqs").write_text(
            header + "".join(f"{name:>12}: {row}\n" for name in names)
        )
        with (roots.proc / "interrupts").open("w") as file:
            file.write(header)
            for irq in range(IRQS):
                file.write(f"{irq:>5}: {row}  IR-PCI-MSIX-0000:01:00.0 {irq}-edge nvme0q{irq}\n")
            for name in ("NMI", "LOC", "RES", "CAL", "TLB"):
                file.write(f"{name:>5}: {row}   some interrupts\n")
        for irq in range(QUEUES):
            directory = roots.sys / "kernel" / "irq" / str(irq)
            directory.mkdir(parents=True)
        advance(roots, cpus, 0)
        yield roots
    finally:
        shutil.rmtree(base)


def advance(roots: Roots, cpus: int, second: int) -> None:
    """Add the interrupts of a second, for each of the device's queues on the CPUs of that queue."""
    for irq in range(QUEUES):
        counts = [
            cpu * irq + (5000 * second if cpu * QUEUES // cpus == irq or cpu == irq % cpus else 0)
            for cpu in range(cpus)
        ]
        text = ",".join(map(str, counts)) + "\n"
        # in place, because the sampler keeps the file open
        with (roots.sys / "kernel" / "irq" / str(irq) / "per_cpu_count").open("a+") as file:
            file.truncate(0)
            file.write(text)


def _diskstats() -> str:
    columns = " ".join(str(1234567 + n) for n in range(17))
    return "".join(f" 259 {n:>7} nvme{n}n1 {columns}\n" for n in range(DISKS))


def _stat(cpus: int) -> str:
    times = "1234567 2345 345678 98765432 4567 0 56789 123 0 0"
    lines = [f"cpu  {times}", *(f"cpu{cpu} {times}" for cpu in range(cpus))]
    return "\n".join([*lines, "intr 987654321 " + "0 " * IRQS, "ctxt 123456789", ""])


def kernel(cpus: int) -> dict[str, Any]:
    """Milliseconds of CPU time over a minute and a half at 1 Hz: of samples; of readings of
    /proc/interrupts besides; of making a frame and applying it to the screen's state; and of each
    CPU's figures in it, which are computed on demand."""
    took: list[float] = []
    frames: list[tuple[float, float]] = []
    builder, state = FrameBuilder(opened=["nvme0n1"]), LiveState(("nvme0n1",))
    beside, readings = 0.0, 0
    with tree(cpus) as roots:
        sampler = KernelSampler(roots, ["nvme0n1"], list(range(QUEUES)))
        for second in range(90):
            advance(roots, cpus, second)
            before = time.process_time_ns()
            sample, ms = _timed(sampler.sample)
            for thread in threading.enumerate():
                if thread is not threading.current_thread():
                    thread.join()
            beside += (time.process_time_ns() - before) / 1e6 - ms
            took.append(ms)
            frames.append(_frame_ms(builder, state, second, sample))
            readings += sample.ipi is not None
        sampler.close()
    return {
        "cpus": cpus,
        "sample_ms": median(took),
        "sample_mean_ms": fmean(took),
        "sample_max_ms": max(took),
        "beside_mean_ms": beside / len(took),
        "table_every": round(len(took) / max(1, readings)),
        "frame_ms": median(frame for frame, _ in frames[2:]),
        "asked_ms": median(asked for _, asked in frames[2:]),
    }


MOUNTSTATS = program.ROOT / "tests" / "fixtures" / "proc" / "nfs-6.12-after.mountstats"
MOVING = ("WRITE", "READ_PLUS", "GETATTR", "ACCESS")


def mounts(watched: int, busy: int, count: int = 50) -> dict[str, Any]:
    """Milliseconds of CPU time in a sample and its frame for ``watched`` of ``count`` NFS mounts.
    ``busy`` of them have used four operations since the previous sample. Each server has ten
    mounts."""
    took: list[float] = []
    shares = [f"/mnt/{number}" for number in range(watched)]
    with tree(1) as roots:
        file = roots.proc / "self" / "mountstats"
        file.parent.mkdir()
        file.write_bytes(b"")
        samplers = [KernelSampler(roots, [], [], shares=one) for one in ([], shares)]
        builders = [FrameBuilder(), FrameBuilder()]
        for second in range(60):
            texts = (_mount(number, second * (number < busy)) for number in range(count))
            # in place, because the samplers keep the file open
            with file.open("r+b") as new:
                new.write(b"".join(texts))
                new.truncate()
            without, also = (
                _sample_ms(sampler, builder, second)
                for sampler, builder in zip(samplers, builders, strict=True)
            )
            took.append(also - without)
        for sampler in samplers:
            sampler.close()
    return {"watched": watched, "busy": busy, "count": count, "ms": interval(took[2:])}


def _sample_ms(sampler: KernelSampler, builder: FrameBuilder, second: int) -> float:
    sample, took = _timed(sampler.sample)
    raw = RawSample(second, second * 10**9, 0.0, sample, None, False, 0)
    return took + _timed(partial(builder.feed, raw))[1]


def _mount(number: int, second: int) -> bytes:
    """The section of an NFS 4.2 mount after ``second`` seconds of work."""
    text = MOUNTSTATS.read_text()
    text = text[text.index("device 10.9.0.2:/ ") : text.index("device 10.9.0.2:/run")]
    text = text.replace("10.9.0.2:", f"10.9.0.{number // 10}:").replace("/mnt/n4", f"/mnt/{number}")
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        name, _, rest = line.partition(":")
        if name.strip() in MOVING:
            numbers = " ".join(str(int(one) + 100 * second) for one in rest.split())
            lines[at] = f"{name}: {numbers}\n"
        elif name == "\txprt":
            lines[at] = line.replace(" 1574 1574 ", f" {1574 + second} {1574 + second} ")
    return "".join(lines).encode()


def _frame_ms(
    builder: FrameBuilder, state: LiveState, number: int, sample: KernelSample
) -> tuple[float, float]:
    """CPU milliseconds of one second's frame and of its CPUs' figures. Each second has function
    calls."""
    at = (number + 1) * 10**9
    moved = replace(sample, monotonic_ns=at, ipi_ns=at, ipi=next(iter(sample.irqs.values())))
    raw = RawSample(number, at, number * 1e3, moved, None, False, 0)
    frame, took = _timed(partial(builder.feed, raw))
    _, more = _timed(partial(state.apply, FrameReady(frame.t, frame)))
    _, asked = _timed(lambda: list(frame.cpus.values()))
    return took + more, asked


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    before = time.thread_time_ns()
    result = work()
    return result, (time.thread_time_ns() - before) / 1e6


def documents(jobs: int) -> dict[str, Any]:
    """CPU milliseconds from fio's bytes to a frame, for a document with ``jobs`` rows."""
    framer = Framer()
    recorded = [i.data for i in framer.feed(gzip.decompress(FIXTURE.read_bytes()))
                if isinstance(i, Document)]  # fmt: skip
    texts = [_widened(document, jobs) for document in recorded[:6]]
    parse, build = [], []
    builder = FrameBuilder()
    for number, text in enumerate(texts * 2):
        items, took = _timed(partial(_items, framer, text))
        status, more = _timed(partial(parse_status, items[0].data))
        parse.append(took + more)
        at = number * 10**9
        status = replace(status, timestamp_ms=1_700_000_000_000 + number * 1000)
        raw = RawSample(number, at, status.timestamp_ms, None, status, False, 1)
        build.append(_timed(partial(builder.feed, raw))[1])
    return {
        "jobs": jobs, "kilobytes": len(texts[0]) / 1000,
        "parse_ms": median(parse), "frame_ms": median(build),
    }  # fmt: skip


def _items(framer: Framer, text: bytes) -> list[Any]:
    return list(framer.feed(text))


def _widened(document: Mapping[str, Any], jobs: int) -> bytes:
    wide = dict(document)
    rows = document["jobs"]
    wide["jobs"] = [{**rows[n % len(rows)], "jobname": f"job{n}"} for n in range(jobs)]
    return json.dumps(wide, indent=2).encode() + b"\n"
