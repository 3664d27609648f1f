"""Run the job at one rate after another in one session, until the limit is known."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from iopstui.errors import Interrupted, JobFailed
from iopstui.events import Event, FindingEnded, FindingReported, FrameReady
from iopstui.experiment.runner import new_seed
from iopstui.features.limit.model import (
    INTERRUPTED,
    MAX_CHANGES,
    MAX_SPOILED,
    SHORT_S,
    Answer,
    Estimate,
    Run,
    Search,
    Second,
    Step,
    conclude,
    may_be_full,
)
from iopstui.features.limit.setup import SETTLE_S, LimitSetup
from iopstui.format import latency, number
from iopstui.linux.activity.io_users import disturbance_meter
from iopstui.model.experiment.disturbance import DISTURBING_SHARE
from iopstui.model.experiment.point import Point, PointMeter, SettlingFilter, run_length_s
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.findings.finding import Finding, headline_of
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import Frame
from iopstui.preflight.staging import LentScratch
from iopstui.safety.scratch import DEFAULT_BYTES
from iopstui.session.live import LiveSession
from iopstui.session.run_loop import RunLoop
from iopstui.session.tick.context import NOBODY

START_SHARE = 0.75
"""The first rate, as a share of the unchanged job's rate."""
LOWEST_SHARE = 0.02
"""The lowest rate, as a share of the unchanged job's rate. At such a rate a device is mostly idle,
and answers as fast as it can."""
MIN_RATE = 20.0
OVERHEAD_S = 2.5
HARMLESS = 0.1
"""If a run's slow I/Os are fewer than this share of the allowed ones, it counts even if it was
disturbed, because a disturbance makes I/Os only slower."""
CPU_SHARE = 0.1
"""If less than this share of the I/Os in flight waits for a CPU, that does not make the others
slow."""
MAX_DEEPER = 2
SPOILING = ("throttled", "steal", "neighbour", "thermal", "io-errors")
"""Findings that name another cause of slow I/Os than the disk and this job."""
LIMITS = ("cgroup-limit", "volume-limit", "above", "tags", "cap")
"""Findings that name the limit that was reached."""


def share_text(share: float) -> str:
    """A share in percent with two digits, such as "0.31 %" or "12 %"."""
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"


DISTURBED, STALLED = "disturbed", "stalled"
"""The reasons why a run was left out."""


@dataclass(frozen=True, slots=True)
class Row:
    """A run as it is shown. ``asked`` is the requested rate (``None`` for the unchanged job);
    ``figure_ns`` is the percentile that the bound limits; ``depth`` is how many I/Os each job may
    have in flight (``None``: the job's own depth); ``spoiled`` says what disturbed the run;
    ``left_out`` says in a word or two why it does not count ("" if it does)."""

    asked: float | None
    point: Point
    figure_ns: float | None
    share: float
    seconds: tuple[Second, ...]
    depth: int | None = None
    full_s: int = 0
    spoiled: str = ""
    findings: tuple[Finding, ...] = ()
    left_out: str = ""


@dataclass
class _Collector:
    """The figures of a run, computed from its events."""

    setup: LimitSetup
    seconds: float
    room: int | None
    figure: Meter = field(init=False)
    meter: PointMeter = field(init=False)
    counts: list[Second] = field(default_factory=list)
    full_s: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        setup = self.setup
        disturbances = disturbance_meter(setup.target, setup.shape, setup.devices)
        self.figure = Meter(self.setup.keep.path)
        self.meter = PointMeter(SETTLE_S, self.seconds, disturbances)
        self._settling = SettlingFilter(SETTLE_S, self.seconds)

    def take(self, event: Event) -> None:
        """Process an event: count a frame, and the findings in it."""
        match event:
            case FrameReady():
                self.meter.add(event.frame)
                if self._settling.counts(event.frame):
                    self._count(event.frame)
            case FindingReported():
                self.findings[event.finding.rule] = event.finding
            case FindingEnded():
                pass  # keep the finding: it held in some of the run's seconds

    def _count(self, frame: Frame) -> None:
        second = Meter(self.setup.keep.path)
        second.add(frame)
        self.figure.join(second)
        bound = self.setup.keep.required
        slow = sum(count for ns, count in second.bins.items() if ns > bound)
        self.counts.append(Second(sum(second.bins.values()), slow))
        fio = frame.fio
        if self.room is not None and fio is not None and fio.total.max_ns and fio.seconds:
            per_second = fio.total.ios / fio.seconds
            self.full_s += may_be_full(per_second, fio.total.max_ns / 1e9, self.room)


