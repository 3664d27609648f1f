"""Write a recording during the measurement, in a separate thread.

Every sample is passed to the kernel as soon as it is taken. So if iopstui is killed, at most the
sample that it was writing is lost. Neither a slow nor a full disk stops the session."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import stat
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iopstui import __version__, events
from iopstui.errors import UsageError, note_incomplete
from iopstui.linux.process.limits import exhausted_limit
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.model.block.tunable import TunableRequest
from iopstui.model.samples import RawSample
from iopstui.recording.pre_trigger_buffer import BaselineSamples, CurrentState, PreTriggerBuffer
from iopstui.recording.records import JobRun, RecordedDevices, RecordedUse, RecordingEnd
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.recording import layout as form

Chunk = tuple[bytes, float, Any]
MAX_WAITING = 300
CLOSE_TIMEOUT_S = 5.0


class Recorder:
    """Writes one recording file. Create it in any thread; ``put`` queues and never blocks or
    raises.

    Raises UsageError if the file exists or can't be made; it is created at once, readable only by
    its owner."""

    is_listed = True
    """Whether the file is added to the recent recordings."""
    compression_level = 6

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self.samples = 0
        self.problem = ""
        self._fd = _create(path)
        self._queue: queue.SimpleQueue[Sequence[Chunk] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stream: Any = None

    def put(self, kind: bytes, t: float, value: Any) -> None:
        """Queue this record for writing. Its values must not be changed afterwards."""
        self.put_all([(kind, t, value)])

    def put_all(self, chunks: Sequence[Chunk]) -> None:
        """Queue several records. They count as one in the limit of the queue, because they were in
        memory already."""
        if self.problem:
            return
        if self._queue.qsize() >= MAX_WAITING:
            self.problem = f"{self.path} cannot be written fast enough"
            return
        if self._thread is None:
            thread = threading.Thread(target=self._main, name="recorder", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self.problem = f"{self.path} cannot be written: {exhausted_limit(error) or error}"
                return
            self._thread = thread
        self._queue.put(chunks)

    def give_up(self) -> None:
        """Accept no more data. Queued data is still written when the disk accepts it, but nobody
        waits for it."""
        self._queue.put(None)

    def close(self) -> None:
        """Write queued data, and close the file. Does not wait for a hung disk."""
        self.give_up()
        if self._thread is None:
            self._end()
            return
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._thread.is_alive() and not self.problem:
            self.problem = f"{self.path} cannot be written fast enough"

    def finished(self, within_s: float) -> bool:
        """Wait until the writer has ended by itself. Returns False if it is still writing."""
        if self._thread is not None:
            self._thread.join(within_s)
        return self._thread is None or not self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """The number of queued records."""
        return self._queue.qsize()

    def discard(self) -> None:
        """Close and remove the file: nothing was recorded."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink()

    # -- the recorder's thread

    def _main(self) -> None:
        # imported when recording begins, in this thread so that no other has to wait
        from iopstui.recording import layout as form

        try:
            self._write(form.MAGIC)
            while (item := self._queue.get()) is not None:
                for chunk in item:
                    self._chunk(*chunk)
        except OSError as error:
            self.problem = f"{self.path}: {error.strerror or error}"
            if not self.samples:
                # remove the empty file: the next run could not use its name
                with contextlib.suppress(OSError):
                    self.path.unlink()
        # report a bug here, so that nobody believes that the recording continues
        except Exception as error:
            self.problem = f"{self.path}: internal error {error!r}"
        finally:
            self._end()

    def _chunk(self, kind: bytes, t: float, value: Any) -> None:
        from iopstui.recording import layout as form
        from iopstui.recording.coding import encoder

        if kind == form.SAMPLE:
            if self.samples % form.KEY_EVERY == 0:
                kind = form.KEY
                self._stream = form.sample_stream(self.compression_level)
            self.samples += 1
            data = form.pack([value[0], encoder(RawSample)(value[1])])
            payload = self._stream.compress(data) + self._stream.flush(zlib.Z_SYNC_FLUSH)
        else:
            payload = zlib.compress(form.pack(value()), self.compression_level)
        self._write(form.head(kind, t, payload) + payload)

    def _write(self, data: bytes) -> None:
        complete_bytes = self.bytes
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            # the disk is full: remove the incomplete chunk
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, complete_bytes)
            raise
        self.bytes += len(data)

    def _end(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


def next_free_path(path: Path) -> Path:
    """The next free path for a recording that cannot continue in ``path``: FILE-2, FILE-3 ..."""
    number = 2
    while os.path.lexists(candidate := path.with_name(f"{path.stem}-{number}{path.suffix}")):
        number += 1
    return candidate


def check_creatable(path: Path) -> None:
    """Raise UsageError for a --record file that can't be created; leaves no file behind."""
    os.close(_create(path))
    os.unlink(path)


def _create(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)
    except FileExistsError as error:
        raise UsageError(
            f"{printable(str(path))} exists already. --record does not overwrite files.",
            "Choose another name, or remove the file.",
        ) from error
    except OSError as error:
        raise UsageError(
            f"The recording cannot create {printable(str(path))}: {error.strerror}.",
            "Choose a directory you can write to: --record /tmp/run.iops",
        ) from error


class RecordingBuffer:
    """Connects a session to its recorder. It gets all events even without a recording, so that one
    can begin in the middle of a run or an experiment. Any thread may call it. ``topology`` is
    called once for each recording, in the recorder's thread; ``own_files`` says whether the jobs
    name their files themselves. The last ``keep_s`` seconds are kept, so that a recording can begin
    with them."""

    def __init__(
        self,
        target: Target,
        devices: Callable[[], Mapping[str, BlockDevice]],
        interval_s: float,
        idle_frames: bool,
        knobs: Sequence[TunableRequest] = (),
        recorder: Recorder | None = None,
        topology: Callable[[], Topology] = Topology,
        own_files: bool | None = None,
        keep_s: float = 0.0,
    ) -> None:
        self._target = target
        self._devices = devices
        self._interval_s = interval_s
        self._idle_frames = idle_frames
        self._knobs = tuple(knobs)
        self._topology = topology
        self._own_files = own_files
        self._lock = threading.RLock()
        self._recorder: Recorder | None = None
        self._waiting = recorder
        self._first_ns: int | None = None
        self._origin_ns = 0
        self._shift_s = 0.0
        self._lead = BaselineSamples()
        self._pre_trigger_buffer = PreTriggerBuffer(keep_s) if keep_s else None
        self._batch: list[Chunk] | None = None
        self._current_state = CurrentState()
        self._unwritten: list[events.Event] = []
        self._last_t = 0.0
        self._has_run = False
        self.kept_path: Path | None = None
        """After ``close``: the path of the recording."""

    @property
    def path(self) -> Path | None:
        """Path of the recording; ``None`` if nothing is recorded."""
        recorder = self._recorder or self._waiting
        return recorder.path if recorder is not None else None

    def start(self, recorder: Recorder, with_kept: bool = True) -> None:
        """Start recording, beginning with the sample that the first difference needs.
        ``with_kept``: begin with the kept seconds."""
        with self._lock:
            close = self.detach()
            self._start(recorder, with_kept)
        # close the old file without the lock: a slow disk then delays only this caller
        close()

    def _start(self, recorder: Recorder, with_kept: bool) -> None:
        buffer = self._pre_trigger_buffer if with_kept else None
        lead = (buffer.lead if buffer else self._lead).samples()
        kept_items = buffer.items if buffer else []
        initial_state = buffer.initial_state if buffer else self._current_state
        first = next(
            (entry for entry in (*lead, *kept_items) if isinstance(entry, RawSample)), None
        )
        if first is None:
            self._waiting = recorder
            return
        batch: list[Chunk] = []
        self._batch = batch
        self._begin(recorder, first, buffer.devices if buffer else None, (lead or [first])[-1])
        for raw in lead:
            self._put_sample(raw, is_shown=False)
        for value in initial_state.records_before(kept_items):
            self._put_event(value)
        for item in kept_items:
            self._put_kept(item)
        self._batch = None
        recorder.put_all(batch)

    def save_kept(self, recorder: Recorder) -> float | None:
        """Write the kept seconds, close the file, and return their number (``None``, and no file,
        if there are none). Raises UsageError if they can't be written."""
        with self._lock:
            self.start(recorder)
            seconds, close = self._last_t, self.detach()
        close()
        if recorder.problem:
            raise UsageError(f"The recording has stopped: {recorder.problem}.")
        return seconds if recorder.samples else None

    def _put_kept(self, item: Any) -> None:
        if isinstance(item, RawSample):
            self._put_sample(item, is_shown=True)
        else:
            self._put_event(item)

    def stop(self) -> str:
        """Stop the recording; return a description of it ("" if nothing was recorded)."""
        with self._lock:
            return self.detach()()

    def detach(self) -> Callable[[], str]:
        """Stop the recording. Returns a function that closes the file and returns the same as
        ``stop``. Call it in a thread that may wait for a slow disk."""
        with self._lock:
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                waiting.discard()
            recorder = self._recorder
            if recorder is None:
                return str
            self._put_event(RecordingEnd(self._last_t + self._shift_s))
            self._recorder = None
        return lambda: _close(recorder)

    def sample(self, raw: RawSample) -> None:
        """Process a sample. Call this before its frame is emitted."""
        with self._lock:
            if self._first_ns is None:
                self._first_ns = raw.arrived_ns
                if self._pre_trigger_buffer is not None:
                    self._pre_trigger_buffer.devices = self._recorded_devices()
            self._lead.add(raw)
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                self._begin(waiting, raw)
                for event in self._unwritten:
                    self._put_event(event)
            self._unwritten = []
            self._keep(raw)
            self._put_sample(raw, is_shown=True)

    def event(self, event: events.Event) -> None:
        """Process an event. Frames are not recorded, because they can be computed from the
        samples."""
        if isinstance(event, events.FrameReady):
            return
        with self._lock:
            self._current_state.add(event)
            if isinstance(event, events.StepStarted):
                self._has_run = True
            elif isinstance(event, events.StepFinished):
                self._lead.forget_run()
            if self._waiting is not None:
                self._unwritten.append(event)
            self._keep(event)
            self._put_event(event)
            if isinstance(event, events.TunableChanged):
                devices = self._recorded_devices()
                self._keep(devices)
                self._put_event(devices)

    def job(self, job: JobRun) -> None:
        """The job that is about to start."""
        with self._lock:
            self._current_state.add(job)
            self._keep(job)
            self._put_event(job)

    def add(self, record: Any) -> None:
        """Record something that is not an event of the session."""
        with self._lock:
            self._put_event(record)

    def problems(self) -> Iterator[str]:
        """The reason why the recording has stopped by itself; yielded once."""
        with self._lock:
            recorder = self._recorder
            if recorder is None or not recorder.problem:
                return
            self._recorder = None
        recorder.give_up()
        note_incomplete(printable(f"the recording is incomplete: {recorder.problem}"))
        yield f"the recording has stopped: {recorder.problem}; measuring continues"

    def close(self, session_ended: events.SessionEnded) -> str:
        """Close the recording at the session's end. Returns why it is incomplete, or ""."""
        with self._lock:
            recorder, self.kept_path = self._recorder, self.path
            self.event(session_ended)
            message = self.stop()
        if recorder is not None and not self._idle_frames and not self._has_run:
            # if the job never began, free the file's name for the next try
            recorder.discard()
        return message if recorder is not None and recorder.problem else ""

    def _keep(self, item: Any) -> None:
        if self._pre_trigger_buffer is not None:
            self._pre_trigger_buffer.add(item)

    def _begin(
        self,
        recorder: Recorder,
        first: RawSample,
        devices: RecordedDevices | None = None,
        newest: RawSample | None = None,
    ) -> None:
        """Begin a recording with the sample ``first``. ``newest`` is the last sample before the
        first shown one; if the clock was set between the two, the new time counts."""
        from iopstui.recording import layout as form
        from iopstui.recording.recent import remember_recording

        if recorder.is_listed:
            remember_recording(recorder.path)
        self._recorder = recorder
        self._origin_ns, self._last_t = first.arrived_ns, 0.0
        self._shift_s = (first.arrived_ns - (self._first_ns or first.arrived_ns)) / 1e9
        machine, newest = os.uname(), newest or first
        header = form.Header(
            iopstui=__version__,
            host=machine.nodename,
            kernel=machine.release,
            machine=machine.machine,
            started_ms=newest.wall_ms - (newest.arrived_ns - first.arrived_ns) / 1e6,
            target=self._target,
            interval_s=self._interval_s,
            idle_frames=self._idle_frames,
            knobs=self._knobs,
            own_files=self._own_files,
        )
        self._put(form.HEADER, 0.0, lambda: self._header(header))
        self._put_event(devices or self._recorded_devices())

    def _header(self, header: form.Header) -> dict[str, Any]:
        """The header as an object. Runs in the recorder's thread, because reading the topology of
        many CPUs is slow."""
        from iopstui.recording import layout as form
        from iopstui.recording.coding import encoder

        complete_header = dataclasses.replace(header, topology=self._topology())
        return {"layouts": form.all_layouts(), "header": encoder(form.Header)(complete_header)}

    def _recorded_devices(self) -> RecordedDevices:
        devices = self._devices()
        target_devices = (devices[name] for name in self._target.tree if name in devices)
        return RecordedDevices(
            tuple(dataclasses.replace(device, serial=None) for device in target_devices)
        )

    def _put_sample(self, raw: RawSample, is_shown: bool) -> None:
        if self._recorder is not None:
            from iopstui.recording import layout as form

            self._last_t = (raw.arrived_ns - self._origin_ns) / 1e9
            self._put(form.SAMPLE, self._last_t, (int(is_shown), raw))

    def _put_event(self, value: Any) -> None:
        if self._recorder is None:
            return
        from iopstui.recording import layout as form
        from iopstui.recording.coding import encoder

        if self._shift_s and hasattr(value, "t"):
            # a record from before this recording gets the time of the recording's first second
            value = shifted(value, -self._shift_s)
        t = getattr(value, "t", self._last_t)
        kind: Any = type(value)
        self._put(form.EVENT, t, lambda: [form.NAMES[kind], encoder(kind)(value)])

    def _put(self, kind: bytes, t: float, value: Any) -> None:
        if self._batch is not None:
            self._batch.append((kind, t, value))
        elif self._recorder is not None:
            self._recorder.put(kind, t, value)


def shifted(value: Any, by_s: float) -> Any:
    """A copy of a record with all times moved later; none is before 0."""

    def later(t: float | None) -> float | None:
        return None if t is None else max(0.0, t + by_s)

    changed: dict[str, Any] = {"t": later(value.t)}
    if isinstance(value, events.FindingReported):
        finding = value.finding
        changed["finding"] = dataclasses.replace(
            finding, since=later(finding.since), until=later(finding.until)
        )
    if isinstance(value, events.FindingEnded):
        changed["since"], changed["until"] = later(value.since), later(value.until)
    if isinstance(value, RecordedUse):
        use = value.use
        changed["use"] = dataclasses.replace(use, t=max(0.0, use.t + by_s))
    if isinstance(value, events.StallFound):
        start = max(0.0, value.stall.start + by_s)
        changed["stall"] = dataclasses.replace(value.stall, start=start)
    return dataclasses.replace(value, **changed)


def _close(recorder: Recorder) -> str:
    recorder.close()
    if recorder.problem:
        note_incomplete(printable(f"the recording is incomplete: {recorder.problem}"))
        return f"the recording has stopped: {recorder.problem}"
    amount = f"{recorder.samples} samples, {max(1, recorder.bytes // 1000)} kB"
    return f"recorded to {recorder.path}: {amount}"
