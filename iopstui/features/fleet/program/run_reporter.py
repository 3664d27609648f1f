"""One run on many hosts: its printed output, when it ends, and its verdict."""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import Any, TextIO

from iopstui.cli.terminal import print_message
from iopstui.features.fleet.answer import FleetAnswers
from iopstui.features.fleet.fleet import Fleet, start_spread_ms
from iopstui.features.fleet.merging.figures import AbortCondition
from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.output.sinks import TotalsSink, totals_sink
from iopstui.features.fleet.output.wording import executed_text
from iopstui.features.fleet.program.record_file import LABEL
from iopstui.features.fleet.session import PlannedRun
from iopstui.format import print_line
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.model.metrics.load_series import LoadSeries
from iopstui.output.jsonl import dumps
from iopstui.session.tick.outcomes import NEVER_STEADY, SteadyStop

Object = dict[str, Any]


class RunPrinter:
    """Prints the seconds of a run, its answers, and when fio started; ``kind`` is the format."""

    def __init__(self, kind: str, planned: PlannedRun, out: TextIO, err: TextIO) -> None:
        self._kind, self._out, self._err = kind, out, err
        self._sink: TotalsSink | None = None
        self._first: int | None = None
        started = planned.start_event
        self._answers = FleetAnswers(planned.merger, started.hosts, started.watching)

    def sink(self) -> TotalsSink:
        """The output, made with the first second: if no run starts, nothing is printed."""
        if self._sink is None:
            self._sink = totals_sink(self._kind, self._out, self._err, LABEL)
        return self._sink

    def second(self, second: MergedInterval) -> None:
        """Print a second, and the answer if it has changed."""
        self.sink().second(second)
        if self._first is None:
            self._first = second.number
        answer = self._answers.second(second)
        if answer is not None:
            self.sink().answer((second.number - self._first) * second.interval_s, answer)

    def row(self, name: str, row: Object) -> None:
        """Take a host's line."""
        self._answers.note_row(name, row)
        if row["event"] == "executed" and self._kind == "jsonl":
            self.sink()
            with contextlib.suppress(RecursionError):
                print_line(dumps({**row, "host": name}), self._out)


class RunLimits:
    """When a run ends before its job does: --abort, --for and --until-steady."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._length_s = arguments.length
        self._aborts = [AbortCondition(text) for text in arguments.abort]
        self._deadline: float | None = None
        self.aborted = False
        self.length_reached = False
        self.until_steady: float | None = arguments.until_steady
        self._series = LoadSeries()
        self._steady = SteadyStop(self.until_steady or 0.0)

    def stop_reason(self, second: MergedInterval) -> str:
        """Why the run ends with this second; "" if it goes on."""
        for abort in self._aborts:
            if abort.feed(second):
                self.aborted = True
                return f"--abort {abort.text}"
        if self.until_steady and (reason := self._steady_reason(second)):
            return reason
        if self._length_s is None:
            return ""
        self._deadline = self._deadline or time.monotonic() + self._length_s
        self.length_reached = time.monotonic() >= self._deadline
        return "the time is over" if self.length_reached else ""

    @property
    def is_steady(self) -> bool:
        """Whether the run was ended because its total is steady."""
        return self._steady.steadiness is not None

    def _steady_reason(self, second: MergedInterval) -> str:
        """Why the run can end with this second; "" if it goes on. Hosts missing in a second are
        assumed to be as fast as the others."""
        total = second.sums.total
        if total is None or not second.counted:
            return ""
        iops = total.iops * second.expected / second.counted
        self._series.add_interval(second.interval_s, iops * second.interval_s)
        return self._steady.check(self._series)


def start_spread_text(fleet: Fleet) -> str:
    """Difference between the hosts' start times in words; "" for fewer than two."""
    start_spread = start_spread_ms(fleet.members)
    began = sum(member.executed_ns is not None for member in fleet.members.values())
    hosts = len(fleet.members)
    if start_spread is None or began < 2:
        return ""
    subject = "all hosts" if began == hosts else f"{began} of {hosts} hosts"
    return executed_text(*start_spread, subject)


def run_verdict(fleet: Fleet, run: RunLimits, met: bool) -> Verdict:
    """The verdict on a finished run."""
    if run.length_reached:
        return Verdict()
    if fleet.stop_reason and not run.aborted and not run.is_steady:
        lost = sum(member.is_lost for member in fleet.members.values())
        return Verdict(interrupted=not lost, failed=lost)
    failed = sum(bool(member.error) for member in fleet.members.values()) or int(run.aborted)
    is_steady = not run.until_steady or run.is_steady
    if not failed and not is_steady:
        print_message(NEVER_STEADY)
    return Verdict((Check("--expect", met), Check("steady state", is_steady)), failed=failed)
