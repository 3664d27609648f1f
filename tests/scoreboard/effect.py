"""Kernel counters during a scenario, read independently of the session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

# Documentation/admin-guide/iostats.rst; times in ms, sectors of 512 bytes
NAMES = ("reads", "read_merges", "read_sectors", "read_ms", "writes", "write_merges",
         "write_sectors", "write_ms", "in_flight", "busy_ms", "weighted_ms", "discards",
         "discard_merges", "discard_sectors", "discard_ms", "flushes", "flush_ms")  # fmt: skip


Ticks = Sequence[Sequence[int]]
IDLE, SERVING, STEAL = (3, 4), (5, 6), 7
COMPLETED = ("reads", "writes", "discards")


@dataclass(frozen=True)
class State:
    """The counters at one moment: of the disk, of BLOCK softirqs and interrupts by CPU. ``watched``
    has the text of the files that the scenario watches (below /sys/block/DISK, if they don't begin
    with a slash)."""

    at: float
    disk: Mapping[str, int]
    softirqs: Sequence[int] = ()
    irqs: Mapping[str, Sequence[int]] = field(default_factory=dict)
    watched: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """Between two states: one run, or the time without one. ``ran`` (s), ``iops`` and ``latency``
    (ms) are fio's own, from its last document; 0 without one. ``each`` has the disk's completed
    I/Os of every second, ``ticks`` the CPUs' times at the first document and the last. ``delay`` is
    the part (0 to 1) of the time that a job of fio was ready to run and had no CPU, in the worst
    second. As fio reports them: ``own_cpu`` is a job's CPU time in percent, ``shallow`` the
    percentage of I/Os issued at half the requested depth or less, ``own`` the IOPS of every
    second."""

    before: State
    after: State
    ran: float = 0.0
    iops: float = 0.0
    latency: float = 0.0
    each: tuple[float, ...] = ()
    ticks: tuple[Ticks, Ticks] = ((), ())
    delay: float = 0.0
    own_cpu: float = 0.0
    shallow: float = 0.0
    own: tuple[float, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds of load: fio's own run time if known, because fio takes a while to begin and to
        end."""
        return self.ran or self.after.at - self.before.at

    def count(self, *names: str) -> int:
        """The increase of the disk's counters ``names``, added up."""
        return sum(self.after.disk[name] - self.before.disk[name] for name in names)

    @property
    def done(self) -> int:
        """Reads, writes and discards that the disk completed."""
        return self.count(*COMPLETED)

    @property
    def in_flight(self) -> float:
        """Mean of I/Os in the disk."""
        return self.count("weighted_ms") / 1000 / self.seconds

    @property
    def wait(self) -> float:
        """Mean time of an I/O in the disk, ms."""
        spent = self.count("read_ms", "write_ms", "discard_ms")
        return spent / self.done if self.done else 0.0

    def share(self, *kinds: int) -> list[float]:
        """Part of each CPU's time, 0 to 1, that went to these columns of /proc/stat."""
        shares = []
        for before, now in zip(*self.ticks, strict=True):
            growth = [b - a for a, b in zip(before, now, strict=True)]
            shares.append(sum(growth[kind] for kind in kinds) / max(sum(growth), 1))
        return shares

    def softirqs(self) -> list[int]:
        """BLOCK softirqs by CPU."""
        pairs = zip(self.after.softirqs, self.before.softirqs, strict=True)
        return [now - before for now, before in pairs]

    def irqs(self, of: str) -> list[int]:
        """Interrupts by CPU, of all lines with ``of`` in their names."""
        counts_by_cpu: list[int] = []
        for name, counts in self.after.irqs.items():
            if of in name:
                before = self.before.irqs.get(name, [0] * len(counts))
                growth = [now - earlier for now, earlier in zip(counts, before, strict=True)]
                counts_by_cpu = [
                    a + b for a, b in zip(counts_by_cpu or [0] * len(growth), growth, strict=True)
                ]
        return counts_by_cpu


@dataclass(frozen=True)
class Effect:
    """A scenario's effect: a span for each run (without a job: the only one)."""

    runs: Sequence[Span]

    @property
    def last(self) -> Span:
        return self.runs[-1]

    @property
    def stolen(self) -> bool:
        """Whether a CPU was taken away for more than a hundredth of a run (/proc/stat, steal)."""
        return any(share > 0.01 for run in self.runs for share in run.share(STEAL))

    @property
    def starved(self) -> bool:
        """Whether the jobs waited for a CPU for an eighth of some second."""
        return any(run.delay > 0.125 for run in self.runs)

    def summary(self) -> str:
        """The figures as a line of text."""
        return "; ".join(_run_text(run) for run in self.runs)


def _run_text(run: Span) -> str:
    texts = [
        f"fio {run.iops:.0f} IOPS {run.latency:.2f} ms (N {run.iops * run.latency / 1e3:.1f})",
        f"disk {run.done / run.seconds:.0f}/s {run.wait:.2f} ms (N {run.in_flight:.1f})",
    ]
    for name in ("read_merges", "write_merges", "discards", "flushes"):
        if run.count(name):
            texts.append(f"{run.count(name) / run.seconds:.0f} {name}/s")
    busy = [1 - share for share in run.share(*IDLE)]
    if busy:
        texts.append(f"CPUs busy {_percent(busy)}, by interrupts {_percent(run.share(*SERVING))}")
    if run.delay:
        texts.append(f"jobs waited for a CPU {100 * run.delay:.0f} %")
    if sum(run.softirqs()):
        texts.append(f"BLOCK softirqs {run.softirqs()}")
    texts += [f"{name} {run.before.watched[name]} → {text}" for name, text in
              run.after.watched.items() if text and "\n" not in text]  # fmt: skip
    return ", ".join(texts)


