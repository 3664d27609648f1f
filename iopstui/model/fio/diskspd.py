"""DISKSPD command lines as fio jobs: the same load in fio's words, and what can't be said in them.

After DISKSPD's own description of its switches (github.com/microsoft/diskspd, its wiki and
usage text). Nothing is dropped silently: what has no equivalent is named in ``notes``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from iopstui.errors import UsageError
from iopstui.model.sizes import sized

EXAMPLE = 'For example: --diskspd "-c1G -w100 -b8K -F4 -r -o128 -W5 -d30 -Sh testfile.dat"'
_FACTOR = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DRIVE = re.compile(r"[A-Za-z]:")

# switches that change nothing here, or can't be said to fio, and why
_WITHOUT = {
    "C": "fio ends with the measured time: there is no cool-down",
    "D": "statistics come every --interval seconds",
    "L": "latencies are always measured",
    "N": "mapped memory is not flushed",
    "P": "there are no progress dots",
    "R": "the output's form is --format",
    "a": "only Windows has processor groups",
    "e": "only Windows has event tracing",
    "l": "large pages are not used for the buffers",
    "n": "fio's jobs are not bound to CPUs by themselves (see --bind queues)",
    "p": "fio can't start several I/Os at the same offset",
    "v": "there is no further detail to show",
    "x": "completion routines are Windows' own; completions are reaped as libaio does",
    "y": "events are Windows' own",
}


@dataclass(frozen=True, slots=True)
class Translation:
    """``text`` is the fio job; ``targets`` the files named; ``creates`` the size in bytes of
    -c (``None``: the files must exist); ``notes`` what differs, a sentence each."""

    text: str
    targets: tuple[str, ...]
    creates: int | None
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Command:
    """The switches as read so far, with DISKSPD's defaults."""

    block: int = 64 << 10
    writes: int = 0
    duration: int = 10
    warmup: int = 5
    depth: int = 2
    depth_all: int | None = None
    threads: int = 1
    total: int | None = None
    random: bool = False
    align: int | None = None
    stride: int | None = None
    creates: int | None = None
    options: dict[str, str] = field(default_factory=dict)
    sync: bool = False
    rate: tuple[str, int] | None = None
    notes: list[str] = field(default_factory=list)


def translate(command: str) -> Translation:
    """The words after ``diskspd``, in a shell's quoting (no shell is involved). UsageError."""
    words = _words(command)
    switches = [word for word in words if word.startswith("-") and len(word) > 1]
    targets = tuple(word for word in words if word not in switches)
    if not targets:
        raise UsageError("The DISKSPD command names no file to work on.", EXAMPLE)
    for target in targets:
        if target.startswith("#") or _DRIVE.match(target):
            raise UsageError(
                f"{target!r} is a Windows disk.",
                "Put any name in its place and give the disk as TARGET: iopstui run /dev/sdX ...",
            )
    read = _Command()
    # sizes may be given in blocks, so the block size comes first
    for switch in sorted(switches, key=lambda word: not re.match(r"-b\d", word)):
        _read(read, switch)
    return Translation(_job(read, targets), targets, read.creates, tuple(read.notes))


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command.replace("\\", "\\\\"))
    except ValueError as error:
        raise UsageError(f"The DISKSPD command can't be read: {error}.", EXAMPLE) from error
    if words and re.fullmatch(r"(?i)(.*[/\\])?diskspd(\.exe)?", words[0]):
        words = words[1:]
    if any(ord(char) < 32 for word in words for char in word):
        raise UsageError("The DISKSPD command holds control characters.", EXAMPLE)
    return words


def _read(read: _Command, switch: str) -> None:
    letter, value = switch[1], switch[2:]
    if letter == "X":
        raise UsageError(f"{switch}: an XML profile of DISKSPD can't be translated.", EXAMPLE)
    handler = _HANDLERS.get(letter)
    if handler is not None:
        handler(read, switch, value)
    elif letter in _WITHOUT:
        read.notes.append(f"{switch} has no equivalent: {_WITHOUT[letter]}")
    else:
        raise UsageError(f"{switch!r} is not a known switch of DISKSPD.", EXAMPLE)


def _number(switch: str, value: str, low: int = 0, high: int = 1 << 31) -> int:
    if not value.isdecimal() or not low <= int(value) <= high:
        top = f"to {high}" if high < 1 << 20 else "on"
        raise UsageError(f"{switch!r}: a whole number from {low} {top} is needed.", EXAMPLE)
    return int(value)


