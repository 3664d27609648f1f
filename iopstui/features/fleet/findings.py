"""Findings about many hosts, each a sentence with its numbers, and the answer about all hosts.

Each rule is a pure function from ``FleetEvidence`` to a ``Finding`` or ``None``. It fires only if
all of the last ``MIN_SECONDS`` seconds agree. It excludes causes that look alike: a slow host and a
shared path, a limit of each host and a shared one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from iopstui import format as f
from iopstui import format as units
from iopstui.features.fleet.fleet_events import (
    FleetRunStarted,
    HostFiguresBatch,
    HostRow,
    collect_figures,
)
from iopstui.features.fleet.fleet_state import (
    ABSENT_STATES,
    AWAIT,
    BW,
    IOPS,
    LATE,
    LEFT_OUT,
    MISSING,
    UTIL,
    WAIT,
    FleetState,
    HostState,
    natural_key,
)
from iopstui.features.fleet.merging.merger import MergedInterval, Merger
from iopstui.features.fleet.merging.sums import Object
from iopstui.model.answer.answer import CRITICAL, FINDING, GOOD, RANKS, UNKNOWN, WARNING, Answer
from iopstui.model.answer.situation import ENOUGH_SECONDS
from iopstui.model.findings.advice import advise
from iopstui.model.findings.finding import Finding
from iopstui.model.rates import fmean, median, pstdev
from iopstui.model.sizes import MIB
from iopstui.output.page.overview import OF_HOST
from iopstui.text import printable

T = TypeVar("T")
MIN_SECONDS, WINDOW_SECONDS = 8, 20
"""The seconds that a rule needs, and the seconds over which the variation of a rate or the
correlation of two rates is computed."""
SETTLING_SECONDS = 2
"""The first seconds after the start, which are not judged."""
SLOW_HOST_SHARE = 0.8
SLOWER_FACTOR = 2.0
"""A straggler's p99 is at least this many times that of the others. The same factor applies to the
await of the device that causes it, and to a slow device in each second."""
MAX_FLAT_CV, MIN_VARYING_CV = 0.02, 0.04
MAX_VARIANCE_SHARE = 0.2
OPPOSITE_CORRELATION = -0.7
MAX_PAIRED = 12
MAX_NAMED = 3
START_SPREAD_MS = 250.0
FULL_UTIL = 90.0
SLOW_DEVICE_FACTOR = 4.0
PACING_OPTIONS = ("rate", "thinktime")
"""Options that limit a job's own rate."""


@dataclass(frozen=True, slots=True)
class FleetEvidence:
    """The last ``WINDOW_SECONDS`` seconds of the hosts present in the last ``MIN_SECONDS``: their
    figures by name (``FIGURES`` of fleet_state.py), the ``sums`` of all in each second, and the
    ``start_spread`` (ms, error, hosts). ``fio``: all hosts run the same job; without it, the
    figures are of any programs. ``has_pacing``: the job limits its own rate (rate_iops ...)."""

    hosts: Mapping[str, Mapping[str, Sequence[float | None]]]
    sums: Mapping[str, Sequence[float | None]]
    start_spread: tuple[float, float, int] | None
    fio: bool
    interval_s: float = 1.0
    has_pacing: bool = False
    _means: dict[str, dict[str, float]] = field(default_factory=dict)
    _cache: dict[object, object] = field(default_factory=dict)

    def cached(self, calculate: Callable[[FleetEvidence], T]) -> T:
        """The result of a calculation, which is made only once, because several rules need the same
        figures of a thousand hosts."""
        if calculate not in self._cache:
            self._cache[calculate] = calculate(self)
        return self._cache[calculate]  # type: ignore[return-value]

    def means(self, figure: str) -> Mapping[str, float]:
        """The means of each host that has the figure in all of the last ``MIN_SECONDS`` seconds."""
        if figure not in self._means:
            means = self._means[figure] = {}
            for name, figures in self.hosts.items():
                values = _complete_values(figures[figure][-MIN_SECONDS:])
                if values:
                    means[name] = fmean(values)
        return self._means[figure]

    def iops(self, name: str) -> list[float]:
        """IOPS of one host in the ``WINDOW_SECONDS`` seconds; empty if it misses one."""
        return _complete_values(self.hosts[name][IOPS])


