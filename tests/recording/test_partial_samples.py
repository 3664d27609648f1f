"""A report reads only parts of samples, in a fraction of the time. These parts must be exact."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from iopstui import untrusted
from iopstui.features.reports.files import rendered
from iopstui.features.reports.foreign import Source
from iopstui.features.reports.rows import write_parquet
from iopstui.model.histogram import HistogramColumns
from iopstui.model.samples import (
    CpuTimes,
    DirectionStatus,
    DiskCounters,
    KernelSample,
    RawSample,
)
from iopstui.recording import layout as form
from iopstui.recording.coding import Decoder, MalformedData, encoder
from iopstui.recording.partial_samples import LEFT_OUT, ROWS_WITHOUT, PartialSamples, Without
from iopstui.recording.reader import Recording, SampleRecord, recording_path

KEPT = Path(__file__).parents[1] / "fixtures" / "recordings"
FILES = [recording_path("demo"), *sorted(KEPT.glob("*.iops"))]


@pytest.fixture(params=[False, True], ids=["json", "orjson"])
def many(request: pytest.FixtureRequest) -> bool:
    """Whether there are so many histogram buckets that orjson parses them."""
    return bool(request.param)


def samples(path: Path, less: Without | None) -> list[RawSample]:
    with Recording(path) as recording:
        if less is not None:
            recording.skip_unneeded_fields(less)
        return [one.raw for one in recording.records() if isinstance(one, SampleRecord)]


def without(value: Any, less: Without) -> Any:
    """The value without the parts that a report leaves out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: without(getattr(value, f.name), less) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **{**parts, **less.get(type(value), {})})
    if isinstance(value, Mapping):
        return {key: without(one, less) for key, one in value.items()}
    return tuple(without(one, less) for one in value) if isinstance(value, tuple) else value


def of_fio(raw: RawSample) -> list[DirectionStatus]:
    jobs = raw.fio.jobs if raw.fio is not None else ()
    return [one for job in jobs for one in job.directions.values()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_samples_are_the_same_but_for_what_is_left_out(
    path: Path, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "ORJSON_FROM_BYTES", 0 if many else 1 << 60)
    whole = samples(path, None)
    for less in (LEFT_OUT, ROWS_WITHOUT):
        needed = samples(path, less)
        assert needed == [without(raw, less) for raw in whole]
        bins = [one.bins for raw in needed for one in of_fio(raw) if one.bins]
        assert all(type(one) is HistogramColumns for one in bins)


def test_the_same_buckets_are_held_once(many: bool) -> None:
    read = PartialSamples(LAYOUTS, fast=many).read
    found = [of_fio(read(text_of(bins))[1])[0].bins for bins in ('{"1":2,"3":4}', '{"1":3,"3":9}')]
    first, second = (one for one in found if isinstance(one, HistogramColumns))
    assert first.bucket_keys is second.bucket_keys


@pytest.mark.parametrize(
    ("path", "kind"),
    [*((path, "json") for path in FILES), *((FILES[0], kind) for kind in ("html", "md", "csv"))],
    ids=lambda value: getattr(value, "stem", value),
)
def test_a_report_of_them_is_that_of_whole_samples(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = rendered([path], kind)
    monkeypatch.setattr(Recording, "skip_unneeded_fields", lambda *_: None)
    assert rendered([path], kind) == needed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_columns_of_them_are_those_of_whole_samples(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def table() -> object:
        out = io.BytesIO()
        write_parquet(Source(path), False, out)
        return pyarrow.parquet.read_table(out)

    needed = table()
    monkeypatch.setattr(Recording, "skip_unneeded_fields", lambda *_: None)
    assert table() == needed


DISK = DiskCounters("a", 1, 2, *range(17))
CPU = CpuTimes(*range(8))
RAW = next(
    raw for raw in samples(recording_path("demo"), None) if any(one.bins for one in of_fio(raw))
)
LAYOUTS = form.all_layouts()


def text_of(bins: str, raw: RawSample = RAW) -> bytes:
    """A sample's JSON with another histogram, or with any text in its place."""
    fio = raw.fio
    assert fio is not None
    job = fio.jobs[0]
    name, one = next((n, d) for n, d in job.directions.items() if d.bins)
    job = dataclasses.replace(job, directions={name: dataclasses.replace(one, bins={7: 77777})})
    raw = dataclasses.replace(raw, fio=dataclasses.replace(fio, jobs=(job,)))
    text = form.pack([1, encoder(RawSample)(raw)])
    assert text.count(b'{"7":77777}') == 1
    return text.replace(b'{"7":77777}', bins.encode())


@pytest.mark.parametrize(
    "bins",
    ['{"1":2,"3":4}', '{"3":4,"1":2}', '{"1":0,"3":4}', '{"1":0}', "{}", "null", '{"1":-2,"3":4}',
     '{"1":2, "3":4}', '{"01":2}', '{"1":2,"1":3}', '{"1":18446744073709551615}'],
)  # fmt: skip
def test_any_histogram_is_read_as_it_stands(bins: str, many: bool) -> None:
    text = text_of(bins)
    _, raw = PartialSamples(LAYOUTS, fast=many).read(text)
    whole = Decoder(LAYOUTS, form.NAMES)(RawSample, json.loads(text)[1])
    (found,), (expected,) = of_fio(raw), of_fio(whole)
    assert (found.bins is None) == (expected.bins is None)
    counted = {key: count for key, count in (expected.bins or {}).items() if count}
    assert {key: count for key, count in (found.bins or {}).items() if count} == counted


@pytest.mark.parametrize(
    "bins", ['{"1":2.5}', '{"1":"2"}', '{"a":2}', '{"1":18446744073709551616}', '{"1":1e3}', "[1]",
             "5", '{"":3}', '{"1":}', '{"1":2,"3":}', '{"":}', '{"1":02}',
             '{"18446744073709551616":1}', '{"1":[2]}'],
)  # fmt: skip
def test_one_that_can_not_be_is_refused_as_ever(bins: str, many: bool) -> None:
    text = text_of(bins)
    with pytest.raises((MalformedData, ValueError)):
        Decoder(LAYOUTS, form.NAMES)(RawSample, json.loads(text)[1])
    with pytest.raises((MalformedData, ValueError)):
        PartialSamples(LAYOUTS, fast=many).read(text)


def test_a_text_of_known_buckets_is_looked_at_all_the_same(many: bool) -> None:
    read = PartialSamples(LAYOUTS, fast=many).read
    read(text_of('{"1":2,"3":4}'))
    for bins in ('{"1":2,"3":}', '{"1":2,"3":18446744073709551616}', '{"1":2,"3":04}'):
        with pytest.raises((MalformedData, ValueError)):
            read(text_of(bins))
    assert of_fio(read(text_of('{"1":2,"4":4}'))[1])[0].bins == {1: 2, 4: 4}


KERNEL = KernelSample(1, 2.5, 3, {"a": DISK}, {0: CPU, 1: CPU}, {0: 4}, {}, None)


def test_interrupts_are_not_even_read_as_json(many: bool) -> None:
    raw = dataclasses.replace(RAW, kernel=dataclasses.replace(KERNEL, irqs={9: {0: 123456789}}))
    text = form.pack([0, encoder(RawSample)(raw)]).replace(b"123456789", b"0123456789")
    assert PartialSamples(LAYOUTS, fast=many).read(text) == (0, without(raw, LEFT_OUT))
