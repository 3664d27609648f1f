"""A frame's sums as one text: they add up to the same as JSON lines, and invalid texts add
nothing."""

from __future__ import annotations

import base64
import json
import random
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import START_MS, Row, direction, frame, frames, stream

from iopstui.features.fleet.hosts.conversation import parse_object
from iopstui.features.fleet.merging.encoded_frame import (
    MANY,
    MAX_TEXT,
    NUMBER,
    NUMBER_BITS,
    PARTS,
    PLANE_ALIGNMENT,
    EncodedFrame,
    FrameSum,
    encode_frame,
)
from iopstui.features.fleet.merging.merger import Merger, certify_merge
from iopstui.features.fleet.merging.sums import (
    KERNEL_NUMBERS,
    KEYS,
    LATENCIES,
    WITH_BINS,
    DirectionSum,
    HostSums,
    KernelSum,
    LatencySum,
    MalformedRow,
)
from iopstui.features.fleet.output.sinks import merged_object, second_object
from iopstui.features.fleet.program.agent import compact_frame, trim_frame

number = st.integers(0, (1 << NUMBER_BITS) - 1)
bins = st.dictionaries(st.sampled_from(KEYS), st.integers(1, (1 << 24) - 1), max_size=20)


@st.composite
def parts(draw: st.DrawFn) -> DirectionSum:
    part = DirectionSum(*(draw(number) for _ in range(4)))
    for kind in draw(st.sets(st.sampled_from(LATENCIES))):
        own = draw(bins) if kind in WITH_BINS else {}
        highest = draw(number) if kind in WITH_BINS else 0
        part.latencies[kind] = LatencySum(draw(number) | 1, draw(number), highest, own)
    return part


@st.composite
def frames_sums(draw: st.DrawFn) -> HostSums:
    found = HostSums(slowest=draw(st.none() | st.tuples(st.integers(1, 1 << 50), st.just("h"))))
    for name in {PARTS[0], *draw(st.sets(st.sampled_from(PARTS)))} if draw(st.booleans()) else ():
        found.fio[name] = draw(parts())
    if draw(st.booleans()):
        found.kernel = KernelSum({name: draw(number) for name in KERNEL_NUMBERS} | {"hosts": 1})
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(frames_sums(), min_size=1, max_size=4))
def test_what_comes_is_what_was_sent_and_adds_up_to_the_same(made: list[HostSums]) -> None:
    pile, sums = FrameSum(), HostSums()
    for one in made:
        text = encode_frame(one)
        assert text and EncodedFrame(text).sums("h") == one
        pile.add(EncodedFrame(text), "h")
        sums.add(one)
    assert pile.drain() == sums
    assert pile.drain() == HostSums()


def test_hosts_with_nearly_the_same_buckets_have_one_layout() -> None:
    texts = []
    for count in range(PLANE_ALIGNMENT):
        bins = dict.fromkeys(KEYS[PLANE_ALIGNMENT : PLANE_ALIGNMENT + 1 + count], 1)
        part = DirectionSum(1, 1, 1, 1)
        part.latencies["clat"] = LatencySum(count + 1, 9, 9, bins)
        texts.append(encode_frame(HostSums({PARTS[0]: part, "read": part})))
    assert len({EncodedFrame(text).layout for text in texts}) == 1


def test_fields_that_are_full_are_emptied_in_time() -> None:
    counts = dict.fromkeys((KEYS[0], KEYS[700], KEYS[-1]), (1 << 24) - 1)
    part = DirectionSum(
        *[(1 << NUMBER_BITS) - 1] * 4, {"clat": LatencySum(9, (1 << NUMBER_BITS) - 1, 7, counts)}
    )
    one, pile, whole = HostSums({"total": part}), FrameSum(), HostSums()
    for _ in range(2 * MANY + 3):
        pile.add(EncodedFrame(encode_frame(one)), "h")
        whole.add(one)
    assert pile.drain() == whole