def fleet_evidence(state: FleetState, interval_s: float = 1.0) -> FleetEvidence:
    """The evidence of the newest second and earlier ones of the same run."""
    last = state.number + 1
    start = (state.run_start or 0) + (0 if state.watching else SETTLING_SECONDS)
    first = last - WINDOW_SECONDS
    gap = [None] * max(0, min(WINDOW_SECONDS, start - first))
    first += len(gap)
    hosts = {}
    if last - first >= MIN_SECONDS:
        for name, host in state.hosts.items():
            if host.history[IOPS].at(last - 1) is None:
                continue
            history = {
                figure: [*gap, *series.between(first, last)]
                for figure, series in host.history.items()
            }
            if all(value is not None for value in history[IOPS][-MIN_SECONDS:]):
                hosts[name] = history
    sums = {name: [*gap, *series.between(first, last)] for name, series in state.sums.items()}
    paced = any(_has_pacing_option(host.step) for host in state.hosts.values())
    return FleetEvidence(hosts, sums, state.spread(), not state.watching, interval_s, paced)


def _has_pacing_option(step: Object | None) -> bool:
    options = (step or {}).get("options")
    return isinstance(options, dict) and any(
        str(name).startswith(PACING_OPTIONS) for name in options
    )


def list_findings(evidence: FleetEvidence) -> list[Finding]:
    """All findings that hold, most important first."""
    return [finding for rule in RULES if (finding := evidence.cached(rule)) is not None]


def find_start_spread(evidence: FleetEvidence) -> Finding | None:
    """Find a large difference between the hosts' starts: hosts can't be compared while some do not
    run yet."""
    if evidence.start_spread is None:
        return None
    spread, error, hosts = evidence.start_spread
    if spread - error < START_SPREAD_MS * evidence.interval_s:
        return None
    return Finding(
        "start spread",
        f"the hosts did not start together: fio started up to {f.latency(spread * 1e6)} apart on "
        f"{hosts} hosts (clock error at most {f.latency(error * 1e6)}). Do not compare their first "
        "and last seconds, because not all of them ran then",
        advise("slow-start"),
    )


def find_common_limit(evidence: FleetEvidence) -> Finding | None:
    """Find a limit that the hosts share: the sum stays constant while the shares vary, so one host
    gains what another loses."""
    if not evidence.fio or len(evidence.hosts) < 2:
        return None
    for figure in (BW, IOPS):
        sums = _complete_values(evidence.sums[figure])
        if not sums or not fmean(sums) or _cv(sums) > MAX_FLAT_CV:
            continue
        shares = [_complete_values(figures[figure]) for figures in evidence.hosts.values()]
        if not all(shares):
            continue
        spreads = [(fmean(share), pstdev(share)) for share in shares]
        independent_variance = sum(deviation**2 for _, deviation in spreads)
        typical_cv = median(deviation / mean if mean > 0 else 0.0 for mean, deviation in spreads)
        pairs = zip(shares, spreads, strict=True)
        headroom = sum(max(share) >= 1.05 * mean for share, (mean, _) in pairs) / len(shares)
        if typical_cv < MIN_VARYING_CV or headroom < 0.9:
            continue
        if pstdev(sums) ** 2 > MAX_VARIANCE_SHARE * independent_variance:
            # the sum varies as much as that of independent hosts, so they share no limit
            continue
        return Finding(
            "common limit",
            f"the hosts share a limit: the sum of {len(shares)} hosts is flat at "
            f"{_rate_text(figure, fmean(sums))} (±{100 * _cv(sums):.1f} %) while each host's part "
            f"varies by ±{100 * typical_cv:.0f} %. What one gains, the others lose, and each has "
            "done more in single seconds: the limit is in what they share (array, network, volume)",
            advise("fewer-hosts"),
        )
    return None


