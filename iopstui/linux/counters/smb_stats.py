"""Counters of SMB mounts from /proc/fs/cifs/Stats.

Reading the file sends nothing to a server: the kernel prints its own counters under spinlocks, so
it never hangs on a server that is gone (fs/smb/client/cifs_debug.c, smb2ops.c, smb1ops.c). The file
has a part for each connection, followed by the shares on it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone

from iopstui.linux.kernel_files import Roots, open_files
from iopstui.model.metrics.shares import (
    COUNT,
    DISCONNECTED,
    ERRORS,
    HZ,
    IN_FLIGHT,
    JIFFIES,
    ON_CONNECTION,
    OPS,
    RECONNECTS,
    SERVER,
    SESSIONS,
    SINCE,
    SLOW,
    SMBS,
)

FILE = "fs/cifs/Stats"
COMMANDS = (
    "negotiate", "session_setup", "logoff", "tree_connect", "tree_disconnect", "create", "close",
    "flush", "read", "write", "lock", "ioctl", "cancel", "echo", "query_directory",
    "change_notify", "query_info", "set_info", "oplock_break",
)  # fmt: skip
"""Commands of SMB 2 and 3 by number."""
_CONNECTION = b"\nMax requests in flight: "
"""The text with which the part of a connection begins."""
_SHARE = re.compile(
    rb"^\d+\) (\\\\[^\t\n]*?)(\tDISCONNECTED ?)?\nSMBs: (-?\d+)(?: since (.*) UTC)?", re.MULTILINE
)
_IN_FLIGHT = re.compile(rb"^Operations \(MIDs\): (\d+)", re.MULTILINE)
_SESSIONS = re.compile(rb"^CIFS Session: (\d+)", re.MULTILINE)
_RECONNECTS = re.compile(rb"^(\d+) session (\d+) share reconnects", re.MULTILINE)
_HZ = re.compile(rb"jiffies \((\d+) per second\)")
_TIMES = re.compile(rb"^  (\d+)\t+(-?\d+)\t+(\d+)\t", re.MULTILINE)
_SLOW = re.compile(rb"^  (\d+) slow responses from ", re.MULTILINE)
_BYTES = re.compile(rb"^Bytes read: (\d+)  Bytes written: (\d+)", re.MULTILINE)
_OPERATION = re.compile(rb"^(\w+): (-?\d+) (?:total|sent) (-?\d+) failed", re.MULTILINE)
_WITH_BYTES = re.compile(rb"^(Read|Write)s: +(-?\d+) Bytes:? (\d+)", re.MULTILINE)
_SMB1 = re.compile(rb"(\w[\w ]*?):? +(-?\d+)(?=\s|$)")
_NAMES = {"closes": "close", "flushes": "flush", "query_directories": "query_directory",
          "change_notifies": "change_notify", "oplocks_breaks": "oplock_break"}  # fmt: skip


class SmbStats:
    """Reads the counters of these shares, named as mounted ("//server/share")."""

    def __init__(self, shares: Sequence[str], roots: Roots) -> None:
        self._shares = tuple(shares)
        self._files = open_files([roots.proc / FILE])

    def read(self) -> dict[str, int] | None:
        """The counters now; ``None`` while one of the shares is not mounted."""
        for file in self._files:
            with contextlib.suppress(OSError, ValueError):
                return parse_smb_stats(file.read(), self._shares)
        return None

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._files = []


def parse_smb_stats(data: bytes, shares: Sequence[str]) -> dict[str, int] | None:
    """The counters of these shares added up (keys: model/metrics/shares.py); ``None`` if one of
    them is not listed, or if the kernel does not count its operations (before Linux 4.20, those of
    SMB 2 and 3). Operations that were never used are left out."""
    names = {tree_name(share) for share in shares}
    head, *connections = data.split(_CONNECTION)
    total: dict[str, int] = dict(_global_counters(head))
    listed: set[bytes] = set()
    # kernels before 5.0 do not separate connections
    for connection in connections or [data]:
        lower = connection.lower()
        # a machine may have many shares, and parsing each of them takes long
        if not any(b") %s" % name in lower for name in names):
            continue
        matches = [(match, part) for match, part in _shares(connection) if _key(match[1]) in names]
        listed.update(_key(match[1]) for match, _ in matches)
        for match, part in matches:
            counters = _share_counters(match, part)
            if counters[SMBS] and not any(key.endswith(OPS) for key in counters):
                return None
            _add(total, counters)
        if matches:
            _add(total, _connection_counters(connection))
    return total if listed == names and names else None


def why_incomplete(share: str, roots: Roots) -> str:
    """What cannot be measured on a mounted share, in words; "" if everything can."""
    try:
        data = (roots.proc / FILE).read_bytes()
    except OSError as error:
        return f"/proc/{FILE} cannot be read ({error.strerror}): no figures"
    if parse_smb_stats(data, [share]) is None:
        return f"/proc/{FILE} does not list the share: no figures"
    return "" if _HZ.search(data) else "no latencies (kernel without CONFIG_CIFS_STATS2)"


def tree_name(share: str) -> bytes:
    r"""The kernel's name of a mounted share, in lower case: "//Server/data/sub" is
    "\\server\data"."""
    server, _, path = share.replace("\\", "/").lstrip("/").partition("/")
    name = f"\\\\{server}\\{path.partition('/')[0]}"
    return _key(name.encode(errors="surrogateescape"))


def _key(name: bytes) -> bytes:
    return name.lower()


def _shares(connection: bytes) -> Iterator[tuple[re.Match[bytes], bytes]]:
    matches = list(_SHARE.finditer(connection))
    ends = (*(match.start() for match in matches[1:]), len(connection))
    # a connection may have no share
    return (
        (match, connection[match.end() : end]) for match, end in zip(matches, ends, strict=False)
    )


def _global_counters(head: bytes) -> Iterator[tuple[str, int]]:
    """The kernel's counters of all SMB mounts together."""
    for key, pattern in ((SESSIONS, _SESSIONS), (IN_FLIGHT, _IN_FLIGHT), (RECONNECTS, _RECONNECTS)):
        match = pattern.search(head)
        if match:
            yield key, int(match[1])


