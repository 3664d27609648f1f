"""Frames with both parts: fio's recordings, and a kernel whose counters grow with them."""

from __future__ import annotations

from dataclasses import replace

from fio_recordings import samples, statuses
from slow_requests import exemplar

from iopstui.events import Event, FrameReady, SessionEnded, StepFinished, StepStarted
from iopstui.linux.network import _INFO
from iopstui.model.cgroups import COUNTERS, CPU_US, LIMITS, PRESSURES, ROOT_FLAG, counter_name
from iopstui.model.metrics.aws import AT_NS, GROWING, QUEUE, READ_BINS, WRITE_BINS
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.metrics.nvme import NVME_COUNTERS
from iopstui.model.metrics.nvme import counter_name as nvme_counter_name
from iopstui.model.metrics.probe import PARTS
from iopstui.model.metrics.summary import fio_summary
from iopstui.model.network import counter_name as connection_key
from iopstui.model.samples import (
    CpuTimes,
    DiskCounters,
    DriveReading,
    JobThread,
    KernelSample,
    ProbeSample,
    TaskCounts,
)

DISK = DiskCounters("vda", 254, 0, *[0] * 17)


def kernel(n: int, at_ns: int, wall_ms: float) -> KernelSample:
    disk = DiskCounters(
        "vda", 254, 0, 1000 * n, 10 * n, 8000 * n, 500 * n, 50 * n, n, 400 * n, 100 * n,
        7, 900 * n, 600 * n, n, n, 2048 * n, 3 * n, 2 * n, 5 * n,
    )  # fmt: skip
    times = CpuTimes(10 * n, n, 5 * n, 70 * n, 5 * n, n, 6 * n, 2 * n)
    return KernelSample(
        monotonic_ns=at_ns,
        wall_ms=wall_ms,
        took_ns=1000,
        disks={"vda": disk, "dm-0": replace(disk, name="dm-0", flushes=None, flush_ms=None)},
        cpus={0: times, 1: times},
        softirq_block={0: n, 1: 0, 2: 0},
        irqs={36: {0: n, 1: 2 * n}},
        ipi={0: n, 1: n},
        ipi_ns=at_ns,
        throttled_us=10 * n,
        more={
            "pressure": {"some": 2000 * n, "full": 1000 * n},
            "memory": {"some": 200 * n, "full": 100 * n},
            "power": {"package": 40_000_000 * n, "dram": 5_000_000 * n, "platform": 90_000_000 * n},
        },
    )


def probe(n: int, at_ns: int) -> ProbeSample:
    kinds = {"read": {1000: 10 * n, 50048: 3 * n}, "write": {2008: n}, "discard": {99328: n}}
    return ProbeSample(
        time_ns=at_ns, arrived_ns=at_ns, parts=PARTS, begun=1, device={"vda": kinds},
        waiting={"vda": kinds}, matrix={0: {1: 13 * n}},
        sizes={"vda": {kind: {4096: n} for kind in kinds}},
        tasks=(TaskCounts(9, "dd", "/user", "vda", 8 * n, {"read": {1000: n}}),),
        counts=dict.fromkeys(
            ("missed", "skipped", "requeued"), n
        ),
        busy_s=0.002 * n, run_ns=3000 * n, run_ios=1000 * n,
        exemplars=(exemplar(ended_ns=at_ns - 1000),),
    )  # fmt: skip


DRIVE_COUNTERS = (
    "spare", "used", "critical_warning", "media_errors", "error_entries", "units_read",
    "read_commands", "write_commands", "busy_min", "thermal_1", "thermal_2", "thermal_1_s",
    "thermal_2_s", "warning_min", "critical_min", "power_state",
    "power_limit_mw",
)  # fmt: skip


def drives(n: int) -> dict[str, DriveReading]:
    """A drive with all counters: 2 GiB of writes a second, and 1 of everything else."""
    units = {"units_written": 4195 * n, "media_bytes_written": 4195 * 768_000 * n}
    counts = {name: n for name in DRIVE_COUNTERS} | units
    return {"nvme0": DriveReading({**counts, "kelvin": 300}, dict.fromkeys(counts, 0))}


NFS_COUNTERS = (
    "ops", "transmissions", "timeouts", "sent", "received", "queue_ms", "rtt_ms", "exe_ms", "errors"
)  # fmt: skip


