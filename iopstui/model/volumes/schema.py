"""Parse a volumes file (docs/guide/promise.md) into values, or report its mistakes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from iopstui.model.fio.sizes import size_bytes
from iopstui.model.volumes.checked_table import CheckedTable
from iopstui.model.volumes.formula import Formula, Source, rises
from iopstui.model.volumes.volume import (
    IOPS,
    READ,
    THROUGHPUT,
    WRITE,
    Burst,
    Instance,
    InstanceLimit,
    IoSize,
    Latency,
    Note,
    Provider,
    Provision,
    VolumeClass,
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
INSTANCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
RW = ("randread", "randwrite")
_KINDS = {IOPS: ("IOPS",), THROUGHPUT: ("MB/s", "MiB/s")}
_NUMBERS = ("base", "per_gib", "per_iops", "per_provisioned")


def parse_provider(data: Mapping[str, Any], name: str) -> tuple[Provider, list[str]]:
    """The provider of a file that is called ``name``, and everything that is wrong with it."""
    problems: list[str] = []
    top = CheckedTable(data, "", problems)
    if not NAME.fullmatch(name):
        problems.append(f"the file name {name!r} may have letters, digits, '_' and '-' only")
    sources = {key: _source(table) for key, table in top.tables("source").items()}
    classes = tuple(
        _volume(table, name, key, sources) for key, table in top.tables("class").items()
    )
    instances = tuple(
        _instance(table, name, key, sources) for key, table in top.tables("instance").items()
    )
    if not classes and not instances:
        problems.append("has neither a [class.NAME] nor an [instance.NAME]")
    title = top.text("title") or name
    top.end()
    return Provider(name, title, sources, classes, instances), problems


def _source(table: CheckedTable) -> Source:
    page, url = table.text("page", True), table.text("url")
    read = table.has("read") and not table.has("date")
    found = Source(page, url, table.date("read" if read else "date"), read)
    table.end()
    return found


def _read_source(table: CheckedTable, sources: Mapping[str, Source]) -> str:
    key = table.text("source", True)
    if key and key not in sources:
        table.wrong(f"there is no [source.{key}]")
    return key


def _volume(
    table: CheckedTable, provider: str, name: str, sources: Mapping[str, Source]
) -> VolumeClass:
    _check_name(table, name)
    formulas: dict[tuple[str, str], Formula] = {}
    for kind in (IOPS, THROUGHPUT):
        for key, directions in (
            (kind, (READ, WRITE)), (f"read_{kind}", (READ,)), (f"write_{kind}", (WRITE,)),
        ):  # fmt: skip
            if table.has(key):
                one = _formula(table.table(key), _KINDS[kind], sources)
                formulas |= {(kind, direction): one for direction in directions}
    cited: dict[str, str] = {}
    burst, provision = _burst(table, sources), _provision(table, sources)
    if not formulas and provision is None:
        table.wrong("has no figure: iops, throughput or provision")
    found = VolumeClass(
        provider, name, table.text("title", True), _sizes(table, sources, cited), formulas, sources,
        _io_size(table, sources),
        _block(table, "random_size", "4k"),
        _block(table, "sequential_size", "1m"),
        _latency(table, sources),
        burst,
        provision,
        _delivery_share(table, sources, cited),
        _read_note(table.table("warmup"), sources) if table.has("warmup") else None,
        tuple(_read_notes(table, sources)),
        table.text("drive"),
        tuple(str(one) for one in table.items("models")),
        table.truth("fixed_size"),
        cited,
    )  # fmt: skip
    table.end()
    return found


def _check_name(table: CheckedTable, name: str) -> None:
    if not NAME.fullmatch(name):
        table.wrong("names may have letters, digits, '_' and '-' only")


def _formula(table: CheckedTable, units: tuple[str, ...], sources: Mapping[str, Source]) -> Formula:
    unit = table.text("unit") or (units[0] if len(units) == 1 else "")
    if unit not in units:
        table.wrong(f"unit must be {' or '.join(units)}")
        unit = units[0]
    numbers = {key: table.number(key) or 0.0 for key in _NUMBERS}
    low, high = table.number("min"), table.number("max")
    steps = _steps(table)
    if steps and (any(numbers.values()) or low is not None or high is not None):
        table.wrong("has steps and a formula; use one of the two")
    if not steps and not any(numbers.values()) and not low:
        table.wrong("has no value: base, per_gib, per_iops or steps")
    if low is not None and high is not None and low > high:
        table.wrong("min is above max")
    if high is not None and numbers["base"] > high:
        table.wrong("base is above max")
    found = Formula(unit, _read_source(table, sources), **numbers, low=low, high=high, steps=steps)
    table.end()
    return found


def _steps(table: CheckedTable) -> tuple[tuple[float, float], ...]:
    found = []
    for one in table.items("steps"):
        if (
            isinstance(one, list)
            and len(one) == 2
            and all(type(value) in (int, float) and 0 <= value < 1e15 for value in one)
        ):
            found.append((float(one[0]), float(one[1])))
        else:
            table.wrong("steps must be pairs of numbers: [[up to GiB, value], ...]")
    if not rises(found):
        table.wrong("steps must rise")
    return tuple(found)


def _sizes(
    table: CheckedTable, sources: Mapping[str, Source], cited: dict[str, str]
) -> tuple[float, float] | None:
    if not table.has("size"):
        return None
    sizes = table.table("size")
    low, high = sizes.number("min") or 0.0, sizes.number("max")
    cited["size"] = _read_source(sizes, sources)
    if high is None or low > high:
        sizes.wrong("needs max, and min not above it (GiB)")
        high = low
    sizes.end()
    return low, high


def _io_size(table: CheckedTable, sources: Mapping[str, Source]) -> IoSize | None:
    if not table.has("io_size"):
        return None
    one = table.table("io_size")
    kib, larger = one.number("kib"), one.text("larger", True)
    if larger and larger not in ("split", "whole"):
        one.wrong('larger must be "split" (counts as several) or "whole" (counts as one)')
    if not kib:
        one.wrong("needs kib")
    found = IoSize(int((kib or 1) * 1024), larger == "split", _read_source(one, sources))
    one.end()
    return found


def _block(table: CheckedTable, key: str, default: str) -> int:
    text = table.text(key) or default
    found = size_bytes(text)
    if not found or found % 512:
        table.wrong(f"{key} must be a block size such as 4k")
        return 4096
    return found


def _latency(table: CheckedTable, sources: Mapping[str, Source]) -> Latency | None:
    if not table.has("latency"):
        return None
    one = table.table("latency")
    mean, rw = one.number("mean_ms"), one.text("rw", True)
    if not mean:
        one.wrong("needs mean_ms")
    if rw not in RW:
        one.wrong(f"rw must be {' or '.join(RW)}")
        rw = RW[0]
    found = Latency(
        (mean or 0.0) * 1e6, rw, _block(one, "block_size", "4k"), _read_source(one, sources)
    )
    one.end()
    return found


def _burst(table: CheckedTable, sources: Mapping[str, Source]) -> Burst | None:
    if not table.has("burst"):
        return None
    one = table.table("burst")

    def formula(key: str, *units: str) -> Formula | None:
        return _formula(one.table(key), units, sources) if one.has(key) else None

    seconds, source = None, ""
    if one.has("lasts"):
        lasts = one.table("lasts")
        seconds, source = lasts.number("seconds"), _read_source(lasts, sources)
        if not seconds:
            lasts.wrong("needs seconds")
        lasts.end()
    found = Burst(
        formula("iops", *_KINDS[IOPS]), formula("throughput", *_KINDS[THROUGHPUT]),
        formula("credits", "I/Os"), formula("credit_bytes", "MiB"), seconds, source,
    )  # fmt: skip
    if found.iops is None and found.throughput is None:
        one.wrong("needs iops or throughput")
    one.end()
    return found


def _provision(table: CheckedTable, sources: Mapping[str, Source]) -> Provision | None:
    if not table.has("provision"):
        return None
    one = table.table("provision")
    iops = _formula(one.table("iops"), _KINDS[IOPS], sources) if one.has("iops") else None
    flow = None
    if one.has("throughput"):
        flow = _formula(one.table("throughput"), _KINDS[THROUGHPUT], sources)
    found = Provision(iops, flow, one.truth("adds"), one.truth("required"))
    one.end()
    return found


def _delivery_share(
    table: CheckedTable, sources: Mapping[str, Source], cited: dict[str, str]
) -> tuple[float, str] | None:
    if not table.has("delivers"):
        return None
    one = table.table("delivers")
    share, often = one.number("percent"), one.text("text")
    cited["delivers"] = _read_source(one, sources)
    if share is None or not 0 < share <= 100:
        one.wrong("needs percent, above 0 and at most 100")
        share = 100.0
    one.end()
    return share / 100, often


def _read_note(table: CheckedTable, sources: Mapping[str, Source]) -> Note:
    found = Note(table.text("text", True), _read_source(table, sources))
    table.end()
    return found


def _read_notes(table: CheckedTable, sources: Mapping[str, Source]) -> list[Note]:
    place = f"{table.place}.notes"
    return [_read_note(CheckedTable(one, place, table.problems), sources)
            for one in table.items("notes")]  # fmt: skip


def _instance(
    table: CheckedTable, provider: str, name: str, sources: Mapping[str, Source]
) -> Instance:
    if not INSTANCE_NAME.fullmatch(name):
        table.wrong("names may have letters, digits, '.', '_' and '-' only")
    found = {}
    for key in ("uncached", "cached", "burst"):
        if table.has(key):
            one = table.table(key)
            mb = one.number("mb_s")
            found[key] = InstanceLimit(one.number("iops"), mb * 1e6 if mb else None,
                                       _read_source(one, sources))  # fmt: skip
            one.end()
    if "uncached" not in found:
        table.wrong("needs uncached")
    table.end()
    return Instance(provider, name, sources, **found)
