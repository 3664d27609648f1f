"""A session without fio and without a kernel: deterministic frames for the screen's tests."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from disks import disk_of
from ui_recordings import recorded_frames

from iopstui.events import (
    Event,
    FrameReady,
    LayoutProgress,
    Mark,
    Notice,
    SessionEnded,
    StepFinished,
    StepStarted,
)
from iopstui.model import histogram
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice, Hctx, Mount, QueueLimits
from iopstui.model.block.target import DEVICE, FILE, Target
from iopstui.model.block.topology import Topology
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.finding import Finding
from iopstui.model.fio.interval import DirectionInterval, FioInterval
from iopstui.model.metrics.cpus import CpuFrame
from iopstui.model.metrics.frame import NO_FIO, NO_LATENCY, Frame
from iopstui.model.metrics.waits import Waits
from iopstui.model.rates import CpuLoad
from iopstui.safety.tunables import TunableState

QUEUE = QueueLimits(
    scheduler="none", schedulers=("none", "mq-deadline"), rq_affinity=1, nr_requests=256,
    nomerges=0, rotational=False, write_cache="write back", logical_block_size=512,
    physical_block_size=512, max_sectors_kb=1280, read_ahead_kb=128, wbt_lat_usec=2000,
    iostats=True, discard_max_bytes=0, zoned="none",
)  # fmt: skip
NVME = BlockDevice(
    name="nvme0n1", path="/dev/nvme0n1", major=259, minor=0, kind="nvme", size=1 << 40,
    model="Sparrow SN 850", queue=QUEUE, hctxs=(Hctx(0, (0, 1), 1023, 0), Hctx(1, (2, 3), 1023, 0)),
)  # fmt: skip
PART = BlockDevice(
    name="nvme0n1p1", path="/dev/nvme0n1p1", major=259, minor=1, kind="partition", size=1 << 39,
    disk="nvme0n1", queue=QUEUE, mounts=(Mount("/", "ext4"),),
)  # fmt: skip
ODD = BlockDevice(
    name="sda", path="/dev/sda", major=8, minor=0, kind="scsi", size=8 << 30,
    model="[red]bad\x1b[2Jname", queue=QUEUE,
)  # fmt: skip
DEVICES = {device.name: device for device in (NVME, PART, ODD)}
ON_DISK = Target(DEVICE, "/dev/nvme0n1", "nvme0n1", ("nvme0n1",))
ON_PARTITION = Target(FILE, "/data/scratch", "nvme0n1p1", ("nvme0n1p1", "nvme0n1"), "", "ext4", "/")
ON_TMPFS = Target(FILE, "/dev/shm/x", None, (), "tmpfs has no block device", "tmpfs", "/dev/shm")


@dataclass(frozen=True)
class FakeJob:
    name: str
    title: str
    writes: bool = False
    measures: str = "How many small reads a second a device delivers."
    look_at: str = "IOPS against r/s."
    teaches: str = "IOPS = queue depth / latency."
    source: str = "iopstui."
    text: str = "# Title: x\n\n[global]\nbs=4k\n"


FIRST_JOB = "mixed-4k"
JOBS = (
    FakeJob("mixed-4k", "4k reads and writes, 70 to 30", writes=True),
    FakeJob("randread-4k", "4k random reads, QD 32"),
    FakeJob("seqread-1m", "1m sequential reads"),
)


def direction(iops: float, p50: int, latencies: bool = True) -> DirectionInterval:
    """One direction; half of the I/Os at p50, tails at fixed multiples of it."""
    ios = int(iops)
    shares = ((1, 0.50), (1.2, 0.45), (1.6, 0.04), (3, 0.009), (9, 0.0009), (12, 0.0001))
    bins = {
        histogram.bucket_key(int(p50 * factor)): max(1, int(ios * share))
        for factor, share in shares
    }
    percentiles = histogram.percentiles(bins)
    return DirectionInterval(
        ios=ios, bytes=ios * 4096, iops=iops, bw=iops * 4096,
        slat_ns=4200.0 if latencies else None, clat_ns=p50 * 1.1 if latencies else None,
        lat_ns=p50 * 1.1 + 4200 if latencies else None,
        percentiles={histogram.percentile_name(p): v for p, v in percentiles.items()}
        if latencies else {},
        max_ns=histogram.maximum(bins) if latencies else None,
        bins=bins if latencies else {}, bins_of="clat",
        samples=dict.fromkeys(("slat", "clat", "lat"), ios) if latencies else {},
    )  # fmt: skip


def interval(
    second: int, runtime: int = 60, latencies: bool = True, mixed: bool = True
) -> FioInterval:
    iops = 45_000 + 4_000 * math.sin(second / 5)
    p50 = 320_000 + int(40_000 * math.cos(second / 7))
    read, write = direction(iops * 0.7, p50, latencies), direction(iops * 0.3, p50 * 2, latencies)
    directions = {"read": read, "write": write} if mixed else {"read": read}
    template = recorded_frames()[0].fio
    assert template is not None
    return replace(
        template,
        seconds=1.0,
        directions=directions,
        total=direction(iops if mixed else iops * 0.7, p50, latencies),
        iodepth_level={"1": 0.0, "16": 2.0, "32": 98.0},
        usr_cpu=12.3,
        sys_cpu=31.0,
        ctx_s=2810.0,
        elapsed_s=second,
        eta_s=max(0, runtime - second),
        progress=min(1.0, second / runtime),
        ramp=False,
        reset=False,
        partial=False,
        measures_latency=latencies,
        counts_submissions=False,
    )


def disk(reads: float, writes: float) -> DiskRates:
    return disk_of(
        seconds=1.0, reads=int(reads), writes=int(writes), discards=0, r_s=reads, w_s=writes,
        d_s=0.0, f_s=2.0, r_bytes_s=reads * 4096, w_bytes_s=writes * 4096, d_bytes_s=0.0,
        rrqm_s=0.0, wrqm_s=31.0, drqm_s=0.0, r_await=0.283 if reads else None,
        w_await=0.61 if writes else None, d_await=None, f_await=0.9, rareq_size=4096.0,
        wareq_size=4096.0, dareq_size=None, aqu_sz=17.2, util=99.2, in_flight=31,
    )  # fmt: skip


def cpu(busy: float) -> CpuFrame:
    load = CpuLoad(
        usr=busy * 0.2, sys=busy * 0.6, iowait=3.0, irq=0.0, soft=busy * 0.2,
        idle=97.0 - busy, steal=0.0,
    )  # fmt: skip
    return CpuFrame(load, block_s=busy * 50, irq_s=busy * 70, ipi_s=12.0)


def frame(
    second: int,
    fio: FioInterval | None = None,
    flags: frozenset[str] = frozenset(),
    tree: Sequence[str] = ("nvme0n1",),
    cpus: int = 4,
    age: float | None = None,
) -> Frame:
    iops = fio.total.iops or 0.0 if fio else 12.0
    return Frame(
        seq=second,
        step=1,
        t=float(second),
        wall_ms=1e12 + second * 1000,
        seconds=1.0,
        flags=flags if fio or flags else frozenset({NO_FIO}),
        fio=fio,
        fio_age_s=age,
        skew_ms=2.0,
        disks={name: disk(iops * 0.7 * 0.98, iops * 0.3 * 0.98) for name in tree},
        cpus={index: cpu((index * 37) % 90) for index in range(cpus)},
        own_cpu=0.8,
        opened=tuple(tree[:1]),
        waits=waits(tree) if fio and tree else None,
    )


def waits(tree: Sequence[str]) -> Waits:
    """Most of 64 I/Os are in the lowest device."""
    upper = dict.fromkeys(tree[:-1], 1.0)
    device_ios = 64.0 - 0.4 - 6.6 - len(upper)
    return Waits(64.0, 0.4, 6.6, {**upper, tree[-1]: device_ios}, None, None, 0.0)


@dataclass
class FakeController:
    """A session that records its calls; the test pushes the frames."""

    target: Target = ON_DISK
    devices: Mapping[str, BlockDevice] = field(default_factory=lambda: DEVICES)
    job: str | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    running: bool = False
    disk_use: DiskUse | None = None
    calls: list[tuple[object, ...]] = field(default_factory=list)
    cpus: int = 4
    second: int = 0
    step: int = 0
    bind: bool = False
    settings: Sequence[TunableState] = ()
    cpu_topology: Topology = field(default_factory=Topology)
    title: str = "randrw 4k QD 32 × 2 jobs"
    recording: Path | None = None
    probe: tuple[str, ...] = ()
    no_probe = ""
    kept: Path | None = None
    """A recording of the seconds before."""
    _next_mark: str = ""
    slow: bool = False
    """If true, a requested run begins only when the test says so."""

    def start(self, sink: Callable[[Event], None]) -> None:
        self.sink = sink
        self.calls.append(("start",))

    def run_job(self, job: str, overrides: Mapping[str, str], *, mark: str = "") -> None:
        if mark:
            self.calls.append(("mark", mark))
        self._next_mark = mark
        self.calls.append(("run", job, dict(overrides)))
        self.job, self.overrides = job, dict(overrides)
        if not self.slow:
            self.begin(self.title)

    def begin(self, title: str) -> None:
        """Start the run that was requested last."""
        job, self.title, self.running = self.job or "", title, True
        self.step += 1
        if self._next_mark:
            self.sink(Mark(self.second, self._next_mark))
        self.sink(StepStarted(self.second, self.step, job, self.title, ("fio", "--x", job), False))

    def stop_job(self) -> None:
        self.calls.append(("stop",))
        self.finish(interrupted=True)

    def finish(self, error: str = "", interrupted: bool = False) -> None:
        self.running = False
        self.sink(StepFinished(self.second, self.step, bool(error), error, interrupted))

    def ask(self, finding: Finding) -> None:
        self.calls.append(("ask", finding.rule))

    def mark(self, text: str) -> None:
        self.calls.append(("mark", text))
        self.sink(Mark(self.second, text))

    def notice(self, level: str, text: str) -> None:
        self.sink(Notice(self.second, level, text))

    def progress(self, completed: int, total: int) -> None:
        self.sink(
            LayoutProgress(self.second, self.step, "creating the scratch file", completed, total)
        )

    def stop_recording(self) -> None:
        self.calls.append(("stop recording",))
        self.recording = None

    def save_kept(self, path: Path) -> float | None:
        if self.kept is None:
            return None
        shutil.copy(self.kept, path)
        return 43.0

    def switch_probe(self, on: bool) -> None:
        self.calls.append(("probe", on))
        self.probe = ("latency",) if on else ()

    def alternate_tunable(self, name: str, values: tuple[str, str]) -> None:
        self.calls.append(("alternate", name, values))

    def set_tunable(self, name: str, value: str) -> None:
        self.calls.append(("tune", name, value))

    def knobs(self) -> list[TunableState]:
        return list(self.settings)

    @property
    def host(self) -> str:
        return "db1"

    def topology(self) -> Topology:
        return self.cpu_topology

    def close(self) -> None:
        self.calls.append(("close",))
        self.running = False
        self.sink(SessionEnded(self.second, 0))

    def tick(self, seconds: int = 1, latencies: bool = True, mixed: bool = True) -> None:
        """Let some seconds pass."""
        for _ in range(seconds):
            self.second += 1
            fio = interval(self.second, 60, latencies, mixed) if self.running else None
            flags = frozenset() if latencies else frozenset({NO_LATENCY})
            next_frame = frame(self.second, fio, flags, self.target.tree, self.cpus)
            self.push(replace(next_frame, step=max(1, self.step)))

    def push(self, frame: Frame) -> None:
        self.sink(FrameReady(frame.t, frame))
