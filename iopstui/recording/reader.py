"""Read a recording as a stream, in bounded memory, starting at any key sample."""

from __future__ import annotations

import os
import shlex
import stat
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import iopstui
from iopstui import events, untrusted
from iopstui.errors import Missing, NoFile, UsageError
from iopstui.model.answer.answer import GOOD, UNKNOWN, Answer
from iopstui.model.samples import RawSample
from iopstui.recording import layout as form
from iopstui.recording.coding import Decoder, ImpossibleFigure, MalformedData
from iopstui.recording.partial_samples import LEFT_OUT, PartialSamples, Without
from iopstui.text import printable
from iopstui.untrusted import parse_json, reading

OLDEST_SCHEMA = 1
RECORDING_ADVICE = "To make a recording: iopstui run --job JOB --record FILE"
DEMO = "demo"
MAX_TIME_S = 1e9
MAX_RATIO = 256
"""Limit for the size of unpacked samples, as a multiple of the file's size. zlib reaches 1000 with
zeros, and about 30 with real samples."""
MAX_HOLE_BYTES = 16 << 20
"""How far the next key sample is searched after damage. A minute on a machine with many disks and
CPUs takes 1 MiB."""
MAX_MONOTONIC_NS = 1 << 63
"""Above any value of CLOCK_MONOTONIC."""
KINDS = form.HEADER + form.KEY + form.SAMPLE + form.EVENT


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A raw sample at ``t``. If not ``is_shown``, it is needed only for the next sample's
    differences."""

    t: float
    raw: RawSample
    is_shown: bool


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A record other than a sample: an event of the session, a JobRun, RecordedDevices or
    RecordingEnd, for example."""

    t: float
    value: Any


Record = SampleRecord | EventRecord


class RecordingTooShort(UsageError):
    """The file has no sample (or none yet, if it is still being written)."""


@dataclass(slots=True)
class RecordingIndex:
    """Index of a recording, from the heads of its chunks. ``keys`` and ``key_times`` are the
    positions at which reading can begin; ``events`` are all other records with their positions,
    ``end`` is the last sample's time. ``has_end_marker``: the recording was stopped properly."""

    keys: array[int] = field(default_factory=lambda: array("q"))
    key_times: array[float] = field(default_factory=lambda: array("d"))
    events: list[tuple[int, EventRecord]] = field(default_factory=list)
    samples: int = 0
    end: float = 0.0
    has_end_marker: bool = False

    def key_before(self, t: float) -> int:
        """The position at which to begin reading to get everything from ``t`` on."""
        position = bisect_right(self.key_times, t) - 1
        return self.keys[max(position, 0)] if self.keys else 0

    def time_before(self, t: float) -> float:
        """The time of the sample at ``key_before(t)``."""
        position = bisect_right(self.key_times, t) - 1
        return self.key_times[max(position, 0)] if self.keys else 0.0


@dataclass(frozen=True, slots=True)
class _Chunk:
    kind: bytes
    t: float
    at: int
    end: int
    payload: bytes


def recording_path(name: str) -> Path:
    """The file meant on a command line; "demo" is the recording that comes with iopstui."""
    if name == DEMO:
        return Path(iopstui.__file__).resolve().parent / "data" / "demo.iops"
    return Path(name)


