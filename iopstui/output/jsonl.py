"""The session's events as JSON lines: for other programs.

One object a line. The first is ``{"event": "session", "schema": 1, ...}``; every object carries
its host, so the lines of many machines can be put together. Missing is null; a frame's keys are
always the same (model/metrics/fields.py lists them), except that a direction without I/O
and a frame without fio are null as a whole. Output is pure ASCII.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from iopstui import __version__
from iopstui.events import Event, FrameReady
from iopstui.format import utc
from iopstui.model.block.target import Target
from iopstui.model.cgroups.names import group_name
from iopstui.model.cgroups.rates import LIMITS, PRESSURES, DiskUse, GroupRates
from iopstui.model.cgroups.rates import SOURCE as GROUPS
from iopstui.model.figures.figure import as_object
from iopstui.model.fio.interval import DirectionInterval, FioInterval, JobInterval
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.cpus.cpu_frames import CpuFrame
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import figures_of
from iopstui.model.metrics.paths import SCHEMA, TOTAL
from iopstui.model.metrics.probe import KINDS, LatencyStats, ProbeInterval, RequestStats, TaskIo
from iopstui.model.metrics.shares.share import SOURCE as NFS
from iopstui.model.metrics.shares.share import OperationRates, Share, SmbClient
from iopstui.model.metrics.shares.smb import SOURCE as SMB
from iopstui.model.metrics.slow.slow_requests import completion_second
from iopstui.model.metrics.waits import Waits
from iopstui.model.network.connections import SOURCE as TCP
from iopstui.model.network.connections import Connection
from iopstui.model.samples import DIRECTIONS, Exemplar
from iopstui.model.sizes import MIB
from iopstui.model.sources import SOURCES, Source

DECIMALS = 6
Object = dict[str, Any]


class JsonlSink:
    """Writes one JSON object per line and flushes it. Passes ``BrokenPipeError`` on."""

    def __init__(self, stream: TextIO, host: str, target: Target | None = None) -> None:
        self._stream = stream
        self._host = host
        self._first: Object | None = session_object(host, target)

    def handle(self, event: Event) -> None:
        """Write one event (and the session line before the first)."""
        self.begin()
        row = _event(event)
        self._write({"event": row.pop("event"), "host": self._host, **row})

    def close(self) -> None:
        """Close: no more events follow. The session line is written even if nothing ever came."""
        self.begin()
        self._stream.flush()

    def begin(self) -> None:
        """Write the session line, if it is not written yet."""
        if self._first is not None:
            first, self._first = self._first, None
            self._write(first)

    def _write(self, row: Object) -> None:
        self._stream.write(dumps(row) + "\n")
        self._stream.flush()


def dumps(row: Object) -> str:
    """Return a line of ASCII without control characters."""
    text = json.dumps(clean(row), allow_nan=False, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f")


def session_object(host: str, target: Target | None) -> Object:
    """The first line: whose numbers follow, and in which schema."""
    return {
        "event": "session",
        "schema": SCHEMA,
        "iopstui": __version__,
        "host": host,
        "target": target.path if target else None,
        "device": target.devices_below[0] if target and len(target.devices_below) == 1 else None,
        "devices": list(target.tree) if target else [],
        "targets": [place.path for place in target.places] if target else [],
        "opened": list(target.opened) if target else [],
    }


def event_object(event: Event) -> Object:
    """Any event as plain data; ``event`` is its kind ("frame", "step_started", "mark" ...)."""
    cleaned: Object = clean(_event(event))
    return cleaned


def frame_object(frame: Frame) -> Object:
    """A frame as plain data, in the names and units of model/metrics/fields.py."""
    cleaned: Object = clean(_frame(frame))
    return cleaned


def main_figures(frame: Frame) -> Object:
    """The same without fio's histograms, and without what is of each CPU, interrupt and job:
    figures that are put in columns, each of which is for ``clean``."""
    return _frame(frame, is_full=False)


def _event(event: Event) -> Object:
    if isinstance(event, FrameReady):
        return _frame(event.frame)
    values = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    values.pop("document", None)  # fio's own JSON: ask fio for it
    return {"event": event.kind, **values}


def _frame(frame: Frame, is_full: bool = True) -> Object:
    frame = frame.whole
    return {
        "event": "frame",
        "seq": frame.seq,
        "step": frame.step,
        "t": frame.t,
        "wall_ms": frame.wall_ms,
        "utc": utc(frame.wall_ms),
        "seconds": frame.seconds,
        "flags": sorted(frame.flags),
        "fio_age_s": frame.fio_age_s,
        "skew_ms": frame.skew_ms,
        "own_cpu": frame.own_cpu,
        "throttled": frame.throttled,
        "fio": _fio(frame.fio, is_full) if frame.fio else None,
        "wait": wait_data(frame.waits),
        "kernel": {
            "disks": {name: as_object(disk) for name, disk in frame.disks.items()},
            TOTAL: as_object(total) if (total := frame.total) is not None else None,
            "cpus": {cpu: _cpu(load) for cpu, load in frame.cpus.items()} if is_full else {},
            "irqs": frame.irqs if is_full else {},
            **{source.name: _source_figures(source, frame) for source in SOURCES},
            NFS: _share(frame.share) if frame.share and not frame.share.smb else None,
            SMB: _smb(frame.share, frame.share.smb) if frame.share and frame.share.smb else None,
            TCP: None if frame.connections is None else [_connection(c) for c in frame.connections],
            GROUPS: None if frame.groups is None else [_group(group) for group in frame.groups],
        },
        "device": _probe(frame.probe, frame.opened, frame.t) if frame.probe else None,
        "nvme": figures_of(frame.nvme),
        "jobs": list(frame.jobs) if is_full else [],
    }


_PLAIN = frozenset((int, str, bool, type(None)))


def clean(value: Any) -> Any:
    """``value`` as JSON can carry it: string keys, lists, no NaN or infinity, no long tails."""
    if type(value) in _PLAIN:  # nearly everything: whether it is a Mapping takes long to tell
        return value
    if isinstance(value, float):
        return round(value, DECIMALS) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): clean(part) for key, part in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(clean(part) for part in value)
    if isinstance(value, (list, tuple)):
        return [clean(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: clean(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def _fio(fio: FioInterval, is_full: bool) -> Object:
    directions = {name: fio.directions.get(name) for name in DIRECTIONS}
    return {
        "seconds": fio.seconds,
        **{name: _direction(part, is_full) if part else None for name, part in directions.items()},
        TOTAL: _direction(fio.total, with_bins=False),
        "jobs": [_job(job) for job in fio.jobs] if is_full else [],
        "iodepth_level": fio.iodepth_level,
        "usr_cpu": fio.usr_cpu,
        "sys_cpu": fio.sys_cpu,
        "ctx/s": fio.ctx_s,
        "elapsed_s": fio.elapsed_s,
        "eta_s": fio.eta_s,
        "progress": fio.progress,
        "errors": sum(1 for job in fio.jobs if job.error),
    }


def _direction(part: DirectionInterval, with_bins: bool = True) -> Object:
    row: Object = {
        "iops": part.iops,
        "bw": part.bw,
        "ios": part.ios,
        "bytes": part.bytes,
        "slat": {"mean": part.slat_ns, "n": part.samples.get("slat")},
    }
    for kind, mean in (("clat", part.clat_ns), ("lat", part.lat_ns)):
        has_own_kind = part.bins_of == kind
        row[kind] = {
            "mean": mean,
            "n": part.samples.get(kind),
            **_ranks(part.percentiles if has_own_kind else {}),
            "max": part.max_ns if has_own_kind else None,
        }
    row["bins_of"] = part.bins_of
    if with_bins:
        row["bins"] = part.bins
    return row


def _job(job: JobInterval) -> Object:
    return {
        "name": job.name,
        "error": job.error,
        "iops": job.iops,
        "bw": job.bw,
        "ios": job.ios,
        "bytes": job.bytes,
        "clat": {"mean": job.clat_ns},
    }


def wait_data(waits: Waits | None) -> Object | None:
    """Waits of the I/Os, as an object with the fields ``wait.*``."""
    if waits is None:
        return None
    return {
        "ios": waits.ios,
        "cpu": waits.cpu,
        "above": waits.above,
        "cache": waits.cache,
        "unsent": waits.unsent,
        "layers": waits.layers,
        "queue": waits.queue,
        "device": waits.device,
        "unknown": waits.unknown,
        "stalled": waits.stalled,
    }


def _probe(probe: ProbeInterval, devices: Sequence[str], t: float) -> Object:
    """Probe figures of the job's devices, together and each."""
    return {
        "seconds": probe.seconds,
        "age_s": probe.age_s,
        **{kind: _requests(probe.combined(devices, (kind,))) for kind in KINDS},
        TOTAL: _requests(probe.combined(devices)),
        "disks": {
            name: {
                **{kind: _requests(part) for kind, part in kinds.items()},
                TOTAL: _requests(probe.combined((name,))),
            }
            for name, kinds in probe.disks.items()
        },
        "matrix": probe.matrix,
        "tasks": [{"pid": task.pid, "comm": task.comm, **_task(task)} for task in probe.tasks],
        "groups": [_task(group) for group in probe.groups],
        "left_out": probe.left_out,
        "slowest": [
            exemplar_object(exemplar, completion_second(exemplar, probe, t))
            for exemplar in probe.exemplars
        ],
        "requeues/s": probe.requeued_s,
        "merges/s": probe.merged_s,
        "sequential": probe.sequential,
        "missed": probe.missed,
        "skipped": probe.skipped,
        "lost": probe.lost,
        "full": probe.full,
        "busy": probe.busy,
        "run_ns": probe.run_ns,
    }


