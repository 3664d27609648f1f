"""Replay a recording at any speed, with the same events as the live session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from iopstui import events
from iopstui.discovery import feature_modules
from iopstui.errors import UsageError
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.model.block.tunable import TUNABLES
from iopstui.model.cgroups import DiskUse as GroupUse
from iopstui.model.cgroups import GroupRates
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.metrics.history import MIN_MARK_SPACING_S
from iopstui.recording import layout as form
from iopstui.recording.player import Player
from iopstui.recording.reader import Record, Recording, RecordingIndex, SampleRecord
from iopstui.recording.records import RecordedUse
from iopstui.safety.tunables import TunableState, queued_disks

LOOKBACK = 900
USE_AGE_S = 10.0
"""A reading of who uses the disks counts for this long. Flight recordings have one every 5 s while
somebody does."""
NOT_IN_RECORDING = "{} is not available in a recording"


class ReplayFold:
    """Turns records into the session's events, with the code of the live session."""

    def __init__(
        self,
        header: form.Header,
        origin_ns: int | None = None,
        devices: Mapping[str, BlockDevice] | None = None,
    ) -> None:
        self.devices = dict(devices or {})
        self.run: form.JobRun | None = None
        self.use: RecordedUse | None = None
        self.has_end_marker = False
        self.starts_during_run = False
        self._idle_frames = header.idle_frames
        self._findings: dict[str, events.FindingReported] = {}
        self._builder = FrameBuilder(origin_ns, header.target.opened, header.target.links)

    @property
    def state(self) -> tuple[object, ...]:
        """All state that the next frames depend on."""
        return self._builder.state

    def feed(self, record: Record) -> Iterator[events.Event]:
        """The events of one record; a sample that is not shown has none."""
        if isinstance(record, SampleRecord):
            raw = record.raw
            frame = self._builder.feed(raw)
            if not record.is_shown:
                self.starts_during_run |= raw.fio is not None
            elif self._idle_frames or raw.fio is not None or frame.fio_age_s is not None:
                yield events.FrameReady(frame.t, frame)
            return
        yield from self._other_events(record.value)

    def _other_events(self, value: object) -> Iterator[events.Event]:
        if isinstance(value, form.RecordedDevices):
            self.devices = {device.name: device for device in value.devices}
        elif isinstance(value, form.JobRun):
            self.run = value
        elif isinstance(value, RecordedUse):
            self.use = value
        elif isinstance(value, form.RecordingEnd):
            self.has_end_marker = True
        elif isinstance(value, events.Event):
            yield from self._ended_findings(value)
            yield value

    def _ended_findings(self, value: events.Event) -> Iterator[events.Event]:
        """If a part of the recording cannot be read, end the active findings: they may have changed
        meanwhile."""
        match value:
            case events.FindingReported():
                self._findings[value.finding.rule] = value
            case events.FindingEnded():
                self._findings.pop(value.rule, None)
            case events.AnswerGiven() if value.answer.rule == events.UNREADABLE:
                for rule, found in self._findings.items():
                    yield events.FindingEnded(value.t, rule, found.finding.text, found.t, value.t)
                self._findings.clear()


def replay_events(
    recording: Recording, fold: ReplayFold | None = None, wait: Callable[[], bool] | None = None
) -> Iterator[events.Event]:
    """All events of a recording, as fast as they are consumed. If it is incomplete, or begins in
    the middle of a run, a Notice says so. With ``wait``, a recording that is still being written is
    followed to its end marker; ``wait`` is called when nothing more is there, and following ends if
    it returns False."""
    fold = fold or ReplayFold(recording.header)
    notified = False
    last = 0.0
    records = recording.records() if wait is None else recording.follow()
    for record in records:
        if record is None:
            if wait is None or not wait():
                break
            continue
        for event in fold.feed(record):
            if fold.starts_during_run and not notified:
                notified = True
                yield events.Notice(event.t, "info", STARTS_DURING_RUN)
            last = event.t
            yield event
    message = why_incomplete(recording, fold.has_end_marker)
    if message:
        yield events.Notice(last, "warning", message)


