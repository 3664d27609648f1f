"""Build fio's normal text report from its JSON.

The format is fio's own (fio(1), "NORMAL OUTPUT"); tests compare every line with what fio prints for
the same run. Only the process number after ``pid=`` is missing, because the JSON does not have
it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Doc = Mapping[str, Any]
Parts = list[tuple[str, list[str]]]

_DIRECTIONS = (("read", "R"), ("write", "W"), ("trim", "T"))
_SHARES_A_LINE = 5
_PERCENTILE_COLUMNS = 73
_SIZES = re.compile(r"(\d+)([kmgtp]?)(?:i?b)?", re.IGNORECASE)


def report_parts(document: Doc) -> Parts:
    """The report as pairs (part, lines), in fio's order; the parts are PARTS in pages.py. Parts
    that the document does not have are left out."""
    rows = [row for row in document.get("jobs", ()) if isinstance(row, Mapping)]
    common = _map(document.get("global options"))
    parts: Parts = []
    heads: dict[tuple[str, int], tuple[list[str], int]] = {}
    members = Counter(_key(row) for row in rows)
    for row in rows:
        options = {**common, **_map(row.get("job options"))}
        heads[_key(row)] = _job_lines(row, options), max(members[_key(row)], _jobs(options))
    parts += [("job", lines) for lines, _ in heads.values()]
    parts.append(("version", [str(document.get("fio version", ""))]))
    parts.append(("starting", [_starting(sum(n for _, n in heads.values()), common, rows)]))
    for row in rows:
        # group_reporting is not in the JSON: a single row then stands for all clones of its job
        jobs = heads[_key(row)][1] if members[_key(row)] == 1 else 1
        parts += _row(row, document, jobs)
    for group in sorted({_int(row.get("groupid")) for row in rows}):
        parts += _group(group, [row for row in rows if _int(row.get("groupid")) == group])
    disks = [disk for disk in document.get("disk_util", ()) if isinstance(disk, Mapping)]
    if disks:
        parts.append(("disk_head", ["Disk stats (read/write):"]))
        parts.append(("disk", [_disk(disk) for disk in disks]))
    return parts


# -- the lines before the results


def _job_lines(row: Doc, options: Doc) -> list[str]:
    sizes = ", ".join(f"({short}) {size}" for (_, short), size in
                      zip(_DIRECTIONS, _block_sizes(options), strict=True))  # fmt: skip
    rw = options.get("rw", options.get("readwrite", "read"))
    line = (
        f"{row.get('jobname', '')}: (g={_int(row.get('groupid'))}): rw={rw}, bs={sizes}, "
        f"ioengine={options.get('ioengine', 'psync')}, iodepth={options.get('iodepth', 1)}"
    )
    return [line, "..."] if _jobs(options) > 1 else [line]


def _block_sizes(options: Doc) -> list[str]:
    """The lowest and highest block sizes of reads, writes and trims."""
    split = options.get("bssplit")
    if split:
        sizes = [_size(part.partition("/")[0]) for part in str(split).split(",")[0].split(":")]
        return [f"{_bytes(min(sizes))}-{_bytes(max(sizes))}"] * 3
    ranged = str(options.get("bsrange") or options.get("blocksize_range") or "")
    text = ranged or str(options.get("bs") or options.get("blocksize") or "4k")
    parts = [part for part in text.split(",") if part] or ["4k"]
    ranges = []
    for index in range(3):
        low, _, high = parts[min(index, len(parts) - 1)].partition("-")
        ranges.append(f"{_bytes(_size(low))}-{_bytes(_size(high or low))}")
    return ranges


def _starting(count: int, common: Doc, rows: Sequence[Doc]) -> str:
    threads = any("thread" in {**common, **_map(row.get("job options"))} for row in rows)
    if threads:
        return f"Starting {count} thread{'' if count == 1 else 's'}"
    return f"Starting {count} process{'' if count == 1 else 'es'}"


def _key(row: Doc) -> tuple[str, int]:
    return str(row.get("jobname", "")), _int(row.get("groupid"))


# -- the results of one row


def _row(row: Doc, document: Doc, jobs: int) -> Iterator[tuple[str, list[str]]]:
    yield (
        "result",
        [f"{row.get('jobname', '')}: (groupid={_int(row.get('groupid'))}, jobs={jobs}): "
         f"err={_int(row.get('error')):2d}: pid=?: {document.get('time', '')}"],
    )  # fmt: skip
    for name, _ in _DIRECTIONS:
        part = _map(row.get(name))
        if part.get("total_ios") or part.get("io_bytes"):
            yield from _direction(name, part)
    shares = [line for key, unit in (("latency_ns", "nsec"), ("latency_us", "usec"),
                                     ("latency_ms", "msec"))
              for line in _shares(_map(row.get(key)), unit)]  # fmt: skip
    if shares:
        yield "lat_shares", shares
    yield (
        "cpu",
        [f"  cpu          : usr={_float(row.get('usr_cpu')):3.2f}%, "
         f"sys={_float(row.get('sys_cpu')):3.2f}%, ctx={_int(row.get('ctx'))}, "
         f"majf={_int(row.get('majf'))}, minf={_int(row.get('minf'))}"],
    )  # fmt: skip
    yield "depths", ["  IO depths    : " + _levels(row.get("iodepth_level"))]
    yield "submit", ["     submit    : " + _levels(row.get("iodepth_submit"))]
    yield "complete", ["     complete  : " + _levels(row.get("iodepth_complete"))]
    yield "issued", [_issued(row)]
    yield "target", [_target(row)]


def _direction(name: str, part: Doc) -> Iterator[tuple[str, list[str]]]:
    speed = _float(part.get("bw_bytes"))
    line = (
        f"  {name}: IOPS={_short_text(_float(part.get('iops')))}, BW={_rate(speed)} "
        f"({_rate(speed, pow2=False)})({_bytes(_int(part.get('io_bytes')))}/"
        f"{_int(part.get('runtime'))}msec)"
    )
    if name == "write":
        line += f"; {_int(part.get('zone_resets'))} zone resets"
    yield "rate", [line]
    for kind in ("slat", "clat", "lat"):
        figures = _map(part.get(f"{kind}_ns"))
        # fio prints no line without samples
        if figures.get("N", figures.get("max")):
            yield kind, [_latency(kind, figures)]
    for kind in ("clat", "lat", "slat"):
        percentiles = _map(_map(part.get(f"{kind}_ns")).get("percentile"))
        if percentiles:
            yield "percentiles", _percentiles(kind, percentiles)
    if part.get("bw_samples"):
        yield "bw", [_bandwidth(part)]
    if part.get("iops_samples"):
        yield (
            "iops",
            [f"   iops        : min={_int(part.get('iops_min')):5d}, "
             f"max={_int(part.get('iops_max')):5d}, avg={_float(part.get('iops_mean')):5.2f}, "
             f"stdev={_float(part.get('iops_stddev')):5.2f}, "
             f"samples={_int(part.get('iops_samples'))}"],
        )  # fmt: skip


def _latency(kind: str, figures: Doc) -> str:
    low, high = _int(figures.get("min")), _int(figures.get("max"))
    mean, dev = _float(figures.get("mean")), _float(figures.get("stddev"))
    unit, scale = "nsec", 1
    for larger, factor in (("usec", 1000), ("msec", 1_000_000)):
        if low > 2 * factor and high > 100 * factor - 1 and dev > factor:
            unit, scale = larger, factor
    return (
        f"    {kind:>4} ({unit}): min={_short_text(low // scale, 6)}, "
        f"max={_short_text(high // scale, 6)}, "
        f"avg={mean / scale:5.2f}, stdev={dev / scale:5.2f}"
    )


def _percentiles(kind: str, percentiles: Doc) -> list[str]:
    values = {_float(p): _int(value) for p, value in percentiles.items()}
    low, high = min(values.values()), max(values.values())
    unit, scale = "nsec", 1
    for larger, factor in (("usec", 1000), ("msec", 1_000_000)):
        if low > 2 * factor and high > 100 * factor - 1:
            unit, scale = larger, factor
    scaled = {p: -(-value // scale) for p, value in values.items()}
    digits = max(2, *(len(f"{p:.6f}".rstrip("0").partition(".")[2]) for p in scaled))
    width = max(5, *(len(str(value)) for value in scaled.values()))
    cells = [f"{p:{digits + 3}.{digits}f}th=[{value:{width}d}]" for p, value in scaled.items()]
    per_line = max(1, _PERCENTILE_COLUMNS // (digits + 10 + width))
    lines = [f"    {kind} percentiles ({unit}):"]
    for at in range(0, len(cells), per_line):
        more = "," if at + per_line < len(cells) else ""
        lines.append("     | " + ", ".join(cells[at : at + per_line]) + more)
    return lines


def _bandwidth(part: Doc) -> str:
    low, high = _int(part.get("bw_min")), _int(part.get("bw_max"))
    mean, dev = _float(part.get("bw_mean")), _float(part.get("bw_dev"))
    unit = "KiB"
    if mean > 999_999:
        unit, low, high, mean, dev = "MiB", low // 1024, high // 1024, mean / 1024, dev / 1024
    return (
        f"   bw ({unit:>5}/s): min={low:5d}, max={high:5d}, "
        f"per={_float(part.get('bw_agg')):3.2f}%, avg={mean:5.2f}, stdev={dev:5.2f}, "
        f"samples={_int(part.get('bw_samples'))}"
    )


def _shares(shares: Doc, unit: str) -> Iterator[str]:
    texts = [f"{name}={_float(value):3.2f}%" for name, value in shares.items() if _float(value)]
    for at in range(0, len(texts), _SHARES_A_LINE):
        yield f"  lat ({unit})   : " + ", ".join(texts[at : at + _SHARES_A_LINE])


def _levels(levels: Any) -> str:
    return ", ".join(f"{name}={_float(value):3.1f}%" for name, value in _map(levels).items())


def _issued(row: Doc) -> str:
    parts = [_map(row.get(name)) for name, _ in _DIRECTIONS]
    totals = [_int(part.get("total_ios")) for part in parts]
    totals.append(_int(_map(row.get("sync")).get("total_ios")))
    short = [*(_int(part.get("short_ios")) for part in parts), 0]
    dropped = [*(_int(part.get("drop_ios")) for part in parts), 0]
    texts = [",".join(map(str, counts)) for counts in (totals, short, dropped)]
    return f"     issued rwts: total={texts[0]} short={texts[1]} dropped={texts[2]}"


def _target(row: Doc) -> str:
    return (
        f"     latency   : target={_int(row.get('latency_target'))}, "
        f"window={_int(row.get('latency_window'))}, "
        f"percentile={_float(row.get('latency_percentile')):.2f}%, "
        f"depth={_int(row.get('latency_depth'))}"
    )


# -- the groups and the disks


def _group(group: int, rows: Sequence[Doc]) -> Iterator[tuple[str, list[str]]]:
    yield "group", [f"Run status group {group} (all jobs):"]
    lines = []
    for name, _ in _DIRECTIONS:
        active = [part for row in rows if (part := _map(row.get(name))).get("io_bytes")]
        if not active:
            continue
        moved = sum(_int(part.get("io_bytes")) for part in active)
        times = [_int(part.get("runtime")) for part in active]
        speeds = [_float(part.get("bw_bytes")) for part in active]
        combined = moved * 1000 / max(times) if max(times) else 0.0
        low, high = min(speeds), max(speeds)
        lines.append(
            f"  {name.upper():>5}: bw={_rate(combined)} ({_rate(combined, pow2=False)}), "
            f"{_rate(low)}-{_rate(high)} ({_rate(low, pow2=False)}-{_rate(high, pow2=False)}), "
            f"io={_bytes(moved)} ({_bytes(moved, pow2=False)}), "
            f"run={min(times)}-{max(times)}msec"
        )
    if lines:
        yield "group_rate", lines


def _disk(disk: Doc) -> str:
    def pair(name: str, prefix: str = "") -> str:
        return f"{_int(disk.get(f'{prefix}read_{name}'))}/{_int(disk.get(f'{prefix}write_{name}'))}"

    sectors = f"sectors={pair('sectors')}, " if "read_sectors" in disk else ""
    line = (
        f"  {disk.get('name', '')}: ios={pair('ios')}, {sectors}merge={pair('merges')}, "
        f"ticks={pair('ticks')}, in_queue={_int(disk.get('in_queue'))}, "
        f"util={_float(disk.get('util')):3.2f}%"
    )
    if "aggr_read_ios" not in disk:
        return line
    more = f"aggrsectors={pair('sectors', 'aggr_')}, " if "aggr_read_sectors" in disk else ""
    return line + (
        f", aggrios={pair('ios', 'aggr_')}, {more}aggrmerge={pair('merges', 'aggr_')}, "
        f"aggrticks={pair('ticks', 'aggr_')}, aggrin_queue={_int(disk.get('aggr_in_queue'))}, "
        f"aggrutil={_float(disk.get('aggr_util')):3.2f}%"
    )


# -- numbers as fio writes them


def _short_text(value: float, width: int = 4) -> str:
    return "".join(_scaled(value, width, 1000))


def _bytes(value: float, pow2: bool = True) -> str:
    number, prefix = _scaled(value, 4, 1024 if pow2 else 1000)
    if not pow2:
        return f"{number}{prefix}B"
    return f"{number}{prefix.upper()}iB" if prefix else f"{number}B"


def _rate(value: float, pow2: bool = True) -> str:
    return f"{_bytes(value, pow2)}/s"


def _scaled(value: float, width: int, factor: int) -> tuple[str, str]:
    """A number of at most ``width`` digits and its prefix: 43066 -> 43.1 k, 8210 -> 8210. Beyond
    the largest prefix it has more digits."""
    quotient, remainder, prefix = int(value), 0, ""
    for larger in ("k", "M", "G", "T", "P", "E"):
        if len(str(quotient)) <= width:
            break
        quotient, remainder = divmod(quotient, factor)
        prefix = larger
    if not prefix:
        return str(quotient), ""
    decimals = width - len(str(quotient)) - 1
    if decimals <= 0:
        return str(quotient + (remainder >= factor / 2)), prefix
    # like fio, round only the fraction: rounding 13.45 as a whole would give 13.4
    carry, _, fraction = f"{remainder / factor:.{decimals}f}".partition(".")
    return f"{quotient + int(carry)}.{fraction}", prefix


def _size(text: str) -> int:
    match = _SIZES.fullmatch(text.strip())
    if match is None:
        return 4096
    return int(match[1]) << 10 * (" kmgtp".index(match[2].lower()) if match[2] else 0)


def _jobs(options: Doc) -> int:
    text = str(options.get("numjobs", "1"))
    return max(1, int(text)) if text.isdecimal() else 1


def _map(value: Any) -> Doc:
    return value if isinstance(value, Mapping) else {}


def _int(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
