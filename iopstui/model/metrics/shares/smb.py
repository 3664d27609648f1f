"""Figures of the target's SMB shares in one interval, from the SMB client's counters.

The kernel counts an operation of a share when it is sent, its bytes when the answer is there. Times
it has, if built with CONFIG_CIFS_STATS2, for each command of a connection, which all shares of one
server and user have in common, in steps of a jiffy.
"""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.model.metrics.shares.share import OperationRates, Share, SmbClient
from iopstui.model.rates import delta

SOURCE = "smb"
"""The name of these counters in a sample (KernelSample.more)."""
OPS, ERRORS, BYTES, COUNT, JIFFIES = ".ops", ".errors", ".bytes", ".count", ".jiffies"
SMBS, IN_FLIGHT, RECONNECTS, DISCONNECTED = "smbs", "in_flight", "reconnects", "disconnected"
SESSIONS = "sessions"
SINCE = "since"
"""Since when the shares are counted, seconds since 1970 (newer kernels)."""
SERVER = "server"
HZ, SLOW, ON_CONNECTION = f"{SERVER}.hz", f"{SERVER}.slow", f"{SERVER}.shares"
"""Of the connections: jiffies per second, slow answers, shares that use them."""
_STATES = frozenset({SESSIONS, IN_FLIGHT, DISCONNECTED, SINCE, HZ, ON_CONNECTION})
"""What is no counter."""
_WAITING = frozenset({"change_notify", "lock", "oplock_break"})
"""Operations that are answered when another client does something: their time is no server's."""


def smb_rates(
    now: Mapping[str, int] | None, before: Mapping[str, int] | None, seconds: float | None
) -> Share | None:
    """The interval between two readings; ``None`` where there is none, or counters began again (a
    new mount, or somebody has written to /proc/fs/cifs/Stats)."""
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
    rates = {name: _operation(name, increases, now.get(HZ), seconds) for name in names}
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


def _operation(
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
