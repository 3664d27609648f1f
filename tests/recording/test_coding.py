from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.events import field_types
from iopstui.model.block.device import BlockDevice
from iopstui.model.samples import (
    CpuTimes,
    DirectionStatus,
    DiskCounters,
    FioStatus,
    JobStatus,
    JobThread,
    KernelSample,
    LatencySum,
    RawSample,
)
from iopstui.recording import layout as form
from iopstui.recording.coding import Decoder, MalformedData, encoder, layouts

WHOLE = st.integers(1 - (1 << 64), (1 << 64) - 1)
REAL = st.floats(-1e20, 1e20)
KNOWN: dict[object, st.SearchStrategy[object]] = {
    int: WHOLE, float: REAL, int | None: st.none() | WHOLE, bool: st.booleans(), str: st.text()
}  # fmt: skip


def built(kind: type, **more: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    hints = field_types(kind)
    plain = {name: KNOWN[hint] for name, hint in hints.items() if hint in KNOWN}
    return st.builds(kind, **{**plain, **more})  # type: ignore[return-value]


def counts(values: st.SearchStrategy[object] = WHOLE) -> st.SearchStrategy[dict[object, object]]:
    return st.dictionaries(WHOLE, values, max_size=4)


SUMS = st.none() | built(LatencySum, mean_ns=REAL, count=WHOLE)
DIRECTION = built(
    DirectionStatus, slat=SUMS, clat=SUMS, lat=SUMS, bins=st.none() | counts(),
    iops=REAL, bw_bytes=REAL, percentiles=st.dictionaries(st.text(), WHOLE, max_size=2),
)  # fmt: skip
JOB = built(
    JobStatus, usr_cpu=REAL, sys_cpu=REAL,
    iodepth_level=st.dictionaries(st.text(), REAL, max_size=2),
    directions=st.dictionaries(st.text(), DIRECTION, max_size=2),
    options=st.dictionaries(st.text(), st.text(), max_size=2),
)  # fmt: skip
KERNEL = built(
    KernelSample, wall_ms=REAL, disks=st.dictionaries(st.text(), built(DiskCounters), max_size=2),
    cpus=counts(built(CpuTimes)), softirq_block=counts(), irqs=counts(counts()),
    ipi=st.none() | counts(),
)  # fmt: skip
RAW = built(
    RawSample, wall_ms=REAL, interval_s=REAL, own_busy_s=st.none() | REAL,
    kernel=st.none() | KERNEL,
    fio=st.none() | built(FioStatus, jobs=st.lists(JOB, max_size=2).map(tuple)),
    jobs=st.lists(
        built(JobThread, allowed=st.lists(WHOLE, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
)  # fmt: skip


def through(value: object) -> object:
    kind = type(value)
    text = json.dumps(encoder(kind)(value))
    return Decoder(layouts([kind], form.NAMES), form.NAMES)(kind, json.loads(text))


@given(RAW)
def test_a_raw_sample_comes_back_as_it_was(raw: RawSample) -> None:
    back = through(raw)
    assert back == raw
    assert repr(back) == repr(raw), "and of the same types: 1 is not 1.0"


def test_every_kind_of_a_recording_can_be_coded() -> None:
    there = form.all_layouts()
    decode = Decoder(there, form.NAMES)
    for kind in form.NAMES:
        encoder(kind)
        decode.decoder_for(kind)
    assert there["BlockDevice"] == [field.name for field in fields(BlockDevice)]


@dataclass(frozen=True)
class Old:
    name: str
    gone: int
    count: int


@dataclass(frozen=True)
class New:
    count: int
    name: str
    added: float | None = None
    more: dict[int, str] = field(default_factory=dict)


NAMES = {Old: "Old", New: "New"}


def test_an_older_layout_is_read_by_its_names() -> None:
    there = {"New": layouts([Old], NAMES)["Old"]}
    values = json.loads(json.dumps(encoder(Old)(Old("a", 7, 3))))
    assert Decoder(there, NAMES)(New, values) == New(3, "a", None, {})


def test_a_field_that_must_be_there_and_is_not() -> None:
    with pytest.raises(MalformedData, match="no count"):
        Decoder({"New": ["name"]}, NAMES)(New, ["a"])
    with pytest.raises(MalformedData, match="layout of a New is missing"):
        Decoder({}, NAMES)(New, [])


@pytest.mark.parametrize(
    "value",
    [
        None, 5, "x", {}, [], [1], [1, "a", None], [1, "a", None, {}, 5],
        ["1", "a", None, {}], [True, "a", None, {}], [1, 2, None, {}], [1, "a", "b", {}],
        [1, "a", None, []], [1, "a", None, {"x": "y"}], [1, "a", None, {"1": 2}],
    ],
)  # fmt: skip
def test_what_is_not_of_its_type_is_refused(value: object) -> None:
    with pytest.raises(ValueError):
        Decoder(layouts([New], NAMES), NAMES)(New, value)


@pytest.mark.parametrize("bad", [True, 1.0, "1", None, [], 1 << 64, -(1 << 64)])
@pytest.mark.parametrize("place", [0, 7])
def test_one_that_is_no_count_among_counts_is_refused(bad: object, place: int) -> None:
    """Counts are checked all at once, but a single wrong one must be noticed."""
    times = [*encoder(CpuTimes)(CpuTimes(*range(8)))]
    times[place] = bad
    with pytest.raises(ValueError):
        Decoder(layouts([CpuTimes], form.NAMES), form.NAMES)(CpuTimes, times)
    bins = {str(key): 1 for key in range(8)} | {str(place): bad}
    with pytest.raises(ValueError):
        Decoder({}, {})(Mapping[int, int], bins)
    with pytest.raises(ValueError):
        Decoder({}, {})(Mapping[int, int], {"0": 1, str(bad): 1, str(1 << 64): 1})


def test_surrogates_and_strange_names_survive() -> None:
    job = form.JobRun(1, "j", {"name": "\udcff\n<&>"}, None, True, "\udc80 € \x00", ("a", "b"))
    assert through(job) == job