def find_own_limit(evidence: FleetEvidence) -> Finding | None:
    """Find a host with its own limit: its rate is constant and below the others."""
    slow = evidence.cached(_slow_hosts)
    if not slow or len(evidence.hosts) < 3:
        return None
    means, middle = evidence.means(IOPS), _median_without(evidence, IOPS, slow)
    paired = _paired_hosts(evidence)
    flat = [name for name in slow if evidence.iops(name) and _cv(evidence.iops(name)) <= MAX_FLAT_CV
            and name not in paired]  # fmt: skip
    if not flat:
        return None
    slow_names = {*slow}
    other_cvs = [_cv(evidence.iops(name)) for name in evidence.hosts if name not in slow_names]
    # if all hosts are constant (rate_iops), a constant rate does not mean a limit
    if not other_cvs or median(other_cvs) <= MAX_FLAT_CV:
        return None
    name = min(flat, key=lambda host: means[host])
    return Finding(
        "own limit",
        f"{_names_text(_first(name, flat))} {_possessive(flat)} own limit: a steady "
        f"{f.number(means[name])} IOPS "
        f"(±{100 * _cv(evidence.iops(name)):.1f} %) while the others do about {f.number(middle)} "
        "and vary. So the others' load is not the cause; it may be a volume's or cgroup's cap, or "
        "a slower link",
        advise("another-host"),
        disk=name,
    )


def find_shared_path(evidence: FleetEvidence) -> Finding | None:
    """Find a path that two slow hosts share: one gains what the other loses."""
    if evidence.cached(find_common_limit) is not None:
        return None
    pairs = evidence.cached(_opposite_pairs)
    if not pairs:
        return None
    r, *both_names = min(pairs)
    first, second = sorted(both_names, key=natural_key)
    a, b = evidence.iops(first), evidence.iops(second)
    sums = [x + y for x, y in zip(a, b, strict=True)]
    middle = _median_without(evidence, IOPS, (first, second))
    return Finding(
        "one path",
        f"{printable(first)} and {printable(second)} share a path: {f.number(fmean(a))} and "
        f"{f.number(fmean(b))} IOPS, where the others do {f.number(middle)}. What one gains, the "
        f"other loses (correlation {r:.2f}), and together they are steady at "
        f"{f.number(fmean(sums))} (±{100 * _cv(sums):.1f} %). The path may be a switch port, a "
        "controller or a node",
        advise("one-alone"),
        disk=first,
    )


