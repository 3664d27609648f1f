"""Wording of messages about many hosts."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from iopstui.events import ExpectationChecked
from iopstui.features.fleet.merging.figures import FleetExpectation, figure
from iopstui.features.fleet.merging.merger import (
    MergeCertificate,
    MergedInterval,
    Merger,
    certify_merge,
)
from iopstui.features.fleet.merging.sums import DirectionSum, HostSums, LatencySum, Object
from iopstui.format import counted, cut, first_of, latency, number
from iopstui.model.experiment.expectation import Outcome
from iopstui.model.figures.latency import RANKS, SHOWN
from iopstui.model.metrics.paths import DEVICE
from iopstui.model.samples import DIRECTIONS
from iopstui.model.sizes import MIB
from iopstui.output.summary import RAMP_WORDS
from iopstui.session.tick.outcomes import outcome_event
from iopstui.tables import Column, head_line, row_line
from iopstui.text import printable

WIDTH = 80
MAX_NAMED = 6
LEAST_SHARED = 0.5
"""If all hosts have figures in less than this part of the run, a rate of the whole run needs a
note."""


def mib_number(bytes_s: float | None) -> str:
    """Bytes per second in MiB."""
    return number(None if bytes_s is None else bytes_s / MIB)


def direction_columns(percentiles: Sequence[str], width: int = 0) -> tuple[Column, ...]:
    return (
        Column("iops", "IOPS", width, number), Column("bw", "MiB/s", width, mib_number),
        Column("latencies/mean", "mean", width, latency),
        *(RANKS[name].column("latencies", width=width) for name in percentiles),
        Column("latencies/max_ns", "max", width, lambda highest: latency(highest or None)),
    )  # fmt: skip


def direction_cells(part: DirectionSum | None, kind: str = "") -> Object:
    """The figures of a direction; requests of a device have no bytes."""
    if part is None:
        return {"iops": None, "bw": None, "latencies": LatencySum()}
    latencies = part.latency(kind) if kind else part.main
    return {"iops": part.iops, "bw": None if kind else part.bw, "latencies": latencies}


_COLUMNS = (Column("name", "all hosts", 10, left=True), *direction_columns(SHOWN, 9))


def first_names(names: Sequence[str]) -> str:
    """The first few of them."""
    return first_of([printable(cut(name, 40)) for name in names], MAX_NAMED)


def missing_hosts(second: MergedInterval) -> str:
    """Hosts missing in a second's totals: "97 of 100 hosts: node03 missing"; "" if none is."""
    if second.counted >= second.expected or is_last(second):
        return ""
    why = []
    if second.missing:
        why.append(f"{first_names(second.missing)} missing")
    if second.incomplete:
        why.append(f"{first_names(second.incomplete)} incomplete")
    return f"{second.counted} of {counted(second.expected, 'host')}: {'; '.join(why)}"


def is_last(second: MergedInterval) -> bool:
    """Whether it is the incomplete rest after the last whole second, which no host has
    completely."""
    return not second.counted and not second.missing


def executed_text(within: float, wrong: float, subject: str) -> str:
    """Largest difference between the hosts' start times (ms), by their clocks, with its error."""
    most = math.ceil((within + wrong) * 10) / 10
    return (f"fio started within {most:.1f} ms on {subject} ({within:.1f} ms by their clocks, "
            f"which may be off by {wrong:.2f} ms)")  # fmt: skip


def ending(certificate: MergeCertificate) -> Iterator[str]:
    """Describe how the hosts ended, and whether their frames add up to fio's totals."""
    lines = [f"{counted(certificate.hosts, 'host')}: {certificate.finished} finished"]
    for names, outcome in (
        (certificate.failed, "failed"), (certificate.interrupted, "interrupted"),
        (certificate.lost, "lost (their end was not seen)"),
    ):  # fmt: skip
        if names:
            lines.append(f"{len(names)} {outcome}: {first_names(names)}")
    yield "; ".join(lines)
    if certificate.shared_seconds < LEAST_SHARED * certificate.seconds:
        shared = f"{certificate.shared_seconds} of {certificate.seconds} intervals"
        yield (f"{shared} have figures of all hosts; IOPS and MiB/s add up each host's own mean")
    if certificate.fio_ios is not None:
        yield _certificate(certificate)


