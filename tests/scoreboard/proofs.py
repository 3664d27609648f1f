"""Proofs: what the kernel's counters must show, so that a scenario's situation was real."""

from __future__ import annotations

import re
from statistics import mean

from effect import IDLE, SERVING, Effect
from scenario import Proof

PSI = "/proc/pressure/memory"


def every(*proofs: Proof) -> Proof:
    """All of these proofs."""

    def proof(effect: Effect) -> str:
        return next(filter(None, (proof(effect) for proof in proofs)), "")

    return proof


def rate(least: float, *names: str, most: float = float("inf")) -> Proof:
    """The sum of these counters of the disk grows by ``least`` to ``most`` a second in the last
    run."""

    def proof(effect: Effect) -> str:
        per_s = effect.last.count(*names) / effect.last.seconds
        return "" if least <= per_s <= most else f"{per_s:.0f} {'+'.join(names)}/s in the disk"

    return proof


def worked(least: float, most: float = float("inf")) -> Proof:
    """fio's IOPS are within these bounds in every run."""

    def proof(effect: Effect) -> str:
        unfit = [run.iops for run in effect.runs if not least <= run.iops <= most]
        return f"fio made {unfit[0]:.0f} IOPS" if unfit else ""

    return proof


def inside(effect: Effect) -> str:
    """In every run, the I/Os that fio has in flight are in the disk."""
    for run in effect.runs:
        in_flight = run.iops * run.latency / 1000
        if in_flight > 1.5 * run.in_flight + 0.5:
            return f"fio's N is {in_flight:.1f}, the disk's {run.in_flight:.1f}"
    return ""


def queued(least: float) -> Proof:
    """In the last run, at least ``least`` requests are in the disk at a time."""

    def proof(effect: Effect) -> str:
        held = effect.last.in_flight
        return "" if held >= least else f"only {held:.1f} requests are in the disk at a time"

    return proof


def outside(effect: Effect) -> str:
    """In the last run, most of fio's I/Os in flight wait before the disk."""
    run = effect.last
    in_flight = run.iops * run.latency / 1000
    if in_flight < 2 * run.in_flight:
        return f"fio's N is {in_flight:.1f}, the disk's {run.in_flight:.1f}"
    return ""


def saturates(effect: Effect) -> str:
    """From the first run to the last, latency grows and IOPS don't."""
    first, last = effect.runs[0], effect.last
    if abs(last.iops / max(first.iops, 1) - 1) > 0.1 or last.latency < 2 * first.latency:
        return f"IOPS {first.iops:.0f} → {last.iops:.0f}, {first.latency} → {last.latency} ms"
    return ""


def scales(effect: Effect) -> str:
    """From the first run to the last, IOPS grow and latency doesn't."""
    first, last = effect.runs[0], effect.last
    if last.iops < 2 * first.iops or last.latency > 1.5 * first.latency:
        return f"IOPS {first.iops:.0f} → {last.iops:.0f}, {first.latency} → {last.latency} ms"
    return ""


def steps_down(effect: Effect) -> str:
    """The disk's I/Os of the last seconds are less than half of those of the first."""
    per_second = [rate for rate in effect.last.each if rate > 1]
    if len(per_second) < 10 or mean(per_second[-4:-1]) > 0.5 * mean(per_second[1:4]):
        return f"I/Os per second: {', '.join(f'{rate:.0f}' for rate in per_second)}"
    return ""


def steps_up(least: float) -> Proof:
    """The disk's I/Os per second rise from the first to the last seconds by at least the part
    ``least``: following the advice has helped."""

    def proof(effect: Effect) -> str:
        per_second = [rate for rate in effect.last.each if rate > 1]
        if len(per_second) < 10 or mean(per_second[-4:-1]) < (1 + least) * mean(per_second[1:4]):
            return f"I/Os per second: {', '.join(f'{rate:.0f}' for rate in per_second)}"
        return ""

    return proof


def recovers(least: float) -> Proof:
    """The job's IOPS rise from the worst to the last seconds by at least the part ``least``:
    following the advice has helped."""

    def proof(effect: Effect) -> str:
        per_second = effect.last.own
        threes = [mean(per_second[at : at + 3]) for at in range(1, len(per_second) - 4)]
        if not threes or mean(per_second[-3:-1]) < max(1.0, (1 + least) * min(threes)):
            return f"the job's IOPS: {', '.join(f'{rate:.0f}' for rate in per_second)}"
        return ""

    return proof


def gains(least: float) -> Proof:
    """From the first run to the last, fio's IOPS grow by at least the part ``least``: following the
    advice has helped."""

    def proof(effect: Effect) -> str:
        first, last = effect.runs[0].iops, effect.last.iops
        return "" if last >= (1 + least) * first else f"IOPS {first:.0f} → {last:.0f}"

    return proof


def answers_faster(least: float) -> Proof:
    """From the first run to the last, fio's mean latency falls to 1/``least`` of it or less."""

    def proof(effect: Effect) -> str:
        first, last = effect.runs[0].latency, effect.last.latency
        return "" if 0 < last * least <= first else f"{first:.3f} → {last:.3f} ms"

    return proof


def falls(name: str, most: float) -> Proof:
    """From the first run to the last, this counter of the disk for each I/O of fio falls to the
    part ``most`` or less: following the advice has helped."""

    def proof(effect: Effect) -> str:
        first, last = (
            run.count(name) / max(1.0, run.iops * run.seconds)
            for run in (effect.runs[0], effect.last)
        )
        return "" if last <= most * first else f"{name} for each I/O: {first:.2f} → {last:.2f}"

    return proof


