"""TCP connections below shares and remote disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iopstui import format as f
from iopstui.model.figures.figure import TEXT, Figure, Rows
from iopstui.model.rates import delta, ratio

AT_NS = "at_ns"
"""When the connections were read."""
SOURCE = "tcp"
"""The name of these counters in a sample (KernelSample.more)."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to ``server`` ("10.9.0.2:2049") from ``local_port``, for ``kind`` ("NFS",
    "NVMe/TCP" ...). The RTT, its mean deviation and its minimum so far are in ms. In the interval,
    ``retrans`` of ``segments`` were sent again; rates are bytes per second. At the interval's end:
    the bytes in the queues, ``unsent`` of them not sent yet, the segments that are not acknowledged
    (``unacked``), and how many of these are allowed (``cwnd``). ``busy`` is the percentage of the
    interval with data under way; the other percentages are the time that the server's window or the
    send buffer held it up. ``None``: not known, or the connection is new."""

    server: str
    local_port: int
    kind: str
    seconds: float
    rtt: float | None
    rttvar: float | None
    min_rtt: float | None
    retrans: int | None
    segments: int | None
    sent_s: float | None
    received_s: float | None
    send_queue: int
    receive_queue: int
    unsent: int | None
    unacked: int | None
    cwnd: int | None
    busy: float | None
    rwnd_limited: float | None
    sndbuf_limited: float | None

    retrans_percent = Figure("retrans%", "%", "segments sent again per 100 sent", "retrans",
                             "segments", per=0.01)  # fmt: skip


CONNECTION: Rows = (
    Figure("server", "", "address and port that the target's I/O goes to", kind=TEXT),
    Figure("kind", "", "what for: NFS, SMB, NVMe/TCP or iSCSI", kind=TEXT),
    Figure("local_port", "", "port of this machine"),
    Figure("rtt", "ms", "round-trip time of packets, smoothed by the kernel", width=7,
           form=f.milliseconds),
    Figure("rttvar", "ms", "mean deviation of the round-trip time"),
    Figure("min_rtt", "ms", "shortest round-trip time lately", width=7, form=f.milliseconds,
           rank=3),
    Figure("retrans", "", "segments sent again in this interval", width=7, form=f.or_dash),
    Connection.retrans_percent,
    Figure("sent", "B/s", "bytes sent", "sent_s", width=9, form=f.mib),
    Figure("received", "B/s", "bytes received", "received_s", width=9, form=f.mib),
    Figure("send_queue", "B", "bytes not acknowledged yet, at the interval's end", width=10,
           form=f.size),
    Figure("receive_queue", "B", "bytes received and not read yet"),
    Figure("unsent", "B", "bytes of the send queue that were not sent yet"),
    Figure("unacked", "", "segments under way"),
    Figure("cwnd", "", "segments that may be under way (congestion window)", width=5, rank=2),
    Figure("busy", "%", "share of the interval with data under way"),
    Figure("rwnd_limited", "%", "share of the interval in which the server's receive window "
                                "stopped the sending", width=7, rank=1),
    Figure("sndbuf_limited", "%", "share of the interval in which this machine's send buffer "
                                  "stopped the sending"),
)  # fmt: skip


def counter_name(counter: str, local_port: int, server: str, kind: str) -> str:
    return f"{counter} {local_port} {server} {kind}"


def connections(
    now: Mapping[str, int] | None, before: Mapping[str, int] | None, seconds: float | None
) -> tuple[Connection, ...] | None:
    """All connections at the end of an interval; ``None`` if they were not read twice. ``seconds``
    is the time between the readings; it is used if they don't contain their times (AT_NS)."""
    if now is None or before is None or not seconds:
        return None
    began, ended = before.get(AT_NS), now.get(AT_NS)
    if began is not None and ended is not None and ended > began:
        seconds = (ended - began) / 1e9
    names = dict.fromkeys(name.partition(" ")[2] for name in now if name != AT_NS)
    return tuple(_connection(name, now, before, seconds) for name in names)


def _connection(
    name: str, now: Mapping[str, int], before: Mapping[str, int], seconds: float
) -> Connection:
    def grown(counter: str) -> int | None:
        return delta(now.get(f"{counter} {name}"), before.get(f"{counter} {name}"))

    def share(counter: str) -> float | None:
        part = ratio(grown(counter), seconds * 1e4)
        return None if part is None else min(100.0, part)

    def ms(counter: str) -> float | None:
        value = now.get(f"{counter} {name}")
        return None if value is None else value / 1e3

    port, server, kind = name.split(" ", 2)
    return Connection(
        server, int(port), kind, seconds,
        ms("rtt_us"), ms("rttvar_us"), ms("min_rtt_us"),
        grown("retrans"), grown("segments"),
        ratio(grown("sent"), seconds), ratio(grown("received"), seconds),
        now.get(f"send_queue {name}", 0), now.get(f"receive_queue {name}", 0),
        now.get(f"unsent {name}"), now.get(f"unacked {name}"), now.get(f"cwnd {name}"),
        share("busy_us"), share("rwnd_limited_us"), share("sndbuf_limited_us"),
    )  # fmt: skip
