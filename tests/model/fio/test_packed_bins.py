"""Packed histograms, compared with subtracting one histogram from the next bucket by bucket."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fio_recordings import samples, statuses
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model import histogram
from iopstui.model.fio import intervals
from iopstui.model.fio.growth import MAX_COUNT, PackedBins
from iopstui.model.histogram import HistogramColumns
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.samples import DirectionStatus, FioStatus

KEYS = st.sampled_from([0, 1, 127, 129, 17792, 20864, 1 << 40])
BINS = st.dictionaries(KEYS, st.integers(1, MAX_COUNT - 1), max_size=7)


@given(st.lists(st.lists(BINS, min_size=3, max_size=3), min_size=1, max_size=6))
def test_rows_are_subtracted_and_added_up_as_one_by_one(
    documents: list[list[dict[int, int]]],
) -> None:
    packed, before = PackedBins(), [dict[int, int]()] * 3
    for rows in documents:
        packed.add_buckets(rows)
        total, expected = 0, dict[int, int]()
        for row, (now, old) in enumerate(zip(rows, before, strict=True)):
            grown = packed.growth(row, now, old)
            lost = any(now.get(key, 0) < count for key, count in old.items())
            assert (grown is None) == lost
            if grown is not None:
                one = histogram.subtract(now, old)
                assert packed.unpacked(grown) == one
                assert packed.highest(grown) == histogram.maximum(one or {})
                total += grown
                histogram.add(expected, one or {})
        assert packed.unpacked(total) == expected
        before = rows


@pytest.mark.parametrize("count", [-1, MAX_COUNT, 1 << 64, 1.5])
def test_what_is_no_count_of_fio_s_is_left_to_others(count: float) -> None:
    packed, odd = PackedBins(), {5: count}
    packed.add_buckets([odd])  # type: ignore[list-item]
    assert packed.growth(0, odd, None) is None  # type: ignore[arg-type]
    assert packed.growth(0, {5: 1}, odd) is None  # type: ignore[arg-type]


def test_a_bucket_that_nobody_announced_is_left_to_others() -> None:
    packed = PackedBins()
    packed.add_buckets([{5: 1}])
    assert packed.growth(0, {5: 1, 6: 1}, None) is None
    assert packed.growth(0, {5: 1}, {6: 1}) is None


def _wide(status: FioStatus, rows: int) -> FioStatus:
    return replace(status, jobs=(status.jobs * rows)[:rows])


def _by_columns(status: FioStatus) -> FioStatus:
    """The status with histograms as columns, as a recording's reader gives it to a report."""

    def read(one: DirectionStatus) -> DirectionStatus:
        bins = one.bins
        if bins is None:
            return one
        return replace(
            one, bins=HistogramColumns(sorted(bins), [bins[key] for key in sorted(bins)])
        )

    rows = [
        replace(row, directions={name: read(one) for name, one in row.directions.items()})
        for row in status.jobs
    ]
    return replace(status, jobs=tuple(rows))


@pytest.mark.parametrize(
    "name",
    ["3.42-c-numjobs4-nogroup", "3.1-b-randrw-gtod", "3.42-e-ramp", "3.42-p-both", "3.1-p-mixed"],
)
def test_frames_of_many_rows_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [_wide(status, 12) for status in statuses(name)]
    columns = [_by_columns(status) for status in documents]

    def frames(documents: list[FioStatus]) -> list[Frame]:
        builder = FrameBuilder()
        return [builder.feed(sample) for sample in samples(documents)]

    packed = frames(documents)
    assert packed == frames(columns)
    monkeypatch.setattr(intervals, "MIN_PACKED_ROWS", 1000)
    assert packed == frames(documents) == frames(columns)
    assert any(frame.fio is not None for frame in packed)