def find_straggler(evidence: FleetEvidence) -> Finding | None:
    """Find a host that is far behind the others, and whether its device is the cause."""
    slow = evidence.cached(_slow_hosts)
    if not slow or len(evidence.hosts) < 3:
        return None
    flat = MAX_FLAT_CV if evidence.cached(find_own_limit) is not None else -1.0
    paired = _paired_hosts(evidence)
    candidates = [name for name in slow if name not in paired and _cv(evidence.iops(name)) > flat]
    waits, middle = evidence.means(WAIT), _median_without(evidence, WAIT, slow)
    if not candidates or len(candidates) > max(2, len(evidence.hosts) // 10) or not middle:
        return None
    name = max(candidates, key=lambda host: waits.get(host, 0.0))
    if waits.get(name, 0.0) < SLOWER_FACTOR * middle:
        return None
    means, usual = evidence.means(IOPS), _median_without(evidence, IOPS, slow)
    return Finding(
        "straggler",
        f"straggler {_names_text(_first(name, candidates))}: "
        f"{f.number(means[name])} IOPS and p99 {f.latency(waits[name])} in each of {MIN_SECONDS} "
        f"s, where the others have {f.number(usual)} and {f.latency(middle)}; "
        + _device_evidence(evidence, name, slow),
        advise("host"),
        disk=name,
    )


def _device_evidence(evidence: FleetEvidence, name: str, slow: Sequence[str]) -> str:
    waits = evidence.means(AWAIT)
    other_waits = [value for host, value in waits.items() if host not in slow]
    if name not in waits or not other_waits or not median(other_waits):
        return "its device's latency is unknown"
    wait, usual = waits[name], median(other_waits)
    if wait >= SLOWER_FACTOR * usual:
        utils = evidence.means(UTIL)
        full = f" at util {utils[name]:.0f} %" if name in utils else ""
        return (f"its device is slower, too ({f.latency(wait)}{full}, the others' "
                f"{f.latency(usual)}): the cause is the disk or what is behind it")  # fmt: skip
    return (f"its device answers as fast as theirs ({f.latency(wait)}, {f.latency(usual)}), so the "
            "cause is above the device: CPU, memory or another program")  # fmt: skip


def find_slow_device(evidence: FleetEvidence) -> Finding | None:
    """Without a job, find a device that takes longer than the others under a similar load."""
    if evidence.fio or len(evidence.hosts) < 3:
        return None
    waits, rates = evidence.means(AWAIT), evidence.means(IOPS)
    busy = {name: wait for name, wait in waits.items() if rates.get(name, 0.0) >= 1}
    if len(busy) < 3:
        return None
    name = max(busy, key=lambda host: busy[host])
    middle = median(wait for host, wait in busy.items() if host != name)
    load = median(rates[host] for host in busy if host != name)
    if middle <= 0 or busy[name] < SLOW_DEVICE_FACTOR * middle or rates[name] > 1.5 * load:
        return None
    values = [value for value in evidence.hosts[name][AWAIT][-MIN_SECONDS:] if value]
    if min(values) < SLOWER_FACTOR * middle:
        return None
    return Finding(
        "slow device",
        f"{printable(name)} has a slow disk: a request takes {f.latency(busy[name])}, the others' "
        f"{f.latency(middle)}, though it has no more load ({f.number(rates[name])}/s, the others "
        f"{f.number(load)}/s). The cause is the disk or what is behind it",
        advise("host"),
        disk=name,
    )


def find_equal_rates(evidence: FleetEvidence) -> Finding | None:
    """Find hosts that all have the same constant rate: each has its own limit, or they share one
    evenly."""
    means = evidence.means(IOPS)
    if (
        not evidence.fio
        or evidence.has_pacing
        or len(means) < 2
        or len(means) < len(evidence.hosts)
    ):
        return None
    values = list(means.values())
    if not min(values) or max(values) > 1.03 * min(values):
        return None
    rates = (evidence.iops(name) for name in evidence.hosts)
    if not all(series and _cv(series) <= MAX_FLAT_CV for series in rates):
        return None
    return Finding(
        "all flat",
        f"all {len(values)} hosts do the same steady {f.number(fmean(values))} IOPS: either each "
        "has its own limit (a volume's cap), or a shared limit is divided evenly. These seconds "
        "cannot show which",
        advise("half-hosts"),
    )


Rule = Callable[[FleetEvidence], "Finding | None"]
RULES: tuple[Rule, ...] = (
    find_start_spread, find_common_limit, find_shared_path, find_own_limit, find_straggler,
    find_slow_device, find_equal_rates,
)  # fmt: skip


# -- arithmetic


def _complete_values(values: Sequence[float | None]) -> list[float]:
    measured = [value for value in values if value is not None]
    return measured if len(measured) == len(values) else []


def _cv(values: Sequence[float]) -> float:
    """The coefficient of variation: the standard deviation as a share of the mean."""
    mean = fmean(values) if values else 0.0
    return pstdev(values) / mean if mean > 0 else 0.0


def _slow_hosts(evidence: FleetEvidence) -> list[str]:
    """Hosts that do clearly less than the median host in each second. Only with a job on all hosts,
    because other loads need not be alike."""
    means = evidence.means(IOPS)
    if not evidence.fio or len(means) < 3:
        return []
    middle = median(means.values())
    newest = {name: evidence.hosts[name][IOPS][-MIN_SECONDS:] for name in means}
    return [
        name for name, values in newest.items()
        if max(_complete_values(values)) < SLOW_HOST_SHARE * middle
    ]  # fmt: skip


def _median_without(evidence: FleetEvidence, figure: str, excluded: Sequence[str]) -> float:
    excluded_names = {*excluded}
    values = [value for name, value in evidence.means(figure).items() if name not in excluded_names]
    return median(values) if values else 0.0


def _opposite_pairs(evidence: FleetEvidence) -> list[tuple[float, str, str]]:
    """Pairs of slow hosts of which one gains what the other loses, with their correlation."""
    slow = sorted(evidence.cached(_slow_hosts), key=lambda name: evidence.means(IOPS)[name])[
        :MAX_PAIRED
    ]
    pairs = []
    for index, first in enumerate(slow):
        for second in slow[index + 1 :]:
            a, b = evidence.iops(first), evidence.iops(second)
            if not a or not b:
                continue
            sums = [x + y for x, y in zip(a, b, strict=True)]
            r = _correlation(a, b)
            if (
                r <= OPPOSITE_CORRELATION
                and min(_cv(a), _cv(b)) >= MIN_VARYING_CV
                and _cv(sums) <= min(_cv(a), _cv(b)) / 2
            ):
                pairs.append((r, first, second))
    return pairs


def _paired_hosts(evidence: FleetEvidence) -> set[str]:
    return {
        name for _, first, second in evidence.cached(_opposite_pairs) for name in (first, second)
    }


def _correlation(a: Sequence[float], b: Sequence[float]) -> float:
    x, y = fmean(a), fmean(b)
    spread = pstdev(a) * pstdev(b)
    if not spread:
        return 0.0
    return fmean((p - x) * (q - y) for p, q in zip(a, b, strict=True)) / spread


def _rate_text(figure: str, value: float) -> str:
    return f"{f.number(value / MIB)} MiB/s" if figure == BW else f"{f.number(value)} IOPS"


def _first(name: str, names: Sequence[str]) -> list[str]:
    """The names, beginning with ``name``, because the finding's figures are those of that host."""
    return [name, *(other for other in names if other != name)]


def _names_text(names: Sequence[str]) -> str:
    return f.first_of([printable(f.cut(name, 40)) for name in names], MAX_NAMED)


def _possessive(names: Sequence[str]) -> str:
    return "has its" if len(names) == 1 else "have their"


EVERY_SECONDS, MANY_HOSTS, SELDOM_SECONDS = 2, 100, 10
"""Seconds between two searches for findings; ``SELDOM_SECONDS`` with more than ``MANY_HOSTS``."""
OF_ONE_HOST = ("straggler", "slow device", "own limit", "one path")
MAX_NAMED_IN_ANSWER = 3
ABSENT = "absent"
"""The rule of an answer about hosts without figures."""


def is_due(state: FleetState, second: MergedInterval) -> bool:
    """Whether to look for findings in this second."""
    every = SELDOM_SECONDS if len(state.hosts) > MANY_HOSTS else EVERY_SECONDS
    return second.number % every == 0 and bool(second.counted)


def fleet_answer(
    state: FleetState, evidence: FleetEvidence, findings: Sequence[Finding]
) -> Answer | None:
    """The answer for the newest second: about missing hosts, differences between hosts, or the
    answer of a single host, else what was measured; ``None`` before the first second."""
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
                  f"{printable(first.name)}{more}: no figures{reason}; {count}", UNKNOWN,
                  next=advise("host"))  # fmt: skip


