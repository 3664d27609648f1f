"""The registry of frame fields: name, unit, source and meaning of every value.

A field's id is its path in a frame event (``--format jsonl``), joined by dots; ``*`` stands for
a key that is data (a device, a CPU, a job's position). Disk fields have iostat's own names and
units. A value that is not known is null, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iopstui.model.cgroups.rates import LIMITS, PRESSURES
from iopstui.model.cgroups.rates import SOURCE as GROUPS
from iopstui.model.figures.disk import NOT_ADDED, DiskRates
from iopstui.model.figures.figure import Figure, figures_of
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.nvme import DRIVES, FIGURES, NVME, PROBLEM
from iopstui.model.metrics.paths import ANY, DEVICE, SCHEMA, TOTAL
from iopstui.model.metrics.probe import KINDS
from iopstui.model.metrics.shares.share import SOURCE as NFS
from iopstui.model.metrics.shares.smb import SOURCE as SMB
from iopstui.model.network.connections import SOURCE as TCP
from iopstui.model.samples import DIRECTIONS
from iopstui.model.sources import SOURCES

FRAME = "iopstui"
FIO = "fio json+"
DISKSTATS = "/proc/diskstats"
STAT = "/proc/stat"
MOUNTSTATS = "/proc/self/mountstats"
SMB_STATS = "/proc/fs/cifs/Stats"
CGROUP = "cgroup v2"
SOCK_DIAG = "sock_diag"
PROBE = "probe"
SMART = "NVMe SMART"


@dataclass(frozen=True, slots=True)
class Field:
    """A value of a frame event. ``path`` is its place in the object, ``title`` a column heading,
    ``unit`` "" for plain counts and texts, ``source`` where it comes from."""

    path: tuple[str, ...]
    title: str
    unit: str
    source: str
    meaning: str

    @property
    def id(self) -> str:
        """The path joined by dots."""
        return ".".join(self.path)

    def covers(self, path: Sequence[str]) -> bool:
        """True if a value at ``path`` of a frame object is this field."""
        return len(path) == len(self.path) and all(
            part in (ANY, key) for part, key in zip(self.path, path, strict=True)
        )


def _frame_fields() -> Iterator[Field]:
    for name, title, unit, meaning in (
        ("event", "event", "", 'always "frame"'),
        ("host", "host", "", "machine that was measured"),
        ("seq", "seq", "", "number of the sample that ends this frame"),
        ("step", "step", "", "number of the fio run in this session, 0 without one"),
        ("t", "time", "s", "time since the session's first sample, monotonic clock"),
        ("wall_ms", "clock", "ms", "wall clock at the tick, since 1970"),
        ("utc", "UTC", "", "the same as date and time (ISO 8601, UTC, to the millisecond)"),
        ("seconds", "seconds", "s", "interval of the kernel's rates, monotonic clock"),
        (
            "fio_age_s",
            "fio age",
            "s",
            "time since fio's last status arrived; grows while fio stalls",
        ),
        ("skew_ms", "skew", "ms", "kernel's reading minus fio's time stamp"),
        ("own_cpu", "own", "% of a CPU", "CPU time of iopstui itself"),
        (
            "throttled",
            "throttled",
            "%",
            "share of the time in which a cgroup's CPU limit stopped iopstui and fio",
        ),
    ):
        yield Field((name,), title, unit, FRAME, meaning)
    yield Field(
        ("flags", ANY), "flags", "", FRAME,
        "RAMP fio warms up; PARTIAL short interval, or a job ended in it; "
        "HANDOVER another run worked in it, too (in no mean); "
        "LATE no status of fio in time; RESET fio's counters began again; NO_FIO no job; "
        "NO_LATENCY the job measures none; SOME_LATENCY only some of its I/Os have one; "
        "FINAL fio's last status; SUBMITTED I/Os are submissions, completions are not known; "
        "WRONG_LATENCY fio's latencies would need many more I/Os in flight than the job has; "
        "APPROX_IOPS I/Os per second are of clearly other seconds than the rest of the row; "
        "APPROX_BW bytes per second likewise; "
        "APART fio's and the kernel's figures are of clearly different seconds",
    )  # fmt: skip


def _fio_fields() -> Iterator[Field]:
    for name, title, unit, meaning in (
        ("seconds", "seconds", "s", "interval of fio's rates, by fio's clock"),
        ("usr_cpu", "usr", "% of a CPU", "user time of the jobs, summed"),
        ("sys_cpu", "sys", "% of a CPU", "system time of the jobs, summed"),
        ("ctx/s", "ctx/s", "1/s", "context switches of the jobs"),
        ("elapsed_s", "elapsed", "s", "elapsed run time, as reported by fio (rounded up)"),
        ("eta_s", "eta", "s", "time left, as reported by fio; null while fio does not know"),
        ("progress", "progress", "0..1", "elapsed / (elapsed + eta)"),
        ("errors", "errors", "", "rows of fio's report that have an error"),
    ):
        yield Field(("fio", name), title, unit, FIO, meaning)
    yield Field(
        ("fio", "iodepth_level", ANY), "depth", "%", FIO,
        "share of I/Os submitted at this queue depth (estimated: fio prints rounded percentages)",
    )  # fmt: skip
    for direction in (*DIRECTIONS, TOTAL):
        yield from _direction_fields(direction)
    for name, title, unit, meaning in (
        ("name", "job", "", "name of this row (a job, or a group with group_reporting)"),
        ("error", "error", "errno", "0: none"),
        ("iops", "IOPS", "1/s", "completed I/Os, all directions"),
        ("bw", "bw", "B/s", "completed bytes, all directions"),
        ("ios", "I/Os", "", "completed in this interval (since the reset, if there was one)"),
        ("bytes", "bytes", "B", "completed in this interval"),
    ):
        yield Field(("fio", "jobs", ANY, name), title, unit, FIO, meaning)
    yield Field(
        ("fio", "jobs", ANY, "clat", "mean"),
        "clat",
        "ns",
        FIO,
        "mean completion latency of this row",
    )


def _wait_fields() -> Iterator[Field]:
    source = "fio, diskstats"
    for name, meaning in (
        ("ios", "I/Os in flight, mean: fio's IOPS times its latency; without a job the requests "
         "that the watched devices hold"),
        ("cpu", "of them, waiting because the job or its worker had no CPU (/proc/PID/schedstat); "
         "null without a job"),
        ("above", "of them, above the block layer: file system, locks, cgroup limit, the job's own "
         "work; null without a job"),
        ("cache", "of them, in the page cache: reads that it answers, and buffered writes"),
        ("unsent", "of them, of engines that send nothing to a disk (null)"),
        ("queue", "of those in the lowest devices, waiting in the I/O scheduler (probe)"),
        ("device", "of those in the lowest devices, issued and not completed (probe)"),
        ("unknown", "of them, in a place that no counter shows"),
    ):  # fmt: skip
        yield Field(("wait", name), name, "", source, meaning)
    yield Field(
        ("wait", "layers", ANY), "layer", "", source,
        "of them, in this device and in none below it (docs/guide/waits.md)",
    )  # fmt: skip
    yield Field(
        ("wait", "stalled"), "stalled", "", source,
        "true if no request completed in the interval: counts of its end",
    )  # fmt: skip


def _direction_fields(direction: str) -> Iterator[Field]:
    ios = {"mixed": "unified reads and writes", TOTAL: "all directions"}.get(
        direction, f"{direction}s"
    )
    base = ("fio", direction)
    yield Field((*base, "iops"), "IOPS", "1/s", FIO, f"{ios} completed per second")
    yield Field((*base, "bw"), "bw", "B/s", FIO, f"{ios}, bytes completed per second")
    yield Field((*base, "ios"), "I/Os", "", FIO, f"{ios} completed in this interval")
    yield Field((*base, "bytes"), "bytes", "B", FIO, f"{ios}, bytes completed in this interval")
    for kind, meaning in (
        ("slat", "submission latency"),
        ("clat", "completion latency (submission to completion)"),
        ("lat", "total latency (slat + clat)"),
    ):
        path = (*base, kind)
        yield Field((*path, "mean"), kind, "ns", FIO, f"{ios}: mean {meaning}")
        yield Field((*path, "n"), "n", "", FIO, f"{ios}: I/Os in that mean")
        if kind != "slat":
            yield from _percentile_fields(path, ios, kind)
    yield Field((*base, "bins_of"), "bins of", "", FIO, "latency the histogram is of: clat or lat")
    if direction != TOTAL:
        yield Field(
            (*base, "bins", ANY), "bins", "", FIO,
            f"{ios}: this interval's histogram, I/Os by bucket midpoint in ns; bins of several "
            "jobs, hosts or seconds add exactly",
        )  # fmt: skip


def _percentile_fields(path: tuple[str, ...], ios: str, kind: str) -> Iterator[Field]:
    for p in PERCENTILES:
        name = percentile_name(p)
        yield Field(
            (*path, name), name, "ns", FIO,
            f"{ios}: {p:g} % of this interval's I/Os had at most this {kind} (within 0.8 %)",
        )  # fmt: skip
    yield Field(
        (*path, "max"), "max", "ns", FIO, f"{ios}: highest {kind} in this interval (within 0.8 %)"
    )


def _disk_fields() -> Iterator[Field]:
    for base, meaning_of in (
        (("kernel", "disks", ANY), _own_meaning),
        (("kernel", TOTAL), _total_meaning),
    ):
        for row in figures_of(DiskRates):
            yield Field((*base, row.name), row.name, row.unit, DISKSTATS, meaning_of(row))


def _own_meaning(row: Figure) -> str:
    return row.meaning


def _total_meaning(row: Figure) -> str:
    """A disk field's meaning for the sum of the devices that the jobs work on."""
    if row.part in NOT_ADDED:
        return "of the one device that the jobs work on; null for several, as shares don't add up"
    method = ""
    if row.unit == "ms":
        method = ": their waiting over their requests"
    elif row.unit == "KiB":
        method = ": their bytes over their requests"
    return f"of all devices that the jobs work on together, each once{method}: {row.meaning}"


