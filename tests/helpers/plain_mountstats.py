"""A plain reader of /proc/self/mountstats, which parses every line each time. Tests compare the
fast reader with it."""

from __future__ import annotations

from collections.abc import Sequence

OPERATION = ("ops", "transmissions", "timeouts", "sent", "received", "queue_ms", "rtt_ms",
             "exe_ms", "errors")  # fmt: skip
CONNECTION = {"tcp": (7, 8, 11), "rdma": (7, 8, 10), "udp": (4, 5, 8)}


def parse_mountstats(data: bytes, mountpoints: Sequence[str]) -> dict[str, int] | None:
    """The counters of these mounts added up; ``None`` if one of them is not listed as NFS."""
    listed = _mounts(data)
    if any(place not in listed for place in mountpoints):
        return None
    total: dict[str, int] = {}
    servers, connections = [], 0
    for lines in (listed[place] for place in mountpoints):
        options = dict(one.partition("=")[::2] for one in lines[1].split("\t")[2].split(","))
        server = [lines[0].split()[1].partition(":/")[0],
                  *(options.get(name) for name in ("vers", "proto", "port"))]  # fmt: skip
        operations = lines.index("\tper-op statistics")
        for number, line in enumerate(lines):
            words = line.split()
            if words[:1] == ["xprt:"] and server not in servers:
                for name, place in zip(("sends", "receives", "backlog"), CONNECTION[words[1]],
                                       strict=True):  # fmt: skip
                    total[f"connection.{connections}.{name}"] = int(words[place])
                connections += 1
            elif number > operations and words:
                for name, value in zip(OPERATION, words[1:], strict=False):
                    key = f"{words[0][:-1].lower()}.{name}"
                    total[key] = total.get(key, 0) + int(value)
        servers.append(server)
    unused = {key[:-4] for key, value in total.items() if key.endswith(".ops") and not value}
    return {key: value for key, value in total.items() if key.partition(".")[0] not in unused}


def _mounts(data: bytes) -> dict[str, list[str]]:
    """The lines of each NFS mount. Of several mounts at one place, the last one hides the
    others."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in data.decode(errors="surrogateescape").split("\n"):
        if line.startswith("device "):
            lines = []
            words = line.split(" ")
            if words[7] in ("nfs", "nfs4"):
                lines = found[words[4].replace("\\040", " ")] = []
        lines.append(line)
    return found
