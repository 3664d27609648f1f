"""What was found of programs: a table for people, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from iopstui.features.fit.model.judgement import FAIL, NO_BOUND, PASS, UNDECIDED, Judgement, Row
from iopstui.format import latency, mib, number
from iopstui.model.experiment.verdict import Check
from iopstui.model.metrics.fields import BY_ID
from iopstui.tables import aligned
from iopstui.text import printable, wrapped

HEAD = ("PROGRAM", "FIGURE", "NEEDS", "MEASURED", "95 % INTERVAL", "RESULT")


def fit_text(
    judgements: Sequence[Judgement], place: str, width: int, details: bool = False
) -> str:  # fmt: skip
    """The table, what it means, and the last line. Of several programs a sentence each, so that
    they fit one screen, but with ``details`` all."""
    cells: list[Sequence[str]] = [HEAD]
    cells += [
        (each.program.name if not number_ else "", *_cells(row))
        for each in judgements for number_, row in enumerate(each.rows)
    ]  # fmt: skip
    lines = [place, "", *aligned(cells)]
    if len(judgements) > 1 and not details:
        short = (f"{each.program.name}: {_short(each)}" for each in judgements)
        lines += ["", *(wrapped(printable(text), 0, 0, max(width, 40)) for text in short)]
        return "\n".join([*lines, "", _last_line(judgements), "All that is known: --details."])
    for each in judgements:
        needs = f"{each.program.title}. {each.program.needs}"
        lines += ["", wrapped(printable(needs), 0, 0, max(width, 40))]
        for sentence in _sentences(each):
            lines.append(wrapped(printable(sentence), 2, 2, max(width, 40)))
    return "\n".join([*lines, "", _last_line(judgements)])


def _short(judgement: Judgement) -> str:
    """What matters most: the result of the bound and its reason, or what the first figure means."""
    row = judgement.rows[0]
    note = ""
    if row.bound is not None:
        text = f"{row.result}: {row.why}" if row.why else row.result
    else:
        text = f"{figure_text(row, row.figure.value)}: {row.means}"
        note = " Disturbed, perhaps slower than alone." if judgement.disturbed else ""
    return f"{text}.{note}"


def _sentences(judgement: Judgement) -> Iterator[str]:
    program = judgement.program
    for row in judgement.rows:
        if row.why:
            yield f"{row.result}: {row.why}."
        elif row.figure.value is not None and row.bound is None:
            doubt = "too unsteady to say more" if row.figure.is_unsteady else row.figure.why
            note = f" ({doubt})" if doubt else ""
            yield f"{figure_text(row, row.figure.value)}{note}: {row.means}."
    if judgement.disturbed and program.bound is None:
        yield f"Disturbed, perhaps slower than alone: {judgement.disturbed[0]}."
    if judgement.time.text:
        binding = f" Most of that is {judgement.time.binding}." if judgement.time.binding else ""
        yield f"{judgement.time.text}.{binding}"
    if program.helps and any(row.result != PASS for row in judgement.rows):
        yield _what_helps(judgement)
    if program.bound is not None:
        yield f"Bound: {program.bound.page} ({program.bound.url}, read {program.bound.read})."


def _what_helps(judgement: Judgement) -> str:
    """What may help, and how little a faster drive saves where most of the time is not its own."""
    time, helps = judgement.time, judgement.program.helps
    if not time.is_above_disk:
        return f"May help: {helps}."
    return (f"A faster drive saves at most {latency(time.on_disk)} of a sync: first find what "
            f"waits above the disk (iopstui why). Then may help: {helps}.")  # fmt: skip


def _cells(row: Row) -> tuple[str, ...]:
    low, high = row.figure.low, row.figure.high
    within = NO_BOUND if low is None or high is None else (
        f"{figure_text(row, low)} to {figure_text(row, high)}")  # fmt: skip
    needs = ""
    if row.bound is not None:
        expectation = row.bound.expectation
        sign = "≤" if expectation.op == "<=" else "≥"
        needs = f"{sign} {figure_text(row, expectation.required)}"
    return (row.name, needs, figure_text(row, row.figure.value), within, row.result)


def figure_text(row: Row, value: float | None) -> str:
    if value is None:
        return NO_BOUND
    unit = BY_ID[f"fio.{row.name.removeprefix('fio.')}"].unit
    if unit == "ns":
        return latency(value)
    return f"{mib(value)} MiB/s" if unit == "B/s" else f"{number(value)}/s"


def _last_line(judgements: Sequence[Judgement]) -> str:
    results = [row.result for each in judgements for row in each.rows if row.bound is not None]
    without = sum(1 for each in judgements if each.program.bound is None)
    passed, failed = results.count(PASS), results.count(FAIL)
    if not results:
        return "No published bound to judge by."
    word = FAIL if failed else UNDECIDED if passed < len(results) else PASS
    text = f"{passed} passed, {failed} failed, {len(results) - passed - failed} undecided"
    more = f"; {without} without a published bound" if without else ""
    return f"{word}: {text}{more}."


def checks_of(judgements: Sequence[Judgement]) -> tuple[Check, ...]:
    """The bounds, for the exit code and for CI systems."""
    outcome = {PASS: True, FAIL: False}
    return tuple(
        Check(
            f"{each.program.name}: {row.bound.expectation.text}", outcome.get(row.result),
            f"measured {figure_text(row, row.figure.value)}" + (f"; {row.why}" if row.why else ""),
        )
        for each in judgements for row in each.rows if row.bound is not None
    )  # fmt: skip


def fit_json(judgements: Sequence[Judgement], place: str) -> dict[str, Any]:
    """The answer as an object for JSON: rates a second, bytes a second, times in ns."""
    return {"directory": place, "programs": [_program_json(each) for each in judgements]}


def _program_json(judgement: Judgement) -> dict[str, Any]:
    program, time = judgement.program, judgement.time
    return {
        "name": program.name, "title": program.title, "needs": program.needs,
        "job": dict(program.job), "rows": [_row_json(row) for row in judgement.rows],
        "disturbed": list(judgement.disturbed), "binding": time.binding or None,
        "sync_ns": time.whole, "flushes_ns": time.flushes, "writes_ns": time.writes,
        "helps": program.helps or None,
    }  # fmt: skip


def _row_json(row: Row) -> dict[str, Any]:
    bound = row.bound
    figure = row.figure
    return {
        "figure": row.name, "unit": BY_ID[f"fio.{row.name.removeprefix('fio.')}"].unit,
        "measured": figure.value, "low": figure.low, "high": figure.high,
        "expect": bound.expectation.text if bound else None,
        "source": {"page": bound.page, "url": bound.url, "read": bound.read} if bound else None,
        "means": row.means or None, "result": row.result if bound else None,
        "why": row.why or figure.why or None,
    }  # fmt: skip