def _cpu_fields() -> Iterator[Field]:
    for key, source, unit, meaning in (
        ("usr", STAT, "%", "user time, nice included"),
        ("sys", STAT, "%", "system time"),
        ("iowait", STAT, "%", "idle while an I/O was outstanding"),
        ("irq", STAT, "%", "hard interrupts; stays 0 on kernels that only sample time"),
        ("soft", STAT, "%", "softirqs"),
        ("idle", STAT, "%", "idle"),
        ("steal", STAT, "%", "taken by the hypervisor"),
        ("block/s", "/proc/softirqs", "1/s", "BLOCK softirqs: I/O completions handled here"),
        ("irq/s", "/sys/kernel/irq", "1/s", "the target device's own interrupts"),
        ("ipi/s", "/proc/interrupts", "1/s",
         "function-call IPIs received (of all kinds), since the file was last read; null in a "
         "frame that did not read it (wide machines)"),
    ):  # fmt: skip
        yield Field(("kernel", "cpus", ANY, key), key, unit, source, meaning)
    yield Field(
        ("kernel", "irqs", ANY, ANY), "irq", "1/s", "/sys/kernel/irq",
        "one of the target device's interrupts (first key) on one CPU (second key)",
    )  # fmt: skip


def _source_fields() -> Iterator[Field]:
    for source in SOURCES:
        for figure in source.figures:
            path = ("kernel", source.name, figure.name)
            place = source.place or f"/proc/{source.file}"
            yield Field(path, figure.name, figure.unit, place, figure.meaning)


