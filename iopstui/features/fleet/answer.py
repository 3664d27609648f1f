"""The one sentence on many hosts, an outlier first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from iopstui import format as units
from iopstui.features.fleet.findings import (
    MIN_SECONDS,
    FleetEvidence,
    fleet_evidence,
    list_findings,
)
from iopstui.features.fleet.fleet_events import (
    FleetRunStarted,
    HostFiguresBatch,
    HostRow,
    collect_figures,
)
from iopstui.features.fleet.fleet_state import (
    ABSENT_STATES,
    IOPS,
    LATE,
    LEFT_OUT,
    MISSING,
    FleetState,
    HostState,
    natural_key,
)
from iopstui.features.fleet.merging.merger import MergedInterval, Merger
from iopstui.model.answer.answer import CRITICAL, FINDING, GOOD, RANKS, UNKNOWN, WARNING, Answer
from iopstui.model.answer.situation import ENOUGH_SECONDS
from iopstui.model.findings.advice import advise
from iopstui.model.findings.finding import Finding
from iopstui.model.means import median
from iopstui.output.page.overview import OF_HOST
from iopstui.text import printable

EVERY_SECONDS, MANY_HOSTS, SELDOM_SECONDS = 2, 100, 10
"""Seconds between two searches for findings; the second value with more than ``MANY_HOSTS``."""
OF_ONE_HOST = ("straggler", "slow device", "own limit", "one path")
MAX_NAMED = 3
ABSENT = "absent"
"""The rule of an answer on hosts without figures."""


def is_due(state: FleetState, second: MergedInterval) -> bool:
    """Whether findings are looked for in this second."""
    every = SELDOM_SECONDS if len(state.hosts) > MANY_HOSTS else EVERY_SECONDS
    return second.number % every == 0 and bool(second.counted)


def fleet_answer(
    state: FleetState, evidence: FleetEvidence, findings: Sequence[Finding]
) -> Answer | None:
    """The answer on the newest second: missing hosts, differences between hosts, answers of single
    hosts, else what was measured; ``None`` before the first second."""
    if state.second is None:
        return None
    return _absent(state) or _finding(findings) or _host(state) or _quiet(state, evidence)


def _absent(state: FleetState) -> Answer | None:
    absent = absent_hosts(state)
    if not absent:
        return None
    first = min(absent, key=lambda host: (not host.error, host.sort_key))
    reason = f" ({printable(host_error)})" if (host_error := first.error) else ""
    more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    count = f"{len(state.hosts) - len(absent)} of {len(state.hosts)} hosts are measured"
    may_come = all(host.state == LATE for host in absent)
    return Answer(printable(first.name), ABSENT, WARNING if may_come else CRITICAL,
                  f"{printable(first.name)}{reason}{more}: no figures; {count}", UNKNOWN,
                  next=advise("host"))  # fmt: skip


def absent_hosts(state: FleetState) -> list[HostState]:
    """Hosts that should be measured but send nothing now. In the first seconds of a start a host
    without figures is not late yet: hosts do not begin together."""
    first, is_start = state.run_start or 0, state.number - (state.run_start or 0) < ENOUGH_SECONDS
    return [
        host for host in state.hosts.values()
        if host.state in ABSENT_STATES and host.state != LEFT_OUT
        and not (is_start and host.state == MISSING and host.series.last < first)
    ]  # fmt: skip


def _finding(findings: Sequence[Finding]) -> Answer | None:
    ordered = sorted(findings, key=lambda found: found.rule not in OF_ONE_HOST)
    if not ordered:
        return None
    found = ordered[0]
    return Answer(
        printable(found.disk),
        f"{FINDING}{found.rule}",
        WARNING,
        found.text,
        UNKNOWN,
        next=found.advice,
    )


def _host(state: FleetState) -> Answer | None:
    """The answer of a single host that needs attention most."""
    bad = {host.name: host.answer for host in state.hosts.values()
           if host.answer is not None and host.answer.state != GOOD}  # fmt: skip
    return worst_of_hosts(bad)[1] if bad else None


_PERIOD = re.compile(r" \(\d+:[\d:]+-\d+:[\d:]+\)(?=:)")
"""The seconds of a finding (``job_finding``), by the host's own clock: here others are shown."""


def worst_of_hosts(bad: Mapping[str, Answer]) -> tuple[str, Answer]:
    """The host whose own answer needs attention most, and that answer with the names of the
    others."""
    first, *others = sorted(bad, key=lambda name: (RANKS[bad[name].state], natural_key(name)))
    answer = bad[first]
    named = ", ".join(map(printable, others[:MAX_NAMED]))
    more = f", {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
    rest = f"; also need attention: {named}{more}" if others else ""
    name = printable(first)
    text = _PERIOD.sub("", answer.text, count=1)
    return first, Answer(name, OF_HOST + answer.rule, answer.state, f"{name}: {text}{rest}",
                         answer.verdict, answer.who, answer.next)  # fmt: skip


def _quiet(state: FleetState, evidence: FleetEvidence) -> Answer:
    second = state.second
    assert second is not None
    means, seconds = evidence.means(IOPS), units.duration(MIN_SECONDS * evidence.interval_s)
    text = f"{second.counted} of {second.expected} hosts measured"
    if len(means) > 1:
        total, middle = sum(means.values()), median(means.values())
        text += f": {units.number(total)} I/Os/s together, mean of {seconds}"
        name = max(means, key=lambda host: (abs(means[host] - middle), host))
        if len(means) > 2 and means[name] != middle:
            text += (
                f"; furthest from the middle ({units.number(middle)}) is {printable(name)} with "
                f"{units.number(means[name])}"
            )
    return Answer("", "hosts", GOOD, text, UNKNOWN)


class FleetAnswers:
    """Follows a fleet without a screen; ``second`` returns the answer if it has changed."""

    def __init__(self, merger: Merger, hosts: Sequence[str], watching: bool) -> None:
        self._figures = collect_figures(merger)
        self._state = FleetState()
        self._state.apply(FleetRunStarted(1, tuple(hosts), 0.0, watching=watching))
        self.last: Answer | None = None

    def note_row(self, name: str, row: dict[str, Any]) -> None:
        """A host has sent this line."""
        self._state.apply(HostRow(name, row))

    def second(self, second: MergedInterval) -> Answer | None:
        state = self._state
        state.apply(HostFiguresBatch(tuple(self._figures)))
        self._figures.clear()
        state.apply(second)
        if not is_due(state, second):
            return None
        evidence = fleet_evidence(state, second.interval_s)
        answer = fleet_answer(state, evidence, list_findings(evidence))
        before, self.last = self.last, answer
        is_news = answer is not None and (before is None or before.key != answer.key)
        return answer if is_news else None
