"""Promised and measured figures side by side: a table for people, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iopstui.features.promise.model.checks import LATENCY
from iopstui.features.promise.model.verdict import FAIL, PASS, Verdict, is_promise_met
from iopstui.format import latency
from iopstui.model.volumes.promised import PromisedFigures
from iopstui.model.volumes.volume import IOPS
from iopstui.output.pages.volumes import outdated, volume_json
from iopstui.tables import aligned
from iopstui.text import printable, wrapped

HEAD = ("FIGURE", "PROMISED", "MEASURED", "95 % INTERVAL", "RESULT", "BINDING LIMIT")


def promise_text(
    promised: PromisedFigures, rows: Sequence[Verdict], titles: Sequence[str], width: int
) -> str:
    """The table and its last line; ``titles`` are the titles of the ``rows``."""
    size = f", {promised.size_gib:,.4g} GiB" if promised.size_gib else ""
    instance = f", on {promised.instance.id}" if promised.instance is not None else ""
    cells = [HEAD, *(_cells(row, title) for row, title in zip(rows, titles, strict=True))]
    lines = [printable(f"{promised.volume.id}: {promised.volume.title}{size}{instance}"), ""]
    lines += aligned(cells)
    notes = [(title, row.why) for row, title in zip(rows, titles, strict=True) if row.why]
    if notes:
        lines.append("")
    for title, why in notes:
        lines.append(wrapped(printable(f"{title}: {why}."), 0, 2, max(width, 40)))
    warmup = promised.volume.warmup
    if warmup is not None and any(row.result == FAIL for row in rows):
        lines.append(wrapped(printable(f"Warm-up: {warmup.text}"), 0, 2, max(width, 40)))
    old = outdated(promised.volume)
    if old and any(row.result == FAIL for row in rows):
        lines.append(wrapped(printable(old), 0, 2, max(width, 40)))
    return "\n".join([*lines, "", _verdict_line(rows)])


def _cells(row: Verdict, title: str) -> tuple[str, ...]:
    low, high = row.low, row.high
    within = "–" if low is None or high is None or high == float("inf") else (
        f"{_figure(row, low, bare=True)} to {_figure(row, high, bare=True)}")  # fmt: skip
    sign = "≤ " if row.check.kind == LATENCY else ""
    return (
        title + (" (burst)" if row.burst else ""), sign + _figure(row, row.promised),
        _figure(row, row.measured), within, row.result, row.binding or "–",
    )  # fmt: skip


def _figure(row: Verdict, value: float | None, bare: bool = False) -> str:
    if value is None:
        return "–"
    if row.check.kind == LATENCY:
        return latency(value)
    if row.check.kind == IOPS:
        return f"{value:,.0f}" + ("" if bare else " IOPS")
    return f"{value * row.check.block_size / 1e6:,.4g}" + ("" if bare else " MB/s")


def _verdict_line(rows: Sequence[Verdict]) -> str:
    failed = sum(1 for row in rows if row.result == FAIL)
    passed = sum(1 for row in rows if row.result == PASS)
    undecided = len(rows) - failed - passed
    text = f"{passed} passed, {failed} failed, {undecided} undecided"
    return f"{'PASS' if is_promise_met(rows) else 'FAIL' if failed else 'UNDECIDED'}: {text}."


def promise_json(
    promised: PromisedFigures, rows: Sequence[Verdict], titles: Sequence[str]
) -> dict[str, Any]:
    """Return the verdict as an object for JSON. IOPS and bytes per second; latencies in ns."""
    return {
        "volume": volume_json(promised.volume, promised),
        "rows": [_row_json(row, title) for row, title in zip(rows, titles, strict=True)],
        "met": is_promise_met(rows),
    }


def _row_json(row: Verdict, title: str) -> dict[str, Any]:
    flow = row.check.kind not in (LATENCY, IOPS)

    def unit(value: float | None) -> float | None:
        if value is None or value == float("inf"):
            return None
        return value * row.check.block_size if flow else value

    return {
        "figure": title, "kind": row.check.kind, "direction": row.check.direction,
        "rw": row.check.rw, "load": row.check.load or None, "block_size": row.check.block_size,
        "burst": row.burst,
        "unit": "bytes/s" if flow else "ns" if row.check.kind == LATENCY else "1/s",
        "promised": unit(row.promised), "measured": unit(row.measured), "low": unit(row.low),
        "high": unit(row.high), "result": row.result, "binding": row.binding or None,
        "why": row.why or None,
    }  # fmt: skip