def _share_fields() -> Iterator[Field]:
    base = ("kernel", NFS)
    for name, unit, meaning in (
        ("ops/s", "1/s", "RPCs sent per second to the server of the target's NFS mount, of all "
                         "operations and over all connections"),
        ("bklog", "", "mean number of RPCs that wait for a slot (RPC backlog queue)"),
        ("connections", "", "connections to the server (nconnect)"),
    ):  # fmt: skip
        yield Field((*base, name), name, unit, MOUNTSTATS, meaning)
    for path, operations in (
        (("read",), "READ and READ_PLUS"), (("write",), "WRITE"), ((TOTAL,), "all operations"),
        (("others", ANY), "any other operation"),
    ):  # fmt: skip
        for name, unit, meaning in _OPERATION:
            yield Field((*base, *path, name), name, unit, MOUNTSTATS, f"{operations}: {meaning}")


def _smb_fields() -> Iterator[Field]:
    base = ("kernel", SMB)
    for name, unit, meaning in (
        ("ops/s", "1/s", "requests sent per second for the target's SMB shares, of all operations"),
        ("sessions", "", "open sessions of this machine with SMB servers"),
        ("in_flight", "", "requests without an answer at the interval's end, of all SMB mounts of "
                          "this machine"),
        ("reconnects", "", "connections to servers that were lost and made again in this interval, "
                           "of all SMB mounts of this machine"),
        ("disconnected", "", "the target's shares whose connection is lost"),
        ("shares", "", "shares on the same connections: the latencies are of all of them"),
        ("slow", "", "answers after more than 1 s (cifs.slow_rsp_threshold) on these connections "
                     "in this interval; null: as latency"),
        ("clock", "ms", "step in which latencies are timed (a jiffy)"),
    ):  # fmt: skip
        yield Field((*base, name), name, unit, SMB_STATS, meaning)
    for path, operations in (
        (("read",), "READ"), (("write",), "WRITE"), ((TOTAL,), "all operations"),
        (("others", ANY), "any other operation"),
    ):  # fmt: skip
        for name, unit, meaning in _SMB_OPERATION:
            if path[0] in ("read", "write") or not name.startswith("kB"):
                yield Field((*base, *path, name), name, unit, SMB_STATS, f"{operations}: {meaning}")


