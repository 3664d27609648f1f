"""Record a session to a ring of files: when a file begins, what is written besides the samples, and
what is reported. The session's thread collects and decides. A second thread opens, closes and
removes files, and a third one thins them, so that a slow disk does not delay measurements."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iopstui import events
from iopstui.errors import IopstuiError, UsageError
from iopstui.features.flight.directory import HOUR_S, JUMP_S, Ring, StoredFile
from iopstui.features.flight.model.bad_times import PeakFold, busiest_use
from iopstui.features.flight.thinning import thin
from iopstui.linux.counters.cgroup import CgroupReader
from iopstui.linux.counters.procfs import parse_diskstats
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots, read_bytes
from iopstui.linux.machine.load import active_disks
from iopstui.linux.own_threads import Clock
from iopstui.model.answer.use import DiskUse
from iopstui.model.cgroups import group_rates
from iopstui.model.histogram import EXACT_BELOW, bucket_key
from iopstui.model.samples import ProbeSample, RawSample
from iopstui.recording import layout
from iopstui.recording.records import RecordedUse
from iopstui.recording.writer import Recorder
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.model.metrics.frame import Frame
    from iopstui.session.live import LiveSession


PEAKS_S = 10.0
USE_S = 5.0
"""Seconds between two records of who uses the disks and of each cgroup's I/O."""
RETRY_S = 10.0
PARTS_OF_SIZE = 8
"""No file becomes larger than the ring's size divided by this."""
MAX_GROUPS = 30
CLOSE_TIMEOUT_S = 6.0
LAST_USE_TIMEOUT_S = 1.0
LOWEST_PRIORITY = 19


