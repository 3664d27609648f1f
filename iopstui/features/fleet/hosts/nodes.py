"""Names of hosts: ``user@host:port``, ``node[01-40]``, ``@group``, ``^FILE``.

Hosts are in the order in which they are named. Sets and groups are ClusterShell's (node_sets.py);
single hosts, separated by commas, need nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.features.fleet.hosts.node_sets import MAX_HOSTS, expand_node_set, has_ranges
from iopstui.text import printable

MAX_NAME = 300
MAX_FILE_BYTES = 8 << 20
# a hosts' file begins with one of them
_OPERATORS = re.compile(r"[!&*?]|(?<=[^\s,])\^")
_FILE = re.compile(r"(?:^|[\s,])\^")
_NODE = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@)?"
    r"(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.%]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class Node:
    """A host to be reached: ``name`` labels its figures, ``user`` and ``port`` are ``None`` where
    ssh decides."""

    name: str
    host: str
    user: str | None = None
    port: int | None = None


def parse_nodes(text: str) -> list[Node]:
    """The hosts of a command line in order. UsageError for invalid or repeated names."""
    nodes: list[Node] = []
    for word in _split_words(text):
        for name in _expand(word):
            nodes.append(_parse_node(name))
            if len(nodes) > MAX_HOSTS:
                raise UsageError(f"There are more than {MAX_HOSTS} hosts.",
                                 "For more, merge groups of hosts first: iopstui merge",
                                 )  # fmt: skip
    if not nodes:
        raise UsageError("No hosts are given.", "For example: iopstui fleet node[01-04] --job JOB")
    repeated, times = Counter(node.name for node in nodes).most_common(1)[0]
    if times > 1:
        raise UsageError(f"The host {repeated} is given twice.", "Give every host once.")
    return nodes


def _split_words(text: str) -> list[str]:
    """Split into words; text that an operator holds together stays one word."""
    if not _OPERATORS.search(text):
        return split_names(text)
    if _FILE.search(text):
        raise UsageError(f"{printable(text)!r}: a hosts file cannot be combined with ! & ^ * or ?.")
    return [",".join(text.split())]


def split_names(text: str) -> list[str]:
    """At commas and blanks that are not in brackets."""
    depth, words = 0, [""]
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if depth == 0 and letter in ", \n\t":
            words.append("")
        else:
            words[-1] += letter
    if depth:
        raise UsageError(f"{printable(text)!r} has an unclosed bracket.")
    return [word for word in words if word]


def _expand(word: str) -> Iterator[str]:
    if word.startswith("^"):
        yield from _read_hosts_file(Path(word[1:]))
    elif word.startswith("@") or _OPERATORS.search(word) or has_ranges(word):
        yield from expand_node_set(word)
    else:
        yield word


def _read_hosts_file(path: Path) -> Iterator[str]:
    try:
        with path.open() as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"Cannot read the hosts file {printable(str(path))}: {reason}.") from error
    if len(text) > MAX_FILE_BYTES:
        raise UsageError(f"The hosts file {printable(str(path))} is longer than "
                         f"{MAX_FILE_BYTES >> 20} MiB.")  # fmt: skip
    for line in text.splitlines():
        for word in _split_words(line.partition("#")[0]):
            if word.startswith("^"):
                raise UsageError(
                    f"The hosts file {printable(str(path))} refers to another hosts file, which "
                    "is not supported."
                )
            yield from _expand(word)


def _parse_node(name: str) -> Node:
    match = _NODE.fullmatch(name) if len(name) <= MAX_NAME else None
    if match is None or not 0 < int(match["port"] or 1) <= 65535:
        raise UsageError(f"{printable(name[:MAX_NAME])!r} is not a host name.",
                         "Write hosts as node1, user@node1 or user@node1:2222.")  # fmt: skip
    port = int(match["port"]) if match["port"] else None
    host = match["host"].strip("[]")
    # several ports of one host are several hosts (tunnels)
    return Node(host if port is None else f"{host}:{port}", host, match["user"], port)