def _size(read: _Command, switch: str, value: str) -> int:
    match = re.fullmatch(r"(\d+)([kmgtbKMGTB]?)", value)
    if match is None or not int(match[1]):
        raise UsageError(f"{switch!r}: a size such as 8K or 1G is needed.", EXAMPLE)
    unit = match[2].lower()
    return int(match[1]) * (read.block if unit == "b" else _FACTOR[unit])


def _b(read: _Command, switch: str, value: str) -> None:
    read.block = _size(read, switch, value)


def _base(read: _Command, switch: str, value: str) -> None:
    start, colon, _ = value.partition(":")
    if start != "0":
        read.options["offset"] = sized(_size(read, switch, start))
    if colon:
        read.notes.append(f"{switch}: the end of the area is not translated; use -f or --size")


def _c(read: _Command, switch: str, value: str) -> None:
    read.creates = _size(read, switch, value)


def _d(read: _Command, switch: str, value: str) -> None:
    read.duration = _number(switch, value, 1)


def _f(read: _Command, switch: str, value: str) -> None:
    if value and value.strip("rst") == "":
        hints = {"r": "random", "s": "sequential"}
        known = [hints[one] for one in value if one in hints]
        if len(known) == 1:
            read.options["fadvise_hint"] = known[0]
        if "t" in value or len(known) > 1:
            read.notes.append(f"{switch} has no full equivalent: fio gives one hint, r or s")
    else:
        read.options["size"] = sized(_size(read, switch, value))


def _total(read: _Command, switch: str, value: str) -> None:
    read.total = _number(switch, value, 1, 4096)


def _g(read: _Command, switch: str, value: str) -> None:
    per_io = value.endswith("i")
    number = _number(switch, value.removesuffix("i"), 1)
    read.rate = ("rate_iops", number) if per_io else ("rate", number * 1000)


def _h(read: _Command, switch: str, value: str) -> None:
    _cache(read, switch, "h")


def _bursts(read: _Command, switch: str, value: str) -> None:
    read.options["thinktime_blocks"] = str(_number(switch, value, 1))


def _pause(read: _Command, switch: str, value: str) -> None:
    read.options["thinktime"] = f"{_number(switch, value, 1)}ms"


def _priority(read: _Command, switch: str, value: str) -> None:
    level = _number(switch, value, 1, 3)
    if level == 1:
        read.options["prioclass"] = "3"
    elif level == 2:
        read.options.update(prioclass="2", prio="7")


def _o(read: _Command, switch: str, value: str) -> None:
    read.depth = _number(switch, value, 1, 1 << 20)


def _depth_all(read: _Command, switch: str, value: str) -> None:
    read.depth_all = _number(switch, value, 1, 1 << 20)


def _r(read: _Command, switch: str, value: str) -> None:
    if value.startswith("d"):
        read.notes.append(f"{switch} has no equivalent: offsets are spread evenly")
    elif value.startswith("s"):
        read.options["percentage_random"] = str(_number(switch, value[1:], 0, 100))
    elif value:
        read.align = _size(read, switch, value)
    read.random = True


def _s(read: _Command, switch: str, value: str) -> None:
    if value.startswith("i"):
        read.notes.append(
            f"{switch}: fio's jobs share no offset, so each goes through the file by itself"
        )
        value = value[1:]
    if value:
        read.stride = _size(read, switch, value)


def _cache(read: _Command, switch: str, value: str) -> None:
    flags = value or "u"
    if flags.strip("bhmruw"):
        raise UsageError(f"{switch!r}: -S takes b, h, m, r, u and w.", EXAMPLE)
    if {"u", "h"} & set(flags):
        read.options["direct"] = "1"
    if {"w", "h"} & set(flags):
        read.sync = True
    if "m" in flags:
        read.options["ioengine"] = "mmap"
    if "r" in flags:
        read.notes.append(f"{switch}: r (the cache of a remote file system) has no equivalent")


def _t(read: _Command, switch: str, value: str) -> None:
    read.threads = _number(switch, value, 1, 4096)


def _thread_offset(read: _Command, switch: str, value: str) -> None:
    read.options["offset_increment"] = sized(_size(read, switch, value))


def _w(read: _Command, switch: str, value: str) -> None:
    read.writes = _number(switch, value or "0", 0, 100)


