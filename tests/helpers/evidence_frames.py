"""Frames made by hand, for rules about a few seconds of fio's and the kernel's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from disks import disk_of

from iopstui.model.block.device import BlockDevice, Hctx, IrqVector, QueueLimits
from iopstui.model.block.target import DeviceLinks
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.finding import Finding
from iopstui.model.fio.interval import DirectionInterval, FioInterval
from iopstui.model.metrics.cpus import CpuFrame
from iopstui.model.metrics.frame import Frame, JobFrame
from iopstui.model.metrics.waits import DirectionLoad, JobLoad, Stack, Waits, place_waits
from iopstui.model.rates import CpuLoad

PER_CPU = Mapping[int, float]


def fired(finding: Finding | None) -> Finding:
    """The finding of a rule that must have one."""
    assert finding is not None
    return finding


def limits(**changes: object) -> QueueLimits:
    values: dict[str, object] = {
        "scheduler": "none", "schedulers": ("none",), "rq_affinity": 1, "nr_requests": 128,
        "nomerges": 0, "rotational": False, "write_cache": None, "logical_block_size": 512,
        "physical_block_size": 4096, "max_sectors_kb": 1280, "read_ahead_kb": 128,
        "wbt_lat_usec": None, "iostats": True, "discard_max_bytes": 0, "zoned": None,
    }  # fmt: skip
    return QueueLimits(**{**values, **changes})  # type: ignore[arg-type]


def device(
    queues: Sequence[Sequence[int]] = ((0, 1, 2, 3),),
    *,
    name: str = "vda",
    kind: str = "virtio-blk",
    irqs: Sequence[IrqVector] | None = None,
    slaves: tuple[str, ...] = (),
    tags: int = 128,
    **queue: object,
) -> BlockDevice:
    """A disk whose hardware queues have these CPUs; the queues' interrupts are 40, 41 ..."""
    hctxs = tuple(Hctx(n, tuple(cpus), tags, 0) for n, cpus in enumerate(queues))
    own = [IrqVector(40 + n, f"virtio1-req.{n}", n, False, hctxs[n].cpus[:1], 0)
           for n in range(len(queues))] if irqs is None else irqs  # fmt: skip
    return BlockDevice(
        name, f"/dev/{name}", 254, 0, kind, 1 << 30, queue=limits(**queue), hctxs=hctxs,
        irqs=tuple(own), slaves=slaves,
    )  # fmt: skip


def disk(
    r_s: float = 0.0,
    w_s: float = 0.0,
    *,
    size: float = 4096,
    merges: float = 0.0,
    d_s: float = 0.0,
    f_s: float = 0.0,
    f_await: float | None = None,
    wait: float = 1.0,
    aqu: float = 1.0,
    util: float = 50.0,
) -> DiskRates:
    """One second of a device; all its requests have the same ``size`` (bytes) and ``wait`` (ms)."""
    return disk_of(
        seconds=1.0, reads=round(r_s), writes=round(w_s), discards=round(d_s), r_s=r_s, w_s=w_s,
        d_s=d_s, f_s=f_s, r_bytes_s=r_s * size, w_bytes_s=w_s * size, d_bytes_s=d_s * size,
        rrqm_s=merges, wrqm_s=0.0, drqm_s=0.0, r_await=wait, w_await=wait, d_await=None,
        f_await=f_await, rareq_size=size, wareq_size=size, dareq_size=None, aqu_sz=aqu, util=util,
        in_flight=1,
    )  # fmt: skip