def _group_fields() -> Iterator[Field]:
    base = ("kernel", GROUPS, ANY)
    for name, unit, meaning in (
        ("cgroup", "", "path of a cgroup that did I/O on the target's disks (watch --cgroups)"),
        ("kind", "", "what runs in it, by its path: unit, container, pod, machine, job, user, "
                     "slice, group, or root for what is charged to none"),
        ("name", "", "its name: a systemd unit, the beginning of a container's or pod's id"),
        ("cpu", "%", "CPU time of the group, percent of one CPU"),
        ("cpu_limit", "%", "cpu.max, percent of one CPU; null: no limit"),
        ("memory", "B", "memory.current"),
        ("memory_limit", "B", "memory.max; null: no limit"),
    ):  # fmt: skip
        yield Field((*base, name), name, unit, CGROUP, meaning)
    for path, scope in ((base, "on all of the target's disks"), ((*base, "disks", ANY), "on this")):
        for name, unit, meaning in (
            ("r/s", "1/s", "reads"), ("w/s", "1/s", "writes"), ("rMB/s", "MiB/s", "read"),
            ("wMB/s", "MiB/s", "written"),
        ):  # fmt: skip
            yield Field((*path, name), name, unit, CGROUP,
                        f"{meaning} per second by this group, without those below it, {scope}"
                        )  # fmt: skip
    for name in PRESSURES:
        resource, kind = name.split(".")
        tasks = "at least one task" if kind == "some" else "all tasks"
        yield Field((*base, "pressure", resource, kind), kind, "%", CGROUP,
                    f"share of the time in which {tasks} of the group waited for {resource}"
                    )  # fmt: skip
    for name in LIMITS:
        yield Field((*base, "limits", ANY, name), name, "", CGROUP,
                    "io.max of the group on this disk, per second; null: no limit")  # fmt: skip