STARTS_DURING_RUN = (
    "the recording starts during a run, so fio's final figures cover more than the recording"
)


def why_incomplete(recording: Recording, has_end_marker: bool) -> str:
    """Why the recording is incomplete, in words; "" if it is complete."""
    if recording.damage:
        return recording.damage
    if has_end_marker:
        return ""
    return ("the recording has no end marker: it is still written, iopstui was killed, or the disk "
            "was full")  # fmt: skip


def _marks(recorded: Sequence[object]) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = []
    for event in recorded:
        if isinstance(event, events.Mark):
            found.append((event.t, event.text))
        elif (
            isinstance(event, events.StepStarted) and event.phase == events.RUN
            and (not found or found[-1][0] < event.t - MIN_MARK_SPACING_S)
        ):  # fmt: skip
            found.append((event.t, event.job))
    return found


class ReplaySession(Player[Record, events.Event]):
    """Plays a recording on the screen, in place of a live session.

    Raises UsageError if there is no sample to show. ``on_jump`` is called in the session's thread
    before the events of another position follow; it must discard what was shown until then.
    Impossible figures end the replay (``on_failure``)."""

    records_users = False
    """Whether recordings of this kind have readings of who used the disks."""

    def __init__(self, path: Path, speed: float = 1.0, file: BinaryIO | None = None) -> None:
        super().__init__(speed)
        self._recording = Recording(path, file)
        try:
            self._index: RecordingIndex = self._recording.index()
            if not self._index.samples:
                raise UsageError(f"The recording {path} is empty.")
        except BaseException:
            self._recording.close()
            raise
        self.path = path
        self.header = self._recording.header
        self.lookback_s = LOOKBACK * self.header.interval_s
        self.on_jump: Callable[[], None] = lambda: None
        self.job: str | None = None
        self.overrides: dict[str, str] = {}
        self.bind = False
        self._fold = ReplayFold(self.header)
        self._marks: tuple[int, Sequence[tuple[float, str]]] = (0, ())
        self._origin_ns: int | None = None
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Read the devices and the first sample's time, which the screen needs before it begins."""
        for record in self._recording.records():
            if isinstance(record, SampleRecord):
                self._origin_ns = record.raw.arrived_ns
                return
            for _ in self._fold.feed(record):
                pass

    # -- the interface of a session for the screen

    @property
    def target(self) -> Target:
        return self.header.target

    @property
    def host(self) -> str:
        """The recorded machine's name."""
        return self.header.host

    @property
    def devices(self) -> Mapping[str, BlockDevice]:
        """The target's devices at this moment of the recording."""
        return self._fold.devices

    @property
    def _use(self) -> RecordedUse | None:
        use, at = self._fold.use, self.at
        return use if use is not None and use.t <= at <= use.t + USE_AGE_S else None

    @property
    def disk_use(self) -> DiskUse | None:
        """Who used the disks at this moment of the recording, if that was recorded."""
        return self._use.use if self._use is not None else None

    @property
    def groups(self) -> Sequence[GroupRates] | None:
        """The I/O of the cgroups on the target's disks at this moment, if that was recorded beside
        the samples; the busiest first."""
        if self._use is None or not self._use.groups:
            return None
        found = [GroupRates(path, {"": GroupUse(*rates)})
                 for path, rates in self._use.groups.items()]  # fmt: skip
        return sorted(found, key=lambda group: -group.total.bytes_s)

    def run_job(self, job: str, overrides: Mapping[str, str], *, mark: str = "") -> None:
        """Refuse: nothing can be measured or changed in a recording."""
        self._notice(NOT_IN_RECORDING.format("running a job"))

    def stop_job(self) -> None:
        """Do nothing: nothing runs in a replay."""

    def mark(self, text: str) -> None:
        """Refuse: nothing can be measured or changed in a recording."""
        self._notice(NOT_IN_RECORDING.format("a mark"))

    def set_tunable(self, name: str, value: str) -> None:
        """Refuse: nothing can be measured or changed in a recording."""
        self._notice(NOT_IN_RECORDING.format("changing a tunable"))

    def knobs(self) -> list[TunableState]:
        """The tunables of the disks at this moment; none can be changed."""
        return list(_recorded_tunables(queued_disks(self.target, self._fold.devices)))

    def topology(self) -> Topology:
        """The recorded machine's CPUs; empty for an older recording."""
        return self.header.topology

    def close(self) -> None:
        super().close()
        self._recording.close()

    # -- the content

    @property
    def end(self) -> float:
        return self._index.end

    @property
    def marks(self) -> Sequence[tuple[float, str]]:
        count = len(self._index.events)
        if self._marks[0] != count:
            self._marks = count, _marks([record.value for _, record in self._index.events])
        return self._marks[1]

    @property
    def has_jobs(self) -> bool:
        """Whether a job began in the recording, as far as it is written."""
        return any(isinstance(one.value, events.StepStarted) for _, one in self._index.events)

    def _ends_step(self, item: Record) -> bool:
        return isinstance(item, SampleRecord)

    def _notice(self, text: str) -> None:
        self._sink(events.Notice(self.at, "info", text))

    def _records(self, start: int | None = None) -> Iterator[Record | None]:
        """The records from a position of the index on; ``None`` means: wait for more."""
        return self._recording.records(start)

    def _items(self, goal: float | None) -> Iterator[Record | None]:
        yield from self._records() if goal is None else self._jump(goal)
        self._sink(events.Notice(self.end, "info", self._end_text()))

    def _end_text(self) -> str:
        message = why_incomplete(self._recording, self._index.has_end_marker)
        return message or "end of the recording; space: play again"

    def _show(self, item: Record) -> None:
        for event in self._fold.feed(item):
            # the replay goes on after the session's end, because the user can still go back
            if not isinstance(event, events.SessionEnded):
                self._sink(event)
        if self._fold.run is not None:
            self.job, self.overrides = self._fold.run.job, dict(self._fold.run.overrides)

    def _jump(self, t: float) -> Iterator[Record | None]:
        """The records to play to show the position ``t``. The events before it are emitted
        first."""
        index, start_t = self._index, self._index.time_before(t - self.lookback_s)
        place, lead = index.key_before(start_t), index.key_before(start_t - 1e-6)
        self.on_jump()
        self._fold = ReplayFold(self.header, self._origin_ns, self._fold.devices)
        if lead == 0 or place <= index.keys[0]:
            return self._records()
        for at, event in index.events:
            if at < lead and isinstance(event.value, CONTEXT):
                self._show(event)
        return self._with_lead(lead, start_t)

    def _with_lead(self, lead: int, start_t: float) -> Iterator[Record | None]:
        """The records from position ``lead`` on; samples before ``start_t`` are not shown."""
        for record in self._records(lead):
            if isinstance(record, SampleRecord) and record.t < start_t:
                record = SampleRecord(record.t, record.raw, False)
            yield record


def open_replay(path: Path, speed: float = 1.0) -> ReplaySession:
    """The replay of a recording, or of a directory with a feature's recordings."""
    if path.is_dir():
        for module in feature_modules("recording_directory"):
            session: ReplaySession = module.open_replay(path, speed)
            return session
    return ReplaySession(path, speed)


CONTEXT = (
    events.StepStarted, events.StepFinished, events.Mark, events.FindingReported,
    events.FindingEnded, events.AnswerGiven, events.StallFound,
    events.ExpectationChecked, events.SteadyState, events.ExperimentStarted, events.PointStarted,
    events.PointFinished, events.PointFailed, events.ExperimentFinished,
    form.JobRun, form.RecordedDevices,
)  # fmt: skip


def _recorded_tunables(disks: Sequence[BlockDevice]) -> Iterator[TunableState]:
    for name, tunable in TUNABLES.items():
        values = [(disk.name, getattr(disk.queue, name, None)) for disk in disks]
        readable = [(disk, sysfs_text(value)) for disk, value in values if value is not None]
        if readable:
            yield TunableState(
                name, tunable.meaning, readable[0][1], (), "nothing here",
                tuple(readable) if len(readable) > 1 else (), "this is a recording",
            )  # fmt: skip


def sysfs_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
