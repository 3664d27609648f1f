"""Names of hosts: ``node[01-40]``, ``user@host:port``, ``@group``, ``^FILE``.

Ranges are ClusterShell's and Slurm's, and expanded here, so that a command line means the same
hosts in the same order wherever it is typed. For groups and for sets less other ones (``@db!db3``)
ClusterShell itself is asked (groups.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.fleet.hosts.groups import hosts_of
from iopstui.text import printable

MAX_HOSTS = 10_000
MAX_RANGES = 8
LONGEST_NAME = 300
LONGEST_FILE = 8 << 20
_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15})(?:/([0-9]{1,15}))?)?")
_BRACKETS = re.compile(r"\[[0-9,/-]+\]")
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


def nodes_of(text: str) -> list[Node]:
    """The hosts of a command line in order. UsageError for invalid or repeated names."""
    found: list[Node] = []
    for word in _split_words(text):
        for name in _expanded(word):
            found.append(_node(name))
            if len(found) > MAX_HOSTS:
                raise UsageError(f"There are more than {MAX_HOSTS} hosts.",
                                 "For more, merge groups of hosts first: iopstui merge",
                                 )  # fmt: skip
    if not found:
        raise UsageError("No hosts are given.", "For example: iopstui fleet node[01-04] --job JOB")
    twice, times = Counter(node.name for node in found).most_common(1)[0]
    if times > 1:
        raise UsageError(f"The host {twice} is given twice.", "Give every host once.")
    return found


def _split_words(text: str) -> list[str]:
    """Split into words; text that an operator holds together stays one word."""
    if not _OPERATORS.search(text):
        return split(text)
    if _FILE.search(text):
        raise UsageError(f"{printable(text)!r}: a hosts file cannot be combined with ! & ^ * or ?.")
    return [",".join(text.split())]


def split(text: str) -> list[str]:
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


def _expanded(word: str) -> Iterator[str]:
    if word.startswith("^"):
        yield from _of_file(Path(word[1:]))
    elif word.startswith("@") or _OPERATORS.search(word):
        yield from _of_clustershell(word)
    else:
        yield from expand(word)


def expand(word: str) -> list[str]:
    """Expand a word with ranges: "n[01-03,07]" is n01 n02 n03 n07."""
    if word.count("[") > MAX_RANGES or len(word) > MAX_HOSTS:
        raise UsageError(f"{printable(word[:40])!r} ... is too long, or has too many ranges.")
    match = re.search(r"\[([0-9,/-]+)\]", word)
    if match is None:
        return [word]
    names = []
    rest = expand(word[match.end() :])
    for part in match[1].split(","):
        for number in _numbers(word, part):
            names += [word[: match.start()] + number + after for after in rest]
            if len(names) > MAX_HOSTS:
                raise UsageError(f"{printable(word)!r} names more than {MAX_HOSTS} hosts.")
    return names


def _numbers(word: str, part: str) -> Iterator[str]:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise UsageError(f"{part[:40]!r} in {printable(word[:40])!r} is not a range such as 01-40.")
    first, last, step = match[1], match[2] or match[1], int(match[3] or 1)
    padded = first if int(last) == 0 else first + " " + last
    if len(first) != len(last) and re.search(r"\b0[0-9]", padded):
        raise UsageError(f"{part!r} in {printable(word[:40])!r} has numbers of different lengths.",
                         "Numbers with leading zeros need the same length: 001-100",
                         )  # fmt: skip
    if int(last) < int(first) or step < 1 or int(last) - int(first) > MAX_HOSTS * step:
        raise UsageError(f"{part!r} in {printable(word)!r} is not a range of at most {MAX_HOSTS}.")
    for number in range(int(first), int(last) + 1, step):
        yield f"{number:0{len(first)}d}"


def _of_file(path: Path) -> Iterator[str]:
    try:
        with path.open() as file:
            text = file.read(LONGEST_FILE + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"Cannot read the hosts file {printable(str(path))}: {why}.") from error
    if len(text) > LONGEST_FILE:
        raise UsageError(f"The hosts file {printable(str(path))} is longer than "
                         f"{LONGEST_FILE >> 20} MiB.")  # fmt: skip
    for line in text.splitlines():
        for word in _split_words(line.partition("#")[0]):
            if word.startswith("^"):
                raise UsageError(
                    f"The hosts file {printable(str(path))} refers to another hosts file, which "
                    "is not supported."
                )
            yield from _expanded(word)


def _of_clustershell(text: str) -> list[str]:
    """Whether this needs ClusterShell: a group, or a set minus another."""
    if re.search(r"[\[\]]", _BRACKETS.sub("", text)):
        raise UsageError(f"{printable(text[:LONGEST_NAME])!r} has brackets without ranges.")
    for word in re.split(r"[,!&^]+", _BRACKETS.sub(lambda match: match[0].replace(",", " "), text)):
        # no set that would take all memory gets there
        expand(word.replace(" ", ","))
    return hosts_of(text, expand, MAX_HOSTS)


def _node(name: str) -> Node:
    match = _NODE.fullmatch(name) if len(name) <= LONGEST_NAME else None
    if match is None or not 0 < int(match["port"] or 1) <= 65535:
        raise UsageError(f"{printable(name[:LONGEST_NAME])!r} is not a host name.",
                         "Write hosts as node1, user@node1 or user@node1:2222.")  # fmt: skip
    port = int(match["port"]) if match["port"] else None
    host = match["host"].strip("[]")
    # several ports of one host are several hosts (tunnels)
    return Node(host if port is None else f"{host}:{port}", host, match["user"], port)