def _share_counters(match: re.Match[bytes], part: bytes) -> dict[str, int]:
    counters = {SMBS: _count(match[3]), DISCONNECTED: int(match[2] is not None)}
    if match[4] is not None:
        counters[SINCE] = _epoch_s(match[4].decode("ascii"))
    for name, count, failed in _OPERATION.findall(part):
        operation = _operation_name(name.decode("ascii"))
        counters[operation + OPS], counters[operation + ERRORS] = _count(count), _count(failed)
    sizes = _BYTES.search(part)
    if sizes:
        counters |= {"read.bytes": int(sizes[1]), "write.bytes": int(sizes[2])}
    else:
        counters |= dict(_smb1_counters(part))
    unused = {
        key.removesuffix(OPS) for key, value in counters.items() if key.endswith(OPS) and not value
    }
    return {key: value for key, value in counters.items() if key.partition(".")[0] not in unused}


def _smb1_counters(part: bytes) -> Iterator[tuple[str, int]]:
    """The counters of SMB 1, which counts no failures."""
    for name, count, size in _WITH_BYTES.findall(part):
        operation = name.decode("ascii").lower()
        yield operation + OPS, _count(count)
        yield f"{operation}.bytes", int(size)
    for name, count in _SMB1.findall(_WITH_BYTES.sub(b"", part)):
        yield _operation_name(name.decode("ascii")) + OPS, _count(count)


def _connection_counters(connection: bytes) -> dict[str, int]:
    """The times of all commands on a connection (CONFIG_CIFS_STATS2), for all of its shares
    together."""
    counters = {ON_CONNECTION: len(_SHARE.findall(connection))}
    hz = _HZ.search(connection)
    if hz is None:
        return counters
    counters |= {HZ: int(hz[1]), SLOW: sum(map(int, _SLOW.findall(connection)))}
    for number, count, jiffies in _TIMES.findall(connection):
        if int(number) < len(COMMANDS) and int(count):
            name = f"{SERVER}.{COMMANDS[int(number)]}"
            counters |= {name + COUNT: _count(count), name + JIFFIES: int(jiffies)}
    return counters


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for key, value in more.items():
        before = total.get(key, 0)
        total[key] = max(before, value) if key in (HZ, SINCE) else before + value


def _count(text: bytes) -> int:
    """Parse a count. The kernel has 32 bits, and prints the upper half as negative numbers."""
    return int(text) % (1 << 32)


def _operation_name(text: str) -> str:
    """Convert a name of the kernel: "QueryInfos" is "query_info"."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text.strip()).replace(" ", "_").lower()
    return _NAMES.get(name, name.removesuffix("s"))


def _epoch_s(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp())