def _requests(part: RequestStats | None) -> Object | None:
    if part is None:
        return None
    return {
        "iops": part.iops,
        "ios": part.device.ios,
        **_latencies(part.device),
        "bins": part.device.bins,
        "waiting": None if part.waiting is None else _latencies(part.waiting),
        "sizes": part.sizes,
    }


def _latencies(stats: LatencyStats) -> Object:
    return {
        "mean": stats.mean_ns,
        **_ranks(stats.percentiles),
        "max": stats.max_ns,
    }


def _ranks(percentiles: Mapping[str, int]) -> Object:
    """Return all percentiles by name; null for unknown ones."""
    return {name: percentiles.get(name) for name in map(percentile_name, PERCENTILES)}


def _task(task: TaskIo) -> Object:
    return {
        "cgroup": task.group,
        "name": group_name(task.group).text if task.group else "",
        "disk": task.disk,
        "iops": task.iops,
        "read_iops": task.read_iops,
        "write_iops": task.write_iops,
        "bw": task.bw,
        "p50": task.p50_ns,
        "p99": task.p99_ns,
    }


def exemplar_object(request: Exemplar, t: float) -> Object:
    """A request that completed at ``t``, with the names of the fields ``device.slowest.*``."""
    return {
        "t": t,
        "disk": request.disk,
        "direction": request.kind,
        "slow": request.slow,
        "sampled": request.sampled,
        "sector": request.sector,
        "offset": request.offset,
        "size": request.size,
        "rwbs": request.flags,
        "pid": request.pid,
        "tid": request.tid,
        "comm": request.comm,
        "cgroup": request.group,
        "cpu": request.cpu,
        "cpu_done": request.cpu_done,
        "hctx": request.hctx,
        "total": request.total_ns,
        "tried": request.tried_ns,
        "plugged": request.plugged_ns,
        "queued": request.queued_ns,
        "device": request.device_ns,
        "status": request.error,
    }