def _certificate(certificate: MergeCertificate) -> str:
    totals = f"{certificate.ios:,} I/Os, {certificate.bytes:,} bytes"
    if certificate.exact == certificate.hosts:
        if certificate.fio_bytes is None:
            totals = f"{certificate.ios:,} I/Os"
        return f"Verified: the intervals of all hosts add up to fio's own totals ({totals})."
    text = f"Verified on {certificate.exact} of {certificate.hosts}"
    if certificate.differs:
        text += f"; different on {first_names(certificate.differs)}"
        if certificate.ramp:
            hosts_text = (
                ""
                if certificate.ramp == certificate.differs
                else f" on {first_names(certificate.ramp)}"
            )
            text += f" (the difference{hosts_text} {RAMP_WORDS})"
    if certificate.unchecked:
        text += f"; not checked on {first_names(certificate.unchecked)}"
    return f"{text}. In all: {totals}."


def _device_rows(sums: HostSums, certificate: MergeCertificate) -> Iterator[str]:
    lines = sums.device.describe(certificate.hosts)
    if lines:
        yield f"{lines}, from a request's issue to its completion"
    for kind, part in sums.device.directions():
        yield row_line(_COLUMNS, {"name": kind, **direction_cells(part, DEVICE)})


def totals_text(merger: Merger) -> str:
    """A table of the whole run of all hosts in at most 80 columns, and how they ended."""
    sums, certificate = merger.run_sums(), certify_merge(merger)
    lines = []
    if sums.fio:
        parts = {name: sums.fio[name] for name in DIRECTIONS if name in sums.fio}
        lines.append(head_line(_COLUMNS))
        lines += [row_line(_COLUMNS, {"name": name, **direction_cells(part)})
                  for name, part in parts.items()]  # fmt: skip
    elif sums.device.hosts:
        lines.append(head_line(_COLUMNS))
    lines += _device_rows(sums, certificate)
    if merger.ran_apart:
        lines.append("Not at one time: IOPS and MiB/s are the sums of each host's own.")
    for line in ending(certificate):
        lines += textwrap.wrap(line, WIDTH)
    return "\n".join(lines)


def judge_expectations(
    merger: Merger, expected: Sequence[FleetExpectation], step: int = 1
) -> list[ExpectationChecked]:
    """The outcome of each; an ``each.`` expectation is judged by the worst host's figure."""
    total = merger.run_sums()
    by_host = {name: host.run_sums() for name, host in merger.hosts.items()
               } if any(one.per_host for one in expected) else {}  # fmt: skip
    return [
        _worst_of_hosts(one, by_host, step)
        if one.per_host
        else replace(outcome_event(0.0, step, _outcome(one, total)), expectation=one.text)
        for one in expected
    ]


def _outcome(one: FleetExpectation, sums: HostSums) -> Outcome:
    return Outcome(one.expectation, figure(sums, one.expectation.path), None)


def _worst_of_hosts(
    one: FleetExpectation, by_host: Mapping[str, HostSums], step: int
) -> ExpectationChecked:
    outcomes = {name: _outcome(one, sums) for name, sums in by_host.items()}
    values = [o.measured for o in outcomes.values() if o.measured is not None]
    worst = (max if one.expectation.op == "<=" else min)(values, default=None)
    missed = sorted(name for name, outcome in outcomes.items() if outcome.passed is False)
    unknown = sorted(name for name, outcome in outcomes.items() if outcome.passed is None)
    why = [f"the worst of {counted(len(outcomes), 'host')}"] if values else []
    why += [f"not met by {first_names(missed)}"] if missed else []
    why += [f"not measured on {first_names(unknown)}"] if unknown else []
    event = outcome_event(0.0, step, Outcome(one.expectation, worst, None, why="; ".join(why)))
    passed = False if missed else None if unknown or not outcomes else True
    return replace(event, expectation=one.text, passed=passed)
