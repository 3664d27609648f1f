"""Encode the sums of a frame as one string, and add up many of them fast.

A merger for a thousand hosts reads a thousand lines each second, so the sums (sums.py) are sent in
a form in which many can be added at once: numbers of 8 bytes side by side, which a mask checks
together. The histograms follow: the lowest byte of each bucket's count, then the higher bytes as
long as any is not 0. The text is hexadecimal, which is decoded in a fifth of the time of base64 and
zlib; ssh compresses it on the way. Texts come from other machines, so ``MalformedRow`` is raised
for a text that ``encode_frame`` cannot have made."""

from __future__ import annotations

import struct
from binascii import unhexlify
from collections.abc import Iterator
from functools import lru_cache
from operator import add

from iopstui.features.fleet.merging.sums import (
    KERNEL_NUMBERS,
    KEYS,
    LATENCIES,
    WITH_BINS,
    DeviceSum,
    DirectionSum,
    HostSums,
    KernelSum,
    LatencySum,
    MalformedRow,
    add_plane,
    column_sums,
    planes_of,
)
from iopstui.model.figures.figure import TOTAL
from iopstui.model.samples import DIRECTIONS

PARTS = (TOTAL, *DIRECTIONS)
# with this limit, the sum of ADDED_AT_ONCE numbers fits into 8 bytes
NUMBER_BITS = 55
NUMBER, ADDED_AT_ONCE = 8, 1 << 9
MANY = 1 << 10
"""How many frames are collected before they are added up."""
# a plane consists of one byte of each bucket's count, beginning with some bucket
PLANES, STEP = 3, 64
PLANE_ALIGNMENT = 32
"""Planes are padded to a multiple of this many bytes, so that hosts with the same job have few
different layouts."""
MAX_TEXT = 1 << 17
_NUMBERS_PER_PART = 5 + 2 * len(LATENCIES)
_KINDS = tuple((part_index, kind) for part_index in range(len(PARTS)) for kind in WITH_BINS)
# the numbers of the total, the devices and the slowest host's p99 come first, because they are also
# read alone
_AT_KERNEL = _NUMBERS_PER_PART
_AT_P99 = _AT_KERNEL + len(KERNEL_NUMBERS)
_AT_MAXIMA = _AT_P99 + 1
_AT_PARTS = _AT_MAXIMA + len(_KINDS)
_NUMBERS = _AT_PARTS + len(DIRECTIONS) * _NUMBERS_PER_PART
_STARTS = (0, *range(_AT_PARTS, _NUMBERS, _NUMBERS_PER_PART))
# the end of the numbers in bytes, by the number of parts besides the total
_ENDS = tuple(2 + (_AT_PARTS + parts * _NUMBERS_PER_PART) * NUMBER for parts in range(len(PARTS)))
_ALL_NUMBERS = struct.Struct(f"<{_NUMBERS}Q")
_FIRST_NUMBERS = struct.Struct(f"<{_AT_PARTS}Q")
_HEAD = struct.Struct("<BB")
_PLANE = struct.Struct("<HH")
_STEPS = -(-len(KEYS) // STEP)
_MAX_PLANES = _STEPS * PLANES * len(_KINDS)
_FLAGS = frozenset((*_STARTS, _AT_KERNEL))
_MOST = [1 if index in _FLAGS else (1 << NUMBER_BITS) - 1 for index in range(_NUMBERS)]
_TOO_LARGE = int.from_bytes(_ALL_NUMBERS.pack(*(most ^ (1 << 64) - 1 for most in _MOST)), "little")


class EncodedFrame:
    """An encoded frame. ``first`` are the numbers of the total and of the devices, and those that
    are not summed. ``numbers`` are the bytes of all numbers; ``counts`` are those of the
    histograms, in the order of ``layout``. ``device`` are the probe's counts, which a frame sends
    beside its text (``None``: no probe)."""

    __slots__ = ("counts", "device", "first", "layout", "numbers")

    def __init__(self, text: object, device: DeviceSum | None = None) -> None:
        self.device = device
        if type(text) is not str or len(text) > MAX_TEXT:
            raise MalformedRow("its sums are not valid text")
        try:
            data = unhexlify(text)
            self.first: tuple[int, ...] = _FIRST_NUMBERS.unpack_from(data, _HEAD.size)
            end = _ENDS[data[0]]
            numbers = data[_HEAD.size : end]
            body = end + _PLANE.size * data[1]
            if int.from_bytes(numbers, "little") & _TOO_LARGE or body > len(data):
                raise ValueError
            self.numbers = numbers.ljust(_ALL_NUMBERS.size, b"\0")
            self.layout, self.counts = data[end:body], data[body:]
            planes = _planes(self.layout)
            if len(self.counts) != (planes[-1][-1] if planes else 0):
                raise ValueError
        except (ValueError, IndexError, struct.error) as error:
            raise MalformedRow("its sums are not a frame's") from error

    @property
    def fio(self) -> bool:
        return self.first[0] == 1

    @property
    def ios(self) -> int:
        return self.first[1]

    @property
    def bytes(self) -> int:
        return self.first[2]

    @property
    def kernel(self) -> KernelSum:
        """The figures of the devices."""
        return _kernel(self.first)

    @property
    def second_figures(self) -> tuple[int, int, int, int, int]:
        """The main figures: ``DirectionSum.iops_m``, ``DirectionSum.bw_m`` and the p99 (ns; 0: not
        measured) of all directions together; the devices' requests and their total time
        (``KernelSum``)."""
        first = self.first
        reads, writes, read_wait, write_wait = first[_AT_P99 - 4 : _AT_P99]
        return first[3], first[4], first[_AT_P99], reads + writes, read_wait + write_wait

    def sums(self, host: str) -> HostSums:
        """The sums as an object that can be read or added to others."""
        frame_sum = FrameSum()
        frame_sum.add(self, host)
        return frame_sum.drain()


@lru_cache(maxsize=4096)
def _planes(layout: bytes) -> tuple[tuple[int, int, int, int, int], ...]:
    """The planes of a layout. For each: its histogram (index of ``_KINDS``), which byte of the
    counts it contains, its first bucket, and where it begins and ends. Cached, because hosts with
    the same job have few layouts. Raises ValueError or struct.error for a malformed layout."""
    planes, previous, begin = [], -1, 0
    for plane_index, count in _PLANE.iter_unpack(layout):
        rest, step = divmod(plane_index, _STEPS)
        if plane_index <= previous or step * STEP + count > len(KEYS):
            raise ValueError
        planes.append((*divmod(rest, PLANES), step * STEP, begin, begin + count))
        previous, begin = plane_index, begin + count
    if previous >= _MAX_PLANES:
        raise ValueError
    return tuple(planes)


class FrameSum:
    """Adds up frames, ``many`` at once. ``drain`` returns their sums and starts again from zero."""

    def __init__(self, many: int = MANY) -> None:
        self._many = many
        self._reset()

    def _reset(self) -> None:
        self._rows: list[bytes] = []
        self._numbers = [0] * _NUMBERS
        self._counts: dict[bytes, list[bytes]] = {}
        self._bins: list[dict[int, int]] = [{} for _ in _KINDS]
        self._maxima: list[tuple[int, ...]] = [(0,) * len(_KINDS)]
        self._sums = HostSums()

    def add(self, frame: EncodedFrame, host: str, with_bins: bool = True) -> None:
        """Add a frame of ``host``. Maxima are only kept for frames with histograms."""
        first = frame.first
        self._rows.append(frame.numbers)
        if with_bins:
            self._counts.setdefault(frame.layout, []).append(frame.counts)
            self._maxima.append(first[_AT_MAXIMA:])
        if frame.device is not None:
            self._sums.device.add(frame.device, with_bins)
        if first[_AT_P99]:
            self._sums.note_slowest(first[_AT_P99], host)
        if len(self._rows) == self._many:
            self._flush()

    def drain(self) -> HostSums:
        """Return the sum of all frames added since the last call."""
        self._flush()
        sums, numbers = self._sums, self._numbers
        sums.kernel = _kernel(numbers)
        latencies = dict(zip(_KINDS, zip(self._maxima[0], self._bins, strict=True), strict=True))
        # the directions first, the total last, as in a frame
        for part_index in (*range(1, len(PARTS)), 0):
            start = _STARTS[part_index]
            present, ios, byte_count, iops_m, bw_m, *counts = numbers[start:][:_NUMBERS_PER_PART]
            if present:
                part = sums.fio[PARTS[part_index]] = DirectionSum(ios, byte_count, iops_m, bw_m)
                for kind, n, sum_ns in zip(LATENCIES, counts[::2], counts[1::2], strict=True):
                    if n:
                        more = latencies.get((part_index, kind), (0, {}))
                        part.latencies[kind] = LatencySum(n, sum_ns, *more)
        self._reset()
        return sums

    def _flush(self) -> None:
        for begin in range(0, len(self._rows), ADDED_AT_ONCE):
            sums = column_sums(self._rows[begin : begin + ADDED_AT_ONCE], "Q")
            self._numbers = [*map(add, self._numbers, sums)]
        self._rows.clear()
        for layout, rows in self._counts.items():
            planes = _planes(layout)
            sums = column_sums(rows, "B") if planes else []
            for histogram, plane, first, begin, end in planes:
                add_plane(self._bins[histogram], plane, first, sums[begin:end])
        self._counts.clear()
        self._maxima = [tuple(map(max, zip(*self._maxima, strict=True)))]


def _kernel(numbers: tuple[int, ...] | list[int]) -> KernelSum:
    values = numbers[_AT_KERNEL:_AT_P99]
    return KernelSum(dict(zip(KERNEL_NUMBERS, values, strict=True)) if values[0] else {})


def encode_frame(sums: HostSums) -> str:
    """Encode one host's frame. Returns "" if counts are too large (such a frame is sent as
    JSON)."""
    numbers, planes = _encode_numbers(sums), [*_histogram_planes(sums)]
    if numbers is None or any(plane_index < 0 for plane_index, _ in planes):
        return ""
    parts = max(
        (part_index for part_index, name in enumerate(PARTS) if name in sums.fio), default=0
    )
    data = b"".join((
        _HEAD.pack(parts, len(planes)), _ALL_NUMBERS.pack(*numbers)[: _ENDS[parts] - _HEAD.size],
        *(_PLANE.pack(plane_index, len(plane)) for plane_index, plane in planes),
        *(plane for _, plane in planes),
    ))  # fmt: skip
    return data.hex() if 2 * len(data) <= MAX_TEXT else ""


def _histogram_planes(sums: HostSums) -> Iterator[tuple[int, bytes]]:
    """The planes of all histograms, each with its number; -1 for a plane that the layout cannot
    name."""
    for histogram, (part_index, kind) in enumerate(_KINDS):
        part = sums.fio.get(PARTS[part_index], DirectionSum())
        for plane, counts in enumerate(planes_of(part.latency(kind).bins)):
            data = counts.rstrip(b"\0")
            if data:
                step = (len(data) - len(data.lstrip(b"\0"))) // STEP
                place = (histogram * PLANES + plane) * _STEPS + step if plane < PLANES else -1
                yield place, (data + bytes(-len(data) % PLANE_ALIGNMENT))[step * STEP :]


def _encode_numbers(sums: HostSums) -> list[int] | None:
    if sums.fio and TOTAL not in sums.fio:
        return None
    numbers = [0] * _NUMBERS
    numbers[_AT_KERNEL:_AT_P99] = [sums.kernel.numbers.get(name, 0) for name in KERNEL_NUMBERS]
    numbers[_AT_P99] = sums.slowest[0] if sums.slowest else 0
    for part_index, (start, name) in enumerate(zip(_STARTS, PARTS, strict=True)):
        part = sums.fio.get(name)
        if part is None:
            continue
        latencies = [part.latency(kind) for kind in LATENCIES]
        numbers[start : start + _NUMBERS_PER_PART] = [
            1, part.ios, part.bytes, part.iops_m, part.bw_m,
            *(number for each in latencies for number in (each.n, each.sum_ns)),
        ]  # fmt: skip
        for at, (index, kind) in enumerate(_KINDS, _AT_MAXIMA):
            if index == part_index:
                numbers[at] = part.latency(kind).max_ns
    fits = all(0 <= number <= most for number, most in zip(numbers, _MOST, strict=True))
    return numbers if fits else None
