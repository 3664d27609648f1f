"""Parse a volumes file (docs/volumes.md) into values, key by key, or report all of its mistakes
with the key of each."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

from iopstui.model.sizes import size_bytes
from iopstui.model.volumes.volume import (
    IOPS,
    READ,
    THROUGHPUT,
    WRITE,
    Burst,
    Formula,
    Instance,
    InstanceLimit,
    IoSize,
    Latency,
    Note,
    Provider,
    Provision,
    Source,
    VolumeClass,
    is_monotonic,
)


class CheckedTable:
    """A table of a file that is being checked. Mistakes are added to ``problems`` as
    "class.gp3.iops: no source"; ``end`` adds unused keys."""

    def __init__(self, data: object, place: str, problems: list[str]) -> None:
        self.place = place
        self.problems = problems
        self.known: set[str] = set()
        self.data: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        if not isinstance(data, Mapping):
            self.add_problem("must be a table")

    def add_problem(self, problem: str) -> None:
        self.problems.append(f"{self.place}: {problem}" if self.place else problem)

    def has(self, key: str) -> bool:
        """Whether the table has the key. From now on the key counts as used."""
        self.known.add(key)
        return key in self.data

    def table(self, key: str) -> CheckedTable:
        self.known.add(key)
        return CheckedTable(self.data.get(key), f"{self.place}.{key}".strip("."), self.problems)

    def tables(self, key: str) -> dict[str, CheckedTable]:
        if not self.has(key):
            return {}
        parent = self.table(key)
        return {name: parent.table(name) for name in parent.data}

    def text(self, key: str, needed: bool = False) -> str:
        value: object = self.data.get(key, "")
        self.known.add(key)
        if not isinstance(value, str):
            self.add_problem(f"{key} must be a text in quotes")
            return ""
        if needed and not value:
            self.add_problem(f"no {key}")
        return value

    def number(self, key: str) -> float | None:
        """The number of a key, not negative; ``None`` without it."""
        self.known.add(key)
        value = self.data.get(key)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not 0 <= value < 1e15:
            self.add_problem(f"{key} must be a number, 0 or more")
            return None
        return float(value)

    def boolean(self, key: str) -> bool:
        self.known.add(key)
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.add_problem(f"{key} must be true or false")
        return value is True

    def date(self, key: str) -> str:
        self.known.add(key)
        value = self.data.get(key)
        if type(value) is datetime.date:
            return value.isoformat()
        self.add_problem(f"{key} must be a day such as 2024-05-31 (without quotes)")
        return ""

    def items(self, key: str) -> Sequence[object]:
        """The array of a key; () without it."""
        self.known.add(key)
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self.add_problem(f"{key} must be an array")
            return ()
        return value

    def end(self) -> None:
        """Report unknown keys as problems."""
        for key in self.data:
            if key not in self.known:
                self.add_problem(f"unknown key {key}")


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
INSTANCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
RW = ("randread", "randwrite")
_KINDS = {IOPS: ("IOPS",), THROUGHPUT: ("MB/s", "MiB/s")}
_NUMBERS = ("base", "per_gib", "per_iops", "per_provisioned")


def parse_provider(data: Mapping[str, Any], name: str) -> tuple[Provider, list[str]]:
    """Parse the file of the provider ``name``; return the provider and all mistakes in the file."""
    problems: list[str] = []
    top = CheckedTable(data, "", problems)
    if not NAME.fullmatch(name):
        problems.append(f"the file name {name!r} may have letters, digits, '_' and '-' only")
    sources = {key: _read_source_table(table) for key, table in top.tables("source").items()}
    classes = tuple(
        _read_volume(table, name, key, sources) for key, table in top.tables("class").items()
    )
    instances = tuple(
        _read_instance(table, name, key, sources) for key, table in top.tables("instance").items()
    )
    if not classes and not instances:
        problems.append("has neither a [class.NAME] nor an [instance.NAME]")
    title = top.text("title") or name
    top.end()
    return Provider(name, title, sources, classes, instances), problems


def _read_source_table(table: CheckedTable) -> Source:
    page, url = table.text("page", True), table.text("url")
    is_dated_by_reading = table.has("read") and not table.has("date")
    source = Source(
        page, url, table.date("read" if is_dated_by_reading else "date"), is_dated_by_reading
    )
    table.end()
    return source


def _read_source_key(table: CheckedTable, sources: Mapping[str, Source]) -> str:
    key = table.text("source", True)
    if key and key not in sources:
        table.add_problem(f"there is no [source.{key}]")
    return key


def _read_volume(
    table: CheckedTable, provider: str, name: str, sources: Mapping[str, Source]
) -> VolumeClass:
    _check_name(table, name)
    formulas: dict[tuple[str, str], Formula] = {}
    for kind in (IOPS, THROUGHPUT):
        for key, directions in (
            (kind, (READ, WRITE)), (f"read_{kind}", (READ,)), (f"write_{kind}", (WRITE,)),
        ):  # fmt: skip
            if table.has(key):
                formula = _read_formula(table.table(key), _KINDS[kind], sources)
                formulas |= {(kind, direction): formula for direction in directions}
    cited: dict[str, str] = {}
    burst, provision = _read_burst(table, sources), _read_provision(table, sources)
    if not formulas and provision is None:
        table.add_problem("has no figure: iops, throughput or provision")
    volume_class = VolumeClass(
        provider, name, table.text("title", True), _read_sizes(table, sources, cited), formulas,
        sources,
        _read_io_size(table, sources),
        _read_block_size(table, "random_size", "4k"),
        _read_block_size(table, "sequential_size", "1m"),
        _read_latency(table, sources),
        burst,
        provision,
        _read_delivery_share(table, sources, cited),
        _read_note(table.table("warmup"), sources) if table.has("warmup") else None,
        tuple(_read_notes(table, sources)),
        table.text("drive"),
        tuple(str(model) for model in table.items("models")),
        table.boolean("fixed_size"),
        cited,
    )  # fmt: skip
    table.end()
    return volume_class


def _check_name(table: CheckedTable, name: str) -> None:
    if not NAME.fullmatch(name):
        table.add_problem("names may have letters, digits, '_' and '-' only")


def _read_formula(
    table: CheckedTable, units: tuple[str, ...], sources: Mapping[str, Source]
) -> Formula:
    unit = table.text("unit") or (units[0] if len(units) == 1 else "")
    if unit not in units:
        table.add_problem(f"unit must be {' or '.join(units)}")
        unit = units[0]
    numbers = {key: table.number(key) or 0.0 for key in _NUMBERS}
    low, high = table.number("min"), table.number("max")
    steps = _read_steps(table)
    if steps and (any(numbers.values()) or low is not None or high is not None):
        table.add_problem("has steps and a formula; use one of the two")
    if not steps and not any(numbers.values()) and not low:
        table.add_problem("has no value: base, per_gib, per_iops or steps")
    if low is not None and high is not None and low > high:
        table.add_problem("min is above max")
    if high is not None and numbers["base"] > high:
        table.add_problem("base is above max")
    formula = Formula(
        unit, _read_source_key(table, sources), **numbers, low=low, high=high, steps=steps
    )
    table.end()
    return formula


def _read_steps(table: CheckedTable) -> tuple[tuple[float, float], ...]:
    steps = []
    for step in table.items("steps"):
        if (
            isinstance(step, list)
            and len(step) == 2
            and all(type(value) in (int, float) and 0 <= value < 1e15 for value in step)
        ):
            steps.append((float(step[0]), float(step[1])))
        else:
            table.add_problem("steps must be pairs of numbers: [[up to GiB, value], ...]")
    if not is_monotonic(steps):
        table.add_problem("steps must rise")
    return tuple(steps)


def _read_sizes(
    table: CheckedTable, sources: Mapping[str, Source], cited: dict[str, str]
) -> tuple[float, float] | None:
    if not table.has("size"):
        return None
    sizes = table.table("size")
    low, high = sizes.number("min") or 0.0, sizes.number("max")
    cited["size"] = _read_source_key(sizes, sources)
    if high is None or low > high:
        sizes.add_problem("needs max, and min not above it (GiB)")
        high = low
    sizes.end()
    return low, high


def _read_io_size(table: CheckedTable, sources: Mapping[str, Source]) -> IoSize | None:
    if not table.has("io_size"):
        return None
    section = table.table("io_size")
    kib, larger = section.number("kib"), section.text("larger", True)
    if larger and larger not in ("split", "whole"):
        section.add_problem('larger must be "split" (counts as several) or "whole" (counts as one)')
    if not kib:
        section.add_problem("needs kib")
    io_size = IoSize(int((kib or 1) * 1024), larger == "split", _read_source_key(section, sources))
    section.end()
    return io_size


def _read_block_size(table: CheckedTable, key: str, default: str) -> int:
    text = table.text(key) or default
    block_size = size_bytes(text)
    if not block_size or block_size % 512:
        table.add_problem(f"{key} must be a block size such as 4k")
        return 4096
    return block_size


def _read_latency(table: CheckedTable, sources: Mapping[str, Source]) -> Latency | None:
    if not table.has("latency"):
        return None
    section = table.table("latency")
    mean, rw = section.number("mean_ms"), section.text("rw", True)
    if not mean:
        section.add_problem("needs mean_ms")
    if rw not in RW:
        section.add_problem(f"rw must be {' or '.join(RW)}")
        rw = RW[0]
    latency = Latency(
        (mean or 0.0) * 1e6,
        rw,
        _read_block_size(section, "block_size", "4k"),
        _read_source_key(section, sources),
    )
    section.end()
    return latency


def _read_burst(table: CheckedTable, sources: Mapping[str, Source]) -> Burst | None:
    if not table.has("burst"):
        return None
    section = table.table("burst")

    def formula(key: str, *units: str) -> Formula | None:
        return _read_formula(section.table(key), units, sources) if section.has(key) else None

    seconds, source = None, ""
    if section.has("lasts"):
        lasts = section.table("lasts")
        seconds, source = lasts.number("seconds"), _read_source_key(lasts, sources)
        if not seconds:
            lasts.add_problem("needs seconds")
        lasts.end()
    burst = Burst(
        formula("iops", *_KINDS[IOPS]), formula("throughput", *_KINDS[THROUGHPUT]),
        formula("credits", "I/Os"), formula("credit_bytes", "MiB"), seconds, source,
    )  # fmt: skip
    if burst.iops is None and burst.throughput is None:
        section.add_problem("needs iops or throughput")
    section.end()
    return burst


def _read_provision(table: CheckedTable, sources: Mapping[str, Source]) -> Provision | None:
    if not table.has("provision"):
        return None
    section = table.table("provision")
    iops = (
        _read_formula(section.table("iops"), _KINDS[IOPS], sources) if section.has("iops") else None
    )
    flow = None
    if section.has("throughput"):
        flow = _read_formula(section.table("throughput"), _KINDS[THROUGHPUT], sources)
    provision = Provision(iops, flow, section.boolean("adds"), section.boolean("required"))
    section.end()
    return provision


def _read_delivery_share(
    table: CheckedTable, sources: Mapping[str, Source], cited: dict[str, str]
) -> tuple[float, str] | None:
    if not table.has("delivers"):
        return None
    section = table.table("delivers")
    share, often = section.number("percent"), section.text("text")
    cited["delivers"] = _read_source_key(section, sources)
    if share is None or not 0 < share <= 100:
        section.add_problem("needs percent, above 0 and at most 100")
        share = 100.0
    section.end()
    return share / 100, often


def _read_note(table: CheckedTable, sources: Mapping[str, Source]) -> Note:
    note = Note(table.text("text", True), _read_source_key(table, sources))
    table.end()
    return note


def _read_notes(table: CheckedTable, sources: Mapping[str, Source]) -> list[Note]:
    place = f"{table.place}.notes"
    return [_read_note(CheckedTable(item, place, table.problems), sources)
            for item in table.items("notes")]  # fmt: skip


def _read_instance(
    table: CheckedTable, provider: str, name: str, sources: Mapping[str, Source]
) -> Instance:
    if not INSTANCE_NAME.fullmatch(name):
        table.add_problem("names may have letters, digits, '.', '_' and '-' only")
    limits = {}
    for key in ("uncached", "cached", "burst"):
        if table.has(key):
            section = table.table(key)
            mb = section.number("mb_s")
            limits[key] = InstanceLimit(section.number("iops"), mb * 1e6 if mb else None,
                                       _read_source_key(section, sources))  # fmt: skip
            section.end()
    if "uncached" not in limits:
        table.add_problem("needs uncached")
    table.end()
    return Instance(provider, name, sources, **limits)