def absent_hosts(state: FleetState) -> list[HostState]:
    """Hosts that should be measured but send nothing now. In the first seconds after the start, a
    host without figures is not late yet, because hosts do not begin at the same time."""
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
    """The answer of the single host that needs attention most."""
    bad = {host.name: host.answer for host in state.hosts.values()
           if host.answer is not None and host.answer.state != GOOD}  # fmt: skip
    return worst_of_hosts(bad)[1] if bad else None


def worst_of_hosts(bad: Mapping[str, Answer]) -> tuple[str, Answer]:
    """The host whose own answer needs attention most, and that answer, with the names of other
    hosts that have it."""
    first, *others = sorted(bad, key=lambda name: (RANKS[bad[name].state], natural_key(name)))
    answer = bad[first]
    named = ", ".join(map(printable, others[:MAX_NAMED_IN_ANSWER]))
    more = (
        f", {len(others) - MAX_NAMED_IN_ANSWER} more" if len(others) > MAX_NAMED_IN_ANSWER else ""
    )
    rest = f"; also need attention: {named}{more}" if others else ""
    name = printable(first)
    text = answer.text_without_period  # its period is by the host's own clock
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
        odd, usual = units.number(means[name]), units.number(middle)
        # hosts that differ by less than is shown are alike
        if len(means) > 2 and odd != usual:
            text += f"; furthest from the median ({usual}) is {printable(name)} with {odd}"
    return Answer("", "hosts", GOOD, text, UNKNOWN)


class FleetAnswers:
    """Follows a fleet without a screen. ``second`` returns the answer if it has changed."""

    def __init__(self, merger: Merger, hosts: Sequence[str], watching: bool) -> None:
        self._figures = collect_figures(merger)
        self._state = FleetState()
        self._state.apply(FleetRunStarted(1, tuple(hosts), 0.0, watching=watching))
        self.last: Answer | None = None

    def note_row(self, name: str, row: dict[str, Any]) -> None:
        """Process a line that a host has sent."""
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
