"""Read only the parts of a recording's samples that a report or table needs.

Most of a sample's text is fio's histogram, which is read as two columns (model/histogram.py) and
not as an object of JSON. Parts that no report uses are not parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from operator import ge
from typing import Any

from iopstui.model.histogram import HistogramColumns
from iopstui.model.samples import DirectionStatus, JobStatus, KernelSample, RawSample
from iopstui.recording import layout as form
from iopstui.recording.coding import MAX_COUNT, Coder, Decoder, Layouts, MalformedData
from iopstui.untrusted import check_memory, parse_json

Without = Mapping[type, Mapping[str, Any]]

_INTERRUPTS_LEFT_OUT: Mapping[str, Any] = {
    "softirq_block": {}, "irqs": {}, "ipi": None, "ipi_ns": None, "throttled_us": None,
}  # fmt: skip
_SAMPLE: Mapping[str, Any] = {"own_busy_s": None}
_JOB: Mapping[str, Any] = {"iodepth_level": {}}
LEFT_OUT: Without = {
    RawSample: _SAMPLE,
    KernelSample: _INTERRUPTS_LEFT_OUT,
    JobStatus: _JOB,
    DirectionStatus: {"slat": None, "percentiles": {}},
}
"""Fields that a report does not need, by dataclass, with the values they get instead."""
ROWS_WITHOUT: Without = {
    RawSample: _SAMPLE,
    KernelSample: {**_INTERRUPTS_LEFT_OUT, "cpus": {}},
    JobStatus: _JOB,
    DirectionStatus: {"percentiles": {}},
}
"""Fields that tables of each second's main figures do not need (output/csv_out.py)."""

_ENDS = (b'},"c', b'},"')
_DIGITS = b"0123456789"
_read = json.JSONDecoder().raw_decode
_COUNTS = rb'\{[0-9",:]*\}'
# matches the fields at the beginning of a sample and the interrupt counts by CPU after them: block
# softirqs, each IRQ, function calls
_INTERRUPTS = re.compile(
    rb"(\[[^\[{]*,\[[^\[{]*,\[[^\[{]*,\{[^{}]*\},\{[^{}]*\},)"
    rb'%s,\{(?:"[0-9]+":%s,?)*\},(?:null|%s)(?=,)' % (_COUNTS, _COUNTS, _COUNTS)
)
_KERNEL = ["monotonic_ns", "wall_ms", "took_ns", "disks", "cpus", "softirq_block", "irqs", "ipi"]


