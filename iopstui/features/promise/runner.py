"""Run the checks of a promise one after another in one session, and judge each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iopstui.errors import Interrupted, JobFailed
from iopstui.events import Event, FindingEnded, FindingReported, FrameReady
from iopstui.features.promise.model import (
    LATENCY,
    SINGLE,
    Check,
    Measurement,
    QueueDepth,
    Verdict,
    deeper_queue,
    depth_for,
    is_too_shallow,
    judge,
    judge_drained,
    open_loop,
    percentile_interval,
    rate_interval,
    untested_rows,
    without_refuted_limits,
    without_volume_limits,
)
from iopstui.features.promise.setup import (
    MAX_DEEPER_RUNS,
    SINGLE_IO_S,
    PromiseSetup,
    drained_checks,
    fio_cpu_count,
    single_checks,
    title_of_check,
)
from iopstui.format import duration
from iopstui.model.experiment.point import Point, PointMeter, SettlingFilter
from iopstui.model.figures.figure import BY_PERCENTILE
from iopstui.model.metrics.aws import LIMITS, MUCH_EXCEEDED_MS
from iopstui.model.metrics.frame import Frame
from iopstui.model.volumes.promised import COUNTED_LIMITS
from iopstui.model.volumes.volume import OWN
from iopstui.preflight.staging import LentScratch
from iopstui.safety.scratch import DEFAULT_BYTES
from iopstui.session.live import LiveSession
from iopstui.session.run_loop import RunLoop
from iopstui.session.tick.context import NOBODY

DRAIN_PART = 0.75
Sink = Callable[[Event], None]
Notify = Callable[[str], None]


class PromiseRunner:
    """Runs the checks. ``verdicts`` are the rows so far, in the order of the checks. ``notify`` is
    called with a message when a check begins; ``sink`` gets the session's events."""

    def __init__(self, setup: PromiseSetup, sink: Sink, notify: Notify) -> None:
        self.setup = setup
        self.verdicts: list[Verdict] = []
        session = LiveSession(setup.target, setup.devices, setup.job_target, setup.run, NOBODY)
        self.loop = RunLoop(session, sink)
        self._notify = notify
        self._single_latencies: dict[str, float] = {}

    def run(self) -> None:
        """Run all checks. Raises Interrupted, or the error of the first run that fails. Afterwards
        the session is closed, and no scratch file is left."""
        with self.loop.open(self.setup.job_target, DEFAULT_BYTES) as lent:
            for check in single_checks(self.setup):
                self._notify(f"single {title_of_check(check)}, to choose the queue depth")
                measured = self._measure(check, SINGLE, SINGLE_IO_S, lent)
                if measured.latency_ns is not None:
                    self._single_latencies[check.rw] = measured.latency_ns
            for check in self.setup.todo:
                self._check(check, lent)
                self.verdicts = without_refuted_limits(self.verdicts, self.setup.tolerance)
            if self.setup.promised.volume.provider == OWN:
                self.verdicts = without_volume_limits(self.verdicts)
            for check, reason in self.setup.skipped.items():
                self.verdicts += untested_rows(check, reason)

    def _check(self, check: Check, lent: LentScratch | None) -> None:
        single = self._single_latencies.get(check.rw)
        depth = self._depth(check, single)
        drain_s = drained_checks(self.setup).get(check)
        if drain_s is not None:
            self._notify(
                f"{title_of_check(check)}, to use up the burst credits: {duration(drain_s)}"
            )
            # the part well before the bucket becomes empty shows the burst
            burst = self._measure(check, depth, DRAIN_PART * drain_s, lent, drain_s)
            measured = self._measure_check(check, depth, lent)
            self.verdicts += judge_drained(check, burst, measured, self.setup.tolerance)
            return
        measured = self._measure_check(check, depth, lent)
        for _ in range(MAX_DEEPER_RUNS):
            deeper = deeper_queue(depth)
            if check.kind == LATENCY or deeper is None or not is_too_shallow(check, measured):
                break
            depth = deeper
            self._notify("the queue was too shallow: again with a deeper one")
            measured = self._measure_check(check, depth, lent)
        self.verdicts += judge(check, measured, self.setup.tolerance)

    def _depth(self, check: Check, single: float | None) -> QueueDepth:
        if check.load:
            return open_loop(check, fio_cpu_count())[0]
        return SINGLE if check.kind == LATENCY else depth_for(check, single, fio_cpu_count())

    def _measure_check(
        self, check: Check, depth: QueueDepth, lent: LentScratch | None
    ) -> Measurement:
        deep = f", queue depth {depth.iodepth}" + (f" × {depth.jobs}" if depth.jobs > 1 else "")
        self._notify(f"{title_of_check(check)}{deep}")
        return self._measure(check, depth, self.setup.measure, lent)

    def _measure(
        self,
        check: Check,
        depth: QueueDepth,
        seconds: float,
        lent: LentScratch | None,
        length: float | None = None,
    ) -> Measurement:
        """Run a check, and measure the first ``seconds`` of its ``length`` (default: all)."""
        self._require(not self.loop.interrupted)
        session = self.loop.session
        settle = self.setup.settle if seconds != SINGLE_IO_S else 1.0
        collector = _Collector(settle, seconds, session.target.opened, check.percentile)
        request = self.setup.request(check, depth, length or seconds, session.interval_s)
        finished = self.loop.run(lambda: session.run_request(request, lent), collector.take)
        self._require(self.loop.complete(finished))
        measured = collector.result(depth, self._single_latencies.get(check.rw))
        if measured is None:
            raise JobFailed(f"{title_of_check(check)}: fio ended before the settle time.",
                            "Use a shorter settle time.")  # fmt: skip
        return measured

    def _require(self, goes_on: bool) -> None:
        if not goes_on:
            raise Interrupted("Interrupted: the promise was not tested to its end.")