def fio(
    iops: float,
    *,
    seconds: float = 1.0,
    size: int = 4096,
    lat_ns: float | None = None,
    slat_ns: float | None = None,
    clat_ns: float | None = None,
    levels: Mapping[str, float] | None = None,
    direction: str = "read",
) -> FioInterval:
    ios = round(iops * seconds)
    total = DirectionInterval(
        ios=ios, bytes=ios * size, iops=iops, bw=iops * size, slat_ns=slat_ns, clat_ns=clat_ns,
        lat_ns=lat_ns, percentiles={}, max_ns=None, bins={}, bins_of="clat",
    )  # fmt: skip
    return FioInterval(
        seconds=seconds, directions={direction: total}, total=total, jobs=(),
        iodepth_level=levels or {}, usr_cpu=None, sys_cpu=None, ctx_s=None, elapsed_s=None,
        eta_s=None, progress=None, ramp=False, reset=False, partial=False,
        measures_latency=True, counts_submissions=False,
    )  # fmt: skip


def load(busy: float = 50.0, iowait: float = 0.0, soft: float = 0.0) -> CpuLoad:
    return CpuLoad(0.0, busy - soft, iowait, 0.0, soft, 100.0 - busy - iowait, 0.0)


def frame(
    t: float,
    interval: FioInterval | None = None,
    *,
    disks: Mapping[str, DiskRates] | None = None,
    block: PER_CPU | None = None,
    irq: PER_CPU | None = None,
    ipi: PER_CPU | None = None,
    busy: PER_CPU | None = None,
    jobs: Sequence[tuple[int, float | None]] = (),
    cpus: int = 4,
    step: int = 1,
    flags: frozenset[str] = frozenset(),
    throttled: float | None = None,
    irqs: Mapping[int, PER_CPU] | None = None,
    pinned: bool = False,
    loads: Mapping[int, CpuLoad] | None = None,
    cpu_wait: float | None = 0.0,
    links: Sequence[DeviceLinks] = (),
    memory: float | None = None,
    pids: Sequence[int | None] = (),
    nice: int | None = None,
    policy: int | None = None,
) -> Frame:
    """The second that ends at ``t``. ``jobs`` are (CPU, percent busy) in order; each waits
    ``cpu_wait`` percent of the time for a CPU. The job's I/Os are on the first of ``disks``; the
    others are below it as ``links`` describe."""
    top = next(iter(disks or {}), "")
    waited = None if cpu_wait is None or not jobs else cpu_wait / 100
    return Frame(
        seq=int(t), step=step, t=t, wall_ms=1000 * t, seconds=1.0, flags=flags, fio=interval,
        fio_age_s=None, skew_ms=None, disks=disks or {},
        cpus={
            cpu: CpuFrame(
                load=(loads or {}).get(cpu) or load((busy or {}).get(cpu, 50.0)),
                block_s=None if block is None else block.get(cpu, 0.0),
                irq_s=None if irq is None else irq.get(cpu, 0.0),
                ipi_s=None if ipi is None else ipi.get(cpu, 0.0),
            )
            for cpu in range(cpus)
        },
        irqs=irqs or {},
        jobs=tuple(
            JobFrame(
                n, cpu, pinned, used, pids[n] if pids else None, cpu_wait, nice=nice, policy=policy
            )
            for n, (cpu, used) in enumerate(jobs)
        ),
        throttled=throttled,
        more={} if memory is None else {"memory": {"some": memory, "full": 0.0}},
        opened=(top,) if top else (),
        waits=_waits(interval, disks or {}, Stack.from_tops((top,), links), waited)
        if top else None,
    )  # fmt: skip


def _waits(
    interval: FioInterval | None, disks: Mapping[str, DiskRates], stack: Stack, waited: float | None
) -> Waits | None:
    load = None
    if interval is not None:
        total = interval.total
        if total.iops is None or total.lat_ns is None:
            return None
        ios = total.iops * total.lat_ns / 1e9
        direct = DirectionLoad("", total.iops, total.bw, direct=True, ios=ios)
        load = JobLoad(ios, total.iops, waited, directions=(direct,))
    return place_waits(stack, disks, load)


def seconds(count: int, start: float = 1.0, **same: object) -> list[Frame]:
    """``count`` equal frames, a second apart."""
    return [frame(start + n, **same) for n in range(count)]  # type: ignore[arg-type]
