"""Encode a frame's sums as one string, and add up many of them fast.

A merger of a thousand hosts reads as many lines each second, so what is added (sums.py) comes in a
form that is added as it is: numbers of ``FIELD`` bytes side by side, checked all at once by a mask
and added to others' as one large number. Behind them the histograms: the lowest bytes of all
buckets, then the next ones as far as there are any but 0, each plane a large number of its own
until a few hundred are added. A text is that in hexadecimal, which is read in a fifth of the time
that base64 and zlib took; on the way ssh makes less of it.

Texts come from other machines: ``MalformedRow`` for one that ``encode_frame`` never gives.
"""

from __future__ import annotations

import struct
from binascii import unhexlify
from collections.abc import Iterator, Mapping, Sequence

from iopstui.fleet.merging.packed_histogram import FIELD, KEYS
from iopstui.fleet.merging.probe_sums import ProbeSum
from iopstui.fleet.merging.sums import (
    AWAITS,
    DISK_RATES,
    LATENCIES,
    WITH_BINS,
    DirectionSum,
    HostSums,
    KernelSum,
    LatencyTotals,
    MalformedRow,
)
from iopstui.model.metrics.paths import TOTAL
from iopstui.model.samples import DIRECTIONS

PARTS = (TOTAL, *DIRECTIONS)
# a number below this can be added so often and still fits into its field
NUMBER_BITS = 55
FLUSH_EVERY = 256
# a byte of each bucket's count in fields in which it can be added as often, from a step on
NARROW, PLANES, STEP = 2, 3, 64
PLANE_ALIGNMENT = 32
"""A plane has a multiple of so many bytes: most hosts with one job have few layouts then."""
MAX_TEXT = 1 << 17
# maxima are kept until there are so many
_MAXIMA_BATCH = 16
_NUMBERS_PER_PART = 5 + 2 * len(LATENCIES)
_WAITS = tuple(await_ for await_, _ in AWAITS)
_COUNTS = tuple(count for _, count in AWAITS)
_KERNEL_NUMBERS = 1 + len(DISK_RATES) + len(_COUNTS) + len(_WAITS)
_KINDS = tuple((part_index, kind) for part_index in range(len(PARTS)) for kind in WITH_BINS)
# the total, the devices and the slowest host's p99 stand first: they are looked at
_AT_KERNEL = _NUMBERS_PER_PART
_AT_P99 = _AT_KERNEL + _KERNEL_NUMBERS
_AT_AWAITS = _AT_P99 - len(_COUNTS) - len(_WAITS)
_AT_MAXIMA = _AT_P99 + 1
_AT_PARTS = _AT_MAXIMA + len(_KINDS)
_NUMBERS = _AT_PARTS + len(DIRECTIONS) * _NUMBERS_PER_PART
_STARTS = (0, *range(_AT_PARTS, _NUMBERS, _NUMBERS_PER_PART))
# where the numbers end, by how many parts there are beside the total
_ENDS = tuple(2 + (_AT_PARTS + parts * _NUMBERS_PER_PART) * FIELD for parts in range(len(PARTS)))
_ALL_NUMBERS = struct.Struct(f"<{_NUMBERS}Q")
_FIRST_NUMBERS = struct.Struct(f"<{_AT_PARTS}Q")
HEAD = struct.Struct("<BB")
_PLANE = struct.Struct("<HH")
_STEPS = -(-len(KEYS) // STEP)
_MAX_PLANES = _STEPS * PLANES * len(_KINDS)
_LAYOUTS: dict[bytes, tuple[int, ...]] = {}
_MAX_LAYOUTS = 4096
from_bytes = int.from_bytes
_FLAGS = frozenset((*_STARTS, _AT_KERNEL))
_TOO_LARGE = int.from_bytes(
    b"".join(
        (((1 << 64) - 1) ^ (1 if index in _FLAGS else (1 << NUMBER_BITS) - 1)).to_bytes(
            FIELD, "little"
        )
        for index in range(_NUMBERS)
    ),
    "little",
)


class EncodedFrame:
    """One text. ``numbers`` is all that is added as one number, ``fields`` the bytes of its
    histograms as another one, which stand as ``layout`` says (one of ``_LAYOUTS``), ``first`` the
    numbers of the total, of the devices, and what has no sum. ``device`` is what a probe has
    counted, which a frame says beside its text (``None``: no probe has)."""

    __slots__ = ("device", "fields", "first", "layout", "numbers")

    def __init__(self, text: object, device: ProbeSum | None = None) -> None:
        self.device = device
        if type(text) is not str or len(text) > MAX_TEXT:
            raise MalformedRow("its sums are not valid text")
        try:
            data = unhexlify(text)
            self.first: tuple[int, ...] = _FIRST_NUMBERS.unpack_from(data, HEAD.size)
            end = _ENDS[data[0]]
            self.numbers = from_bytes(data[HEAD.size : end], "little")
            body = end + _PLANE.size * data[1]
            if self.numbers & _TOO_LARGE or body > len(data):
                raise ValueError
            self.layout = data[end:body]
            # a 0 behind each byte: so it is done soonest
            fields = data[body:].decode("latin-1").encode("utf-16-le")
            if (_LAYOUTS.get(self.layout) or _parse_layout(self.layout))[-1] != len(fields):
                raise ValueError
            self.fields = from_bytes(fields, "little")
        except (ValueError, IndexError, struct.error) as error:
            raise MalformedRow("its sums are not a frame's") from error

    @property
    def fio(self) -> bool:
        """Whether fio has counted."""
        return self.first[0] == 1

    @property
    def ios(self) -> int:
        """I/Os of all directions, as ``bytes``, ``iops_m`` and ``bw_m`` (sums.py, Part)."""
        return self.first[1]

    @property
    def bytes(self) -> int:
        """Bytes of all directions."""
        return self.first[2]

    @property
    def iops_m(self) -> int:
        """IOPS of all directions, in thousandths."""
        return self.first[3]

    @property
    def bw_m(self) -> int:
        """Bytes/s of all directions, in thousandths."""
        return self.first[4]

    @property
    def p99(self) -> int:
        """p99 of all directions in ns; 0: not measured."""
        return self.first[_AT_P99]

    @property
    def kernel(self) -> KernelSum:
        """Figures of the devices."""
        return _kernel(self.first)

    @property
    def second_figures(self) -> tuple[int, int, int, int, int]:
        """``iops_m``, ``bw_m`` and ``p99``, how many requests the devices had, and how long they
        took together (sums.py, Kernel)."""
        first = self.first
        reads, writes, read_wait, write_wait = first[_AT_AWAITS:_AT_P99]
        return first[3], first[4], first[_AT_P99], reads + writes, read_wait + write_wait

    def sums(self, host: str) -> HostSums:
        """Return the sums as an object that can be shown, or added to others."""
        frame_sum = FrameSum()
        frame_sum.add(self, host)
        return frame_sum.drain()


def _parse_layout(layout: bytes) -> tuple[int, ...]:
    """Which byte of which histogram from which bucket on stands where: each one's number, then
    where its fields begin; at the end where the last one's end. Kept, as hosts with one job have
    few. ValueError or struct.error for what is none."""
    positions, previous, begin = [], -1, 0
    for plane_index, count in _PLANE.iter_unpack(layout):
        if plane_index <= previous or plane_index % _STEPS * STEP + count > len(KEYS):
            raise ValueError
        positions += [plane_index, begin]
        previous, begin = plane_index, begin + count * NARROW
    if previous >= _MAX_PLANES:
        raise ValueError
    if len(_LAYOUTS) >= _MAX_LAYOUTS:
        _LAYOUTS.clear()
    _LAYOUTS[layout] = (*positions, begin)
    return _LAYOUTS[layout]


def _sum_planes(bins: Mapping[bytes, int]) -> dict[int, int]:
    """The sums of histograms by their layouts: each of their planes alone."""
    planes: dict[int, int] = {}
    for layout, fields in bins.items():
        positions = _LAYOUTS.get(layout) or _parse_layout(layout)
        data = fields.to_bytes(positions[-1], "little")
        for index in range(0, len(positions) - 1, 2):
            plane_index, begin = positions[index : index + 2]
            end = positions[index + 3] if index + 3 < len(positions) else positions[-1]
            planes[plane_index] = planes.get(plane_index, 0) + from_bytes(data[begin:end], "little")
    return planes


class FrameSum:
    """Adds up frames; ``drain`` returns their sums and starts again from zero."""

    __slots__ = (
        "_bins", "_count", "_device", "_maxima", "_numbers", "_slowest", "_sums"
    )  # fmt: skip

    def __init__(self) -> None:
        self._sums: HostSums | None = None
        self._reset()

    def _reset(self) -> None:
        self._count = 0
        self._numbers = 0
        self._bins: dict[bytes, int] = {}
        self._maxima: list[tuple[int, ...]] = []
        self._slowest: tuple[int, str] | None = None
        self._device = ProbeSum()

    def add(self, frame: EncodedFrame, host: str, with_bins: bool = True) -> None:
        """A frame of ``host``; without the histograms nobody asks for maxima."""
        first = frame.first
        self._numbers += frame.numbers
        if with_bins:
            bins = self._bins
            layout = frame.layout
            bins[layout] = bins.get(layout, 0) + frame.fields
            self._maxima.append(first[_AT_MAXIMA:])
            if len(self._maxima) == _MAXIMA_BATCH:
                self._maxima = [tuple(map(max, *self._maxima))]
        if frame.device is not None:
            self._device.add(frame.device, with_bins)
        self._count_added(1, (first[_AT_P99], host))

    def add_all(self, frames: Sequence[tuple[EncodedFrame, str]]) -> None:
        """Frames and their hosts', of which no device has a probe: many at once, as a call for each
        costs more than its numbers."""
        begin = 0
        while begin < len(frames):
            part = frames[begin : begin + self.capacity]
            begin += len(part)
            self._numbers += sum([frame.numbers for frame, _ in part])
            bins = self._bins
            for frame, _ in part:
                layout = frame.layout
                bins[layout] = bins.get(layout, 0) + frame.fields
            self._maxima += [frame.first[_AT_MAXIMA:] for frame, _ in part]
            self._maxima = [tuple(map(max, zip(*self._maxima, strict=True)))]
            self._count_added(
                len(part), max([(frame.first[_AT_P99], host) for frame, host in part])
            )

    @property
    def capacity(self) -> int:
        """Number of frames that can be added at once."""
        return FLUSH_EVERY - self._count

    def _count_added(self, count: int, slowest: tuple[int, str]) -> None:
        """Count added frames; ``slowest`` is the largest p99 with its host."""
        if slowest[0] and (self._slowest is None or slowest > self._slowest):
            self._slowest = slowest
        self._count += count
        if self._count == FLUSH_EVERY:
            self._flush()

    def drain(self) -> HostSums:
        """Return the sum of all frames added since the last call."""
        self._flush()
        sums, self._sums = self._sums, None
        return sums or HostSums()

    def _flush(self) -> None:
        """The fields are full, or it is asked for."""
        if not self._count:
            return
        data = self._numbers.to_bytes(_ALL_NUMBERS.size, "little")
        numbers = _ALL_NUMBERS.unpack(data)
        highest = [*map(max, zip(*self._maxima, strict=True))] or [0] * len(_KINDS)
        sums = HostSums(kernel=_kernel(numbers), slowest=self._slowest, device=self._device)
        packed = _pack_planes(_sum_planes(self._bins))
        maxima = {
            kind: (highest[kind_index], packed.get(kind_index, 0))
            for kind_index, kind in enumerate(_KINDS)
        }
        # in the order of a frame's
        for part_index in (*range(1, len(PARTS)), 0):
            part = _direction_sum(numbers[_STARTS[part_index] :], part_index, maxima)
            if part is not None:
                sums.fio[PARTS[part_index]] = part
        self._reset()
        if self._sums is None:
            self._sums = sums
        else:
            self._sums.add(sums)


def _direction_sum(
    numbers: tuple[int, ...], part_index: int, maxima: dict[tuple[int, str], tuple[int, int]]
) -> DirectionSum | None:
    present, ios, byte_count, iops_m, bw_m = numbers[:5]
    if not present:
        return None
    part = DirectionSum(ios, byte_count, iops_m, bw_m)
    for number, kind in enumerate(LATENCIES):
        n, sum_ns = numbers[5 + 2 * number : 7 + 2 * number]
        if n:
            part.latencies[kind] = LatencyTotals(n, sum_ns, *maxima.get((part_index, kind), (0, 0)))
    return part


def _kernel(numbers: tuple[int, ...]) -> KernelSum:
    hosts, *rest = numbers[_AT_KERNEL:_AT_P99]
    if not hosts:
        return KernelSum()
    rates, counts = len(DISK_RATES), len(DISK_RATES) + len(_COUNTS)
    return KernelSum(
        hosts,
        dict(zip(DISK_RATES, rest[:rates], strict=True)),
        dict(zip(_COUNTS, rest[rates:counts], strict=True)),
        dict(zip(_WAITS, rest[counts:], strict=True)),
    )


def _pack_planes(planes: Mapping[int, int]) -> dict[int, int]:
    """Histograms as packed_histogram.py has them, by their place in ``_KINDS``."""
    histograms: dict[int, int] = {}
    for plane_index, narrow in planes.items():
        rest, step = divmod(plane_index, _STEPS)
        histogram_index, plane = divmod(rest, PLANES)
        count = (narrow.bit_length() + NARROW * 8 - 1) // (NARROW * 8)
        data = narrow.to_bytes(count * NARROW, "little")
        fields = bytearray(count * FIELD)
        for byte in range(NARROW):
            fields[byte::FIELD] = data[byte::NARROW]
        wide = int.from_bytes(fields, "little") << 8 * (step * STEP * FIELD + plane)
        histograms[histogram_index] = histograms.get(histogram_index, 0) + wide
    return histograms


def encode_frame(sums: HostSums) -> str:
    """Encode one host's frame; "" for a frame with counts that are too large, which is sent as
    JSON."""
    numbers, planes = _encode_numbers(sums), [*_histogram_planes(sums)]
    if numbers is None or any(plane_index < 0 for plane_index, _ in planes):
        return ""
    parts = max(
        (part_index for part_index, name in enumerate(PARTS) if name in sums.fio), default=0
    )
    end = (_AT_PARTS + parts * _NUMBERS_PER_PART) * FIELD
    data = b"".join((
        HEAD.pack(parts, len(planes)), _ALL_NUMBERS.pack(*numbers)[:end],
        *(_PLANE.pack(plane_index, len(plane)) for plane_index, plane in planes),
        *(plane for _, plane in planes),
    ))  # fmt: skip
    return data.hex() if 2 * len(data) <= MAX_TEXT else ""


def _histogram_planes(sums: HostSums) -> Iterator[tuple[int, bytes]]:
    """The bytes of all histograms; -1 for a byte that has no place."""
    for histogram_index, packed in _histograms(sums):
        data = packed.to_bytes((packed.bit_length() // 8 // FIELD + 1) * FIELD, "little")
        for plane in range(FIELD):
            plane_data = data[plane::FIELD].rstrip(b"\0")
            if not plane_data:
                continue
            step = (len(plane_data) - len(plane_data.lstrip(b"\0"))) // STEP
            plane_index = (
                (histogram_index * PLANES + plane) * _STEPS + step if plane < PLANES else -1
            )
            plane_data += bytes(-len(plane_data) % PLANE_ALIGNMENT)
            yield plane_index, plane_data[step * STEP :]


def _histograms(sums: HostSums) -> Iterator[tuple[int, int]]:
    for number, (part_index, kind) in enumerate(_KINDS):
        part = sums.fio.get(PARTS[part_index])
        packed = part.latencies[kind].packed if part and kind in part.latencies else 0
        if packed:
            yield number, packed


def _encode_numbers(sums: HostSums) -> list[int] | None:
    kernel = sums.kernel
    if sums.fio and TOTAL not in sums.fio:
        return None
    numbers = [0] * _NUMBERS
    numbers[_AT_KERNEL:_AT_P99] = [
        kernel.hosts, *(kernel.rates.get(name, 0) for name in DISK_RATES),
        *(kernel.counts.get(name, 0) for name in _COUNTS),
        *(kernel.waits.get(name, 0) for name in _WAITS),
    ]  # fmt: skip
    numbers[_AT_P99] = sums.slowest[0] if sums.slowest else 0
    for part_index, (start, name) in enumerate(zip(_STARTS, PARTS, strict=True)):
        part = sums.fio.get(name)
        if part is None:
            continue
        numbers[start : start + 5] = [1, part.ios, part.bytes, part.iops_m, part.bw_m]
        for number, kind in enumerate(LATENCIES):
            totals = part.latencies.get(kind, LatencyTotals())
            numbers[start + 5 + 2 * number : start + 7 + 2 * number] = [totals.n, totals.sum_ns]
            if kind in WITH_BINS:
                numbers[_AT_MAXIMA + _KINDS.index((part_index, kind))] = totals.max_ns
    fits = all(
        0 <= value < (2 if index in _FLAGS else 1 << NUMBER_BITS)
        for index, value in enumerate(numbers)
    )
    return numbers if fits else None
