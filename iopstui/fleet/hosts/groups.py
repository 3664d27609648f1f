"""Host groups and set operations in ClusterShell syntax.

Its package is asked where it is installed beside us (``iopstui[fleet]``), else its command
``nodeset``, wherever that comes from. Its own configuration says what the groups are.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable
from itertools import islice

from iopstui.errors import Missing, UsageError
from iopstui.text import printable

HINT = ("Install it (pip install 'iopstui[fleet]', or apt install clustershell), or name the "
        "hosts.")  # fmt: skip
GROUP_TIMEOUT_S = 30
_GROUP = re.compile(r"(?:(?<=[,!&^])|^)@(?:[^\s,!&^\[\]]|\[[^\]]*\])*")
# ClusterShell puts a group's name into a line for the shell
_NAME = re.compile(r"@[A-Za-z0-9_.:{}*/+%-]*")

Ask = Callable[[str], Iterable[str]]


def hosts_of(text: str, expand: Callable[[str], list[str]], most: int) -> list[str]:
    """The hosts of a set in ClusterShell's order, ``most`` and one at most. UsageError if it is
    none, or if one of its groups (of which ``expand`` makes single names) has no host: a group that
    nobody knows is empty for ClusterShell. Missing where ClusterShell can't be asked."""
    ask = _package() or _program
    for match in _GROUP.findall(text):
        for group in expand(match):
            if _NAME.fullmatch(group) is None:
                raise UsageError(f"{printable(group)} is not the name of a group.")
            if not [*islice(ask(group), 1)]:
                raise UsageError(f"ClusterShell knows no host in the group {printable(group)}.",
                                 "To list its groups: nodeset --list-all")  # fmt: skip
    found = [*islice(ask(text), most + 1)]
    if not found:
        raise UsageError(f"There is no host in {printable(text)!r}.",
                         f"To list them: nodeset -e '{printable(text)}'")  # fmt: skip
    return found


def _package() -> Ask | None:
    try:
        from ClusterShell.NodeSet import NodeSet
    except ImportError:
        return None

    def ask(text: str) -> Iterable[str]:
        try:
            found: Iterable[str] = NodeSet(text)
        except Exception as error:  # it has many, and those of whatever its groups come from
            raise _refused(text, str(error)) from error
        return found

    return ask


def _program(text: str) -> Iterable[str]:
    try:
        done = subprocess.run(["nodeset", "-e", "--", text], capture_output=True, text=True,
                              timeout=GROUP_TIMEOUT_S, check=False)  # fmt: skip
    except FileNotFoundError as error:
        raise Missing(f"{printable(text)} is for ClusterShell, which is not installed here.",
                      HINT) from error  # fmt: skip
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise Missing(f"Cannot run ClusterShell's command nodeset: {error}.", HINT) from error
    if done.returncode:
        raise _refused(text, done.stderr)
    return done.stdout.split()


def _refused(text: str, why: str) -> UsageError:
    return UsageError(f"ClusterShell cannot expand {printable(text)}: {printable(why.strip())}")
