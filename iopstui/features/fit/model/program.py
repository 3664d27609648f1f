"""A program as a file in fits/ describes it (docs/guide/fit.md): how it writes, and what it
needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from iopstui.errors import UsageError
from iopstui.model.experiment.expectation import Expectation, parse_expectation
from iopstui.model.fio.sizes import size_bytes
from iopstui.model.metrics.fields import BY_ID
from iopstui.model.metrics.figures import is_measurable
from iopstui.model.volumes.schema import CheckedTable

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
OPTIONS = frozenset({
    "ioengine", "rw", "bs", "bssplit", "bsrange", "fsync", "fdatasync", "sync_file_range", "size",
    "direct", "iodepth", "numjobs", "rate", "rate_iops", "rwmixread", "thinktime",
})  # fmt: skip
"""The options of fio that a program may have. None of them names a file or runs a command."""
ENGINES = ("sync", "psync", "pvsync", "pvsync2", "vsync", "libaio", "io_uring")
DEFAULT_S, LONGEST_S = 22.0, 27.0
"""Seconds to measure: an interval needs 20, and half a minute for each program is enough."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A published requirement: the ``expectation``, the name of the ``page`` that says it, its
    ``url``, and the day on which we ``read`` it."""

    expectation: Expectation
    page: str
    url: str
    read: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure without a bound: the ``path`` of its field, and what it means for the program."""

    name: str
    path: tuple[str, ...]
    means: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program. ``also`` are other names for it, ``needs`` and ``helps`` sentences, ``job`` has
    options of fio. ``preallocated``: its file is allocated, not written, before it writes to
    it."""

    name: str
    title: str
    also: tuple[str, ...]
    needs: str
    helps: str
    job: Mapping[str, str]
    seconds: float
    preallocated: bool
    bound: Bound | None
    shown: tuple[Shown, ...]
    seen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def block_size(self) -> float:
        """Mean bytes of a write."""
        if "bssplit" not in self.job:
            return float(size_bytes(self.job.get("bs", "4k")) or 4096)
        parts = [part.split("/") for part in self.job["bssplit"].split(":")]
        shares = [(size_bytes(size) or 0, float(share)) for size, share in parts]
        return sum(size * share for size, share in shares) / sum(share for _, share in shares)


def parse_program(data: Mapping[str, Any], name: str) -> tuple[Program | None, list[str]]:
    """The program in a file called ``name`` (``None`` if the file can't be used), and all that is
    wrong with the file."""
    problems: list[str] = []
    top = CheckedTable(data, "", problems)
    if not NAME.fullmatch(name):
        top.add_problem(f"the file's name {name!r} must be of a-z, 0-9, - and _")
    seconds = top.number("seconds") or DEFAULT_S
    if not 1 <= seconds <= LONGEST_S:
        top.add_problem(f"seconds must be 1 to {LONGEST_S:g}")
    program = Program(
        name, top.text("title", needed=True), tuple(map(str, top.items("also"))),
        top.text("needs", needed=True), top.text("helps"), _job(top.table("job")), seconds,
        top.boolean("preallocated"), _bound(top), _shown(top), _seen(top),
    )  # fmt: skip
    if not top.has("bound") and not top.has("figure"):
        top.add_problem("neither a [bound] nor a [[figure]]")
    top.end()
    return (None if problems else program), problems


def _job(table: CheckedTable) -> dict[str, str]:
    job: dict[str, str] = {}
    for name in table.data:
        table.known.add(name)
        job[name] = table.text(name, needed=True)
        if name not in OPTIONS:
            table.add_problem(f"{name} is not allowed here; allowed: {', '.join(sorted(OPTIONS))}")
        elif "\n" in job[name] or "$" in job[name]:
            table.add_problem(f"{name} must be one line without $")
    if job.get("ioengine", "sync") not in ENGINES:
        table.add_problem(f"ioengine must be one of {', '.join(ENGINES)}")
    for name in ("size", "bs"):
        if name in job and not size_bytes(job[name]):
            table.add_problem(f"{name} must be a size such as 64m")
    if "bssplit" in job and not re.fullmatch(r"\d+[km]?/\d+(:\d+[km]?/\d+)*", job["bssplit"]):
        table.add_problem("bssplit must be of the form 8k/90:16k/10")
    if "size" not in job:
        table.add_problem("no size")
    return job


def _bound(top: CheckedTable) -> Bound | None:
    if not top.has("bound"):
        return None
    table = top.table("bound")
    expectation = _expectation(table, table.text("expect", needed=True))
    bound = table.text("page", needed=True), table.text("url", needed=True), table.date("read")
    table.end()
    return Bound(expectation, *bound) if expectation is not None else None


def _shown(top: CheckedTable) -> tuple[Shown, ...]:
    figures = []
    for number, item in enumerate(top.items("figure"), 1):
        table = CheckedTable(item, f"figure {number}", top.problems)
        name, means = table.text("name", needed=True), table.text("means", needed=True)
        known = BY_ID.get(f"fio.{name}")
        table.end()
        if known is not None and is_measurable(known.path):
            figures.append(Shown(name, known.path, means))
        elif name:
            table.add_problem(f"no figure of fio over a whole run is called {name}")
    return tuple(figures)


def _expectation(table: CheckedTable, text: str) -> Expectation | None:
    if not text:
        return None
    try:
        expectation = parse_expectation(text)
    except UsageError as error:
        message = error.message.replace("--expect ", "").replace("'", '"')
        table.add_problem(f"{message} {error.hint}".strip().rstrip("."))
        return None
    if expectation.path[0] != "fio" or expectation.part is not None:
        table.add_problem(f"{text}: it must be an absolute figure of fio, such as sync.p99<=10ms")
        return None
    return expectation


def _seen(top: CheckedTable) -> Mapping[str, Any]:
    """What was observed of the real program: for people, and for the test that compares."""
    if not top.has("seen"):
        return {}
    table = top.table("seen")
    texts = {name: table.text(name, needed=True) for name in ("program", "load")}
    seen: dict[str, Any] = {**texts, "date": table.date("date"), "sync": table.text("sync")}
    for name in ("bytes_per_sync", "bytes_per_write", "sequential"):
        seen[name] = table.number(name)
    table.end()
    return seen