def sent(row: Row) -> Row:
    """A row as an agent sends it."""
    if row["event"] != "frame":
        return row
    kept: Row = json.loads(json.dumps(compact_frame({"own_cpu": None, **whole(row)})))
    assert "fio" not in kept
    return {**kept, "host": row["host"]}


def whole(row: Row) -> Row:
    """A row with the fields that all frames have."""
    total = {"util": 5.0, **row["kernel"]["total"]}
    return {**row, "kernel": {"total": total}}


def merged(streams: list[list[Row]]) -> str:
    merger = Merger(keep_bins=True)
    seconds = []
    for at in range(max(map(len, streams))):
        for rows in streams:
            if at < len(rows):
                merger.feed(rows[at]["host"], rows[at])
        seconds += merger.close_seconds()
    seconds += merger.finish()
    each = {name: host.run_sums().fio_object() for name, host in merger.hosts.items()}
    rows = [second_object(one, "all") for one in seconds]
    return json.dumps([rows, merged_object(merger, "all"), each])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 5), st.floats(0, 3000),
                          st.booleans(), st.sampled_from([(), ("RAMP",), ("RESET",)])),
                min_size=1, max_size=4))  # fmt: skip
def test_hosts_of_both_forms_give_what_json_lines_give(made: list[Any]) -> None:
    plain, mixed = [], []
    for at, (seed, count, begin, packed, flags) in enumerate(made):
        rows = stream(f"h{at}", seed, count, START_MS + begin)
        rows[1]["flags"] = [*flags]
        plain.append(rows)
        mixed.append([sent(row) for row in rows] if packed else rows)
    assert merged(mixed) == merged(plain)


def test_short_samples_of_sums_make_one_second() -> None:
    chance = random.Random(1)
    rows = [frame("a", chance, n / 4, START_MS + n * 250, 0.25) for n in range(1, 9)]
    assert merged([[sent(row) for row in rows]]) == merged([rows])


@pytest.mark.parametrize("change", [
    {"read": {**direction(random.Random(1), 5), "bins": {"5": 1 << 24}}},
    {"total": {**direction(random.Random(1), 5), "bytes": 1 << NUMBER_BITS}}, {"seconds": 0.0},
])  # fmt: skip
def test_what_has_no_place_goes_as_json_lines(change: Row) -> None:
    row = {"own_cpu": None, **whole(frame("a", random.Random(1), 1.0, START_MS))}
    assert "sums" in compact_frame(row)
    odd = {**row, "fio": {**row["fio"], "trim": None, "mixed": None, "errors": 0, **change}}
    assert compact_frame(odd) == trim_frame(odd)


def raw(row: Row) -> bytes:
    return bytes.fromhex(row["sums"])


def text(data: bytes) -> str:
    return data.hex()


ONE = sent(frame("a", random.Random(7), 1.0, START_MS, ios=50))
RAW = raw(ONE)
END = 2 + NUMBER * (33 + RAW[0] * 11)


def planes(*heads: tuple[int, int], data: bytes) -> bytes:
    """The encoded bytes with only these planes."""
    numbers = bytes((RAW[0], len(heads))) + RAW[2:END]
    return numbers + b"".join(struct.pack("<HH", *head) for head in heads) + data


def field(at: int, value: int) -> bytes:
    """The encoded bytes with another number in one field."""
    place = 2 + NUMBER * at
    return RAW[:place] + value.to_bytes(NUMBER, "little") + RAW[place + NUMBER :]


