"""The event stream of a session. The screen, the headless printer and reports are its sinks.

Every event carries ``t``: seconds since the session's first sample (monotonic clock)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from iopstui.model.answer.answer import Answer
from iopstui.model.findings.finding import Finding
from iopstui.model.fio.interval import DirectionInterval
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.slow.stalls import Stall

if TYPE_CHECKING:
    from iopstui.model.experiment.expectation import Outcome
    from iopstui.model.experiment.plan import Plan
    from iopstui.model.experiment.point import LittlesLaw, Point

UNREADABLE = "unreadable"
"""The ``rule`` of the answer that replaces a part of a recording that cannot be read."""
LAYOUT, RUN = "layout", "run"
"""The phases of a run."""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A fio run begins. ``command`` is the exact argument list; ``title`` a short description such
    as "randread 4k QD 32 × 2 jobs". ``phase`` is LAYOUT or RUN. ``options`` are the requested
    options that all sections of the job share, without the target's path. ``overlap_s``: the run
    replaced another one without a pause, and for this time (s) both did I/O; if it is below 0,
    neither did."""

    kind: ClassVar[str] = "step_started"

    t: float
    step: int
    job: str
    title: str
    command: tuple[str, ...]
    read_only: bool
    phase: str = RUN
    fio_version: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    overlap_s: float | None = None


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """All checks are done; the job's files will be laid out once the fleet allows it. ``layout``
    has the bytes of scratch files to be written in each scratch directory, which exists by now."""

    kind: ClassVar[str] = "planned"

    t: float
    step: int
    layout: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RunReady:
    """Everything is ready, and fio waits for the order to start (``--hold``, ``fleet``). ``writes``
    are the existing paths that the run writes to, without scratch files made for it."""

    kind: ClassVar[str] = "armed"

    t: float
    step: int
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FioExecuted:
    """fio had waited for the order to start and was executed: at ``wall_ms`` (since 1970) by this
    machine's clock, at ``monotonic_ns`` by CLOCK_MONOTONIC, and ``late_ms`` after the requested
    instant. ``offset_ms`` is by how much this clock was ahead of the clock of the machine that gave
    the order, ``error_ms`` is how wrong that can be; both are ``None`` if the clocks were not
    compared."""

    kind: ClassVar[str] = "executed"

    t: float
    step: int
    wall_ms: float
    monotonic_ns: int
    late_ms: float
    offset_ms: float | None = None
    error_ms: float | None = None


@dataclass(frozen=True, slots=True)
class LayoutProgress:
    """Work before the first frame of a step (creating the scratch file). Sizes in bytes."""

    kind: ClassVar[str] = "progress"

    t: float
    step: int
    what: str
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class FrameReady:
    """Another interval was measured."""

    kind: ClassVar[str] = "frame"

    t: float
    frame: Frame


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment worth a line on every chart."""

    kind: ClassVar[str] = "mark"

    t: float
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user should know. ``level`` is "info", "warning" or "error". ``refused``:
    the text says why the requested run is not made; the running one goes on."""

    kind: ClassVar[str] = "notice"

    t: float
    level: str
    text: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class TunableChanged:
    """A tunable was changed (model/block/tunable.py) or restored; the values are as the kernel
    reports them. A ``Mark`` accompanies it."""

    kind: ClassVar[str] = "tunable_changed"

    t: float
    device: str
    name: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class FindingReported:
    """A finding was made (model/findings/diagnosis.py)."""

    kind: ClassVar[str] = "found"

    t: float
    finding: Finding


@dataclass(frozen=True, slots=True)
class FindingEnded:
    """A finding no longer holds (model/findings/active_findings.py): its ``rule``, its last
    ``text``, and the first and last second of the session that it is about. ``why`` tells how later
    seconds showed that it was not true; it is "" if the cause is gone."""

    kind: ClassVar[str] = "ceased"

    t: float
    rule: str
    text: str
    since: float
    until: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    """The one sentence about the target's disk that needs attention first (model/answer/table.py).
    It comes when the answer changes, and every few seconds while its figures change; on a live
    screen each second."""

    kind: ClassVar[str] = "answer"

    t: float
    answer: Answer


@dataclass(frozen=True, slots=True)
class StallFound:
    """A disk completed nothing for some time while requests were in flight
    (model/metrics/slow/stalls.py). A stall is reported once it has ended; a long one also once
    before."""

    kind: ClassVar[str] = "stall"

    t: float
    stall: Stall


