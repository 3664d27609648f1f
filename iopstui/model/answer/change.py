"""The answer in the first seconds after a changed option: what it changed."""

from __future__ import annotations

from iopstui import format as units
from iopstui.model.answer.answer import GOOD, NOTHING, OF_A_SECOND, Answer
from iopstui.model.metrics.run_history import RunRow

ENOUGH_S = 1.9
"""Seconds that were measured with the new value."""
NEWS_S = 10.0
"""The change is shown for this long, unless something is worse."""


def change_answer(before: RunRow, now: RunRow, makes_file: bool = False) -> Answer | None:
    """ "iodepth 1 → 32: 2.30k → 14.1k IOPS, p99 0.50 → 2.20 ms"; ``None`` if the run ``now`` has no
    changed option, or is old enough for the usual answer. ``makes_file``: fio still makes the file
    of the run."""
    measured = now.seconds or 0.0
    if not now.changed or before.iops is None or measured > NEWS_S:
        return None
    if measured < ENOUGH_S or now.iops is None:
        figures = [f"before it {units.number(before.iops)} IOPS"]
        if before.p99_ns is not None:
            figures.append(f"p99 {units.latency(before.p99_ns)}")
        does = "its file is made first" if makes_file else "measuring"
        text = f"{now.what}: {does}; {', '.join(figures)}"
    else:
        text = f"{now.what}: {units.number(before.iops)} → {units.number(now.iops)} IOPS"
        if before.p99_ns is not None and now.p99_ns is not None and before.bins_of == now.bins_of:
            text += f", p99 {units.latency(before.p99_ns)} → {units.latency(now.p99_ns)}"
    return Answer("", OF_A_SECOND, GOOD, text, NOTHING)
