"""The bpftrace script: fixed text with only numbers filled in.

A request is known by its disk and its first sector. At its issue the time is noted under that key,
at its completion the difference is counted in a bin. Counts only grow: they are subtracted by who
reads them, as a map that is cleared loses what is counted between print and clear. Requests without
sectors (flushes, passthrough) are left out: they have no sector to be known by.

Maps: ``@t`` beginnings; ``@d`` and ``@w`` bins of device and waiting; ``@x`` the matrix; ``@p``
``@q`` ``@b`` ``@n`` processes; ``@z`` sizes; ``@m`` missed, ``@u`` unpaired, ``@r`` requeued,
``@g`` merged, ``@s`` sequential. Keys are single integers: one of several parts is hashed slower.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.linux.probe.tracepoints import SIGNAL_GENERATE, Tracepoints
from iopstui.model.metrics.probe import MATRIX, PROCESSES, SIZES, WAY

BUCKET_BITS = 6
TASK_BITS = 3
# a value of @t: the allocating CPU + 1 above the nanoseconds of three days
TIME_BITS = 48
TIME_MASK = (1 << TIME_BITS) - 1
DIRECTION_AT, REGION_AT, PID_AT = 12, 16, 24
CPU_AT = 16

FIELDS = frozenset({"dev", "sector", "nr_sector", "rwbs"})
"""What every one of these has to have."""
REQUESTS = ("block_rq_issue", "block_rq_complete")
ALLOCATION = ("block_getrq",)
BIOS = ("block_bio_queue", "block_bio_complete")


@dataclass(frozen=True, slots=True)
class Region:
    """Sectors ``first`` to ``last`` of the disk with this device number: a partition that is looked
    at apart, or the whole disk (0 and ``None``). ``bios``: the disk has no requests of its own.
    ``paths``: major and minor of the hidden disks that carry its requests, instead of its own (NVMe
    multipath; a bio that came to the disk is completed under its path's number). ``level``: an
    Exemplar's."""

    name: str
    major: int
    minor: int
    first: int = 0
    last: int | None = None
    bios: bool = False
    paths: tuple[tuple[int, int], ...] = ()
    level: int = 0

    @property
    def devs(self) -> tuple[int, ...]:
        """The kernel's dev_t numbers of the devices that carry its requests (MKDEV of
        include/linux/kdev_t.h)."""
        numbers = self.paths or ((self.major, self.minor),)
        return tuple(sorted(major << 20 | minor for major, minor in numbers))


def missing_features(
    parts: Sequence[str], regions: Sequence[Region], have: Tracepoints
) -> list[str]:
    """Features that the script needs and this kernel lacks, in words."""
    tracepoints: list[str] = []
    if any(not region.bios for region in regions):
        tracepoints += REQUESTS
        if {WAY, MATRIX, PROCESSES} & set(parts):
            tracepoints += ALLOCATION
    if any(region.bios for region in regions):
        tracepoints += BIOS
    missing = [f"block:{name}" for name in tracepoints if name not in have]
    for name in tracepoints:
        missing += [f"{field} of block:{name}" for field in sorted(FIELDS - have.get(name, FIELDS))]
    return missing


def script(
    parts: Sequence[str], regions: Sequence[Region], have: Tracepoints, interval_ms: int
) -> str:
    """The script that counts ``parts`` of these regions. It prints when it is asked by a signal
    (SIGWINCH, which no process minds: an answer takes 1 ms, where bpftrace's own SIGUSR1 takes
    100), or every ``interval_ms`` where the kernel has no
    tracepoint for signals."""
    requests = [r for r in regions if not r.bios]
    bios = [r for r in regions if r.bios]
    chosen = set(parts)
    text: list[str] = []
    if requests:
        text += _requests(chosen, requests, regions, have)
    if bios:
        text += _bios(bios, regions)
    maps = ["d", "m"]
    if requests:
        maps += ["r"]
        if WAY in chosen:
            maps += ["w", "u"]
        if MATRIX in chosen:
            maps += ["x"]
        if PROCESSES in chosen:
            maps += ["q", "b", "n"]
        if SIZES in chosen:
            maps += ["z", "s", "g"]
    prints = " ".join(f"print(@{name});" for name in maps)
    if SIGNAL_GENERATE in have:
        text.append("BEGIN { print(nsecs); }")
        to_bpftrace = 'strncmp(args->comm, "bpftrace", 9) == 0'
        event = "tracepoint:signal:signal_generate"
        text.append(f"{event} /args->sig == {signal.SIGWINCH:d} && {to_bpftrace}/"
                    f" {{ {prints} print(nsecs); }}")  # fmt: skip
    else:
        text.append(f"interval:ms:{interval_ms} {{ {prints} print(nsecs); }}")
    return "\n".join(text) + "\n"


def _requests(
    parts: set[str], regions: Sequence[Region], all_regions: Sequence[Region], have: Tracepoints
) -> list[str]:
    match, key = _match(regions), _key(regions)
    allocated = bool(parts & {WAY, MATRIX})
    text = []
    begin = f"@t[{key}] = nsecs;"
    if allocated or PROCESSES in parts:
        body = ""
        if allocated:
            body += f"@t[{key}] = ((uint64)cpu + 1 << {TIME_BITS}) | (nsecs & {TIME_MASK});"
        if PROCESSES in parts:
            # the first name seen of a pid is kept: noting it each time would be an operation more
            body += (
                f" @p[{key}] = (uint64)pid; if (@k[pid] == 0) {{ @k[pid] = 1; @n[pid] = comm; }}"
            )
        text.append(f"tracepoint:block:block_getrq {match} {{ {body} }}")
    if allocated:
        waited = ""
        if WAY in parts:
            key_prefix = (
                f"{_region_expression(regions, all_regions)} | {_direction()} << {DIRECTION_AT}"
            )
            waited = (
                f"$v = (nsecs - $s) & {TIME_MASK}; {_msb('$v')}"
                f" @w[{key_prefix} | {_bin(BUCKET_BITS)}] = count();"
            )
        begin = (
            f"$s = @t[{key}]; if ($s != 0) {{ {waited} }} else {{ @u = count(); }}"
            f" @t[{key}] = (($s >> {TIME_BITS}) << {TIME_BITS}) | (nsecs & {TIME_MASK});"
        )
    if SIZES in parts:
        begin += _sizes(regions, all_regions)
    text.append(f"tracepoint:block:block_rq_issue {match} {{ {begin} }}")
    text.append(_completion(parts, regions, all_regions, allocated))
    text.append(f"tracepoint:block:block_rq_requeue {match} {{ @r = count(); }}")
    text += _merges(parts, regions, have, allocated)
    return text


def _completion(
    parts: set[str], regions: Sequence[Region], all_regions: Sequence[Region], allocated: bool
) -> str:
    key = _key(regions)
    spent = f"(nsecs - $s) & {TIME_MASK}" if allocated else "nsecs - $s"
    key_prefix = f"{_region_expression(regions, all_regions)} | {_direction()} << {DIRECTION_AT}"
    body = (
        f"$s = @t[{key}]; if ($s == 0) {{ @m = count(); return; }} delete(@t[{key}]);"
        f" $v = {spent}; {_msb('$v')} @d[{key_prefix} | {_bin(BUCKET_BITS)}] = count();"
    )
    if MATRIX in parts:
        body += f" @x[($s >> {TIME_BITS}) << {CPU_AT} | (uint64)cpu] = count();"
    if PROCESSES in parts:
        task = f"$p << {PID_AT} | {_region_expression(regions, all_regions)}"
        body += (
            f" $p = @p[{key}]; if ($p != 0) {{ delete(@p[{key}]);"
            f" @q[{task} | {_direction()} << {DIRECTION_AT} | {_bin(TASK_BITS)}] = count();"
            f" @b[{task}] = sum(args->nr_sector); }}"
        )
    return f"tracepoint:block:block_rq_complete {_match(regions)} {{ {body} }}"


def _sizes(regions: Sequence[Region], all_regions: Sequence[Region]) -> str:
    disk = _disk(regions)
    key_prefix = f"{_region_expression(regions, all_regions)} | {_direction()} << {DIRECTION_AT}"
    return (
        f" $v = (uint64)args->nr_sector; {_msb('$v')}"
        f" @z[{key_prefix} | $b] = count();"
        f" if (@e[{disk}] == args->sector) {{ @s = count(); }}"
        f" @e[{disk}] = args->sector + args->nr_sector;"
    )


def _merges(
    parts: set[str], regions: Sequence[Region], have: Tracepoints, allocated: bool
) -> list[str]:
    """A front merge gives a request another first sector, and a request that is merged into
    another ends without a completion."""
    if not allocated and not parts & {SIZES, PROCESSES}:
        return []
    match, key = _match(regions), _key(regions)
    map_names = (("t",) if allocated else ()) + (("p",) if PROCESSES in parts else ())
    count = "@g = count();" if SIZES in parts else ""
    old_key = _key(regions, "(args->sector + args->nr_sector)")
    bodies = {
        "block_bio_backmerge": count,
        "block_bio_frontmerge": count
        + " ".join(
            f"$o = @{m}[{old_key}]; if ($o != 0) {{ @{m}[{key}] = $o; delete(@{m}[{old_key}]); }}"
            for m in map_names
        ),
        "block_rq_merge": count + " ".join(f"delete(@{m}[{key}]);" for m in map_names),
    }
    return [
        f"tracepoint:block:{name} {match} {{ {body} }}"
        for name, body in bodies.items()
        if name in have and body
    ]


def _bios(regions: Sequence[Region], all_regions: Sequence[Region]) -> list[str]:
    match, key = _match(regions), _key(regions)
    key_prefix = f"{_region_expression(regions, all_regions)} | {_direction()} << {DIRECTION_AT}"
    return [
        f"tracepoint:block:block_bio_queue {match} {{ @t[1 << 55 | {key}] = nsecs; }}",
        f"tracepoint:block:block_bio_complete {match} {{ $s = @t[1 << 55 | {key}];"
        " if ($s == 0) { @m = count(); return; }"
        f" delete(@t[1 << 55 | {key}]); $v = nsecs - $s; {_msb('$v')}"
        f" @d[{key_prefix} | {_bin(BUCKET_BITS)}] = count(); }}",
    ]


# -- expressions


def _match(regions: Sequence[Region]) -> str:
    return f"/({_one_of(_devs(regions))}) && args->nr_sector != 0/"


def _devs(regions: Sequence[Region]) -> list[int]:
    return sorted({dev for region in regions for dev in region.devs})


def _one_of(devs: Sequence[int]) -> str:
    return " || ".join(f"args->dev == {dev}" for dev in devs)


def _disk(regions: Sequence[Region]) -> str:
    """The place of the request's disk in the list of disks."""
    devs = _devs(regions)
    expression = str(len(devs) - 1)
    for index in range(len(devs) - 2, -1, -1):
        expression = f"(args->dev == {devs[index]} ? {index} : {expression})"
    return f"(uint64){expression}"


def _key(regions: Sequence[Region], sector: str = "args->sector") -> str:
    if len(_devs(regions)) == 1:
        return sector
    return f"({_disk(regions)} << 56 | {sector})"


def _region_expression(regions: Sequence[Region], all_regions: Sequence[Region]) -> str:
    """The region's number, in its place of a map's key. The smallest that holds the request."""
    expression = "0"
    for region in sorted(regions, key=lambda r: -1 if r.last is None else 1):
        number = all_regions.index(region)
        test = f"({_one_of(region.devs)})"
        if region.last is not None:
            test += f" && args->sector >= {region.first} && args->sector <= {region.last}"
        expression = f"({test} ? {number} : {expression})" if len(regions) > 1 else str(number)
    return f"(uint64){expression} << {REGION_AT}"


def _direction() -> str:
    """0 read, 1 write, 2 discard, by the first letter (blk_fill_rwbs, kernel/trace/blktrace.c)."""
    return '(strncmp(args->rwbs, "R", 1) == 0 ? 0 : (strncmp(args->rwbs, "D", 1) == 0 ? 2 : 1))'


def _msb(value: str) -> str:
    """Sets $b to the number of the highest bit set: five comparisons, no loop."""
    steps = [f"if ($x >= {1 << n}) {{ $x = $x >> {n}; $b = $b + {n}; }}" for n in (32, 16, 8, 4, 2)]
    return f"$x = {value}; $b = (uint64)0; {' '.join(steps)} if ($x >= 2) {{ $b = $b + 1; }}"


def _bin(bits: int) -> str:
    """fio's bucket of $v (stat.c, plat_val_to_idx), with ``bits`` of it below the highest; $b is
    its highest bit."""
    coarse = f"($b - {bits - 1} << {bits}) | (($v >> ($b - {bits})) & {(1 << bits) - 1})"
    return f"($v < {2 << bits} ? $v : {coarse})"