def _warmup(read: _Command, switch: str, value: str) -> None:
    read.warmup = _number(switch, value)


def _affinity(read: _Command, switch: str, value: str) -> None:
    if re.fullmatch(r"\d+(,\d+)*", value):
        cpus = [value] if "cpus_allowed" not in read.options else [
            read.options["cpus_allowed"], value
        ]  # fmt: skip
        read.options.update(cpus_allowed=",".join(cpus), cpus_allowed_policy="split")
    else:
        read.notes.append(f"{switch} has no equivalent: {_WITHOUT['a']}")


def _seed(read: _Command, switch: str, value: str) -> None:
    if value:
        read.options["randseed"] = str(_number(switch, value, 0, 1 << 62))
    else:
        read.options["randrepeat"] = "0"


def _buffers(read: _Command, switch: str, value: str) -> None:
    if value == "r":
        read.options["refill_buffers"] = "1"
    elif value:
        read.notes.append(f"{switch} has no equivalent: fio writes random data of its own")
    else:
        read.options["zero_buffers"] = "1"


_HANDLERS: Mapping[str, Callable[[_Command, str, str], None]] = {
    "b": _b, "B": _base, "c": _c, "d": _d, "f": _f, "F": _total, "g": _g, "h": _h,
    "i": _bursts, "j": _pause, "I": _priority, "o": _o, "O": _depth_all, "r": _r, "s": _s,
    "S": _cache, "t": _t, "T": _thread_offset, "w": _w, "W": _warmup, "a": _affinity,
    "z": _seed, "Z": _buffers,
}  # fmt: skip


def _job(read: _Command, targets: Sequence[str]) -> str:
    options = {"ioengine": "libaio", "direct": "0", "bs": sized(read.block), **_pattern(read)}
    options |= read.options
    if read.sync and read.writes:
        options["sync"] = "1"
    if read.warmup:
        options["ramp_time"] = str(read.warmup)
    options |= {"runtime": str(read.duration), "time_based": "1", "group_reporting": "1"}
    if read.creates is not None:
        options.setdefault("size", sized(read.creates))
    if read.align is not None:
        options["blockalign"] = sized(read.align)
    _check(read, options)
    lines = ["[global]", *(f"{name}={value}" for name, value in options.items())]
    if read.total is None:
        # each target has threads of its own
        for number, target in enumerate(targets, 1):
            lines += ["", f"[target{number}]", f"filename={_escaped(target)}",
                      f"numjobs={read.threads}", f"iodepth={read.depth}"]  # fmt: skip
    else:
        # every thread works on all targets
        depth = read.depth_all or read.depth * len(targets)
        lines += ["", "[threads]", f"filename={':'.join(map(_escaped, targets))}",
                  f"numjobs={read.total}", f"iodepth={depth}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _pattern(read: _Command) -> dict[str, str]:
    kind = "rw" if 0 < read.writes < 100 else "write" if read.writes else "read"
    options = {"rw": f"rand{kind}" if read.random else kind}
    if kind == "rw":
        options["rwmixwrite"] = str(read.writes)
    if not read.random and read.stride is not None and read.stride > read.block:
        # fio skips so many bytes after each I/O
        options["rw"] += f":{read.stride - read.block}"
    if read.rate is not None:
        options[read.rate[0]] = str(read.rate[1])
    return options


def _check(read: _Command, options: Mapping[str, str]) -> None:
    if read.rate is not None and options["rw"].endswith("rw"):
        read.notes.append("-g: fio limits reads and writes separately, each to this rate")
    if not read.random and read.stride is not None and read.stride < read.block:
        read.notes.append("-s: a stride below the block size has no equivalent; it is the block")
    if read.sync and not read.writes:
        read.notes.append("write-through changes nothing: the job only reads")
    if options["direct"] == "0" and options["ioengine"] == "libaio":
        read.notes.append(
            "without -Su or -Sh I/O goes through the page cache, where libaio waits for each: the "
            "depth is not reached"
        )
    if read.writes and not {"zero_buffers", "refill_buffers"} & set(options):
        read.notes.append("written data is random here, in DISKSPD the bytes 0 to 255 in turn")
    if read.depth_all is not None and read.total is None:
        read.notes.append("-O is only used with -F")


def _escaped(target: str) -> str:
    return target.replace("\\", "\\\\").replace(":", "\\:")