class LimitRunner:
    """Runs a search. ``rows`` are the runs so far; ``notify`` is called with a line about each.
    ``found`` is the estimate from them, ``step`` is the run that is being measured. If a
    ``session`` is given, it belongs to a screen, which passes its events on."""

    def __init__(
        self, setup: LimitSetup, sink: Callable[[Event], None], notify: Callable[[str], None],
        session: LiveSession | None = None,
    ) -> None:  # fmt: skip
        self.setup = setup
        self.rows: list[Row] = []
        self.closed: Row | None = None
        self.search: Search | None = None
        self.found: Estimate | None = None
        self.step: Step | None = None
        self.loop = RunLoop(
            session
            or LiveSession(setup.target, setup.devices, setup.job_target, setup.run, NOBODY),
            sink, borrowed=session is not None,
        )  # fmt: skip
        self._notify = notify
        self._spoiled: dict[tuple[float, str], str] = {}
        self._in_a_row = 0
        # each search uses other random arrivals: with the same ones, two searches would have the
        # same error
        self._seed = new_seed()
        self._ended = ""

    def run(self) -> Answer:
        """Search for the limit. Raises Interrupted if no rate was measured by then, or the error of
        a run that fails. Afterwards the session is closed, and no scratch file is left."""
        began = time.monotonic()
        with self.loop.open(self.setup.job_target, DEFAULT_BYTES) as lent:
            try:
                self._look(began, lent)
            except Interrupted:
                if not self.rows:
                    raise
                self._ended = INTERRUPTED
        assert self.search is not None
        spoiled = sum(row.left_out in (DISTURBED, STALLED) for row in self.rows)
        notes = list(self._spoiled.values())
        return conclude(self.search, self.setup.keep.text, notes, self._ended, spoiled)

    def _look(self, began: float, lent: LentScratch | None) -> None:
        self.closed = self._measure(self.setup.closed_loop(SHORT_S), None, SHORT_S, lent)
        # the layout of scratch files does not count as search time
        end = max(began, time.monotonic() - SHORT_S - SETTLE_S - OVERHEAD_S) + self.setup.time_s
        most = self.closed.point.iops
        lowest = max(MIN_RATE, LOWEST_SHARE * most)
        self.search = Search(max(lowest, START_SHARE * most), lowest, most)
        while not self._ended and (step := self.search.next()) is not None:
            length = run_length_s(SETTLE_S, step.seconds, self.setup.run.interval_s)
            if time.monotonic() + length + OVERHEAD_S > end:
                break
            self.step = step
            self._take(step, lent)
            self.found = self.search.estimate()
            if self._in_a_row >= MAX_SPOILED or len(self.search.changes) > MAX_CHANGES:
                break

    def _take(self, step: Step, lent: LentScratch | None) -> None:
        """Measure at a rate. If the queue may have been full although no I/O was slow, I/Os may
        have waited before they were sent, which is not measured: measure again with a deeper
        queue."""
        assert self.search is not None
        asked = self.setup.load.asked(step.rate)
        for deeper in range(MAX_DEEPER + 1):
            self._seed += 1
            request = self.setup.request(asked, step.seconds, self._seed, deeper)
            row = self._measure(request, asked, step.seconds, lent)
            next_depth = self.setup.load.depth(asked, self.setup.bound_s, deeper + 1)
            is_deepest = row.depth == next_depth
            if not row.full_s or row.share > self.setup.allowed or is_deepest:
                break
            if deeper < MAX_DEEPER:
                self._leave_out("repeated with a deeper queue")
        run = Run(asked, row.point.iops, row.seconds, self.setup.allowed, self.setup.bound_s,
                  self.search.capacity)  # fmt: skip
        counts = not row.spoiled or (row.share <= HARMLESS * self.setup.allowed)
        if not counts or (row.spoiled and run.is_behind):
            self._leave_out(DISTURBED)
            self.search.disturbed.append(asked)
            times = sum(one.asked == asked and one.left_out == DISTURBED for one in self.rows)
            often = f" ({times} times)" if times > 1 else ""
            self._spoiled[asked, DISTURBED] = (
                f"{asked:,.0f}/s does not count{often}: {row.spoiled}."
            )
        elif run.is_behind and row.share <= self.setup.allowed and self._is_held_back(row):
            self._ended = f"fio itself sends no more ({row.point.iops:,.0f} of {asked:,.0f}/s)"
        elif run.is_stalled:
            self._leave_out(STALLED)
            self._spoiled[asked, STALLED] = (
                f"{asked:,.0f}/s was measured again: one second had nearly all of "
                "its slow I/Os, so something held the disk up once."
            )
        else:
            self._in_a_row = -1
            changes = len(self.search.changes)
            self.search.add(run)
            if len(self.search.changes) > changes:
                self._leave_out("before the change", len(self.search.runs))
        self._in_a_row += 1

    def _leave_out(self, why: str, kept: int = 0) -> None:
        """Mark the last row as left out; or with ``kept``, all rows that count except the last
        ``kept`` ones."""
        last = len(self.rows) - 1
        counted = [n for n, row in enumerate(self.rows) if not row.left_out]
        for place in counted[:-kept] if kept else [last]:
            self.rows[place] = replace(self.rows[place], left_out=why)

    def _is_held_back(self, row: Row) -> bool:
        """Whether fio sent fewer I/Os than requested although the queue had room and fio did not
        wait in submissions: the device is then not the limit."""
        jobs = self.setup.load.jobs
        room = (row.depth or 0) * jobs
        submitting = (row.point.slat_ns or 0.0) * row.point.iops / 1e9
        return (row.point.in_flight or 0.0) < room / 2 and submitting < jobs / 2

    def _measure(
        self, request: RunRequest, asked: float | None, seconds: float, lent: LentScratch | None
    ) -> Row:
        self._require(not self.loop.interrupted)
        depth = None if asked is None else int(request.overrides["iodepth"])
        room = None if depth is None else depth * self.setup.load.jobs
        collector = _Collector(self.setup, seconds, room)
        session = self.loop.session
        finished = self.loop.run(lambda: session.run_request(request, lent), collector.take)
        self._require(self.loop.complete(finished))
        point = collector.meter.point()
        ios = sum(second.ios for second in collector.counts)
        if point is None or not ios:
            raise JobFailed(f"fio completed no I/O that counts for {self.setup.keep.name}.",
                            "Give the job more such I/Os (rw=, rwmixread=), or use another "
                            "figure.")  # fmt: skip
        row = Row(
            asked, point, collector.figure.value,
            sum(second.slow for second in collector.counts) / ios, tuple(collector.counts), depth,
            collector.full_s, self._spoiling(point, collector.findings),
            tuple(collector.findings.values()),
        )  # fmt: skip
        if asked is not None:
            self.rows.append(row)
        self._notify(self._line(row))
        return row

    @staticmethod
    def _spoiling(point: Point, findings: dict[str, Finding]) -> str:
        held = (headline_of(findings[rule]) for rule in SPOILING if rule in findings)
        # a disturbance by full CPUs only matters if I/Os wait for a CPU
        known = point.wait_cpu is not None and point.in_flight
        waiting = (point.wait_cpu or 0.0) / (point.in_flight or 1.0) if known else 1.0
        of_others = (point.others or 0.0) >= DISTURBING_SHARE
        reasons = point.disturbed if of_others or waiting > CPU_SHARE else ()
        return [*reasons, *held, ""][0]

    def _line(self, row: Row) -> str:
        keep = self.setup.keep
        rate = "as it is" if row.asked is None else f"{row.asked:,.0f}/s"
        done = "" if row.asked is None else f", {row.point.iops:,.0f}/s done"
        slower = f"{share_text(row.share)} took longer than {latency(keep.required)}"
        text = f"{rate}: {keep.name} {latency(row.figure_ns)}, {slower}{done}"
        return text if not row.spoiled else f"{text} (disturbed: {row.spoiled})"

    def _require(self, goes_on: bool) -> None:
        if not goes_on:
            raise Interrupted("Interrupted: the limit was not found.")

    def saturated(self) -> str:
        """Where the I/Os waited at the lowest rate that was too high, and which limit was reached
        there."""
        above = [row for row in self.rows if row.share > self.setup.allowed and not row.left_out]
        row = min(above, key=lambda row: row.asked or math.inf, default=None)
        most = row.point.most_waits if row is not None else None
        if row is None or row.asked is None:
            return ""
        named = next((f for rule in LIMITS for f in row.findings if f.rule == rule), None)
        reason = f" {headline_of(named)}." if named is not None else ""
        if most is None or not row.point.in_flight:
            return reason.strip()
        place, count = most
        where = {"CPU": "for a CPU", "above": "above the device", "unknown": "in a place that no "
                 "counter shows"}.get(place, f"in {place}")  # fmt: skip
        of_all = f"{number(count)} of {number(row.point.in_flight)} I/Os in flight"
        return f"At {row.asked:,.0f}/s {of_all} wait {where}.{reason}"