class Recording:
    """An open recording. Raises UsageError if the file is not a recording, or is from a newer
    iopstui.

    After reading, ``damage`` says why not all of the file was read ("" if it was), and
    ``unread_bytes`` how much was not. After damage, reading continues at the next key. ``file``:
    the file, already open, if this process may not open ``path`` itself."""

    def __init__(self, path: Path, file: BinaryIO | None = None) -> None:
        self.path = path
        self.damage = ""
        self.unread_bytes = 0
        self._holes: dict[int, int | None] = {}
        self._file = _open(path) if file is None else file
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            _check_magic(self._file, self.path)
            self.start = self._file.tell()
            self._decode, self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise
        self._large = self.size >= untrusted.ORJSON_FROM_BYTES
        self._index = RecordingIndex()
        self._indexed = self.start
        self._indexed_once = False
        self._index_allowance = _events_allowance()
        self._partial: PartialSamples | None = None
        self._passed_over: tuple[bytes, ...] = ()

    @property
    def has_hole(self) -> bool:
        """Whether reading continued after a damaged part."""
        return any(self._holes.values())

    def reopen(self) -> None:
        """Open the same file again, because a forked process shares the file position of its
        parent. Raises OSError if that fails."""
        self._file = os.fdopen(os.open(f"/proc/self/fd/{self._file.fileno()}", os.O_RDONLY), "rb")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def skip_unneeded_fields(self, without: Without = LEFT_OUT) -> None:
        """From now on, leave the fields ``without`` out of samples (partial_samples.py); this reads
        them in a fraction of the time."""
        self._partial = PartialSamples(self._layouts, without, self._large)

    def pass_over(self, *names: str) -> None:
        """From now on, do not even parse records of these names."""
        self._passed_over = tuple(form.pack([name])[:-1] + b"," for name in names)

    # -- reading

    def records(self, start: int | None = None, end: int | None = None) -> Iterator[Record]:
        """All records from ``start`` (a position of the index) to ``end``, in order. After damage,
        reading continues at the next key."""
        records = self._read(start, end, growing=False)
        return (record for record in records if record is not None)

    def follow(self, start: int | None = None) -> Iterator[Record | None]:
        """The records of a file that is still being written, in order, until its end marker.

        Yields ``None`` if there is nothing more yet; the next step looks at the file again."""
        # the chunk that was incomplete when the index was made may be complete by now
        self.damage = ""
        for record in self._read(start, None, growing=True):
            yield record
            if isinstance(record, EventRecord) and isinstance(record.value, form.RecordingEnd):
                return

    def _read(self, start: int | None, end: int | None, growing: bool) -> Iterator[Record | None]:
        stream: Any = None
        allowance = _events_allowance()
        inflated = _Allowance(
            form.MAX_CHUNK_BYTES + MAX_RATIO * self.size,
            f"its samples are more than {MAX_RATIO} times as large as the file",
        )
        place, t = self.start if start is None else start, 0.0
        for chunk in self._chunks(start, form.KEY + form.SAMPLE + form.EVENT, growing):
            if chunk is None:
                yield None
                continue
            if end is not None and chunk.at >= end:
                return
            if chunk.at != place:
                yield _hole(t)
            place, t = chunk.end, chunk.t
            try:
                if chunk.kind == form.EVENT:
                    event = self._read_event(chunk, allowance)
                    if event is not None:
                        yield event
                    continue
                if chunk.kind == form.KEY:
                    stream = zlib.decompressobj()
                if stream is not None:
                    yield self._sample(chunk, stream, inflated)
            except ImpossibleFigure as error:
                raise impossible_figure_error([self.path], error) from error
            except _DECODING_ERRORS as error:
                self._damaged(chunk.at, error)
                return

    def payloads(self) -> Iterator[tuple[bytes, float, bytes]]:
        """(kind, time, JSON) of each chunk in order, unpacked but not parsed, to copy a part of the
        recording. ``event`` parses the JSON of kind ``E``."""
        stream: Any = None
        kinds = form.HEADER + form.KEY + form.SAMPLE + form.EVENT
        for chunk in self._chunks(None, kinds, growing=False):
            if chunk is None:
                return
            if chunk.kind == form.KEY or stream is None:
                stream = zlib.decompressobj()
            single = chunk.kind in (form.HEADER, form.EVENT)
            try:
                data = _inflate(zlib.decompressobj() if single else stream, chunk.payload)
            except _DECODING_ERRORS as error:
                self._damaged(chunk.at, error)
                return
            yield chunk.kind, chunk.t, data

    def event(self, data: bytes) -> Any:
        """The record in this JSON; ``None`` if its class is unknown, as in a recording of a newer
        iopstui."""
        try:
            name, value = parse_json(data, is_large=False)
            kind = form.EVENT_KINDS.get(name)
            return None if kind is None else self._decode(kind, value)
        except _DECODING_ERRORS as error:
            raise _unreadable(self.path, error) from error

    def index(self) -> RecordingIndex:
        """Index the whole recording without decoding its samples. Done once."""
        if not self._indexed_once:
            self._indexed_once = True
            self._extend_index(growing=False)
        return self._index

    def extend_index(self) -> RecordingIndex:
        """Index the new part of a file that is still being written; call repeatedly."""
        self._indexed_once = True
        self._extend_index(growing=True)
        return self._index

    def _extend_index(self, growing: bool) -> None:
        index = self._index
        for chunk in self._chunks(self._indexed, form.EVENT, growing):
            if chunk is None:
                return
            if chunk.at != self._indexed:
                index.events.append((chunk.at, _hole(index.end)))
            if chunk.kind == form.EVENT and not self._index_event(index, chunk):
                # reading stops at this damage, so index nothing after it
                return
            self._indexed = chunk.end
            if chunk.kind == form.KEY:
                index.keys.append(chunk.at)
                index.key_times.append(chunk.t)
            if chunk.kind in (form.KEY, form.SAMPLE):
                index.samples += 1
                index.end = max(index.end, chunk.t)

    def _index_event(self, index: RecordingIndex, chunk: _Chunk) -> bool:
        """Add the event to ``index``. Returns False if it can't be read."""
        try:
            event = self._read_event(chunk, self._index_allowance)
        except ImpossibleFigure as error:
            raise impossible_figure_error([self.path], error) from error
        except _DECODING_ERRORS as error:
            self._damaged(chunk.at, error)
            return False
        if event is not None:
            index.events.append((chunk.at, event))
            index.has_end_marker = isinstance(event.value, form.RecordingEnd)
        return True

    def _reaches(self, end: int, growing: bool) -> bool:
        """Whether the file has at least ``end`` bytes; checks the size of a ``growing`` file
        again."""
        if end > self.size and growing:
            self.size = os.fstat(self._file.fileno()).st_size
        return end <= self.size

    def _chunks(self, start: int | None, keep: bytes, growing: bool) -> Iterator[_Chunk | None]:
        with reading(self.path):
            yield from self._read_chunks(start, keep, growing)

    def _read_chunks(
        self, start: int | None, keep: bytes, growing: bool
    ) -> Iterator[_Chunk | None]:
        """The chunks in order, with the payloads only of the kinds in ``keep``. ``None`` if a
        ``growing`` file has no complete chunk yet."""
        place = self.start if start is None else start
        while True:
            # another reader of the same open file may have moved its position
            self._file.seek(place)
            head = self._file.read(max(form.HEAD.size, len(form.NAME)))
            if head.startswith(form.NAME):
                self._followed(place)
                return
            head = head[: form.HEAD.size]
            if len(head) < form.HEAD.size:
                if growing:
                    yield None
                    continue
                if head:
                    self._damaged(place, "cut off")
                return
            kind, t, length, checksum = form.HEAD.unpack(head)
            after = place + form.HEAD.size + length
            self._file.seek(place + form.HEAD.size)
            why, payload = "", b""
            if length > form.MAX_CHUNK_BYTES or not 0 <= t < MAX_TIME_S:
                why = "no chunk"
            elif not self._reaches(after, growing):
                if growing:
                    yield None
                    continue
                why = "cut off"
            # a chunk of an unknown kind may be a known one whose head is damaged
            elif kind in keep or kind not in KINDS:
                payload = self._file.read(length)
                if form.checksum(kind, t, payload) != checksum:
                    why = "wrong checksum"
            if not why:
                yield _Chunk(kind, t, place, after, payload)
                place = after
                continue
            behind = self._behind(place, why, growing)
            if behind is None:
                return
            place = behind

    def _behind(self, place: int, why: str, growing: bool) -> int | None:
        """The position where reading continues after the damage at ``place``; ``None`` if it ends
        there."""
        if place not in self._holes:
            self._damaged(place, why, None if growing else self._next_key(place + 1))
        return self._holes[place]

    def _damaged(self, place: int, why: object, until: int | None = None) -> None:
        """Note that nothing is read from ``place`` on, or from there to ``until``."""
        self._holes[place] = until
        # the index doesn't read samples, so it may notice the same damage at a later position:
        # count it once
        begins = {
            end or self.size: begin for begin, end in sorted(self._holes.items(), reverse=True)
        }
        self.unread_bytes = sum(end - begin for end, begin in begins.items())
        if until is None:
            self.damage = (
                f"the recording is damaged or cut off: it cannot be read from byte {place} on "
                f"({why})"
            )
        else:
            self.damage = (
                f"the recording is damaged: {self.unread_bytes} bytes from byte "
                f"{min(self._holes)} on cannot be read ({why})"
            )

    def _next_key(self, place: int) -> int | None:
        """The position of the next intact key sample of this recording, if there is one."""
        self._file.seek(place)
        data = self._file.read(MAX_HOLE_BYTES)
        data = data[: data.find(form.NAME)] if form.NAME in data else data
        allowed = self.size
        at = data.find(form.KEY)
        while 0 <= at <= len(data) - form.HEAD.size:
            kind, t, length, checksum = form.HEAD.unpack_from(data, at)
            begin = place + at + form.HEAD.size
            if 0 <= t < MAX_TIME_S and length <= min(form.MAX_CHUNK_BYTES, self.size - begin):
                allowed -= length
                if allowed < 0:
                    # no real recording has that many false heads: the file was made to be slow to
                    # read
                    return None
                self._file.seek(begin)
                if form.checksum(kind, t, self._file.read(length)) == checksum:
                    return place + at
            at = data.find(form.KEY, at + 1)
        return None

    def _followed(self, place: int) -> None:
        """Note that another recording follows in the file (cat a b > c)."""
        self.damage = (
            f"another recording begins at byte {place}; to read that one: "
            f"tail -c +{place + 1} {shlex.quote(printable(self.path))} > OTHER.iops"
        )

    # -- decoding

    def _read_header(self) -> tuple[Decoder, form.Header]:
        for chunk in self._chunks(self.start, form.HEADER, growing=False):
            if chunk is None or chunk.kind != form.HEADER:
                break
            try:
                content = parse_json(_inflate(zlib.decompressobj(), chunk.payload))
                self._layouts = _layouts(content["layouts"])
                decode = Decoder(self._layouts, form.NAMES)
                header: form.Header = decode(form.Header, content["header"])
            except ImpossibleFigure as error:
                raise impossible_figure_error([self.path], error) from error
            except _DECODING_ERRORS as error:
                raise _unreadable(self.path, error) from error
            return decode, header
        is_cut = not self.damage or self.damage.endswith("(cut off)")
        state = "was cut off" if is_cut else "is damaged"
        raise RecordingTooShort(
            f"The recording {printable(self.path)} {state} before its first sample.",
            RECORDING_ADVICE,
        )

    def _sample(self, chunk: _Chunk, stream: Any, inflated: _Allowance) -> SampleRecord:
        data = _inflate(stream, chunk.payload)
        inflated.spend(len(data))
        if self._partial is not None:
            is_shown, raw = self._partial.read(data)
        else:
            is_shown, value = parse_json(data, is_large=self._large)
            raw = self._decode(RawSample, value)
        if not 0 <= raw.arrived_ns < MAX_MONOTONIC_NS:
            raise ImpossibleFigure(f"a sample of {raw.arrived_ns} ns after the machine's start")
        return SampleRecord(chunk.t, raw, bool(is_shown))

    def _read_event(self, chunk: _Chunk, allowance: _Allowance) -> EventRecord | None:
        data = _inflate(zlib.decompressobj(), chunk.payload)
        if self._passed_over and data.startswith(self._passed_over):
            return None
        # counted five times, because a report makes several copies of a text
        allowance.spend(max(untrusted.memory_for(data), 5 * len(data)))
        name, value = parse_json(data, is_large=False)
        # skip fields that only a newer iopstui knows
        kind = form.EVENT_KINDS.get(name)
        if kind is None:
            return None
        event = self._decode(kind, value)
        t = getattr(event, "t", chunk.t)
        if not -MAX_TIME_S < t < MAX_TIME_S:
            raise ImpossibleFigure(f"a {name} at {t!r} s")
        return EventRecord(chunk.t, event)