class _Collector:
    """The figures of a run, with its rates second by second, computed from its events."""

    def __init__(
        self, settle: float, seconds: float, devices: tuple[str, ...], percentile: str = ""
    ) -> None:
        self._percentile = percentile
        self._bins: list[Mapping[int, int]] = []
        self._meter = PointMeter(settle, seconds)
        self._settling = SettlingFilter(settle, seconds)
        self._rates: list[float] = []
        self._latencies: list[float] = []
        self._rules: set[str] = set()
        self._active: set[str] = set()
        self._measured_s = 0.0
        self._devices = devices
        self._own_bytes = self._all_bytes = 0.0
        self._above = self._in_flight = 0.0
        self._exceeded_ms: dict[str, float] = {}
        self._counted = 0

    def take(self, event: Event) -> None:
        """Process an event: count a frame, and the findings that hold in it."""
        match event:
            case FrameReady():
                self._add(event.frame)
            case FindingReported():
                self._active.add(event.finding.rule)
            case FindingEnded():
                self._active.discard(event.rule)

    def _add(self, frame: Frame) -> None:
        self._meter.add(frame)
        if not self._settling.counts(frame) or frame.fio is None or not frame.fio.seconds:
            return
        self._rules |= self._active
        self._measured_s += frame.fio.seconds
        if frame.waits is not None:
            self._above += frame.waits.above or 0.0
            self._in_flight += frame.waits.ios
        if frame.aws:
            self._counted += 1
            for limit in LIMITS:
                ms = [volume.exceeded_ms.get(limit, 0.0) for volume in frame.aws.values()]
                self._exceeded_ms[limit] = self._exceeded_ms.get(limit, 0.0) + max(ms)
        disk = frame.combined(self._devices)
        if disk is not None and frame.fio.total.bw is not None:
            # both as rates, so that the different lengths of fio's and the kernel's interval do not
            # matter
            self._own_bytes += frame.fio.total.bw
            self._all_bytes += (disk.r_bytes_s or 0.0) + (disk.w_bytes_s or 0.0)
        self._rates.append(frame.fio.total.ios / frame.fio.seconds)
        total = frame.fio.total
        self._bins.append(total.bins)
        latency = total.lat_ns if total.lat_ns is not None else total.clat_ns
        if latency is not None:
            self._latencies.append(latency)

    def result(self, depth: QueueDepth, single_ns: float | None) -> Measurement | None:
        """The figures of the run; ``None`` if nothing was measured."""
        point = self._meter.point()
        if point is None:
            return None
        mean, low, high = rate_interval(self._rates)
        # the point's rate is weighted by time, the mean of the rates is not: shift the interval to
        # it
        shift = point.iops - mean
        latency = self._latency(point.latency_ns)
        return Measurement(
            point.iops, max(0.0, low + shift), high + shift, *latency, depth,
            _job_cpu(point, depth), _machine_cpu(point), frozenset(self._rules), single_ns,
            self._measured_s, self._share_of_others(),
            self._above / self._in_flight if self._in_flight else 0.0, fio_cpu_count(),
            self._exceeded(),
        )  # fmt: skip

    def _exceeded(self) -> tuple[str, ...] | None:
        """The limits that the demand exceeded, by the volume's own count; ``None`` if there was no
        count for most of the time."""
        if self._counted < len(self._rates) / 2 or not self._counted:
            return None
        most_first = sorted(self._exceeded_ms.items(), key=lambda item: -item[1])
        return tuple(COUNTED_LIMITS[limit] for limit, ms in most_first
                     if ms / self._counted >= MUCH_EXCEEDED_MS)  # fmt: skip

    def _latency(self, mean: float | None) -> tuple[float | None, float | None, float | None]:
        """The tested mean or percentile, with its interval."""
        if self._percentile:
            return percentile_interval(self._bins, BY_PERCENTILE[self._percentile])
        _, fast, slow = rate_interval(self._latencies)
        return (mean, fast, slow) if self._latencies else (mean, None, None)

    def _share_of_others(self) -> float:
        if not self._all_bytes:
            return 0.0
        return max(0.0, 1 - self._own_bytes / self._all_bytes)


def _job_cpu(point: Point, depth: QueueDepth) -> float | None:
    return None if point.fio_cpu is None else point.fio_cpu / 100 / depth.jobs


def _machine_cpu(point: Point) -> float | None:
    loads = list(point.busy.values())
    return sum(loads) / 100 / len(loads) if loads else None
