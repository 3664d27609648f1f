"""RPC counters of NFS mounts from /proc/self/mountstats.

Reading the file sends nothing to a server: the kernel prints its own counters, so it never hangs if
a server is gone (net/sunrpc/stats.c, fs/nfs/super.c, fs/proc_namespace.c)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from operator import ne

_NAMES = ("ops", "transmissions", "timeouts", "sent", "received", "queue_ms", "rtt_ms", "exe_ms",
          "errors")  # fmt: skip
"""Names of the counters in a per-operation line, in order; kernels before 5.3 have no errors."""
_PLACES = {b"tcp": (7, 8, 11), b"rdma": (7, 8, 10), b"udp": (4, 5, 8)}
"""For each transport, the positions in an xprt line of sends, receives and the sum of the backlog's
length."""
FULL_READ_EVERY = 30
"""Once in this many readings the whole file is read, to find mounts on top of a mount point."""


class NfsCounters:
    """Adds up the counters of NFS mounts, in successive readings of the file.

    Keys are "OPERATION.NAME" (lower case, e.g. "read.rtt_ms"; operations that were never used are
    left out) and "connection.NUMBER.NAME" for each xprt line (several with nconnect). Mounts of one
    server share their connections, which are counted once. The mount points must be of different
    file systems (mounts of one export share all counters).

    Few of a mount's operations are in use at a time, so only lines that differ from the last
    reading are parsed, and only their operations are added up again. Not thread-safe."""

    def __init__(self, mountpoints: Sequence[str]) -> None:
        self._mountpoints = dict.fromkeys(map(_escaped, mountpoints))
        self._readings = 0
        self._hidden = False
        self._reset([])

    def _reset(self, mounts: list[tuple[bytes, bytes, int]]) -> None:
        """Forget all readings; ``mounts`` are as in ``_read_mounts``."""
        self._mounts = mounts
        self._clients = [_connection_key(device, options) for device, options, _ in mounts]
        self._operations: list[list[bytes]] = [[] for _ in mounts]
        # counters of each operation, by the index of the mount
        self._counters: dict[bytes, dict[int, list[int]]] = {}
        self._sums: dict[bytes, list[int]] = {}

    def read(self, chunks: Iterable[bytes]) -> dict[str, int] | None:
        """The counters now; ``None`` if a mount is not listed as NFS. ``chunks`` are the pieces of
        the file."""
        try:
            sections = self._sections(chunks)
            if len(sections) == len(self._mountpoints):
                connections = self._read_mounts([sections[place] for place in self._mountpoints])
                return dict((*_parse_connections(connections), *self._totals()))
        except (ValueError, IndexError):
            pass
        # a mount is gone, or only some were read
        self._reset([])
        return None

    def _sections(self, chunks: Iterable[bytes]) -> dict[bytes, bytes]:
        """The section of each mount point. If several mounts have the same mount point, the last
        one hides the others, so it is used. A machine may have many mounts, so the file is usually
        read only up to the last one needed."""
        read_all = self._hidden or self._readings % FULL_READ_EVERY == 1
        self._readings += 1
        sections: dict[bytes, bytes] = {}
        mounts = 0
        for section in _split(chunks):
            # example: SERVER:/PATH mounted on PLACE with fstype TYPE, blanks escaped
            fields = section.split(b" ", 7)
            if len(fields) < 7 or fields[3] not in self._mountpoints or fields[6][:3] != b"nfs":
                continue
            sections[fields[3]] = section
            mounts += 1
            if not read_all and len(sections) == len(self._mountpoints):
                break
        if read_all:
            self._hidden = mounts > len(sections)
        return sections

    def _read_mounts(self, sections: list[bytes]) -> list[bytes]:
        """Parse the changed lines; return the xprt lines of all clients."""
        lines = [section.split(b"\n") for section in sections]
        mounts = [
            (section_lines[0], section_lines[1], len(section_lines)) for section_lines in lines
        ]
        if mounts != self._mounts:
            # the first reading, or something was mounted with other options
            self._reset(mounts)
        connections: dict[tuple[bytes, ...], list[bytes]] = {}
        changed: dict[bytes, dict[int, list[int]]] = defaultdict(dict)
        for mount, (now, client) in enumerate(zip(lines, self._clients, strict=True)):
            first = now.index(b"\tper-op statistics") + 1
            if client not in connections:
                connections[client] = [line for line in now[:first] if b"\txprt:" in line]
            operations = now[first:]
            last = self._operations[mount] or [b""] * len(operations)
            for line in compress(operations, map(ne, operations, last)):
                fields = line.split()
                if fields[0][-1:] == b":":
                    changed[fields[0]][mount] = list(map(int, fields[1:]))
            self._operations[mount] = operations
        for name, counters in changed.items():
            by_mount = self._counters.setdefault(name, {})
            by_mount.update(counters)
            self._sums[name] = list(map(sum, zip(*by_mount.values(), strict=True)))
        return [line for client_lines in connections.values() for line in client_lines]

    def _totals(self) -> Iterator[tuple[str, int]]:
        for name, sums in self._sums.items():
            if sums[0]:
                operation = name.rstrip(b":").decode("ascii").lower()
                for key, value in zip(_NAMES, sums, strict=False):
                    yield f"{operation}.{key}", value


def _connection_key(device: bytes, options: bytes) -> tuple[bytes, ...]:
    """The key of a mount's connections: mounts with an equal key share them (fs/nfs/client.c)."""
    server = device.partition(b":/")[0]
    fields = options.split(b",")
    return (
        server,
        *(field for field in fields if field.startswith((b"vers=", b"proto=", b"port="))),
    )


def _parse_connections(lines: Iterable[bytes]) -> Iterator[tuple[str, int]]:
    for number, fields in enumerate(map(bytes.split, lines)):
        places = _PLACES.get(fields[1])
        if places is not None:
            for name, place in zip(("sends", "receives", "backlog"), places, strict=True):
                yield f"connection.{number}.{name}", int(fields[place])


def _split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The mounts in the file one by one, each without the first word of its section."""
    rest = b"\n"
    for chunk in chunks:
        *mounts, rest = (rest + chunk).split(b"\ndevice ")
        yield from mounts
    yield rest


def _escaped(mountpoint: str) -> bytes:
    """A mount point as the kernel prints it."""
    text = "".join(f"\\{ord(c):03o}" if c in " \t\n\\" else c for c in mountpoint)
    return text.encode(errors="surrogateescape")