@dataclass(frozen=True, slots=True)
class ExpectationChecked:
    """The outcome of one expectation (model/experiment/expectation.py): the ``field``'s id, and in
    its ``unit`` the ``required`` value, the ``limit`` (with the tolerance) and the ``measured``
    value. ``passed`` is ``None`` if it was not measured or can't be judged; ``why`` says that, or
    what ``measured`` is (the worst of several hosts). ``share`` (0..1) of the measured seconds met
    the expectation by themselves. ``base`` is the same figure of the baseline in the file
    ``base_name`` (``None``: there is none), ``low`` and ``high`` are the interval of the ratio to
    it, ``base_spread`` says whether the baseline has an interval of its own."""

    kind: ClassVar[str] = "judged"

    t: float
    step: int
    expectation: str
    field: str
    unit: str
    op: str
    required: float
    limit: float
    measured: float | None
    passed: bool | None
    share: float | None
    base: float | None = None
    base_name: str = ""
    low: float | None = None
    high: float | None = None
    base_spread: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Whether a run's IOPS were steady (model/metrics/statistics.py); ``steady`` is
    ``None`` if it was too short to tell. ``text`` says it in words."""

    kind: ClassVar[str] = "steady_state"

    t: float
    step: int
    steady: bool | None
    range: float
    slope: float
    round_s: float
    text: str


@dataclass(frozen=True, slots=True)
class ExperimentStarted:
    """A sweep (``plan.axes``) or a comparison (``plan.variants``) begins; its points follow.
    ``name`` is the plan's name, if it has one."""

    kind: ClassVar[str] = "experiment_started"

    t: float
    plan: Plan
    name: str = ""


@dataclass(frozen=True, slots=True)
class PointStarted:
    """The ``index``-th of ``total`` runs of an experiment (from 0) begins; ``label`` says what is
    set in it, ``left_s`` how long the experiment will still take (0: not known)."""

    kind: ClassVar[str] = "point_started"

    t: float
    index: int
    total: int
    label: str
    left_s: float


@dataclass(frozen=True, slots=True)
class PointFinished:
    """Figures of a finished run. ``settings`` are (name, value); ``earlier``: it was measured
    before an interruption; ``little`` compares it with Little's law; ``outcomes`` are those of the
    expectations, in their order."""

    kind: ClassVar[str] = "point_finished"

    t: float
    index: int
    total: int
    label: str
    job: str
    settings: tuple[tuple[str, str], ...]
    variant: int
    repeat: int
    point: Point
    little: LittlesLaw
    outcomes: tuple[Outcome, ...] = ()
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class PointFailed:
    """A run of a sweep failed; the sweep continues. ``error`` says in one sentence why."""

    kind: ClassVar[str] = "point_failed"
    outcomes: ClassVar[tuple[Outcome, ...]] = ()
    """A failed point has no outcomes, because no figure was measured to check against them."""

    t: float
    index: int
    total: int
    label: str
    job: str
    settings: tuple[tuple[str, str], ...]
    repeat: int
    error: str


@dataclass(frozen=True, slots=True)
class ExperimentFinished:
    """An experiment has ended: ``done`` of ``total`` points are measured, and ``failed`` of the
    others were tried but failed. ``enough``: it ended before the last point, because it had found
    what it was looking for. ``interrupted``: it was stopped. ``error`` says in one sentence why a
    point failed, or is empty, and ``hint`` how to fix it. ``kept`` is the file from which it can be
    resumed, "" if there is none. ``said`` has the conclusions that the plan itself makes; it is
    empty for an ordinary sweep or comparison."""

    kind: ClassVar[str] = "experiment_finished"

    t: float
    done: int
    total: int
    interrupted: bool = False
    error: str = ""
    hint: str = ""
    kept: str = ""
    failed: int = 0
    enough: bool = False
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A fio run ended. ``summary`` has fio's own final figures (output/summary.py prints them as a
    table); ``document`` is fio's JSON report without its histograms (not in JSON lines); ``error``
    says in one sentence why it failed, or is empty, and ``hint`` how to fix it. ``disturbed``: what
    spoiled the run's figures, in sentences (a point of an experiment has it in its own event)."""

    kind: ClassVar[str] = "step_finished"

    t: float
    step: int
    exit_code: int
    error: str
    interrupted: bool
    summary: Mapping[str, object] = field(default_factory=dict)
    fio_log: tuple[str, ...] = ()
    hint: str = ""
    document: Mapping[str, object] = field(default_factory=dict)
    disturbed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunAddedUp:
    """All I/Os of a run, directly before its StepFinished, where they are known apart from its
    frames: a fleet adds up what each host counted, also in seconds that not all hosts reported.
    Only screens get this."""

    kind: ClassVar[str] = "run_added_up"

    t: float
    step: int
    total: DirectionInterval


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The session is over; nothing follows."""

    kind: ClassVar[str] = "ended"

    t: float
    exit_code: int


Event = (
    StepStarted
    | RunPlanned
    | RunReady
    | FioExecuted
    | LayoutProgress
    | FrameReady
    | Mark
    | Notice
    | TunableChanged
    | FindingReported
    | FindingEnded
    | AnswerGiven
    | StallFound
    | ExpectationChecked
    | SteadyState
    | ExperimentStarted
    | PointStarted
    | PointFinished
    | PointFailed
    | ExperimentFinished
    | RunAddedUp
    | StepFinished
    | SessionEnded
)


def field_types(cls: type) -> dict[str, Any]:
    """The field types of an event, or of a dataclass inside one, by name.

    The types of experiments are imported here, not at the top: a plain run does not need them."""
    from iopstui.model.experiment.baseline import BaselineFigure
    from iopstui.model.experiment.expectation import Outcome
    from iopstui.model.experiment.plan import Plan
    from iopstui.model.experiment.point import LittlesLaw, Point

    lazy_types = {
        record.__name__: record for record in (BaselineFigure, Outcome, Plan, LittlesLaw, Point)
    }
    return get_type_hints(cls, localns=lazy_types)
