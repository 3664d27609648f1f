"""Names of hosts: ``user@host:port``, ``node[01-40]``, ``@group``, ``^FILE``.

Hosts stay in the order in which they are named. ClusterShell expands sets and groups; it is not
needed for single hosts, separated by commas."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from iopstui.errors import Missing, NoFile, UsageError
from iopstui.text import printable

MAX_NAME = 300
MAX_FILE_BYTES = 8 << 20
# a ^ at the beginning of a word means a file with hosts; elsewhere it is an operator
_OPERATORS = re.compile(r"[!&*?]|(?<=[^\s,])\^")
_FILE = re.compile(r"(?:^|[\s,])\^")
_NODE = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@)?"
    r"(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.%]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class Node:
    """A host: ``name`` labels its figures; ``user`` and ``port`` are ``None`` if ssh decides."""

    name: str
    host: str
    user: str | None = None
    port: int | None = None


def parse_nodes(text: str) -> list[Node]:
    """The hosts of a command line, in order. Raises UsageError for invalid or repeated names."""
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
    """Split into words. A text with operators stays one word."""
    if not _OPERATORS.search(text):
        return split_names(text)
    if _FILE.search(text):
        raise UsageError(f"{printable(text)!r}: a hosts file cannot be combined with ! & ^ * or ?.")
    return [",".join(text.split())]


def split_names(text: str) -> list[str]:
    """Split at commas and blanks that are not in brackets."""
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
    except FileNotFoundError as error:
        raise NoFile(printable(str(path))) from error
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
    # different ports of one host count as different hosts (tunnels)
    return Node(host if port is None else f"{host}:{port}", host, match["user"], port)


# Expand node sets and groups in ClusterShell's syntax: node[01-40], @db!db3, n[1-9]&@rack1.
#
# Uses its Python package if it is installed beside us (``iopstui[fleet]``), else its command
# ``nodeset``. Groups come from its own configuration. Without either, Slurm's ``scontrol`` expands
# sets that have no groups and no operators.


MAX_HOSTS = 10_000
MAX_RANGES = 8
HINT = ("Install it (pip install 'iopstui[fleet]', or apt install clustershell), or name the "
        "hosts one by one: node1,node2")  # fmt: skip
ANSWER_TIMEOUT_S = 30
_GROUP = re.compile(r"(?:(?<=[,!&^])|^)@(?:[^\s,!&^\[\]]|\[[^\]]*\])*")
# only these characters: ClusterShell puts a group's name into a command line for the shell
_NAME = re.compile(r"@[A-Za-z0-9_.:{}*/+%-]*")
_RANGES = re.compile(r"\[([0-9,/-]+)\]")
_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15})(?:/([0-9]{1,15}))?)?")
_OPERATOR = re.compile(r"[@!&^*?]")
_SEPARATORS = re.compile(r"[,!&^\s](?![^\[]*\])")

Expander = Callable[[str], Iterable[str]]


def has_ranges(word: str) -> bool:
    """Whether the text has ranges such as [01-40]."""
    return _RANGES.search(word) is not None


def expand_node_set(text: str) -> list[str]:
    """The hosts of a set in ClusterShell's order. Raises UsageError if the text is not a set, has
    too many hosts, or one of its groups has no host (for ClusterShell an unknown group is empty).
    Raises Missing if no program can expand it."""
    _check_size(text)
    expand = _package_expander() or _expand_by_program
    for match in _GROUP.findall(text):
        for group in _group_names(match, expand):
            if _NAME.fullmatch(group) is None:
                raise UsageError(f"{printable(group)} is not the name of a group.")
            if not [*islice(expand(group), 1)]:
                raise UsageError(f"ClusterShell knows no host in the group {printable(group)}.",
                                 "To list its groups: nodeset --list-all")  # fmt: skip
    hosts = [*islice(expand(text), MAX_HOSTS + 1)]
    if not hosts:
        raise UsageError(f"There is no host in {printable(text)!r}.",
                         f"To list them: nodeset -e '{printable(text)}'")  # fmt: skip
    return hosts


def _group_names(group: str, expand: Expander) -> list[str]:
    """The single groups that a group with a range means, such as @rack[1-3]."""
    return [f"@{name}" for name in expand(group[1:])] if has_ranges(group) else [group]


def _check_size(text: str) -> None:
    """Raise UsageError for a set so large that its expansion could fill the memory."""
    if re.search(r"[\[\]]", _RANGES.sub("", text)):
        raise UsageError(f"{printable(text[:40])!r} has brackets without a range such as [01-40].")
    names = 0
    for word in _SEPARATORS.split(text):
        brackets = _RANGES.findall(word)
        if len(brackets) > MAX_RANGES:
            raise UsageError(f"{printable(word[:40])!r} ... has too many ranges.")
        word_names = 1
        for ranges in brackets:
            word_names *= sum(_range_size(word, part) for part in ranges.split(","))
            names += word_names * (ranges is brackets[-1])
        if names > MAX_HOSTS or word_names > MAX_HOSTS:
            raise UsageError(f"{printable(text[:40])!r} names more than {MAX_HOSTS} hosts.")


def _range_size(word: str, part: str) -> int:
    match = _RANGE.fullmatch(part)
    step = int(match[3] or 1) if match is not None else 0
    if match is None or step < 1:
        raise UsageError(f"{part[:40]!r} in {printable(word[:40])!r} is not a range such as 01-40.")
    return max(0, int(match[2] or match[1]) - int(match[1])) // step + 1


def _package_expander() -> Expander | None:
    try:
        from ClusterShell.NodeSet import NodeSet
    except ImportError:
        return None

    def ask(text: str) -> Iterable[str]:
        try:
            hosts: Iterable[str] = NodeSet(text)
        except Exception as error:  # ClusterShell or its groups may raise any exception
            raise _node_set_error(text, str(error)) from error
        return hosts

    return ask


def _expand_by_program(text: str) -> Iterable[str]:
    commands = [["nodeset", "-e", "--", text]]
    if _OPERATOR.search(text) is None:
        commands.append(["scontrol", "show", "hostnames", text])
    for command in commands:
        result = _run(command)
        if result is None:
            continue
        if result.returncode:
            raise _node_set_error(text, result.stderr)
        return result.stdout.split()
    raise Missing(
        f"The node set {printable(text)} needs ClusterShell, which is not installed here.", HINT
    )


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S,
                              check=False)  # fmt: skip
    except FileNotFoundError:
        return None
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise Missing(f"Cannot run {command[0]}: {error}.", HINT) from error


def _node_set_error(text: str, reason: str) -> UsageError:
    return UsageError(
        f"{printable(text[:80])!r} is not a node set: {printable(reason.strip()[:200])}."
    )
