"""Search for the limit: from the arguments to the exit code, with its table and JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from iopstui.cli.options import run_request
from iopstui.cli.terminal import kill_without_waiting, print_message, show, width
from iopstui.errors import EXIT_OK
from iopstui.features.limit.model import FOUND, UNSURE, Answer
from iopstui.features.limit.runner import LimitRunner, Row, share_text
from iopstui.features.limit.setup import (
    LimitSetup,
    command_line,
    plan_lines,
    require_whole_seconds,
    set_up,
)
from iopstui.format import latency, number, print_line, print_sentence
from iopstui.linux.kernel_files import Roots
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.output.narration import RunProgress
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.safety.signals import StopSignals
from iopstui.tables import aligned
from iopstui.text import printable, wrapped


def limit_text(
    setup: LimitSetup, answer: Answer, rows: Sequence[Row], closed: Row | None, saturated: str,
    width: int,
) -> str:  # fmt: skip
    """The runs (lowest rate first), the unchanged job for comparison, and the answer."""
    job = f"{setup.run.job} on {setup.target.name}"
    lines = [printable(f"{job}, random arrivals (open loop): {setup.keep.text}"), ""]
    lines += [*table_lines(setup, rows, closed), ""]
    for note in answer.notes:
        lines.append(wrapped(printable(note), 0, 0, max(width, 40)))
    if saturated:
        lines.append(wrapped(printable(saturated), 0, 0, max(width, 40)))
    return "\n".join([*lines, wrapped(printable(answer.text), 0, 0, max(width, 40))])


def table_lines(
    setup: LimitSetup, rows: Sequence[Row], closed: Row | None
) -> list[str]:  # fmt: skip
    """The table: its heading, a line for each run (lowest rate first), and at the end the unchanged
    job."""
    keep = setup.keep
    head = ("RATE/S", keep.path[-1].upper(), f"OVER {latency(keep.required)}", "SECONDS",
            "IN FLIGHT", "")  # fmt: skip
    shown = sorted(rows, key=lambda row: row.asked or 0.0) + ([closed] if closed else [])
    return [*aligned([head, *(_cells(row, setup.allowed) for row in shown)], right=range(5))]


def _cells(row: Row, allowed: float) -> tuple[str, ...]:
    kept = "keeps it" if row.share <= allowed else "too slow"
    if row.asked is None:
        kept = "as it is (closed loop)"
    elif row.left_out:
        kept = row.left_out
    elif row.full_s and row.share <= allowed:
        kept = f"the queue may have been full in {row.full_s} s"
    rate = row.point.iops if row.asked is None else row.asked
    return (
        f"{rate:,.0f}", latency(row.figure_ns), share_text(row.share),
        f"{row.point.seconds:.0f}", number(row.point.in_flight), kept,
    )  # fmt: skip


def limit_json(
    setup: LimitSetup, answer: Answer, rows: Sequence[Row], closed: Row | None, saturated: str
) -> dict[str, Any]:
    """The answer as an object for JSON. Rates are in I/Os per second, latencies in ns."""
    return {
        "job": setup.run.job, "target": setup.target.path, "keep": setup.keep.text,
        "bound_ns": setup.keep.required, "allowed_share": setup.allowed, "result": answer.kind,
        "low": answer.low, "high": answer.high, "best": answer.best, "text": answer.text,
        "notes": list(answer.notes), "saturated": saturated or None,
        "closed_loop": None if closed is None else _row_json(closed),
        "runs": [_row_json(row) for row in rows],
    }  # fmt: skip


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "rate": row.asked, "iops": row.point.iops, "latency_ns": row.figure_ns,
        "slow_share": row.share, "seconds": row.point.seconds, "in_flight": row.point.in_flight,
        "iodepth": row.depth, "full_seconds": row.full_s, "disturbed": row.spoiled or None,
        "left_out": row.left_out or None,
    }  # fmt: skip


def run_limit(arguments: argparse.Namespace) -> int:
    """Run `iopstui limit`. Returns the exit code. The table or JSON goes to stdout, everything else
    to stderr."""
    request = replace(run_request(arguments), job=arguments.job)
    require_whole_seconds(request.interval_s)
    setup = set_up(request, arguments.keep, arguments.time)
    stream = sys.stdout if arguments.dry_run else sys.stderr
    for line in plan_lines(setup):
        print_sentence(line, stream)
    if arguments.dry_run:
        print_line(f"a rate alone: {command_line(setup)}", stream)
        return EXIT_OK
    clean_up_and_report(print_message, Roots())
    progress = RunProgress(sys.stderr, sys.stdout)
    runner = LimitRunner(setup, progress.handle, progress.write_note)
    StopSignals(runner.loop.stop, kill_without_waiting(runner.loop.kill))
    answer = runner.run()
    outcome = setup, answer, runner.rows, runner.closed, runner.saturated()
    if arguments.json:
        show(json.dumps(limit_json(*outcome), indent=2))
    else:
        show(limit_text(*outcome, width()))
    interrupted = runner.loop.interrupted
    if interrupted:
        print_message("Interrupted: these are the rates measured so far.")
    passed = answer.kind == FOUND or (None if answer.kind == UNSURE else False)
    return Verdict((Check(setup.keep.text, passed, answer.text),), interrupted).exit_code
