from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from typing import Any

import pytest
from fio_recordings import NAMES, items, raw, statuses
from hypothesis import example, given
from hypothesis import strategies as st

from iopstui.fio.stream import framing
from iopstui.fio.stream import status as fio_status
from iopstui.fio.stream.framing import BrokenDocument, Document, Item, LogLine
from iopstui.fio.stream.status import parse_status
from iopstui.model.samples import LatencySum


def cut_at(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def pretty(data: dict[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()


SMALL = b"".join(
    (
        b"note: both iodepth >= 1 and synchronous I/O engine are selected\r\n",
        pretty({"jobs": [{"jobname": "a b"}], "n": {"x": {}}}),
        pretty({"jobs": []}),
        b"\nfio: terminating on signal 15\n",
        pretty({"jobs": [{"jobname": "last"}]}),
        b"no newline at the end",
    )
)


@given(st.lists(st.integers(0, len(SMALL)), max_size=40))
def test_it_does_not_matter_where_the_bytes_are_cut(places: list[int]) -> None:
    assert items(cut_at(SMALL, places)) == items([SMALL])


def test_documents_glued_together_with_text_around_them() -> None:
    found = items([SMALL])
    assert [item.data["jobs"] for item in found if isinstance(item, Document)] == [
        [{"jobname": "a b"}],
        [],
        [{"jobname": "last"}],
    ]
    assert [item.text for item in found if isinstance(item, LogLine)] == [
        "note: both iodepth >= 1 and synchronous I/O engine are selected",
        "fio: terminating on signal 15",
        "no newline at the end",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_recordings_cut_at_random_are_the_same(name: str) -> None:
    data = raw(name)
    places = random.Random(name).sample(range(len(data)), k=min(200, len(data)))
    assert items(cut_at(data, places)) == items([data])


@given(st.lists(st.sampled_from([b"{", b"}", b"\n", b'{"a":', b"1", b"fio: x\n", b"\xff", b"\t"])))
def test_no_bytes_make_it_fail(parts: list[bytes]) -> None:
    found = items(parts)
    assert all(isinstance(item, (Document, LogLine, BrokenDocument)) for item in found)


@given(st.lists(st.binary(max_size=20)))
def test_no_garbage_makes_it_fail(parts: list[bytes]) -> None:
    items(parts)


def test_messages_inside_documents_are_taken_out() -> None:
    found = items([raw("3.28-x-interleaved")])
    assert not [item for item in found if isinstance(item, BrokenDocument)]
    messages = [item.text for item in found if isinstance(item, LogLine)]
    assert len([text for text in messages if "err=35" in text]) >= 2
    assert len(statuses("3.28-x-interleaved")) == raw("3.28-x-interleaved").count(b"\n}\n")


def test_a_message_within_a_line_of_a_document() -> None:
    text = pretty({"jobs": [], "a": {"10": 0.28, "20": 0.5}})
    torn = text.replace(b'    "20"', b'    fio: pid=11271, err=35/\n "20"')
    assert torn != text
    document, message = sorted(items([torn]), key=lambda item: isinstance(item, LogLine))
    assert isinstance(document, Document)
    assert document.data["a"] == {"10": 0.28, "20": 0.5}
    assert message == LogLine("fio: pid=11271, err=35/")


MESSAGES = (
    b"crc32c: verify failed at file /tmp/f offset 8192, length 4096 (requested block: offset=8192)",
    b"       Expected CRC: cc66674d",
    b"       Received CRC: 01eb356a",
    b"fio: pid=11271, err=84/file:io_u.c:2203, func=io_u_queued_complete, error=Invalid or x",
    b"verify: bad header offset 42, wanted 0 at file {odd} {",
)
CLEAN = raw("3.42-a-randread-grp")
PIECE = 4096


def documents(found: list[Item]) -> list[Any]:
    return [item.data for item in found if isinstance(item, Document)]


def test_a_document_that_begins_behind_a_message_cut_in_mid_line() -> None:
    text = b"crc32c: verify failed at file /tmp" + CLEAN + b"/f offset 4096\n" + CLEAN
    found = items([text])
    assert documents(found) == documents(items([CLEAN + CLEAN]))
    assert [item.text for item in found if isinstance(item, LogLine)] == [
        "crc32c: verify failed at file /tmp", "/f offset 4096",
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, CLEAN.count(b"\n")), st.sampled_from(MESSAGES)),
                min_size=1, max_size=8))  # fmt: skip
@example([(1697, MESSAGES[-1])])
def test_messages_between_any_two_lines_lose_no_document(
    places: list[tuple[int, bytes]],
) -> None:
    lines = CLEAN.split(b"\n")
    for place, message in sorted(places, reverse=True):
        # right at the beginning of a document, `{` and its end would look like another document's
        # beginning
        lines.insert(place + 1 if lines[place - 1] == b"{" else max(place, 2), message)
    found = items([b"\n".join(lines)])
    assert documents(found) == documents(items([CLEAN]))
    said = [item.text for item in found if isinstance(item, LogLine)]
    assert sorted(said) == sorted(message.decode().strip() for _, message in places)


@given(st.lists(st.tuples(st.integers(0, 2 * len(CLEAN) // PIECE), st.integers(1, 3)),
                min_size=1, max_size=6),
       st.lists(st.integers(0, 3 * len(CLEAN)), max_size=6), st.integers(0, 300))  # fmt: skip
def test_pieces_of_a_job_s_messages_anywhere_make_no_document_wrong(
    intruders: list[tuple[int, int]], cuts: list[int], shift: int
) -> None:
    """fio writes a document in pieces of 4096 bytes, and its jobs may write messages in between."""
    flood = b"".join(message + b"\n" for message in MESSAGES[:3]) * 600
    flood = flood[shift:]
    ends = [match.end() for match in re.finditer(rb"^\}\n", CLEAN, re.M)]
    pieces: list[bytes] = []
    for begin, end in pairwise([0, *ends]):
        pieces += [CLEAN[at : min(at + PIECE, end)] for at in range(begin, end, PIECE)]
    for place, count in sorted(intruders, reverse=True):
        chunk, flood = flood[: count * PIECE], flood[count * PIECE :]
        pieces.insert(min(place, len(pieces)), chunk)
    text = b"".join(pieces)
    found = items([text])
    whole = documents(items([CLEAN]))
    # a document that was cut several times in one place may be lost, and is then reported; it is
    # never wrong
    assert all(one in whole for one in documents(found))
    broken = [item for item in found if isinstance(item, BrokenDocument)]
    assert len(documents(found)) + len(broken) == len(whole)
    assert broken == [] or len(intruders) > 1
    assert items(cut_at(text, cuts)) == found


def test_a_line_that_can_t_be_mended_is_not_guessed() -> None:
    """Where the number was cut is unknown: 12, 124 and 1234 are all possible."""
    torn = pretty({"fio version": "x", "n": 1234, "m": 5}).replace(b"1234", b"12\x073\nword 34")
    assert [type(item) for item in items([torn])] == [BrokenDocument]


def test_nothing_of_fio_s_is_taken_out_with_a_message() -> None:
    torn = pretty({"fio version": "x", "n": 1234, "m": 5}).replace(b'  "n"', b'a word  "n"')
    assert [type(item) for item in items([torn])] == [BrokenDocument]


def test_splitting_many_lines_copies_each_byte_a_few_times() -> None:
    class Counting(bytearray):
        copied = 0

        def __getitem__(self, key: Any) -> Any:
            part = super().__getitem__(key)
            Counting.copied += len(part) if isinstance(part, bytearray) else 1
            return part

        def __delitem__(self, key: Any) -> None:
            Counting.copied += len(self)
            super().__delitem__(key)

    text = b"crc32c: verify failed at file /tmp/f\n" * 20_000
    framer = framing.Framer()
    framer._buffer = Counting()
    assert len(list(framer.feed(text))) == 20_000
    assert 0 < Counting.copied < 10 * len(text)


def test_a_torn_document_is_given_up_and_the_next_is_whole() -> None:
    found = items([b'{\n  "jobs": [\n', pretty({"jobs": []})])
    assert isinstance(found[0], BrokenDocument)
    assert isinstance(found[1], Document)


def test_a_document_torn_at_the_end_is_named() -> None:
    assert [type(item) for item in items([b"{\n  1,\n"])] == [BrokenDocument]
    assert [type(item) for item in items([b"{"])] == [BrokenDocument]


def test_a_document_that_is_no_json_is_named() -> None:
    assert [type(item) for item in items([b"{\n  nonsense\n}\n"])] == [BrokenDocument]


def test_an_endless_document_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_DOCUMENT_BYTES", 1000)
    kinds = [type(item) for item in items([b"{\n", *[b"  x,\n"] * 1000])]
    assert kinds[0] is BrokenDocument
    assert Document not in kinds


def test_an_endless_line_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_DOCUMENT_BYTES", 1000)
    found: list[Item] = items([b"x" * 600] * 4)
    assert next(item.size for item in found if isinstance(item, BrokenDocument)) == 1200


@pytest.mark.parametrize("version", ["3.1", "3.42"])
def test_names_that_are_not_ascii_or_have_tabs(version: str) -> None:
    names = {job.name for status in statuses(f"{version}-d-stonewall") for job in status.jobs}
    assert any("ä" in name for name in names)
    assert any("\t" in name for name in names)


def test_old_documents_count_the_bins_where_newer_ones_give_n() -> None:
    for name in ("3.1-a-randread-grp", "3.42-a-randread-grp"):
        read = statuses(name)[-1].jobs[0].directions["read"]
        assert read.bins is not None
        assert read.bins_of == "clat"
        assert read.completed == sum(read.bins.values()) == read.issued
        assert read.clat is not None
        assert read.clat.count == read.completed
        assert set(read.percentiles) >= {"p50", "p99", "p99.9"}


@pytest.mark.parametrize("version", ["3.1", "3.16", "3.42"])
def test_without_latencies_nothing_is_zero(version: str) -> None:
    job = statuses(f"{version}-b-randrw-gtod")[-1].jobs[0]
    assert not job.measures_latency
    for direction in ("read", "write"):
        status = job.directions[direction]
        assert not status.completed
        assert not status.bins
        assert status.clat is None or status.clat.count == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [("3.16-p-latonly", "lat"), ("3.42-p-latonly", "lat"), ("3.1-p-latonly", "clat")],
)
def test_the_histogram_says_what_it_is_of(name: str, kind: str) -> None:
    assert statuses(name)[-1].jobs[0].directions["read"].bins_of == kind


def test_mixed_reporting_has_one_direction_or_three() -> None:
    one = statuses("3.33-p-mixed")[-1].jobs[0].directions
    assert [name for name, status in one.items() if status.issued] == ["mixed"]
    three = statuses("3.42-p-both")[-1].jobs[0].directions
    assert {name for name, status in three.items() if status.issued} == {"read", "write", "mixed"}


def test_fio_own_final_figures_are_kept() -> None:
    documents = [item for item in items([raw("3.42-e-ramp")]) if isinstance(item, Document)]
    stated = documents[-1].data["jobs"][0]["read"]
    read = statuses("3.42-e-ramp")[-1].jobs[0].directions["read"]
    assert read.iops == stated["iops"]
    assert read.bw_bytes == stated["bw_bytes"]
    assert read.io_bytes == stated["io_bytes"]
    assert read.lat_max_ns == stated["clat_ns"]["max"]
    assert read.percentiles["p99.9"] == stated["clat_ns"]["percentile"]["99.900000"]


def test_placeholders_for_an_unknown_end_are_missing() -> None:
    for name in NAMES:
        for status in statuses(name):
            for job in status.jobs:
                assert job.eta_s is None or job.eta_s < 1000, name


def test_every_recording_has_a_final_document() -> None:
    assert all(statuses(name) for name in NAMES)


def test_errors_of_jobs_are_kept() -> None:
    assert statuses("3.42-g2-perm")[-1].jobs[0].error == 13
    assert {job.error for job in statuses("3.42-g5-enospc-run")[-1].jobs} == {0, 28}


@pytest.mark.parametrize(
    "data", [{}, {"jobs": None}, {"jobs": {}}, {"client_stats": []}, {"jobs": "x"}]
)
def test_what_is_no_status_is_none(data: dict[str, Any]) -> None:
    assert parse_status(data) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
row_keys = st.sampled_from(
    ["jobname", "error", "elapsed", "eta", "job_start", "read", "write", "job options", "ctx",
     "iodepth_level", "usr_cpu", "job_runtime", "clat_ns", "lat_ns", "bins", "N", "percentile",
     "mean", "total_ios", "io_bytes", "runtime"]
)  # fmt: skip
rows = st.recursive(
    json_values,
    lambda inner: st.dictionaries(row_keys, inner, max_size=6),
    max_leaves=20,
)


@given(st.lists(rows, max_size=3), json_values)
def test_no_document_however_strange_makes_it_fail(jobs: list[Any], timestamp: Any) -> None:
    assert parse_status({"jobs": jobs, "timestamp_ms": timestamp}) is not None


def test_a_document_without_an_end_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only another program than fio writes such long lines, and nothing can be removed from
    them."""
    looked: list[int] = []
    monkeypatch.setattr(framing, "_cuts", lambda body, at: iter(looked.append(at) or ()))
    line = b'  "a": ' + b"1" * 300_000
    assert framing.remove_interleaved_text(b"{\n" + line + b"\n}\n") is None
    assert looked == []
    assert framing.remove_interleaved_text(b'{\n  "a": 1\nfio: odd\n}\n') is None
    assert looked


@pytest.mark.parametrize(
    ("block", "found"),
    [({"N": 5, "mean": 0.0, "max": 3}, LatencySum(0.0, 5)), ({"N": 5, "mean": 0.0, "max": 0}, None),
     ({"N": 0, "mean": 0.0}, LatencySum(0.0, 0)), ({"mean": 2.5, "max": 3}, LatencySum(2.5, 7))],
)  # fmt: skip
def test_a_mean_of_0_is_one_only_if_something_was_measured(
    block: dict[str, float], found: LatencySum | None
) -> None:
    assert fio_status._latency_sum(block, 7) == found


@pytest.mark.parametrize("name", NAMES)
def test_orjson_reads_recordings_as_python_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = items([raw(name)])
    monkeypatch.setattr(framing, "ORJSON_FROM_BYTES", 0)
    # repr tells 1 from 1.0
    assert repr(items([raw(name)])) == repr(expected)


@given(st.lists(st.sampled_from(
    [b'"a": 1', b",", b"\n", b'"', b"\t", b"\xff", b"NaN", b"1e400", rb'"\ud800"', b"{", b"}",
     b"fio: an error\n", b'"b": [1, 2.5]', b"18446744073709551615", b"0\r\n"]
), max_size=9))  # fmt: skip
def test_what_is_no_document_for_python_is_none_for_orjson(parts: list[bytes]) -> None:
    text = b'{\n  "jobs" : [],\n' + b"".join(parts) + b"\n}\n"
    expected = items([text])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "ORJSON_FROM_BYTES", 0)
        assert repr(items([text])) == repr(expected)


def test_a_document_with_many_braces_in_its_first_column(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{\n"fio version" : "fio-3.33", "jobs" : [\n' + b"{},\n" * 50 + b"{}]\n}\n"
    expected = items([body])
    monkeypatch.setattr(framing, "MAX_OTHER_BRACES", 3)
    assert items([body]) == items([body[:90], body[90:]]) == expected
    assert [type(item) for item in expected] == [Document]
