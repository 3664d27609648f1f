"""Events of the block layer and of fio's system calls, from the kernel's own trace (tracefs)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

TRACING = Path("/sys/kernel/tracing")
INSTANCE = TRACING / "instances" / "iopstui-waits"
MIB_PER_CPU = 48
BLOCK = ("block_bio_queue", "block_bio_complete", "block_bio_remap", "block_rq_issue",
         "block_rq_complete")  # fmt: skip
CALLS = ("io_submit", "io_getevents", "pread64", "pwrite64", "fsync", "fdatasync")
SCHED = {
    "sched_switch": 'prev_comm == "fio" || next_comm == "fio"',
    "sched_wakeup": 'comm == "fio"',
    "sched_wakeup_new": 'comm == "fio"',
}
_LINE = re.compile(r"\s*(.+)-(\d+)\s+\[\d+\]\s+\S+\s+([\d.]+): (\w+)(.*)")
_BLOCK = re.compile(
    r": (\d+),(\d+) (\S+) (?:\d+ )?(?:\(.*?\) )?(\d+) \+ (\d+)"
    r"(?: <- \((\d+),(\d+)\) (\d+)|.*\[(.*)\])"
)
_FIELD = re.compile(r"(\w+)=(\S+)")

Device = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BlockEvent:
    """``name`` is the tracepoint's name without "block_"; ``t`` is in seconds of CLOCK_MONOTONIC.
    ``old`` and ``old_sector`` are the device and sector above a remap, ``comm`` is the task that
    queued it."""

    t: float
    name: str
    task: int
    device: Device
    kind: str
    sector: int
    sectors: int
    old: Device | None = None
    old_sector: int = 0
    comm: str = ""


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A system call of fio begins, or ends with ``result``."""

    t: float
    name: str
    task: int
    result: int | None = None


@dataclass(frozen=True, slots=True)
class SchedEvent:
    """A task of fio became ready to run, got a CPU, or lost it (``ready``: it still wants one)."""

    t: float
    name: str
    task: int
    ready: bool = False


Event = BlockEvent | CallEvent | SchedEvent


class IoTrace:
    """Enables the tracepoints, only for these devices, in a tracefs instance of its own."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = devices

    def __enter__(self) -> IoTrace:
        INSTANCE.mkdir(exist_ok=True)
        _write("tracing_on", "0")
        _write("trace_clock", "mono")
        _write("options/overwrite", "0")
        _write("buffer_size_kb", str(MIB_PER_CPU << 10))
        _write("trace", "")
        only = " || ".join(f"dev == {major << 20 | minor}" for major, minor in self._devices)
        for name in BLOCK:
            _write(f"events/block/{name}/filter", only)
            _write(f"events/block/{name}/enable", "1")
        for name in CALLS:
            for side in ("enter", "exit"):
                _write(f"events/syscalls/sys_{side}_{name}/filter", 'comm == "fio"')
                _write(f"events/syscalls/sys_{side}_{name}/enable", "1")
        for name, condition in SCHED.items():
            _write(f"events/sched/{name}/filter", condition)
            _write(f"events/sched/{name}/enable", "1")
        _write("tracing_on", "1")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _write("tracing_on", "0")
        INSTANCE.rmdir()

    def events(self) -> list[Event]:
        """All events so far. Raises RuntimeError if some were lost."""
        _write("tracing_on", "0")
        lost = 0
        for file in INSTANCE.glob("per_cpu/cpu*/stats"):
            fields = dict(line.split(":", 1) for line in file.read_text().splitlines())
            lost += int(fields["overrun"]) + int(fields["dropped events"])
        if lost:
            raise RuntimeError(f"{lost} trace events were lost: the buffers are too small")
        with open(INSTANCE / "trace", encoding="utf-8", errors="replace") as file:
            return list(parse(file))


def _write(name: str, text: str) -> None:
    (INSTANCE / name).write_text(text)


def parse(lines: Iterable[str]) -> Iterator[Event]:
    """The events in these lines of the tracefs file ``trace``."""
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        task, t, name, arguments = int(match[2]), float(match[3]), match[4], match[5]
        if name.startswith("block_"):
            event = _block(t, name.removeprefix("block_"), task, arguments)
            if event is not None:
                yield event
        elif name.startswith("sys_"):
            result = int(arguments.split("->", 1)[1], 0) if "->" in arguments else None
            if result is not None and result >= 1 << 63:
                result -= 1 << 64
            yield CallEvent(t, name.removeprefix("sys_"), task, result)
        else:
            yield from _sched(t, name, arguments)


def _block(t: float, name: str, task: int, arguments: str) -> BlockEvent | None:
    match = _BLOCK.match(arguments)
    if match is None:
        return None
    old = (int(match[6]), int(match[7])) if match[6] else None
    return BlockEvent(
        t, name, task, (int(match[1]), int(match[2])), match[3], int(match[4]), int(match[5]),
        old, int(match[8] or 0), match[9] or "",
    )  # fmt: skip


def _sched(t: float, name: str, arguments: str) -> Iterator[SchedEvent]:
    fields = dict(_FIELD.findall(arguments))
    if name != "sched_switch":
        head = arguments.split("comm=", 1)[-1]
        if head.startswith("fio "):
            yield SchedEvent(t, "wakeup", int(fields["pid"]))
        return
    if fields.get("prev_comm") == "fio":
        ready = fields["prev_state"].startswith("R")
        yield SchedEvent(t, "out", int(fields["prev_pid"]), ready)
    if fields.get("next_comm") == "fio":
        yield SchedEvent(t, "in", int(fields["next_pid"]))