def _connection_fields() -> Iterator[Field]:
    for name, unit, meaning in (
        ("server", "", "address and port that the target's I/O goes to"),
        ("kind", "", "what for: NFS, SMB, NVMe/TCP or iSCSI"),
        ("local_port", "", "port of this machine"),
        ("rtt", "ms", "round-trip time of packets, smoothed by the kernel"),
        ("rttvar", "ms", "its mean deviation"),
        ("min_rtt", "ms", "the shortest lately"),
        ("retrans", "", "segments sent again in this interval"),
        ("retrans%", "%", "segments sent again for 100 sent"),
        ("sent", "B/s", "bytes sent"),
        ("received", "B/s", "bytes received"),
        ("send_queue", "B", "bytes not acknowledged yet, at the interval's end"),
        ("receive_queue", "B", "bytes received and not read yet"),
        ("unsent", "B", "bytes of the send queue that were not sent yet"),
        ("unacked", "", "segments under way"),
        ("cwnd", "", "segments that may be under way (congestion window)"),
        ("busy", "%", "share of the interval with data under way"),
        ("rwnd_limited", "%", "of it, held up by the server's receive window"),
        ("sndbuf_limited", "%", "of it, held up by this machine's send buffer"),
    ):  # fmt: skip
        yield Field(("kernel", TCP, ANY, name), name, unit, SOCK_DIAG, meaning)


_OPERATION = (
    ("ops/s", "1/s", "finished per second"),
    ("kB/s", "KiB/s", "sent and received with headers (KiB, as nfsiostat)"),
    ("kB/op", "KiB", "mean size of one, sent and received"),
    ("retrans", "", "retransmissions in this interval"),
    ("retrans%", "%", "retransmissions for 100 of them"),
    ("rtt", "ms", "mean time from sending to the answer: network and server"),
    ("exe", "ms", "mean time from the request to its end: queue, RTT and the client's own work"),
    ("queue", "ms", "mean time in the client's queue before it was sent"),
    ("errors", "", "answers with an error in this interval"),
    ("errors%", "%", "answers with an error for 100 of them"),
)


_SMB_OPERATION = (
    ("ops/s", "1/s", "sent per second"),
    ("kB/s", "KiB/s", "data of answered ones (KiB)"),
    ("kB/op", "KiB", "mean size of one"),
    ("errors", "", "answers with an error in this interval; null with SMB 1"),
    ("errors%", "%", "answers with an error for 100 of them"),
    ("latency", "ms", "mean time from the request to its end, of all shares on the connection; "
                      "null on kernels built without CONFIG_CIFS_STATS2 and with SMB 1"),
)  # fmt: skip


def _probe_fields() -> Iterator[Field]:
    for name, unit, meaning in (
        ("seconds", "s", "interval of these rates, by the kernel's clock"),
        ("age_s", "s", "how long before the frame's end they were read"),
        ("requeues/s", "1/s", "requests that the driver returned, to be issued again"),
        ("merges/s", "1/s", "I/Os that were merged into requests (part sizes)"),
        ("sequential", "%", "share of requests that start where the one before on this disk ended "
                            "(part sizes)"),
        ("missed", "%", "share of completions whose start was not seen, or that were not seen at "
                        "all"),
        ("skipped", "", "events, of any disk, at which another probe ran on that CPU: at most this "
                        "many requests were not counted"),
        ("lost", "", "events that the kernel could not pass on"),
        ("full", "", "maps that had no room left: figures are too low"),
        ("busy", "% of a CPU", "used for reading its counters"),
        ("run_ns", "ns", "the probes' own run time for each request, as the kernel counts it"),
    ):  # fmt: skip
        yield Field((DEVICE, name), name, unit, PROBE, meaning)
    for kind in (*KINDS, TOTAL):
        requests = "all requests" if kind == TOTAL else f"{kind} requests"
        of_devices = f"{requests} of the devices that the jobs work on together"
        yield from _request_fields((DEVICE, kind), of_devices)
        yield from _request_fields((DEVICE, "disks", ANY, kind), f"{requests} of this disk")
    yield Field(
        (DEVICE, "matrix", ANY, ANY), "matrix", "1/s", PROBE,
        "requests allocated on one CPU (first key) and completed on another (second key)",
    )  # fmt: skip
    yield from _task_fields()
    yield from _slowest_fields()


