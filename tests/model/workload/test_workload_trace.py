"""A captured order of requests as fio's trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.capture.model import workload
from iopstui.features.capture.model.trace import (
    FILE,
    HEADER,
    InvalidTrace,
    Trace,
    TraceBuffer,
    fold_trace,
    parse_trace,
    replay_job,
    trace_lines,
)
from iopstui.model.fio import jobfile
from tests.helpers.packed_requests import pack_shape

MIB_SECTORS = 1 << workload.REGION_SECTORS_BITS
# (nanoseconds since the one before, kind, first sector, sectors)
REQUEST = st.tuples(st.integers(0, 10**9), st.sampled_from([0, 1, 2, 3]),
                    st.integers(0, 1 << 33), st.integers(1, 5000))  # fmt: skip


def captured(requests: list[tuple[int, int, int, int]]) -> Trace:
    now, times = 10**15, []
    for after, *_ in requests:
        now += after
        times.append(now)
    return fold_trace(times, [one[2] for one in requests],
                  [pack_shape(7, kind, 0 if kind == workload.FLUSH else sectors, workload.FUA)
                   for _, kind, _, sectors in requests])  # fmt: skip


@given(st.lists(REQUEST, min_size=1, max_size=40))
def test_kinds_lengths_and_order_stay(requests: list[tuple[int, int, int, int]]) -> None:
    found = captured(requests)
    kept = [one for one in requests if one[1] != workload.DISCARD]
    assert [(kind, length) for _, kind, _, length in found.requests] == [
        (kind, 0 if kind == workload.FLUSH else 512 * sectors) for _, kind, _, sectors in kept
    ]
    assert found.discards == len(requests) - len(kept)
    assert found.data_bytes == sum(512 * sectors for _, kind, _, sectors in kept if kind < 2)
    times = [time for time, *_ in found.requests]
    assert times == sorted(times) and (not times or times[0] == 0)


@given(st.lists(REQUEST, min_size=1, max_size=40))
def test_all_of_it_is_inside_of_a_file_as_large_as_what_was_used(
    requests: list[tuple[int, int, int, int]],
) -> None:
    found = captured(requests)
    used = {region for _, kind, sector, sectors in requests if kind < 2
            for region in range(sector // MIB_SECTORS, (sector + sectors - 1) // MIB_SECTORS + 1)
            }  # fmt: skip
    assert found.file_bytes == len(used) << 20
    for _, _, offset, length in found.requests:
        assert offset >= 0 and offset + length <= found.file_bytes


@given(st.lists(REQUEST, min_size=2, max_size=40), st.data())
def test_places_keep_their_order_and_what_they_share(
    requests: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    moved = [one for one in requests if one[1] < 2]
    if len(moved) < 2:
        return
    offsets = [row[2] for row in captured(moved).requests]
    one, other = data.draw(st.tuples(*[st.integers(0, len(moved) - 1)] * 2))
    apart = moved[one][2] - moved[other][2]
    if apart == 0:
        assert offsets[one] == offsets[other]
    elif apart > 0:
        assert offsets[one] > offsets[other]
    # a request that follows another one is sequential in the file, too
    if apart == moved[other][3] and moved[one][2] % MIB_SECTORS:
        assert offsets[one] == offsets[other] + 512 * moved[other][3]


@given(st.lists(REQUEST, min_size=1, max_size=40))
def test_what_is_written_is_read(requests: list[tuple[int, int, int, int]]) -> None:
    found = captured(requests)
    lines = list(trace_lines(found))
    assert lines[0] == HEADER and lines[1] == f"0 {FILE} add"
    if not found.data_bytes:
        with pytest.raises(InvalidTrace, match="nothing"):
            parse_trace(lines)
        return
    again = parse_trace(lines)
    assert again.requests == found.requests and again.file_bytes <= found.file_bytes


GOOD = [HEADER, "0 x add", "0 x open", "0 x read 0 4096", "5 x write 4096 512", "5 x close"]


def test_the_name_of_the_file_is_not_kept() -> None:
    text = "\n".join(trace_lines(parse_trace(line.replace("x", "/dev/sda") for line in GOOD)))
    assert "sda" not in text and f"5 {FILE} write 4096 512" in text
    # an empty line is no request
    assert parse_trace([*GOOD, ""]).seconds == 5e-06


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("9 /dev/sda read 0 4096", "line 6: a second file"), ("9 x trim 0 4096", "line 6: not"),
        ("9 x wait 0 4096", "line 6: not"), ("x x read 0 4096", "whole numbers"),
        ("9 x read -4096 4096", "whole numbers"), ("9 x read 0 4000", "whole sectors"),
        ("9 x read 100 4096", "whole sectors"), ("9 x read 0 0", "whole sectors"),
        ("4 x read 0 4096", "earlier"), ("9 x read 99999999999488 4096", "beyond 16 TiB"),
        ("9 x read 0 99999999999999999999", "whole numbers"), ("rubbish", "line 6: not"),
    ],
)  # fmt: skip
def test_what_can_t_be_replayed(line: str, why: str) -> None:
    with pytest.raises(InvalidTrace, match=why):
        parse_trace([*GOOD[:-1], line])


@pytest.mark.parametrize("lines", [[], ["fio version 2 iolog"], [HEADER], ["\x7fELF"]])
def test_what_is_no_trace(lines: list[str]) -> None:
    with pytest.raises(InvalidTrace):
        parse_trace(lines)


@given(st.lists(st.text(max_size=40), max_size=8))
def test_rubbish_is_said_to_be_rubbish(lines: list[str]) -> None:
    with pytest.raises(InvalidTrace):
        parse_trace([HEADER, *lines])


def test_the_job_says_what_it_moves_and_names_no_trace() -> None:
    (section,) = jobfile.effective_sections(replay_job(parse_trace(GOOD)))
    options = section.options
    assert (options["io_size"], options["size"], options["rw"]) == ("4608", "1048576", "randrw")
    assert options["filename"] == FILE and "read_iolog" not in options
    reads = parse_trace([line for line in GOOD if "write" not in line])
    assert jobfile.effective_sections(replay_job(reads))[0].options["rw"] == "randread"


def test_a_buffer_is_bounded() -> None:
    buffer = TraceBuffer(5)
    for begin in (0, 3, 6):
        times = list(range(begin, begin + 3))
        buffer.add(times, [8 * time for time in times], [pack_shape(1, 0, 8)] * 3)
    assert buffer.dropped == 4 and len(buffer.trace().requests) == 5