def _hole(t: float) -> EventRecord:
    """A record in place of unreadable ones. It ends what was true before, which may have
    changed."""
    answer = Answer("", events.UNREADABLE, GOOD, "what was recorded here cannot be read", UNKNOWN)
    return EventRecord(t, events.AnswerGiven(t, answer))


_DECODING_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    zlib.error,
    RecursionError,
    OverflowError,
)


def _layouts(value: Any) -> dict[str, list[str]]:
    if not isinstance(value, dict):
        raise MalformedData("no layouts")
    for names in value.values():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise MalformedData("no layouts")
    return value


@dataclass(slots=True)
class _Allowance:
    """A budget of bytes, because a small file may expand to very much. ``error`` is the message if
    it is exceeded."""

    remaining: int
    error: str

    def spend(self, size: int) -> None:
        """Use up ``size`` bytes. Raises MalformedData beyond the limit."""
        self.remaining -= size
        if self.remaining < 0:
            raise MalformedData(self.error)


def _events_allowance() -> _Allowance:
    """The budget for all events of a recording, which stay in memory."""
    return _Allowance(form.MAX_EVENTS, f"its events take more than {form.MAX_EVENTS >> 20} MiB")


def _inflate(stream: Any, payload: bytes) -> bytes:
    return untrusted.inflate(stream, payload, form.MAX_CHUNK_BYTES)