def _task_fields() -> Iterator[Field]:
    for name, unit, meaning in (
        ("cgroup", "", "cgroup that the requests are charged to (bpftrace: that the process is "
                       "in); empty where that is not known, or a process works for several"),
        ("name", "", "the unit, container or pod of that cgroup"),
        ("disk", "", "the disk (there is a row for each)"),
        ("iops", "1/s", "completed requests"),
        ("read_iops", "1/s", "those that read"),
        ("write_iops", "1/s", "those that write"),
        ("bw", "B/s", "completed bytes"),
        ("p50", "ns", "half of the requests took at most this in the device (within 6 %)"),
        ("p99", "ns", "99 % of the requests took at most this in the device (within 6 %)"),
    ):  # fmt: skip
        for table in ("tasks", "groups"):
            yield Field((DEVICE, table, ANY, name), name, unit, PROBE, meaning)
    for name, meaning in (
        ("pid", "process that allocated the requests; writeback is the kernel's kworker"),
        ("comm", "its name when it was first seen"),
    ):
        yield Field((DEVICE, "tasks", ANY, name), name, "", PROBE, meaning)
    yield Field((DEVICE, "left_out"), "left_out", "", PROBE, "requests that are in no row of tasks "
                "and groups: there were too many processes")  # fmt: skip


def _slowest_fields() -> Iterator[Field]:
    for name, unit, meaning in (
        ("t", "s", "when it completed, in seconds of the session"),
        ("disk", "", "its disk or partition"),
        ("direction", "", "read, write, discard or flush"),
        ("slow", "", "one of the 10 slowest of its direction in this interval"),
        ("sampled", "", "one of a random sample of 10 of its direction"),
        ("sector", "512 B", "its first sector, of the whole disk"),
        ("offset", "B", "its place on the disk or partition"),
        ("size", "B", "its size"),
        ("rwbs", "", "its flags, as the kernel's tracepoints show them: R, W, D or F, before it F "
                     "for a flush first, after it F (FUA), A (readahead), S (sync), M (metadata)"),
        ("pid", "", "process that sent it; writeback is the kernel's kworker"),
        ("tid", "", "its thread"),
        ("comm", "", "the thread's name"),
        ("cgroup", "", "the cgroup that it is charged to; empty where that is not known"),
        ("cpu", "", "CPU that allocated it"),
        ("cpu_done", "", "CPU that completed it"),
        ("hctx", "", "its hardware queue"),
        ("total", "ns", "from its allocation to its completion"),
        ("tried", "ns", "from its allocation until the driver last sent it back (busy, or after a "
                        "timeout): earlier tries; null if it did not"),
        ("plugged", "ns", "from its allocation to its insertion into a scheduler or a queue; null "
                          "if it was issued at once or sent back"),
        ("queued", "ns", "from there, or from its allocation, to its issue to the driver"),
        ("device", "ns", "from its issue to its completion"),
        ("status", "", "the kernel's status of its completion; 0: no error"),
    ):  # fmt: skip
        yield Field((DEVICE, "slowest", ANY, name), name, unit, PROBE, meaning)


def _request_fields(base: tuple[str, ...], requests: str) -> Iterator[Field]:
    yield Field((*base, "iops"), "IOPS", "1/s", PROBE, f"{requests}, completed per second")
    yield Field((*base, "ios"), "I/Os", "", PROBE, f"{requests}, completed in this interval")
    for path, span in (
        (base, "from issue to completion"),
        ((*base, "waiting"), "from allocation to issue (part way)"),
    ):
        yield Field((*path, "mean"), "mean", "ns", PROBE, f"{requests}: mean time {span}")
        for p in PERCENTILES:
            name = percentile_name(p)
            yield Field((*path, name), name, "ns", PROBE, f"{requests}: {p:g} % took at most "
                        f"this {span} (within 0.8 %)")  # fmt: skip
        yield Field((*path, "max"), "max", "ns", PROBE, f"{requests}: longest {span}")
    yield Field(
        (*base, "bins", ANY), "bins", "", PROBE,
        f"{requests}: this interval's histogram, as fio's: requests by bucket midpoint in ns",
    )  # fmt: skip
    yield Field(
        (*base, "sizes", ANY), "sizes", "", PROBE,
        f"{requests}, issued, by size in bytes rounded down to a power of two (part sizes)",
    )  # fmt: skip