@pytest.mark.parametrize("sums", [
    5, [], "", "x", "é" * 8, "####", ONE["sums"][:-9], ONE["sums"][:40], "0" + ONE["sums"],
    "0x" + ONE["sums"], " " + ONE["sums"][:-1] + " ", ONE["sums"].replace("0", "\u0660"),
    base64.b32encode(RAW).decode(), base64.b64encode(RAW).decode(),
    ONE["sums"] + "A" * MAX_TEXT, text(bytes(1 << 24)), text(bytes(MAX_TEXT // 2)),
    text(b""), text(RAW[:-1]), text(RAW + b"x"),
    text(RAW[:END]), text(bytes((RAW[0] + 1,)) + RAW[1:]), text(bytes((9,)) + RAW[1:]),
    text(RAW[:1] + b"\xff" + RAW[2:]), text(RAW[:1] + bytes((RAW[1] - 1,)) + RAW[2:]),
    # too large or negative numbers; a total that occurs twice; the devices of two hosts
    text(field(1, 1 << NUMBER_BITS)), text(field(5, (1 << 64) - 1)), text(field(0, 2)),
    text(field(11, 2)), text(field(30, 1 << 63)),
    # a histogram that occurs twice, or of an unknown kind; buckets that fio doesn't have; missing
    # bytes
    text(planes((5, 1), (5, 1), data=b"ab")), text(planes((6, 1), (5, 1), data=b"ab")),
    text(planes((0xFFFF, 1), data=b"a")), text(planes((58, 100), data=b"a" * 100)),
    text(planes((0, 5), data=b"abcd")), text(planes((0, 4), data=b"abcde")),
])  # fmt: skip
def test_what_is_no_sums_is_refused_whole(sums: object) -> None:
    merger = Merger()
    rows = stream("a", 1, 3)
    for row in rows[:3]:
        merger.feed("a", sent(row))
    with pytest.raises(MalformedRow):
        merger.feed("a", {**sent(rows[3]), "sums": sums})
    assert merger.hosts["a"].io_totals.ios == sum(
        row["fio"]["total"]["ios"] for row in frames(rows[:3])
    )


@pytest.mark.parametrize("change", [
    {"seconds": None}, {"seconds": 0}, {"seconds": -1}, {"seconds": "1"}, {"seconds": 1e300},
    {"t": None}, {"wall_ms": "x"}, {"flags": "RAMP"},
])  # fmt: skip
def test_sums_without_a_time_are_refused(change: Row) -> None:
    merger = Merger()
    with pytest.raises(MalformedRow):
        merger.feed("a", {**ONE, **change})
    assert merger.hosts["a"].io_totals.ios == 0


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(RAW) - 1), st.binary(min_size=1, max_size=12))
def test_any_bytes_add_up_or_are_refused(at: int, data: bytes) -> None:
    merger = Merger()
    other = stream("b", 2, 1)
    odd = RAW[:at] + data + RAW[at + len(data) :]
    for name, row in (("b", other[0]), ("b", other[1]), ("a", {**ONE, "sums": text(odd)})):
        try:
            merger.feed(name, row)
        except MalformedRow:
            assert name == "a"
    for row in other[2:]:
        merger.feed("b", row)
    for second in merger.finish():
        json.dumps(second_object(second, "all"), allow_nan=False)
    assert certify_merge(merger).exact == 1


ROW = {"event": "frame", "host": "a", "t": 1.5, "flags": ["RAMP"], "util": None, "sums": "00ff"}
LINE = json.dumps(ROW, separators=(",", ":"))


@pytest.mark.parametrize("line", [
    LINE, LINE[:-1] + ',"probe":"x"}', LINE[:-1] + ',"probe":null}', LINE.replace("ff", '\\"'),
    LINE.replace("ff", "\\u0030"), LINE.replace("ff", '","flags":"'), LINE.replace("ff", "é"),
    LINE.replace('"t":1.5', '"t":{"u":2'), LINE.replace('"a"', '"a'), LINE + "}", LINE + " ",
    LINE.replace('"a"', '"a\\","sums\\":\\"b"'), LINE.replace('"t":1.5', '"sums":"1"'), LINE[:-1],
    LINE.replace(',"t":1.5', ""), LINE.replace('"t":1.5,', '"t":1.5,,'), '{"event":"frame",' + LINE,
    '{"event":"frame","sums":"00"}', '{"event":"frame",,"sums":"00"}', LINE.replace('"}', '"'),
])  # fmt: skip
def test_a_line_that_is_read_faster_says_what_json_says(line: str) -> None:
    try:
        same = json.loads(line)
    except ValueError:
        same = None
    assert parse_object(line.encode()) == same