def _source_figures(source: Source, frame: Frame) -> Object:
    values = frame.more.get(source.name, {})
    return {figure.name: values.get(figure.name) for figure in source.figures}


def _share(share: Share) -> Object:
    return {
        "ops/s": share.ops_s,
        "bklog": share.bklog,
        "connections": len(share.connections),
        "read": operation_data(share.read),
        "write": operation_data(share.write),
        TOTAL: operation_data(share.total),
        "others": {name: operation_data(operation) for name, operation in share.others.items()},
    }


def _smb(share: Share, smb: SmbClient) -> Object:
    return {
        "ops/s": share.ops_s,
        "sessions": smb.sessions,
        "in_flight": smb.in_flight,
        "reconnects": smb.reconnects,
        "disconnected": smb.disconnected,
        "shares": smb.shares,
        "slow": smb.slow,
        "clock": smb.clock_ms,
        "read": smb_operation_data(share.read, with_bytes=True),
        "write": smb_operation_data(share.write, with_bytes=True),
        TOTAL: smb_operation_data(share.total),
        "others": {name: smb_operation_data(operation) for name, operation in share.others.items()},
    }


def _connection(connection: Connection) -> Object:
    return {
        "server": connection.server,
        "kind": connection.kind,
        "local_port": connection.local_port,
        "rtt": connection.rtt,
        "rttvar": connection.rttvar,
        "min_rtt": connection.min_rtt,
        "retrans": connection.retrans,
        "retrans%": connection.retrans_percent,
        "sent": connection.sent_s,
        "received": connection.received_s,
        "send_queue": connection.send_queue,
        "receive_queue": connection.receive_queue,
        "unsent": connection.unsent,
        "unacked": connection.unacked,
        "cwnd": connection.cwnd,
        "busy": connection.busy,
        "rwnd_limited": connection.rwnd_limited,
        "sndbuf_limited": connection.sndbuf_limited,
    }