def _nvme_fields() -> Iterator[Field]:
    for path, scope in (((NVME,), "all drives"), ((NVME, DRIVES, ANY), "this drive")):
        for figure in FIGURES:
            yield Field(
                (*path, figure.name), figure.name, figure.unit, SMART, f"{scope}: {figure.meaning}"
            )
    yield Field((NVME, DRIVES, ANY, PROBLEM), PROBLEM, "", SMART,
                "this drive: why it could not be read; null if it was")  # fmt: skip


def _job_fields() -> Iterator[Field]:
    for name, unit, meaning in (
        ("index", "", "number of the job, in the order fio started them"),
        ("cpu", "", "CPU it ran on last"),
        ("pinned", "", "true if it may run on that CPU alone"),
        ("busy", "% of a CPU", "user and system time; null in its first interval"),
        ("pid", "", "number of its process, or of its thread"),
        ("cpu_wait", "%", "share of the interval in which it was ready to run and had no CPU"),
        ("nice", "", "its nice value (-20 to 19)"),
        ("policy", "", "its scheduling policy (0: SCHED_OTHER, 5: SCHED_IDLE)"),
        ("state", "", "its state in the kernel: R runs, S sleeps, D waits for I/O or a lock"),
        ("workers_wait", "%", "the same of its workers (io_uring's) added up; null if it has none"),
    ):
        yield Field(("jobs", ANY, name), f"job {name}", unit, "/proc/PID/stat", meaning)


FIELDS: tuple[Field, ...] = (
    *_frame_fields(),
    *_fio_fields(),
    *_wait_fields(),
    *_disk_fields(),
    *_cpu_fields(),
    *_source_fields(),
    *_share_fields(),
    *_smb_fields(),
    *_group_fields(),
    *_connection_fields(),
    *_probe_fields(),
    *_nvme_fields(),
    *_job_fields(),
)
BY_ID = {field.id: field for field in FIELDS}


def find_field(path: Sequence[str]) -> Field | None:
    """The field that a value at ``path`` of a frame object is, or ``None``."""
    return next((field for field in FIELDS if field.covers(path)), None)


def fields_json() -> str:
    """The registry as one JSON object: ``schema`` and ``fields``."""
    rows = [
        {
            "id": field.id, "title": field.title, "unit": field.unit, "source": field.source,
            "meaning": field.meaning,
        }
        for field in FIELDS
    ]  # fmt: skip
    return json.dumps({"schema": SCHEMA, "fields": rows}, indent=1)


def fields_table(width: int = 80) -> str:
    """The registry as text, one field a line where ``width`` allows (at least 60 is used)."""
    import textwrap

    rows = [(field.id, field.unit, field.source, field.meaning) for field in FIELDS]
    rows.insert(0, ("FIELD", "UNIT", "SOURCE", "MEANING"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    meaning_width = max(width, 60) - sum(widths) - 6
    if meaning_width < 30:
        return "\n".join(_stacked(row, max(width, 60)) for row in rows[1:])
    lines = []
    for *short, meaning in rows:
        head = "  ".join(text.ljust(size) for text, size in zip(short, widths, strict=True))
        first, *rest = textwrap.wrap(meaning, meaning_width)
        lines += [f"{head}  {first}", *(" " * (len(head) + 2) + line for line in rest)]
    return "\n".join(lines)


def _stacked(row: tuple[str, str, str, str], width: int) -> str:
    import textwrap

    name, unit, source, meaning = row
    tail = f"{meaning} ({source})"
    head = f"{name} [{unit}]" if unit else name
    text = textwrap.fill(tail, width, initial_indent="    ", subsequent_indent="    ")
    return f"{head}\n{text}"
