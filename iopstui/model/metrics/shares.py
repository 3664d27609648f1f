"""NFS and SMB mounts: rates, latencies, waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from iopstui import format as f
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import BY_KEY, SECONDS, Figure, Part, Rows, figures_of
from iopstui.model.metrics.waits import JobLoad, Stack, Waits, place_waits
from iopstui.model.rates import delta, ratio
from iopstui.model.sizes import KIB

# Figures of the NFS or SMB client in one interval. Those of NFS have nfsiostat's names and meaning.
#
# An RPC first waits in the client's queue, then for the server's answer (RTT); its execution time
# is the sum of both and of the client's own work. The kernel counts an RPC when it is finished, so
# an RPC that waits for a dead server is in no figure until the server is back.


NFS = "nfs"
"""The name of these counters in a sample (KernelSample.more)."""
NFS_PROTOCOL, SMB_PROTOCOL = "NFS", "SMB"
READS, WRITE = ("read", "read_plus"), "write"
"""The NFS client may send READ_PLUS in place of READ to servers with NFS 4.2."""


def _percent(name: str, meaning: str, part: str) -> Figure:
    return Figure(name, "%", meaning, part, "ops", per=0.01, form=f.percent)


def _mean_time(name: str, span: str) -> Figure:
    return Figure(name, "ms", f"mean time {span}", f"{name}_ms", "ops", width=8,
                  form=f.milliseconds)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OperationRates:
    """One operation in an interval of ``seconds``: finished ``ops``, ``bytes`` sent and received
    with their headers, ``retransmissions``, and the sums of the times in ms. ``errors`` are answers
    with an error. ``None``: the kernel does not count it. For SMB, ``ops`` were sent (not
    finished), ``bytes`` are without headers, and the ``answers``, which took ``answers_ms``, are
    those of all shares on the connection."""

    seconds: float
    ops: int
    bytes: int | None
    retransmissions: int | None
    queue_ms: int | None
    rtt_ms: int | None
    exe_ms: int | None
    errors: int | None
    answers: int | None = None
    answers_ms: float | None = None

    ops_s = Figure("ops/s", "1/s", "operations finished per second", "ops", SECONDS)
    kb_s = Figure("kB/s", "KiB/s", "bytes sent and received, with headers (KiB, as nfsiostat)",
                  "bytes", SECONDS, per=KIB)  # fmt: skip
    kb_op = Figure("kB/op", "KiB", "mean size of an operation, sent and received", "bytes", "ops",
                   per=KIB, rank=2)  # fmt: skip
    resent = Figure("retrans", "", "retransmissions in this interval", "retransmissions")
    retrans_percent = _percent("retrans%", "retransmissions per 100 operations", "retransmissions")
    rtt = _mean_time("rtt", "from sending to the answer: network and server")
    exe = _mean_time("exe", "from the request to its end: queue, RTT and the client's own work")
    queue = _mean_time("queue", "in the client's queue before it was sent")
    n_errors = Figure("errors", "", "answers with an error in this interval", "errors",
                      form=f.or_dash, rank=1)  # fmt: skip
    errors_percent = _percent("errors%", "answers with an error per 100 operations", "errors")
    latency = Figure(
        "latency", "ms", "mean time from the request to its end, of all shares on the connection; "
        "null on kernels built without CONFIG_CIFS_STATS2 and with SMB 1", "answers_ms", "answers",
        form=f.milliseconds, width=8,
    )  # fmt: skip

    @property
    def waiting_ms(self) -> int:
        """Total time spent in this client (ms), without network and server; 0 if not known."""
        return 0 if self.exe_ms is None or self.rtt_ms is None else self.exe_ms - self.rtt_ms


_COUNTED = ("ops", "bytes", "retransmissions", "queue_ms", "rtt_ms", "exe_ms", "errors")
_ANSWERED = ("answers", "answers_ms")


@dataclass(frozen=True, slots=True)
class SmbClient:
    """The SMB client's figures beside the operations. For all SMB mounts of this machine:
    ``sessions`` and requests ``in_flight`` at the interval's end, and ``reconnects`` to servers.
    For the target: how many of its shares are ``disconnected``; the ``answers`` to all commands on
    its connections, which ``shares`` use, and how many were ``slow`` (over 1 s by default).
    ``clock_ms`` is the step in which answers are timed. ``None``: the kernel does not say (the last
    three: it was built without CONFIG_CIFS_STATS2)."""

    sessions: int | None
    in_flight: int | None
    reconnects: int | None
    disconnected: int
    shares: int
    answers: int | None = None
    slow: int | None = None
    clock_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """The NFS or SMB mounts of a target in an interval: ``sends`` RPCs over ``connections`` TCP
    connections (the sends of each), the sum of the backlog queue's length at each send, and each
    operation that was used. ``unanswered`` RPCs were sent and had no answer at the interval's end
    (an RPC sent again counts each time, for ever). Only SMB has ``smb``; its ``sends`` are requests
    and its connections are not known."""

    seconds: float
    sends: int | None
    backlog: int | None
    connections: tuple[int, ...] = ()
    operations: Mapping[str, OperationRates] = field(default_factory=dict)
    unanswered: int = 0
    smb: SmbClient | None = None

    @property
    def protocol(self) -> str:
        """The name of the protocol: "NFS" or "SMB"."""
        return NFS_PROTOCOL if self.smb is None else SMB_PROTOCOL

    @property
    def ops_s(self) -> float | None:
        """RPCs sent per second, of all operations."""
        return ratio(self.sends, self.seconds)

    @property
    def bklog(self) -> float | None:
        """Mean length of the queue of RPCs that wait for a slot."""
        return ratio(self.backlog, self.sends)

    @property
    def read(self) -> OperationRates:
        """The READ and READ_PLUS operations together; all 0 if there was none."""
        return self._together(self.operations[name] for name in READS if name in self.operations)

    @property
    def write(self) -> OperationRates:
        """The WRITE operations; all 0 if there was none."""
        return self.operations.get(WRITE) or self._together(())

    @property
    def data(self) -> OperationRates:
        """READ and WRITE together."""
        return self._together((self.read, self.write))

    @property
    def others(self) -> dict[str, OperationRates]:
        """All operations that neither read nor write data."""
        data = (*READS, WRITE)
        return {name: operation for name, operation in self.operations.items() if name not in data}

    @property
    def other(self) -> OperationRates:
        """The operations of ``others`` together."""
        return self._together(self.others.values())

    @property
    def total(self) -> OperationRates:
        return self._together(self.operations.values())

    def _together(self, operations: Iterable[OperationRates]) -> OperationRates:
        """The sum of these operations; 0 if there are none (``None`` for figures that SMB
        lacks)."""
        zero = None if self.smb is not None else 0
        none = OperationRates(self.seconds, 0, 0, zero, zero, zero, zero, 0)
        return sum_operations(tuple(operations) or (none,), self.seconds)


_OPERATION = OperationRates
OPERATION: Rows = tuple(row for row in figures_of(_OPERATION) if row is not _OPERATION.latency)
SMB_OTHER: Rows = (
    replace(_OPERATION.ops_s, meaning="sent per second"),
    replace(_OPERATION.n_errors, meaning=f"{_OPERATION.n_errors.meaning}; null with SMB 1"),
    _OPERATION.errors_percent,
    _OPERATION.latency,
)
SMB_DATA: Rows = (
    SMB_OTHER[0],
    replace(_OPERATION.kb_s, meaning="data of answered ones (KiB)"),
    replace(_OPERATION.kb_op, meaning="mean size of one"),
    *SMB_OTHER[1:],
)


def _operations(reads: str, data: Rows, other: Rows) -> Rows:
    return (
        Part("read", data, about=reads),
        Part("write", data, about="WRITE"),
        Part("total", other, about="all operations"),
        Part("others", other, many=BY_KEY, about="any other operation", always=True),
    )


NFS_ROWS: Rows = (
    Figure("ops/s", "1/s", "RPCs sent per second to the server of the target's NFS mount, of all "
           "operations and over all connections", "ops_s", over=SECONDS),
    Figure("bklog", "", "mean number of RPCs that wait for a slot (RPC backlog queue)",
           over="sends"),
    Figure("connections", "", "connections to the server (nconnect)",
           lambda share: len(share.connections)),
    *_operations("READ and READ_PLUS", OPERATION, OPERATION),
)  # fmt: skip
SMB_ROWS: Rows = (
    Figure("ops/s", "1/s", "requests sent per second for the target's SMB shares, of all "
           "operations", "ops_s", over=SECONDS),
    Figure("sessions", "", "open sessions of this machine with SMB servers", "smb/sessions"),
    Figure("in_flight", "", "requests without an answer at the interval's end, of all SMB mounts "
           "of this machine", "smb/in_flight", over=SECONDS),
    Figure("reconnects", "", "connections to servers that were lost and made again in this "
           "interval, of all SMB mounts of this machine", "smb/reconnects"),
    Figure("disconnected", "", "the target's shares whose connection is lost", "smb/disconnected"),
    Figure("shares", "", "shares on the same connections: the latencies are of all of them",
           "smb/shares"),
    Figure("slow", "", "answers after more than 1 s (cifs.slow_rsp_threshold) on these "
           "connections in this interval; null: as latency", "smb/slow"),
    Figure("clock", "ms", "step in which latencies are timed (a jiffy)", "smb/clock_ms"),
    *_operations("READ", SMB_DATA, SMB_OTHER),
)  # fmt: skip


class ShareTotal:
    """The operations of several intervals: ``operations`` has "read", "write" and "other" (all
    other operations together), or is empty before the first interval. ``protocol`` is "NFS" or
    "SMB"."""

    def __init__(self) -> None:
        self.operations: dict[str, OperationRates] = {}
        self.protocol = NFS_PROTOCOL

    def add(self, share: Share | None) -> None:
        """Add an interval; ``None``: it was not measured."""
        if share is not None:
            self.protocol = share.protocol
            self._add({"read": share.read, "write": share.write, "other": share.other})

    def join(self, later: ShareTotal) -> None:
        """Add the intervals that follow."""
        if later.operations:
            self.protocol = later.protocol
        self._add(later.operations)

    @property
    def data(self) -> OperationRates | None:
        """Reads and writes together; ``None`` if nothing was measured."""
        operations = [
            self.operations[name] for name in ("read", "write") if name in self.operations
        ]
        return sum_operations(operations, operations[0].seconds) if operations else None

    def _add(self, operations: Mapping[str, OperationRates]) -> None:
        for name, operation in operations.items():
            before = self.operations.get(name)
            seconds = operation.seconds + (before.seconds if before else 0.0)
            self.operations[name] = sum_operations(
                (before, operation) if before else (operation,), seconds
            )


class RunShare(ShareTotal):
    """The operations from the first to the last second that fio reported. Seconds between these
    without a report count as well: fio reports nothing while it hangs on a mount."""

    def __init__(self) -> None:
        super().__init__()
        self._reported = False
        # seconds without a report before the first one and after the last one
        self._before, self._after = ShareTotal(), ShareTotal()

    def add(self, share: Share | None, *, reported: bool = True) -> None:
        """Add an interval; ``reported``: fio reported something in it."""
        if reported:
            self._end_gap()
            super().add(share)
        else:
            self._gap.add(share)

    def join(self, later: RunShare) -> None:  # type: ignore[override]
        self._gap.join(later._before)
        if later._reported:
            self._end_gap()
            super().join(later)
            self._after.join(later._after)

    @property
    def _gap(self) -> ShareTotal:
        """The sum to which a second without a report is added."""
        return self._after if self._reported else self._before

    def _end_gap(self) -> None:
        super().join(self._after)
        self._after = ShareTotal()
        self._reported = True


def share_rates(
    now: Mapping[str, int] | None, before: Mapping[str, int] | None, seconds: float | None
) -> Share | None:
    """The interval between two readings; ``None`` without two readings, or if counters went
    backwards (the share was mounted again)."""
    if now is None or before is None or not seconds or not before.keys() <= now.keys():
        return None
    growth = {key: value - before.get(key, 0) for key, value in now.items()}
    if min(growth.values(), default=0) < 0:
        return None
    transports = [key.removesuffix(".sends") for key in growth if key.endswith(".sends")]
    connections = tuple(growth[f"{transport}.sends"] for transport in transports)
    backlogs = [growth[f"{transport}.backlog"] for transport in transports]
    names = [key.removesuffix(".ops") for key in growth if key.endswith(".ops")]
    rates = {name: _operation(name, growth, seconds) for name in names}
    return Share(
        seconds,
        sum(connections) if connections else None,
        sum(backlogs) if connections else None,
        connections,
        {name: operation for name, operation in rates.items() if operation.ops},
        sum(now[f"{transport}.sends"] - now[f"{transport}.receives"] for transport in transports),
    )


def sum_operations(operations: Iterable[OperationRates], seconds: float) -> OperationRates:
    """Several operations of one interval as one."""
    parts = tuple(operations)
    answered = [part for part in parts if part.answers is not None and part.answers_ms is not None]

    def total(name: str, of: Iterable[OperationRates]) -> Any:
        values = [getattr(part, name) for part in of]
        return None if None in values else sum(values)

    growths = {name: total(name, parts) for name in _COUNTED}
    growths |= {name: total(name, answered) for name in _ANSWERED if answered}
    return OperationRates(seconds, **growths)


def _operation(name: str, growth: Mapping[str, int], seconds: float) -> OperationRates:
    ops = growth[f"{name}.ops"]
    return OperationRates(
        seconds,
        ops,
        growth[f"{name}.sent"] + growth[f"{name}.received"],
        # each operation is sent at least once
        max(0, growth[f"{name}.transmissions"] - ops),
        growth[f"{name}.queue_ms"],
        growth[f"{name}.rtt_ms"],
        growth[f"{name}.exe_ms"],
        growth.get(f"{name}.errors"),
    )


# Places of I/Os in flight on an NFS mount: above it, in the client's RPC queue, or sent.
#
# A mount is like a device whose requests are its READs and WRITEs (waits.py): their mean number in
# flight is the sum of their execution times over the interval. The kernel counts an RPC at its end,
# so RPCs that wait for a dead server are in no count until it is back.


RPC_QUEUE, SENT = "RPC queue", "network+server"
_MOUNT = "mount"


def place_on_share(share: Share, job: JobLoad | None = None) -> Waits | None:
    """Compute where the I/Os of an interval are; ``None`` if nothing is known of them."""
    waits = place_waits(Stack((_MOUNT,)), {_MOUNT: _as_device(share)}, _without_counters(job))
    if waits is None or _MOUNT not in waits.layers:
        return waits
    inside = waits.layers[_MOUNT]
    exe = share.data.exe_ms or 0
    sent = inside * min(1.0, (share.data.rtt_ms or 0) / exe) if exe else 0.0
    return replace(waits, layers={RPC_QUEUE: inside - sent, SENT: sent})


def _without_counters(job: JobLoad | None) -> JobLoad | None:
    """Drop the kernel's counts of the job's direct I/O: kernels count it differently, and all
    direct I/O is sent anyway."""
    if job is None:
        return None
    directions = (replace(d, sent_s=None) if d.direct else d for d in job.directions)
    return replace(job, directions=tuple(directions))


def _as_device(share: Share) -> DiskRates:
    """The mount's READs and WRITEs in iostat's terms."""
    read, write, exe_ms = share.read, share.write, share.data.exe_ms
    return DiskRates(
        share.seconds,
        reads=read.ops, writes=write.ops, discards=0,
        read_bytes=read.bytes or 0, write_bytes=write.bytes or 0, discard_bytes=0,
        read_ms=read.exe_ms, write_ms=write.exe_ms, weighted_ms=exe_ms or 0,
    )  # fmt: skip


# Figures of the target's SMB shares in one interval, from the SMB client's counters.
#
# The kernel counts an operation of a share when it is sent, its bytes when the answer is there. If
# built with CONFIG_CIFS_STATS2, it also counts times, in steps of a jiffy, for each command of a
# connection, which all shares of one server and user have in common.


SMB = "smb"
"""The name of these counters in a sample (KernelSample.more)."""
OPS, ERRORS, BYTES, COUNT, JIFFIES = ".ops", ".errors", ".bytes", ".count", ".jiffies"
SMBS, IN_FLIGHT, RECONNECTS, DISCONNECTED = "smbs", "in_flight", "reconnects", "disconnected"
SESSIONS = "sessions"
SINCE = "since"
"""Time since which the shares are counted, in seconds since 1970 (newer kernels)."""
SERVER = "server"
HZ, SLOW, ON_CONNECTION = f"{SERVER}.hz", f"{SERVER}.slow", f"{SERVER}.shares"
"""Names of values of the connections: jiffies per second, slow answers, shares that use them."""
_STATES = frozenset({SESSIONS, IN_FLIGHT, DISCONNECTED, SINCE, HZ, ON_CONNECTION})
"""Values that are states, not counters."""
_WAITING = frozenset({"change_notify", "lock", "oplock_break"})
"""Operations that are answered when another client does something: their time says nothing about
the server."""


def smb_rates(
    now: Mapping[str, int] | None, before: Mapping[str, int] | None, seconds: float | None
) -> Share | None:
    """The interval between two readings; ``None`` without two readings, or if counters were reset
    (a new mount, or a write to /proc/fs/cifs/Stats)."""
    if now is None or before is None or not seconds:
        return None
    if before.keys() - now.keys() or now.get(SINCE) != before.get(SINCE):
        return None
    counters = {key: value for key, value in now.items() if key not in _STATES}
    growth = {key: delta(value, before.get(key, 0)) for key, value in counters.items()}
    increases = {key: value for key, value in growth.items() if value is not None}
    if len(increases) < len(growth):
        return None
    names = [key.removesuffix(OPS) for key in increases if key.endswith(OPS)]
    rates = {name: _smb_operation(name, increases, now.get(HZ), seconds) for name in names}
    return Share(
        seconds,
        increases[SMBS],
        None,
        operations={
            name: operation
            for name, operation in rates.items()
            if operation.ops or operation.bytes or operation.errors
        },
        unanswered=now.get(IN_FLIGHT, 0),
        smb=SmbClient(
            now.get(SESSIONS),
            now.get(IN_FLIGHT),
            increases.get(RECONNECTS),
            now[DISCONNECTED],
            now[ON_CONNECTION],
            sum(v for key, v in increases.items() if key.endswith(COUNT)) if now.get(HZ) else None,
            increases.get(SLOW),
            1e3 / now[HZ] if now.get(HZ) else None,
        ),
    )


def _smb_operation(
    name: str, increases: Mapping[str, int], hz: int | None, seconds: float
) -> OperationRates:
    answers = answers_ms = None
    if hz and name not in _WAITING:
        answers = increases.get(f"{SERVER}.{name}{COUNT}", 0)
        answers_ms = 1e3 / hz * increases.get(f"{SERVER}.{name}{JIFFIES}", 0)
    return OperationRates(
        seconds,
        ops=increases[name + OPS],
        bytes=increases.get(name + BYTES, 0) if name in ("read", "write") else None,
        retransmissions=None, queue_ms=None, rtt_ms=None, exe_ms=None,
        errors=increases.get(name + ERRORS),
        answers=answers,
        answers_ms=answers_ms,
    )  # fmt: skip
