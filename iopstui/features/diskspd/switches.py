"""Parse the switches of a DISKSPD command line as DISKSPD does.

It follows DISKSPD's source (github.com/microsoft/diskspd, CmdLineParser.cpp and Profile::Validate
in Common.cpp, 2.2): what DISKSPD refuses is refused here, too, with the reason."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from iopstui.errors import UsageError
from iopstui.model.sizes import FACTORS

EXAMPLE = 'For example: --diskspd "-c1G -w100 -b8K -F4 -r -o128 -W5 -d30 -Sh testfile.dat"'

MAX_CPU = 255
MAX_NUMBER = 1 << 31
MAX_BLOCK = (1 << 32) - 1
# a word with a leading slash counts as a switch only if it cannot be a path
_SLASHED = re.compile(
    r"/(?:[bcBfTrs]\d[\dkmgtbKMGTB:]*|[dWCoOtFwijIPDg]\d+i?|S[bhmruw]*|rs\d+|a[g\d,]*|[hlLnpxv]|z\d*"
    r"|Z[r\d]?\w*|R\w+|rd\w+[\d:/\w]*)"
)

# switches without an effect here, or without an equivalent in fio, and why
NOT_TRANSLATED = {
    "C": "fio ends with the measured time: there is no cool-down",
    "D": "statistics come every --interval seconds",
    "L": "latencies are always measured",
    "N": "mapped memory is not flushed",
    "P": "there are no progress dots",
    "R": "the output's form is --format",
    "e": "only Windows has event tracing",
    "l": "large pages are not used for the buffers",
    "p": "fio can't start several I/Os at the same offset",
    "v": "there is no further detail to show",
    "x": "completion routines are Windows' own; completions are reaped as libaio does",
    "y": "events are Windows' own",
    ":": "experimental flags are DISKSPD's own",
}


@dataclass(slots=True)
class DiskspdCommand:
    """The switches parsed so far, with DISKSPD's defaults. Sizes are in bytes. ``distribution`` has
    pairs: a percentage of the I/O, and the part of the target (a percentage, or bytes) that it goes
    to."""

    block: int = 64 << 10
    writes: int = 0
    duration: int = 10
    warmup: int = 5
    depth: int = 2
    depth_all: int | None = None
    threads: int = 1
    total_threads: int | None = None
    random: int = 0
    align: int | None = None
    stride: int | None = None
    interlocked: bool = False
    parallel: bool = False
    separation: int | None = None
    distribution: tuple[str, list[tuple[int, int]]] | None = None
    file_size: int | None = None
    base: int | None = None
    end: int | None = None
    burst: int | None = None
    pause: int | None = None
    cache: str = ""
    write_through: bool = False
    mapped: bool = False
    flush: bool = False
    routines: bool = False
    cpus: list[int] = field(default_factory=list)
    unbound: bool = False
    rate: tuple[str, int] | None = None
    buffer: int | None = None
    options: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_command(command: str) -> tuple[DiskspdCommand, tuple[str, ...]]:
    """Parse the words after ``diskspd`` into switches and targets. Raises UsageError."""
    words = _split_command(command)
    switches = [word for word in words if _is_switch(word)]
    targets = tuple(word for word in words if word not in switches)
    first = next((n for n, word in enumerate(words) if word in targets), len(words))
    late = [word for word in words[first:] if word in switches]
    if late:
        raise UsageError(f"{late[0]!r} comes after a target: in DISKSPD all switches come before.",
                         EXAMPLE)  # fmt: skip
    parsed = DiskspdCommand()
    # the block size first, because other sizes may be given in blocks
    for switch in sorted(switches, key=lambda word: not re.match(r"[-/]b\d", word)):
        _apply_switch(parsed, switch)
    return parsed, targets


def _is_switch(word: str) -> bool:
    return len(word) > 1 and (word[0] == "-" or _SLASHED.fullmatch(word) is not None)


def _split_command(command: str) -> list[str]:
    try:
        words = shlex.split(command.replace("\\", "\\\\"))
    except ValueError as error:
        raise UsageError(f"The DISKSPD command can't be read: {error}.", EXAMPLE) from error
    if words and re.fullmatch(r"(?i)(.*[/\\])?diskspd(\.exe)?", words[0]):
        words = words[1:]
    if any(ord(char) < 32 for word in words for char in word):
        raise UsageError("The DISKSPD command contains control characters.", EXAMPLE)
    return words


def _apply_switch(command: DiskspdCommand, switch: str) -> None:
    letter, value = switch[1], switch[2:]
    refused = _REFUSED.get(letter) or _REFUSED.get(switch[1:3])
    if refused is not None:
        raise UsageError(f"{switch}: {refused}", EXAMPLE)
    if letter in _NUMBERS:
        name, low, high = _NUMBERS[letter]
        setattr(command, name, _number(switch, value, low, high))
    elif letter in _SIZES:
        setattr(command, _SIZES[letter], _size(command, switch, value))
    elif letter in _FLAGS:
        setattr(command, _FLAGS[letter], True)
    elif letter in _HANDLERS:
        _HANDLERS[letter](command, switch, value)
    elif letter not in NOT_TRANSLATED:
        raise UsageError(f"{switch!r} is not a known switch of DISKSPD.", EXAMPLE)
    if letter in NOT_TRANSLATED:
        command.notes.append(f"{switch} has no equivalent: {NOT_TRANSLATED[letter]}")


_REFUSED = {
    "X": "an XML profile of DISKSPD can't be translated.",
    "?": "DISKSPD shows its help, and runs nothing.",
    "Rp": "DISKSPD prints the profile, and runs nothing.",
    "ye": "DISKSPD sets an event, and runs nothing.",
}


def invalid_switch(switch: str, why: str) -> UsageError:
    """The error for a switch that DISKSPD itself refuses."""
    return UsageError(f"{switch!r}: {why}", EXAMPLE)


def _number(switch: str, value: str, low: int = 0, high: int = MAX_NUMBER) -> int:
    if not value.isdecimal() or not low <= int(value) <= high:
        top = f"to {high}" if high < 1 << 20 else "on"
        raise UsageError(f"{switch!r}: a whole number from {low} {top} is needed.", EXAMPLE)
    return int(value)


def _size(command: DiskspdCommand, switch: str, value: str, low: int = 1) -> int:
    match = re.fullmatch(r"(\d+)([kmgtbKMGTB]?)", value)
    if match is None or int(match[1]) < low:
        raise UsageError(f"{switch!r}: a size such as 8K or 1G is needed.", EXAMPLE)
    unit = match[2].lower()
    return int(match[1]) * (command.block if unit == "b" else FACTORS[unit])


def _block_size(command: DiskspdCommand, switch: str, value: str) -> None:
    command.block = _size(command, switch, value)
    if command.block > MAX_BLOCK:
        raise invalid_switch(switch, "a block must be smaller than 4 GiB.")


def _base(command: DiskspdCommand, switch: str, value: str) -> None:
    if command.base is not None:
        raise invalid_switch(switch, "the base (-B) can be given only once.")
    start, colon, length = value.partition(":")
    command.base = _size(command, switch, start, low=0)
    if colon:
        _ends(command, switch, command.base + _size(command, switch, length))


def _ends(command: DiskspdCommand, switch: str, end: int) -> None:
    if command.end is not None:
        raise invalid_switch(
            switch, "the end of the area (-Bbase:length or -f) can be given only once."
        )
    command.end = end


def _file_range(command: DiskspdCommand, switch: str, value: str) -> None:
    if not value or value.strip("rst"):
        _ends(command, switch, _size(command, switch, value))
        return
    hints = {"r": "random", "s": "sequential"}
    chosen = [hints[letter] for letter in value if letter in hints]
    if len(chosen) == 1:
        command.options["fadvise_hint"] = chosen[0]
    if "t" in value or len(chosen) > 1:
        command.notes.append(f"{switch} has no full equivalent: fio gives one hint, r or s")


def _rate_limit(command: DiskspdCommand, switch: str, value: str) -> None:
    per_io = value.endswith("i")
    number = _number(switch, value.removesuffix("i"), 1)
    command.rate = ("rate_iops", number) if per_io else ("rate", number * 1000)


def _no_cache(command: DiskspdCommand, switch: str, value: str) -> None:
    if command.cache or command.write_through:
        raise invalid_switch(switch, "it conflicts with an earlier -S.")
    command.cache, command.write_through = "u", True


def _priority(command: DiskspdCommand, switch: str, value: str) -> None:
    level = _number(switch, value, 1, 3)
    if level == 1:
        command.options["prioclass"] = "3"
    elif level == 2:
        command.options.update(prioclass="2", prio="7")


def _random_io(command: DiskspdCommand, switch: str, value: str) -> None:
    if value.startswith("d"):
        command.distribution = _distribution(command, switch, value[1:])
        return
    if value.startswith("s"):
        if 0 < command.random < 100:
            raise invalid_switch(switch, "the share of random I/O (-rs) can be given only once.")
        if command.stride is not None:
            raise invalid_switch(switch, "-r says how random I/O is aligned, not -s.")
        command.random = _number(switch, value[1:], 1, 100)
        return
    if command.stride is not None:
        raise invalid_switch(switch, "sequential (-s) and random I/O (-r) cannot be combined.")
    if command.align is not None:
        raise invalid_switch(switch, "random I/O (-r) can be given only once.")
    command.align = _size(command, switch, value) if value else command.block
    command.random = command.random or 100


def _distribution(
    command: DiskspdCommand, switch: str, value: str
) -> tuple[str, list[tuple[int, int]]]:
    """Pairs of the I/O's percentage and the share of the target, in the target's order
    (-rdpct90/10:5/90)."""
    kind = value[:3]
    if kind not in ("pct", "abs"):
        raise invalid_switch(switch, "a distribution is pct or abs.")
    pairs = []
    for pair in value[3:].split(":"):
        share, slash, part = pair.partition("/")
        if not slash:
            raise invalid_switch(switch, "each range is IO%/part, as in 90/10.")
        ios = _number(switch, share, 0, 100)
        size = _number(switch, part, 1, 100) if kind == "pct" else _size(command, switch, part)
        pairs.append((ios, size))
    return kind, pairs


def _sequential_io(command: DiskspdCommand, switch: str, value: str) -> None:
    if command.random == 100:
        raise invalid_switch(switch, "sequential (-s) and random I/O (-r) cannot be combined.")
    if command.random:
        raise invalid_switch(switch, "-r says how random I/O is aligned, not -s.")
    if command.stride is not None:
        raise invalid_switch(switch, "sequential I/O (-s) can be given only once.")
    if value.startswith("i"):
        command.interlocked = True
        value = value[1:]
    command.stride = _size(command, switch, value, low=0) if value else command.block


_CACHES = {"b": "b", "r": "r", "u": "u"}


def _cache(command: DiskspdCommand, switch: str, value: str) -> None:
    for flag in value or "u":
        conflict = (
            (flag in _CACHES and command.cache)
            or (flag == "u" and command.mapped)
            or (flag == "h" and (command.cache or command.write_through or command.mapped))
            or (flag == "m" and (command.mapped or command.cache == "u"))
            or (flag == "w" and command.write_through)
        )  # fmt: skip
        if flag not in "bhmruw":
            raise UsageError(f"{switch!r}: -S takes b, h, m, r, u and w.", EXAMPLE)
        if conflict:
            raise invalid_switch(switch, f"{flag} conflicts with an earlier switch for the cache.")
        if flag in "bruh":
            command.cache = _CACHES.get(flag, "u")
        command.write_through |= flag in "wh"
        command.mapped |= flag == "m"
    if command.cache == "r" and "r" in value:
        command.notes.append(f"{switch}: r (the cache of a remote file system) has no equivalent")


def _affinity(command: DiskspdCommand, switch: str, value: str) -> None:
    """Parse -a. The forms -a0,2 and -ag0,0,2 mean the same; -a and -ag alone mean the default."""
    if value in ("", "g"):
        return
    group = 0
    for part in value.split(","):
        if part.startswith("g"):
            group = _number(switch, part[1:], 0, 65535)
        else:
            command.cpus.append(_number(switch, part, 0, MAX_CPU))
        if group:
            raise invalid_switch(
                switch, "only Windows has processor groups: name the CPUs as in -a0,1."
            )
    if value.rpartition(",")[2].startswith("g"):
        raise invalid_switch(switch, "the group has no CPUs.")


def _seed(command: DiskspdCommand, switch: str, value: str) -> None:
    command.options["randrepeat"] = "0"
    if value:
        command.options["randseed"] = str(_number(switch, value, 0, 1 << 62))


def _buffers(command: DiskspdCommand, switch: str, value: str) -> None:
    if value == "r":
        command.options["refill_buffers"] = "1"
    elif value:
        command.buffer = _size(command, switch, value.partition(",")[0])
        command.notes.append(f"{switch} has no equivalent: fio writes random data of its own")
    else:
        command.options["zero_buffers"] = "1"


def _mapped_flush(command: DiskspdCommand, switch: str, value: str) -> None:
    if value.lower() not in ("v", "n", "i"):
        raise invalid_switch(switch, "the flush mode is v, n or i.")
    command.flush = True


def _results(command: DiskspdCommand, switch: str, value: str) -> None:
    if value not in ("text", "xml"):
        raise invalid_switch(switch, "the results' form is text or xml.")


def _verbose(command: DiskspdCommand, switch: str, value: str) -> None:
    if value not in ("", "s"):
        raise invalid_switch(switch, "it is -v or -vs.")


_NUMBERS = {
    "d": ("duration", 1, MAX_NUMBER), "F": ("total_threads", 1, 4096),
    "i": ("burst", 1, MAX_NUMBER), "j": ("pause", 1, MAX_NUMBER), "o": ("depth", 1, 1 << 20),
    "O": ("depth_all", 1, 1 << 20), "t": ("threads", 1, 4096), "w": ("writes", 0, 100),
    "W": ("warmup", 0, MAX_NUMBER),
}  # fmt: skip
"""Switches that set a number: its name, and its lowest and highest value."""
_SIZES = {"c": "file_size", "T": "separation"}
_FLAGS = {"n": "unbound", "p": "parallel", "x": "routines"}
_HANDLERS: Mapping[str, Callable[[DiskspdCommand, str, str], None]] = {
    "b": _block_size, "B": _base, "f": _file_range, "g": _rate_limit, "h": _no_cache,
    "I": _priority, "r": _random_io, "s": _sequential_io, "S": _cache, "a": _affinity,
    "z": _seed, "Z": _buffers, "N": _mapped_flush, "R": _results, "v": _verbose,
}  # fmt: skip


def check(command: DiskspdCommand) -> None:
    """Raise UsageError for combinations of switches that DISKSPD refuses."""
    several_threads = (command.total_threads or 1) > 1 or command.threads > 1
    for conflict, why in (
        (command.unbound and command.cpus, "-n and -a cannot be combined."),
        (command.total_threads and command.threads > 1, "-F and -t cannot be combined."),
        (command.rate and command.routines, "-g and -x cannot be combined."),
        ((command.burst is None) != (command.pause is None), "-i and -j need each other."),
        (command.total_threads and command.depth_all and command.rate,
         "-g and -O cannot be combined."),
        (command.total_threads and command.depth_all and command.pause,
         "-j and -O cannot be combined."),
        (command.total_threads and command.depth_all and command.parallel,
         "-p and -O cannot be combined."),
        (command.random and command.separation, "-T and -r cannot be combined."),
        (command.random and command.interlocked, "-si and -r cannot be combined."),
        (command.random and command.parallel, "-p and -r cannot be combined."),
        (command.distribution and not command.random, "-rd needs -r or -rs: it is for random I/O."),
        (command.interlocked and command.separation, "-si and -T cannot be combined."),
        (command.interlocked and command.parallel, "-si and -p cannot be combined."),
        (command.separation and not several_threads, "-T needs several threads."),
        (command.mapped and command.routines, "-Sm and -x cannot be combined."),
        (command.mapped and command.cache == "u", "-Sm and -Su or -Sh cannot be combined."),
        (command.flush and not command.mapped, "-N needs -Sm."),
        (command.buffer and command.buffer < command.block,
         "-Z: its buffer is smaller than a block."),
        (command.end is not None and command.end <= (command.base or 0), "-f must be beyond -B."),
        (command.file_size is not None and command.file_size <= (command.base or 0),
         "-B lies beyond the file of -c."),
    ):  # fmt: skip
        if conflict:
            raise UsageError(f"DISKSPD refuses this: {why}", EXAMPLE)


def check_distribution(kind: str, pairs: Sequence[tuple[int, int]], block: int) -> None:
    """Raises UsageError for ranges that DISKSPD refuses, or that are smaller than an I/O of
    ``block`` bytes."""
    ios, parts = sum(percent for percent, _ in pairs), sum(part for _, part in pairs)
    why = ""
    if ios > 100:
        why = f"its IO% are {ios} together, and at most 100 is possible."
    elif kind == "abs" and any(part < block for _, part in pairs):
        why = "a range is smaller than a block."
    elif kind == "pct" and parts > 100:
        why = f"its ranges add up to {parts} % of the target."
    elif kind == "pct" and parts == 100 and ios < 100:
        why = f"the ranges cover the whole target but only {ios} % of the I/O."
    elif kind == "pct" and ios == 100 and parts < 100:
        why = f"no I/O is left for the last {100 - parts} % of the target: add 0/{100 - parts}."
    if why:
        raise UsageError(f"DISKSPD refuses -rd{kind}: {why}", EXAMPLE)