def _percent(shares: Sequence[float]) -> str:
    return "/".join(f"{100 * share:.0f}" for share in shares) + " %"


def read_delays(root: int) -> dict[int, int]:
    """For each job of fio below the process ``root``: ns in which it was ready to run without a CPU
    so far (/proc/PID/schedstat). Jobs are the children of fio's main process."""
    parents, fios = {}, set()
    for place in Path("/proc").glob("[0-9]*"):
        text = _text(place / "stat")
        name, _, fields = text.partition("(")[2].rpartition(")")
        if fields:
            parents[int(place.name)] = int(fields.split()[1])
            if name == "fio":
                fios.add(int(place.name))
    delays = {}
    for pid in fios:
        line = [pid]
        while line[-1] in parents:
            line.append(parents[line[-1]])
        delay = _text(Path("/proc", str(pid), "schedstat")).split()
        if root in line and line[1] in fios and len(delay) == 3:
            delays[pid] = int(delay[1])
    return delays


def most_delayed(marks: Sequence[tuple[float, Mapping[int, int]]]) -> float:
    """The largest mean share of the time in which jobs waited for a CPU, between two (time,
    delays)."""
    most = 0.0
    for place, (now, after) in enumerate(marks):
        # events that were read late come all at once
        earlier = [mark for mark in marks[:place] if now - mark[0] > 0.5]
        if not earlier:
            continue
        earlier_t, before = earlier[-1]
        growth = [after[pid] - before[pid] for pid in after if pid in before]
        if growth:
            most = max(most, sum(growth) / len(growth) / (now - earlier_t) / 1e9)
    return most


def read_done(disk: str) -> int:
    """The number of I/Os that the disk has completed."""
    now = parse_disk(Path("/proc/diskstats").read_text(), disk)
    return sum(now[name] for name in COMPLETED)


def read_state(at: float, disk: str, watch: Iterable[str]) -> State:
    """Read the current state. The text of an unreadable file is ""."""
    return State(
        at, parse_disk(Path("/proc/diskstats").read_text(), disk),
        parse_softirqs(Path("/proc/softirqs").read_text()),
        parse_interrupts(Path("/proc/interrupts").read_text()),
        {name: _texts(Path("/sys/block", disk), name) for name in watch},
    )  # fmt: skip


def rates(marks: Sequence[tuple[float, int]]) -> tuple[float, ...]:
    """Rates per second between successive (time, count) pairs."""
    return tuple((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(marks) if b[0] > a[0])


def parse_disk(text: str, disk: str) -> dict[str, int]:
    """The line of /proc/diskstats; zeros if there is none."""
    for line in text.splitlines():
        _, _, name, *counts = line.split()
        if name == disk:
            padded = [int(count) for count in counts] + [0] * len(NAMES)
            return dict(zip(NAMES, padded, strict=False))
    return dict.fromkeys(NAMES, 0)


def parse_softirqs(text: str) -> list[int]:
    """The counts of BLOCK, by possible CPU."""
    for line in text.splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "BLOCK":
            return [int(count) for count in counts.split()]
    return []


def read_ticks() -> Ticks:
    """The CPUs' ticks now."""
    return parse_ticks(Path("/proc/stat").read_text())


def parse_ticks(text: str) -> Ticks:
    """The first eight columns (user ... steal) of each online CPU's line."""
    lines = [line.split() for line in text.splitlines()]
    return [[int(tick) for tick in fields[1:9]] for fields in lines
            if fields and fields[0].startswith("cpu") and fields[0] != "cpu"]  # fmt: skip


def parse_interrupts(text: str) -> dict[str, list[int]]:
    """Counts by online CPU, by "NUMBER NAME" of the numbered lines."""
    lines = text.splitlines()
    cpus = len(lines[0].split()) if lines else 0
    counts_by_name = {}
    for line in lines[1:]:
        number, _, cells = line.partition(":")
        fields = cells.split()
        if number.strip().isdecimal() and len(fields) > cpus:
            counts_by_name[f"{number.strip()} {fields[-1]}"] = [
                int(field) for field in fields[:cpus]
            ]
    return counts_by_name


def own_figures(document: Mapping[str, Any]) -> tuple[float, float, float]:
    """fio's seconds, IOPS and mean latency in ms, over all its jobs and directions."""
    ran = iops = waited = 0.0
    for job in document.get("jobs", []):
        for direction in ("read", "write", "trim"):
            part = job.get(direction, {})
            ran = max(ran, part.get("runtime", 0) / 1000)
            iops += part.get("iops", 0.0)
            waited += part.get("iops", 0.0) * part.get("lat_ns", {}).get("mean", 0.0)
    return ran, iops, waited / iops / 1e6 if iops else 0.0


def own_load(document: Mapping[str, Any]) -> tuple[float, float]:
    """fio's CPU time of the busiest job in percent, and the percentage of its I/Os that were issued
    at half its iodepth or less (0 where it is 1)."""
    busy = shallow = 0.0
    for job in document.get("jobs", []):
        busy = max(busy, job.get("usr_cpu", 0.0) + job.get("sys_cpu", 0.0))
        depth = int(job.get("job options", {}).get("iodepth", 1))
        levels = job.get("iodepth_level", {})
        low = [share for name, share in levels.items()
               if name.isdigit() and int(name) <= depth // 2]  # fmt: skip
        shallow = max(shallow, sum(low))
    return busy, shallow


def _texts(directory: Path, name: str) -> str:
    """The text of a file, or of all files that match a pattern, joined by spaces."""
    if "*" not in name:
        return _text(directory / name)
    return " ".join(map(_text, sorted(directory.glob(name))))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