def pauses(effect: Effect) -> str:
    """The disk completed I/Os, and then nothing for two seconds or more."""
    per_second = effect.last.each
    gaps = "".join("." if rate < 1 else "x" for rate in per_second).split("x")
    longest_pause = max((len(gap) for gap in gaps),
                default=0)  # fmt: skip
    if longest_pause < 2 or max(per_second, default=0) < 10:
        return f"I/Os per second: {', '.join(f'{rate:.0f}' for rate in per_second)}"
    return ""


def delayed(least: float) -> Proof:
    """Jobs were ready to run without a CPU for at least the part ``least`` (0 to 1) of some
    second."""

    def proof(effect: Effect) -> str:
        delay = effect.last.delay
        return "" if delay >= least else f"jobs waited for a CPU {100 * delay:.0f} % at most"

    return proof


def below(least: float, name: str = "read") -> Proof:
    """The devices below (watched as slaves/*/stat) did at least ``least`` reads, or "all" I/Os, for
    each I/O of the disk."""

    def proof(effect: Effect) -> str:
        before, after = (_stat(state.watched.get("slaves/*/stat", ""), name)
                         for state in (effect.last.before, effect.last.after))  # fmt: skip
        reads_per_io = (after - before) / max(effect.last.done, 1)
        return "" if reads_per_io >= least else f"{reads_per_io:.2f} {name} I/Os below for each"

    return proof


def _stat(text: str, name: str) -> int:
    """The sum of reads, or of reads and writes, of several /sys/block/X/stat in one text (17 words
    each)."""
    fields = [int(field) for field in text.split()]
    rows = [fields[at : at + 17] for at in range(0, len(fields), 17)]
    return sum(row[0] + (row[4] if name == "all" else 0) for row in rows if len(row) > 4)


def memory_pressure(effect: Effect) -> str:
    """Tasks waited for memory for a tenth of the last run (/proc/pressure/memory, watched)."""
    before, after = (
        int(match[1]) if (match := re.search(r"some .*total=(\d+)", state.watched.get(PSI, "")))
        else 0 for state in (effect.last.before, effect.last.after)
    )  # fmt: skip
    share = (after - before) / 1e6 / effect.last.seconds
    return "" if share >= 0.1 else f"memory pressure {100 * share:.0f} %"


def request_size(most: float) -> Proof:
    """The mean read or write has at most ``most`` bytes."""

    def proof(effect: Effect) -> str:
        run = effect.last
        size = 512 * run.count("read_sectors", "write_sectors") / max(run.done, 1)
        return "" if 0 < size <= most else f"requests of {size:.0f} bytes"

    return proof


def file_is(name: str, *texts: str) -> Proof:
    """At the end the text of a watched file is one of these."""

    def proof(effect: Effect) -> str:
        text = effect.last.after.watched.get(name, "")
        return "" if text in texts else f"{name} is {text!r}"

    return proof


def counter_grew(name: str) -> Proof:
    """A watched counter (may be hexadecimal) grew."""

    def proof(effect: Effect) -> str:
        before, after = (int(state.watched.get(name) or "0", 0)
                         for state in (effect.runs[0].before, effect.last.after))  # fmt: skip
        return "" if after > before else f"{name} stands at {after}"

    return proof


def throttled(effect: Effect) -> str:
    """The scheduler throttled the group, according to some watched cpu.stat."""
    before, after = (
        sum(int(periods) for text in state.watched.values()
            for periods in re.findall(r"^nr_throttled (\d+)", text, re.MULTILINE))
        for state in (effect.runs[0].before, effect.last.after)
    )  # fmt: skip
    return "" if after > before + 10 else f"throttled {after - before} times"


def serves(least: float) -> Proof:
    """A CPU spent at least the part ``least`` (0 to 1) of the last run in interrupts and
    softirqs."""

    def proof(effect: Effect) -> str:
        most = max(effect.last.share(*SERVING))
        return "" if most >= least else f"interrupts take {100 * most:.0f} % of a CPU at most"

    return proof


def busy(least: float) -> Proof:
    """On average, all CPUs were busy for at least the part ``least`` (0 to 1) of the last run."""

    def proof(effect: Effect) -> str:
        all_of_them = mean(1 - share for share in effect.last.share(*IDLE))
        return "" if all_of_them >= least else f"the CPUs are {100 * all_of_them:.0f} % busy"

    return proof


def on_one_cpu(least: float = 500, irq: str = "") -> Proof:
    """Nine tenths of the BLOCK softirqs, or of an interrupt, came on one CPU, at least ``least`` a
    second."""

    def proof(effect: Effect) -> str:
        counts = effect.last.irqs(irq) if irq else effect.last.softirqs()
        total = sum(counts)
        if total < least * effect.last.seconds or max(counts) < 0.9 * total:
            return f"{irq or 'BLOCK softirqs'} came on CPUs as {counts}"
        return ""

    return proof


def spread(effect: Effect) -> str:
    """No CPU had more than three quarters of the BLOCK softirqs, which were 200/s or more."""
    counts = effect.last.softirqs()
    if sum(counts) < 200 * effect.last.seconds or max(counts) > 0.75 * sum(counts):
        return f"BLOCK softirqs came on CPUs as {counts}"
    return ""


def on_cpus(least: int, irq: str) -> Proof:
    """The interrupt came on at least ``least`` CPUs."""

    def proof(effect: Effect) -> str:
        counts = effect.last.irqs(irq)
        return "" if sum(count > 20 for count in counts) >= least else f"{irq} came as {counts}"

    return proof


def softirqs(least: float) -> Proof:
    """Some CPU had at least ``least`` BLOCK softirqs per second."""

    def proof(effect: Effect) -> str:
        most = max(effect.last.softirqs()) / effect.last.seconds
        return "" if most >= least else f"{most:.0f} BLOCK softirqs/s on the busiest CPU"

    return proof