def with_share(n: int, sample: KernelSample) -> KernelSample:
    """The same machine, which also uses an NFS mount and cgroups."""
    operations = {
        f"{name}.{key}": n for name in ("read", "write", "getattr") for key in NFS_COUNTERS
    }
    connection = {f"connection.0.{name}": n for name in ("sends", "receives", "backlog")}
    shared = {**operations, **connection}
    return replace(sample, more={**sample.more, "nfs": shared, "cgroups": groups(n), "tcp": tcp(n),
                                 "aws": aws(n), "nvme_diag": nvme_diag(n)})  # fmt: skip


def with_smb(n: int, sample: KernelSample) -> KernelSample:
    """The same machine with an SMB mount instead of the NFS mount."""
    operations = {
        f"{name}.{key}": n for name in ("read", "write", "create") for key in ("ops", "errors")
    }
    sizes = {"read.bytes": 4096 * n, "write.bytes": 4096 * n}
    times = {
        f"server.{name}.{key}": n
        for name in ("read", "write", "create")
        for key in ("count", "jiffies")
    }
    client = {"smbs": 3 * n, "sessions": 1, "in_flight": 2, "reconnects": 0, "disconnected": 0,
              "server.shares": 2, "server.hz": 250, "server.slow": n}  # fmt: skip
    return replace(sample, more={**sample.more, "smb": operations | sizes | times | client})


def tcp(n: int) -> dict[str, int]:
    """Counters of a connection to an NFS server."""
    names = (*_INFO, "send_queue", "receive_queue")
    return {connection_key(name, 871, "10.9.0.2:2049", "NFS"): 1000 * n for name in names}


def aws(n: int) -> dict[str, int]:
    """Counters of an EBS volume."""
    page = dict.fromkeys((AT_NS, QUEUE, *GROWING), 1000 * n)
    page |= {READ_BINS: 1, WRITE_BINS: 1, f"{READ_BINS}:2000": 9 * n, f"{WRITE_BINS}:4000": n}
    return {f"{name} ebs nvme1n1": value for name, value in page.items()}


def nvme_diag(n: int) -> dict[str, int]:
    """A new kernel's counters of an NVMe path."""
    return {nvme_counter_name(file, "nvme0c1n1"): n for file in NVME_COUNTERS}


def groups(n: int) -> dict[str, int]:
    """Counters of a unit with limits, of its slice, and of the top."""
    slice_, unit = "/system.slice", "/system.slice/db.service"
    io = {
        counter_name(what, path, "vda"): count * n
        for path, count in (("/", 10), (slice_, 7), (unit, 5))
        for what in COUNTERS
    }
    waits = {counter_name(what, unit): 1000 * n for what in (*PRESSURES, CPU_US)}
    limits = {counter_name(what, unit, "vda"): 100 for what in LIMITS}
    states = {counter_name("memory.current", unit): 1 << 20,
              counter_name("memory.max", unit): 1 << 21,
              counter_name("cpu.max", unit): 1500, counter_name(ROOT_FLAG, "/"): 1}  # fmt: skip
    return io | waits | limits | states


def whole_frames(name: str, probed: bool = False, smb: bool = False) -> list[Frame]:
    builder = FrameBuilder(opened=["vda"])
    shared = with_smb if smb else with_share if probed else lambda _, one: one
    return [
        builder.feed(
            replace(
                sample,
                kernel=shared(number, kernel(number, sample.arrived_ns, sample.wall_ms + 2)),
                jobs=(JobThread(0, 100, 1, (1,), 0.4 * number),),
                own_busy_s=0.01 * number,
                probe=probe(number, sample.arrived_ns) if probed else None,
                nvme=drives(number) if probed else {},
            )
        )
        for number, sample in enumerate(samples(statuses(name)))
    ]


def session(
    name: str, title: str = "randread 4k", probed: bool = False, smb: bool = False
) -> list[Event]:
    """All events of a run, as a session emits them."""
    frames = whole_frames(name, probed, smb)
    final = statuses(name)[-1]
    end = frames[-1].t
    started = StepStarted(0.0, 1, name, title, ("fio", "job.fio"), True, "run", final.version)
    finished = StepFinished(end, 1, 0, "", False, fio_summary(final), ("a line of fio",))
    return [started, *(FrameReady(f.t, f) for f in frames), finished, SessionEnded(end, 0)]
