"""A machine with 64 CPUs and an NVMe drive with 64 queues. It is emulated, and so slow that its
clocks drift. One in ten readings of its kernel counters is kept."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from iopstui.features.selftest.evidence import FAIL, MISSING, OK, Check, read_bundle, selftest_text
from iopstui.features.selftest.judge import judge

FOUND = read_bundle(Path(__file__).parents[1] / "fixtures" / "many-cpus" / "nvme-64-cpus.gz")
SLOW = {
    "known latency: fio, ns", "known latency: device, ns", "clock: wall against monotonic, ms",
    "own CPU use, of all CPUs",
}  # fmt: skip
"""Checks that such a machine really fails."""


@cache
def judged() -> tuple[Check, ...]:
    return tuple(judge(FOUND))


def verdicts(found: Sequence[Check]) -> dict[str, str]:
    return {one.name: one.verdict for one in found}


def test_all_but_its_slowness_is_right() -> None:
    made = verdicts(judged())
    assert {name for name, verdict in made.items() if verdict == FAIL} == SLOW
    assert {name for name, verdict in made.items() if verdict == MISSING} == {"iostat", "probe"}
    for what in ("BLOCK softirqs of CPU", "interrupts of the disk on CPU"):
        assert {made[f"{what} {cpu}"] for cpu in range(64)} == {OK}


def test_its_table_has_no_row_for_each_cpu() -> None:
    text = selftest_text(judged(), FOUND, 100)
    assert "interrupts of the disk on CPU 0 to 63" in text
    assert len(text.splitlines()) < 60


def test_reports_of_iostat_that_came_late_are_not_judged() -> None:
    late = next(one for one in judged() if one.name == "iostat")
    assert "too busy" in late.meaning


def test_a_shifted_queue_map_and_interrupts_on_another_cpu_fail() -> None:
    found = copy.deepcopy(FOUND)
    for one in found.vectors:
        one["hctx"] = None if one["hctx"] is None else (one["hctx"] + 1) % 64
    for frame in found.frames:
        frame["irqs"] = {irq: {"63": sum(cpus.values())} for irq, cpus in frame["irqs"].items()}
    made = verdicts(judge(found))
    assert made["queue map: queue of each interrupt"] == FAIL
    assert made["interrupts of the disk on CPU 63"] == FAIL