class FlightRecorder:
    """Records sessions: call ``attach`` before a session starts. ``say`` prints a message."""

    def __init__(
        self, ring: Ring, say: Callable[[str], object], clock: Clock | None = None,
        roots: Roots | None = None,
    ) -> None:  # fmt: skip
        self._ring = ring
        self._say = say
        self._clock = clock or Clock()
        self._roots = roots or Roots()
        self._session: LiveSession | None = None
        self._file: HourFile | None = None
        self._is_opening = False
        self._paused = ""
        self._retry_at = 0.0
        self._hour = -1
        self._wall_offset_s: float | None = None
        self._keep_offset_s = self._now_offset_s()
        self._peaks = PeakFold()
        self._peaks_at = self._use_at = self._frame_t = 0.0
        self._uses: list[DiskUse] = []
        self._newest_use: DiskUse | None = None
        self._findings: dict[str, events.FindingReported] = {}
        self._answer: events.AnswerGiven | None = None
        self._groups: CgroupReader | None = None
        self._group_counts: dict[str, int] | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._thinner: threading.Thread | None = None
        self._begin_again: Callable[[], None] | None = None
        self._seen_disks: set[str] = set()

    def attach(
        self, session: LiveSession, begin_again: Callable[[], None] | None = None
    ) -> None:  # fmt: skip
        """Record this session, which is about to start. ``begin_again`` is called once if a disk
        that is new to the session does I/O. It must start a new session and attach that, too."""
        self._session, self._begin_again = session, begin_again
        self._seen_disks = self._used_disks()
        self._groups = CgroupReader(session.target.devices_below, self._roots)
        self._group_counts = None
        self._peaks, self._peaks_at, self._use_at, self._frame_t = PeakFold(), 0.0, 0.0, 0.0
        self._wall_offset_s = None
        self._uses, self._newest_use, self._findings, self._answer = [], None, {}, None
        if self._thread is None:
            self._ring.remove_leftovers()
        _load_readers()
        self._is_opening = True
        self._open()
        self._is_opening = False
        session.add_sink(lambda event: self.handle(event) if session is self._session else None)
        session.at_end(self._write_rest)
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name="flight recorder", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Close the file, because the session has ended, but don't wait for a disk that hangs."""
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(CLOSE_TIMEOUT_S)
        self._ring.unlock()

    # -- called in the session's thread

    def handle(self, event: events.Event) -> None:
        """Process an event of the session; never blocks."""
        match event:
            case events.FrameReady():
                self._frame(event.frame)
            case events.FindingReported():
                self._findings[event.finding.rule] = event
            case events.FindingEnded():
                self._findings.pop(event.rule, None)
            case events.AnswerGiven():
                self._answer = event

    def _frame(self, frame: Frame) -> None:
        session = self._session
        assert session is not None
        self._peaks.feed(frame)
        self._frame_t = frame.t
        if frame.t >= self._peaks_at + PEAKS_S:
            self._peaks_at = frame.t
            session.add_record(self._peaks.take(frame.t))
            self._jobs.put(self._look_after)
        use = session.disk_use
        if use is not None and use is not self._newest_use:
            self._newest_use = use
            self._uses.append(use)
        if frame.t >= self._use_at + USE_S:
            self._put_uses(session)
        self._check_file(frame.wall_ms / 1e3, frame.wall_ms / 1e3 - frame.t)

    def _put_uses(self, session: LiveSession) -> None:
        t = self._use_at = self._frame_t
        uses, self._uses = self._uses, []
        self._jobs.put(lambda: self._note_use(session, t, uses))

    def _write_rest(self) -> None:
        """At the session's end, write what is otherwise only written every few seconds."""
        session = self._session
        assert session is not None
        if self._frame_t > self._peaks_at:
            session.add_record(self._peaks.take(self._frame_t))
        if self._frame_t > self._use_at:
            self._put_uses(session)
        done = threading.Event()
        self._jobs.put(done.set)
        done.wait(LAST_USE_TIMEOUT_S)

    def _check_file(self, wall_s: float, offset_s: float) -> None:
        """Begin another file if one is due, or if the last one could not be written. ``offset_s``
        is the difference of the clocks; if it has changed, the clock was set since the last
        sample."""
        file = self._file
        if self._wall_offset_s is None:
            self._wall_offset_s = offset_s
        if self._is_opening:
            return
        if file is None or file.problem:
            due = self._clock.monotonic_ns() / 1e9 >= self._retry_at and bool(self._paused)
            if due or not self._paused:
                self._pause(file.problem if file is not None else self._paused)
        else:
            if self._paused and file.samples:
                self._paused = ""
                self._say("The flight recorder records again.")
            jumped = abs(offset_s - self._wall_offset_s) > JUMP_S
            large = file.bytes > self._ring.max_bytes / PARTS_OF_SIZE
            due = jumped or large or int(wall_s // HOUR_S) != self._hour
        if due:
            self._is_opening = True
            self._wall_offset_s = offset_s
            self._jobs.put(self._open_next)

    def _pause(self, why: str) -> None:
        if not self._paused:
            self._say(f"The flight recorder pauses, and tries again every {RETRY_S:.0f} s: {why}.")
        self._paused = why
        self._retry_at = self._clock.monotonic_ns() / 1e9 + RETRY_S

    def _now_offset_s(self) -> float:
        return self._clock.wall_ms() / 1e3 - self._clock.monotonic_ns() / 1e9

    # -- called in the recorder's own thread

    def _main(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except (
                Exception
            ) as error:  # report a bug, so that nobody believes that recording continues
                self._say(f"The flight recorder has failed: internal error {error!r}.")

    def _open_next(self) -> None:
        """Begin a file, and write to it again what holds at this moment."""
        try:
            self._ring.lock()
            self._open()
        except IopstuiError as error:
            self._pause(printable(error.message).rstrip("."))
        finally:
            self._is_opening = False

    def _open(self) -> None:
        session, wall_s = self._session, self._clock.wall_ms() / 1e3
        assert session is not None
        file = HourFile(self._ring.new_path(wall_s), self._ring.remove_oldest)
        self._ring.current = file.path
        self._file, self._hour = file, int(wall_s // HOUR_S)
        session.record_with(file)
        for finding in [*self._findings.values()]:
            session.add_record(finding)
        if self._answer is not None:
            session.add_record(self._answer)

    def _look_after(self) -> None:
        """Remove files that are too old or too many, and notice if the current file was removed."""
        file = self._file
        if file is not None and not file.problem and not file.is_there:
            self._file = None
            self._pause(f"{printable(str(file.path))} was removed")
        # use the smaller offset, so that setting the clock does not make files older
        now_s = self._clock.monotonic_ns() / 1e9 + min(self._keep_offset_s, self._now_offset_s())
        self._ring.tidy(now_s)
        found = self._ring.to_thin(now_s)
        if found is not None and (self._thinner is None or not self._thinner.is_alive()):
            self._thinner = threading.Thread(
                target=self._thin, args=found, name="thinning", daemon=True
            )
            self._thinner.start()
        self._look_for_disks()

    def _look_for_disks(self) -> None:
        """If a disk does its first I/O after the session began, begin a new session, which includes
        it."""
        session, begin_again, used = self._session, self._begin_again, self._used_disks()
        is_news, self._seen_disks = used - self._seen_disks, self._seen_disks | used
        if begin_again is None or session is None or not is_news:
            return
        with contextlib.suppress(UsageError):
            now = active_disks(read_devices(self._roots), self._roots).devices_below
            names = [name for name in now if name not in session.target.tree]
            if names:
                self._begin_again = None
                self._say(f"{printable(', '.join(names))}: recorded from now on, in another file.")
                begin_again()

    def _used_disks(self) -> set[str]:
        """The names of all devices that have done any I/O."""
        rows = parse_diskstats(read_bytes(self._roots.proc / "diskstats") or b"").values()
        return {row.name for row in rows if row.reads or row.writes or row.discards}

    def _thin(self, file: StoredFile, every_s: int) -> None:
        """Thin a file with the lowest priority. This needs its own thread, because threads inherit
        the priority of the one that starts them, and the thread that writes samples must not wait
        for other programs."""
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)
        try:
            thin(file, every_s)
        except FileNotFoundError:
            pass  # the file was removed meanwhile
        except (IopstuiError, OSError) as error:
            self._ring.not_thinned.add(file.path)
            self._say(f"{printable(file.path.name)} cannot be thinned: {printable(str(error))}")

    def _note_use(self, session: LiveSession, t: float, uses: Sequence[DiskUse]) -> None:
        """Record who used the disks in the last seconds, if anybody did."""
        reader = self._groups
        if session is not self._session:
            return  # another session has begun since
        now = reader.read() if reader is not None else None
        before, self._group_counts = self._group_counts, now
        groups = {
            group.path: (round(group.total.reads_s, 1), round(group.total.writes_s, 1),
                         round(group.total.read_bytes_s), round(group.total.write_bytes_s))
            for group in (group_rates(now, before, USE_S) or ())[:MAX_GROUPS]
        }  # fmt: skip
        use = busiest_use(uses)
        if use is not None and (use.users or groups):
            session.add_record(RecordedUse(t, use, groups))


def _load_readers() -> None:
    """Load the modules that the first ticks need. If a machine is short of CPU time or has a slow
    disk, loading them later would delay the second sample, and a single sample gives no figures."""
    from iopstui.linux import network  # noqa: F401
    from iopstui.linux.activity import disk_use  # noqa: F401
    from iopstui.linux.machine import conditions  # noqa: F401
    from iopstui.linux.nvme import health  # noqa: F401
    from iopstui.linux.probe import (
        bpf,  # noqa: F401
    )


# A file of the ring: a recording that makes room for itself, and is synced to the disk every 5 s.


SYNC_S = 5.0
_FULL = (errno.ENOSPC, errno.EDQUOT)


class HourFile(Recorder):
    """A file of the ring. ``make_room`` removes a file and returns True, or returns False if there
    is none to remove. It is called in the recorder's thread, for which nothing else waits."""

    is_listed = False
    compression_level = 4
    """Half of level 6's CPU time, for a tenth more bytes until the file is thinned."""

    def __init__(self, path: Path, make_room: Callable[[], bool]) -> None:
        super().__init__(path)
        self.identity = _identity(self._fd)
        self._make_room = make_room
        self._slim_probe = SlimProbe()
        self._synced_at = time.monotonic()

    @property
    def is_there(self) -> bool:
        """Whether the file is still there under its name."""
        with contextlib.suppress(OSError):
            info = os.lstat(self.path)
            return (info.st_dev, info.st_ino) == self.identity
        return False

    def _chunk(self, kind: bytes, t: float, value: Any) -> None:
        if kind == layout.SAMPLE:
            is_shown, raw = value
            value = is_shown, self._slim_probe.feed(t, raw)
        super()._chunk(kind, t, value)

    def _write(self, data: bytes) -> None:
        while True:
            try:
                super()._write(data)
                break
            except OSError as error:
                if error.errno not in _FULL or not self._make_room():
                    raise
        if time.monotonic() - self._synced_at >= SYNC_S:
            os.fdatasync(self._fd)
            self._synced_at = time.monotonic()

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            if self._fd >= 0:
                os.fdatasync(self._fd)
        super()._end()


def _identity(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


# The probe's counts, in the form in which a flight recording keeps them.
#
# Unchanged, the histograms of one busy disk would take 2 GB a day: each sample contains all their
# buckets, and they are so long that the compression does not find the repetitions.


STEPS_BITS = 3
"""8 buckets for each power of two, so a percentile is within 6 % of the request's latency."""
MAX_BUCKETS = 6000
"""Limit for the probe's buckets in a sample. If there are more (many busy disks), only each Nth
sample contains them."""
MAX_STRIDE_S = 30.0
MAX_EXEMPLARS = 8
Histograms = Mapping[str, Mapping[str, Mapping[int, int]]]


class SlimProbe:
    """Makes the probe's counts of one file coarser, and leaves them out of some samples if there
    are many. No count is lost, because they are cumulative. It must get each sample."""

    def __init__(self) -> None:
        self._keys: dict[int, int] = {}
        self._due_at = 0.0

    def feed(self, t: float, raw: RawSample) -> RawSample:
        """The sample as it is to be written. ``t`` is its time in the file."""
        probe = raw.probe
        if probe is None or t < self._due_at:
            return raw if probe is None else replace(raw, probe=None)
        buckets = _count(probe.device) + _count(probe.waiting)
        if buckets > MAX_BUCKETS:
            self._due_at = t + min(MAX_STRIDE_S, buckets / MAX_BUCKETS) - 0.5
        return replace(raw, probe=self._slim(probe))

    def _slim(self, probe: ProbeSample) -> ProbeSample:
        return replace(
            probe, device=self._coarse(probe.device), waiting=self._coarse(probe.waiting),
            exemplars=probe.exemplars[:MAX_EXEMPLARS],
        )  # fmt: skip

    def _coarse(self, histograms: Histograms) -> Histograms:
        return {
            disk: {kind: self._joined(bins) for kind, bins in by_kind.items()}
            for disk, by_kind in histograms.items()
        }

    def _joined(self, bins: Mapping[int, int]) -> dict[int, int]:
        keys, joined = self._keys, dict[int, int]()
        for key, count in bins.items():
            coarse = keys.get(key)
            if coarse is None:
                coarse = keys[key] = coarse_key(key)
            joined[coarse] = joined.get(coarse, 0) + count
        return joined


def coarse_key(key: int) -> int:
    """The key of fio's bucket in the middle of the wider bucket that contains this one."""
    if key < EXACT_BELOW:
        return key
    shift = key.bit_length() - 1 - STEPS_BITS
    return bucket_key((key >> shift << shift) + (1 << (shift - 1)))


def _count(histograms: Histograms) -> int:
    return sum(len(bins) for by_kind in histograms.values() for bins in by_kind.values())
