"""RPC counters of NFS mounts from /proc/self/mountstats.

Reading the file asks no server: the kernel prints its own counters, so it never hangs on a mount
whose server is gone (net/sunrpc/stats.c, fs/nfs/super.c, fs/proc_namespace.c).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

_TIMES = ("ops", "transmissions", "timeouts", "sent", "received", "queue_ms", "rtt_ms", "exe_ms",
          "errors")  # fmt: skip
"""Counters of a per-operation line, in order; kernels before 5.3 have no errors."""
LONGEST_NAME = 8 << 10
"""Bytes that a line with two paths has at most."""
_CONNECTION = {"tcp": (7, 8, 11), "rdma": (7, 8, 10), "udp": (4, 5, 8)}
"""Where an xprt line has sends, receives and the sum of the backlog's length, by transport."""


def parse_mountstats(data: bytes, mountpoints: Sequence[str]) -> dict[str, int] | None:
    """The counters of these mounts added up; ``None`` if one of them is not listed as NFS.

    Keys are "OPERATION.NAME" (lower case, e.g. "read.rtt_ms"; operations that were never used are
    left out) and "connection.NUMBER.NAME" for each xprt line (several with nconnect). Mounts of
    one export share their counters, which are counted once.
    """
    found: list[dict[str, int]] = []
    for mountpoint in mountpoints:
        section = _section(data, mountpoint)
        if section is None:
            return None
        counters = dict(_counters(section))
        if counters not in found:
            found.append(counters)
    return _added(found)


def until_found(pieces: Iterable[bytes], mountpoints: Sequence[str]) -> bytes:
    """The beginning of the file with the first section of each of these mounts: a machine may have
    many mounts, and the kernel prints the rest for nothing."""
    missing, found, look = {*map(mounted_on, mountpoints)}, [], b""
    for piece in pieces:
        found.append(piece)
        look += piece
        here = {place for place in missing if place in look}
        missing -= here
        if here:
            # from now on only what is behind the last of them matters
            look = look[max(map(look.rfind, here)) :]
        # where the next section begins the last one ends
        if not missing and b"\ndevice " in look:
            break
        look = look[-LONGEST_NAME:]
    return b"".join(found)


def mounted_on(mountpoint: str) -> bytes:
    """What the first line of its section says."""
    escaped = "".join(f"\\{ord(c):03o}" if c in " \t\n\\" else c for c in mountpoint)
    return b" mounted on %s with fstype nfs" % escaped.encode(errors="surrogateescape")


def _section(data: bytes, mountpoint: str) -> bytes | None:
    """The lines of a mount: of several at one place the last, which hides the others."""
    begin = data.rfind(mounted_on(mountpoint))
    if begin < 0:
        return None
    end = data.find(b"\ndevice ", begin)
    return data[begin:] if end < 0 else data[begin:end]


def _counters(section: bytes) -> Iterator[tuple[str, int]]:
    operations, connections = False, 0
    for line in section.split(b"\n"):
        words = line.split()
        if not words:
            continue
        if words[0] == b"xprt:":
            yield from _connection(words, connections)
            connections += 1
        elif words[0] == b"per-op":
            operations = True
        elif operations and words[1] != b"0":
            name = words[0].rstrip(b":").decode("ascii").lower()
            for key, value in zip(_TIMES, words[1:], strict=False):
                yield f"{name}.{key}", int(value)


def _connection(words: Sequence[bytes], number: int) -> Iterator[tuple[str, int]]:
    places = _CONNECTION.get(words[1].decode("ascii"))
    if places is not None:
        for name, place in zip(("sends", "receives", "backlog"), places, strict=True):
            yield f"connection.{number}.{name}", int(words[place])


def _added(found: Sequence[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    connections = 0
    for counters in found:
        seen = set()
        for key, value in counters.items():
            kind, _, rest = key.partition(".")
            if kind == "connection":
                number, _, name = rest.partition(".")
                seen.add(number)
                key = f"connection.{connections + int(number)}.{name}"
            total[key] = total.get(key, 0) + value
        connections += len(seen)
    return total