class PartialSamples:
    """Reads the JSON of samples, in order; successive samples share equal parts. Returns and raises
    the same as ``Decoder``, except for the fields ``without``. ``fast``: there are enough samples
    that a faster JSON parser is worth loading."""

    def __init__(self, layouts: Layouts, without: Without = LEFT_OUT, fast: bool = False) -> None:
        self._fast = fast
        self._list = _quick_list if fast else _list
        self._decode = _PartialDecoder(layouts, without)
        fields = layouts.get(form.NAMES[DirectionStatus], [])
        # a histogram is found by the field after it: is this the known order?
        self._histograms_known = "bins" in fields and fields[fields.index("bins") :][1:2] == [
            "bins_of"
        ]
        # interrupt counts are found by the fields around them: is this the known order?
        kernel = layouts.get(form.NAMES[KernelSample], [])[:-1]
        fourth = layouts.get(form.NAMES[RawSample], [])[3:4]
        self._interrupts_known = fourth == ["kernel"] and kernel[: len(_KERNEL)] == _KERNEL
        # the keys of the last histogram at each position in a sample, as text and as numbers
        self._keys: dict[int, tuple[list[bytes], list[int]]] = {}

    def read(self, data: bytes) -> tuple[Any, RawSample]:
        """Return whether the sample is shown, and the sample."""
        check_memory(data)
        if self._interrupts_known:
            # on a machine with many CPUs, interrupt counts are most of the text
            data = _without_interrupts(data)
        cut = self._split_histograms(data) if self._histograms_known else None
        if cut is None:
            is_shown, value = parse_json(data, is_large=self._fast)
            histograms: list[HistogramColumns] = []
        else:
            text, histograms = cut
            is_shown, value = parse_json(text, is_large=self._fast)
        self._decode.histograms = histograms
        raw: RawSample = self._decode(RawSample, value)
        return is_shown, raw

    def _split_histograms(self, data: bytes) -> tuple[bytes, list[HistogramColumns]] | None:
        """The text with a number in place of each histogram, and the histograms; ``None`` if a
        histogram is not written in the usual form."""
        histograms: list[HistogramColumns] = []
        parts: list[bytes] = []
        place = 0
        while (end := _next_end(data, place)) >= 0:
            begin = data.rfind(b"{", place, end)
            columns = self._columns(data, begin, end + 1, len(histograms)) if begin >= 0 else None
            if columns is None:
                return None
            parts += (data[place:begin], b"%d" % len(histograms))
            histograms.append(columns)
            place = end + 1
        parts.append(data[place:])
        return b"".join(parts), histograms

    def _columns(self, data: bytes, begin: int, end: int, number: int) -> HistogramColumns | None:
        """The histogram from ``begin`` to ``end``, if its keys are whole, ascending numbers and its
        values are counts."""
        text = data[begin:end]
        buckets = text.count(b":")
        # without its digits, the text must look like that of an object of whole numbers
        if text.translate(None, _DIGITS) != b'{%s"":}' % (b'"":,' * (buckets - 1)):
            return None
        parts = text.split(b'"')
        keys = parts[1::2]
        try:
            places = self._key_numbers(number, keys)
            counts = self._list(b"".join(parts[2::2]).translate(None, b":}"))
        except ValueError:
            return None
        if not places or len(counts) != len(places):
            return None
        if max(counts) >= MAX_COUNT or not any(counts):
            return None
        return HistogramColumns(places, counts)

    def _key_numbers(self, number: int, keys: list[bytes]) -> list[int] | None:
        """The keys as numbers, reused from the last histogram if equal; ``None`` if they are not
        keys of buckets. Raises ValueError if they are not written like JSON numbers."""
        cached = self._keys.get(number)
        if cached is not None and cached[0] == keys:
            return cached[1]
        places = self._list(b",".join(keys))
        if not places or places[-1] >= MAX_COUNT or any(map(ge, places, places[1:])):
            return None
        self._keys[number] = keys, places
        return places


def _without_interrupts(data: bytes) -> bytes:
    """The text without interrupt counts; unchanged if they are not written in the known form."""
    match = _INTERRUPTS.match(data)
    return data if match is None else b"%s{},{},null%s" % (match[1], data[match.end() :])


def _list(text: bytes) -> list[int]:
    numbers: list[int] = _read(f"[{text.decode('ascii')}]")[0]
    return numbers


def _quick_list(text: bytes) -> list[int]:
    numbers: list[int] = parse_json(b"[%s]" % text)
    return numbers


def _next_end(data: bytes, place: int) -> int:
    """Position of the next histogram's end: the brace before "clat" or "lat"; -1: there is none."""
    at = place
    while (marker := data.find(b'lat",', at)) >= 0:
        at = marker + 1
        end = marker - (3 if data[marker - 1 : marker] == b'"' else 4)
        if end >= place and data[end:marker] in _ENDS:
            return end
    return -1


class _PartialDecoder(Decoder):
    """A decoder that replaces the numbers in the text by the ``histograms`` that they stand for."""

    def __init__(self, layouts: Layouts, without: Without) -> None:
        super().__init__(layouts, form.NAMES, without)
        self.histograms: list[HistogramColumns] = []

    def _make(self, kind: Any) -> Any:
        coder = super()._make(kind)
        if kind == Mapping[str, str]:
            return _cached(coder)
        if kind != Mapping[int, int]:
            return coder

        def decode(value: Any) -> Any:
            if type(value) is not int:
                return coder(value)
            if not 0 <= value < len(self.histograms):
                raise MalformedData("not an object")
            return self.histograms[value]

        return decode


def _cached(coder: Coder) -> Coder:
    """Wrap ``coder``: reuse the last result if the value is the same (every sample has the job's
    options)."""
    cached: tuple[Any, Any] | None = None

    def decode(value: Any) -> Any:
        nonlocal cached
        if cached is None or value != cached[0]:
            cached = value, coder(value)
        return cached[1]

    return decode