def _open(path: Path) -> BinaryIO:
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(f"{printable(path)} is not a file.", RECORDING_ADVICE)
        return open(path, "rb")
    except FileNotFoundError as error:
        raise NoFile(
            printable(path), f"{RECORDING_ADVICE}; the included demo: iopstui replay demo"
        ) from error
    except PermissionError as error:
        raise Missing(
            f"Cannot read the recording {printable(path)}: permission denied.",
            f"Run iopstui with sudo, or: sudo chmod a+r {shlex.quote(printable(path))}",
        ) from error
    except OSError as error:
        raise UsageError(
            f"Cannot read the recording {printable(path)}: {error.strerror}."
        ) from error


_UNPACKERS = {
    b"BZh": "bunzip2", b"\xfd7zXZ": "unxz", b"\x28\xb5\x2f\xfd": "unzstd",
    b"\x04\x22\x4d\x18": "unlz4", b"PK\3\4": "unzip",
}  # fmt: skip
"""How compressed files begin, and the commands that unpack them."""


def _check_magic(file: BinaryIO, path: Path) -> None:
    with reading(path):
        line = file.readline(64)
    if not line:
        raise RecordingTooShort(f"The recording {printable(path)} is empty.", RECORDING_ADVICE)
    number = line[len(form.NAME) : -1]
    if line.startswith(form.NAME) and line.endswith(b"\n") and number.isdigit():
        version = int(number)
        if version > form.SCHEMA:
            raise UsageError(
                f"{printable(path)} was recorded by a newer iopstui (format {version}; this one "
                f"reads up to {form.SCHEMA}).",
                "Use that version, or update this one.",
            )
        if version >= OLDEST_SCHEMA:
            return
    if form.MAGIC.startswith(line):
        raise RecordingTooShort(
            f"The recording {printable(path)} was cut off before its first sample.",
            RECORDING_ADVICE,
        )
    if line.startswith(b'{"event":'):
        name = printable(path)
        raise UsageError(
            f"{name} contains JSON lines (of a fleet, or of --format jsonl), not the recording of "
            "one host.",
            f"Play it on its own screen: iopstui replay {name}",
        )
    for begin, command in _UNPACKERS.items():
        if line.startswith(begin):
            raise UsageError(
                f"{printable(path)} is compressed, and iopstui unpacks only gzip.",
                f"Unpack it first: {command} {printable(path)}",
            )
    raise UsageError(
        f"{printable(path)} is not a recording of iopstui.",
        f"{RECORDING_ADVICE}. iopstui report also reads fio's JSON, as fio writes it, in a log, or "
        "compressed with gzip.",
    )


def _unreadable(path: Path, error: BaseException) -> UsageError:
    return UsageError(
        f"The recording {printable(path)} is damaged at its beginning: "
        f"{printable(str(error)) or type(error).__name__}."
    )


def impossible_figure_error(paths: Sequence[Path], error: BaseException) -> UsageError:
    """The error for an impossible figure in one of these recordings, which iopstui itself does not
    write."""
    names = ", ".join(map(printable, paths))
    detail = printable(str(error) if isinstance(error, ImpossibleFigure) else repr(error))
    return UsageError(f"{names}: it contains impossible figures ({detail}).")