def _group(group: GroupRates) -> Object:
    name = group.name
    return {
        "cgroup": group.path,
        "kind": name.kind,
        "name": name.name,
        **_disk_use(group.total),
        "disks": {disk: _disk_use(use) for disk, use in group.disks.items()},
        "pressure": _pressures(group.pressure),
        "cpu": group.cpu,
        "cpu_limit": group.cpu_limit,
        "memory": group.memory,
        "memory_limit": group.memory_limit,
        "limits": {disk: {limit: group.io_limits.get((disk, limit)) for limit in LIMITS}
                   for disk in group.disks},
    }  # fmt: skip


def _pressures(pressures: Mapping[str, float]) -> Object:
    nested: Object = {}
    for name in PRESSURES:
        resource, kind = name.split(".")
        nested.setdefault(resource, {})[kind] = pressures.get(name)
    return nested


def _disk_use(use: DiskUse) -> Object:
    return {
        "r/s": use.reads_s,
        "w/s": use.writes_s,
        "rMB/s": use.read_bytes_s / MIB,
        "wMB/s": use.write_bytes_s / MIB,
    }


def operation_data(rates: OperationRates) -> Object:
    """The figures of an NFS operation by their names in nfsiostat."""
    return {
        "ops/s": rates.ops_s,
        "kB/s": rates.kb_s,
        "kB/op": rates.kb_op,
        "retrans": rates.retransmissions,
        "retrans%": rates.retrans_percent,
        "rtt": rates.rtt,
        "exe": rates.exe,
        "queue": rates.queue,
        "errors": rates.errors,
        "errors%": rates.errors_percent,
    }


def smb_operation_data(rates: OperationRates, with_bytes: bool = False) -> Object:
    """The figures of an SMB operation; of reads and writes with their data."""
    sizes = {"kB/s": rates.kb_s, "kB/op": rates.kb_op} if with_bytes else {}
    return {
        "ops/s": rates.ops_s,
        **sizes,
        "errors": rates.errors,
        "errors%": rates.errors_percent,
        "latency": rates.latency,
    }


def _cpu(cpu: CpuFrame) -> Object:
    names = ("usr", "sys", "iowait", "irq", "soft", "idle", "steal")
    return {
        **{name: getattr(cpu.load, name) if cpu.load else None for name in names},
        "block/s": cpu.block_s,
        "irq/s": cpu.irq_s,
        "ipi/s": cpu.ipi_s,
    }
