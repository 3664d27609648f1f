"""Repeated lines are counted once; lines that only look repeated are all counted."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import START_MS, Row, frame, stream

from iopstui.cli.program import main
from iopstui.features.fleet.deduplication import Deduplicator, without_repeats
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.output.labelled_rows import merged_streams
from iopstui.features.fleet.output.sinks import merged_object


def whole(sources: Sequence[Sequence[Row]], once: Deduplicator) -> Row:
    merger = Merger()
    labelled = [[(row["host"], row) for row in rows] for rows in sources]
    for name, row in merged_streams(labelled, lambda words: None, once):
        merger.feed(name, row)
        list(merger.close_seconds(early=False))
    list(merger.finish())
    found: Row = merged_object(merger, "all")
    return found


def two_runs(seed: int) -> list[Row]:
    """Two runs; host b takes part only in the second."""
    later = START_MS + 20_000
    return stream("a", seed, 4) + stream("a", seed + 1, 3, later) + stream("b", seed + 2, 3, later)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 500), st.data())
def test_a_file_appended_to_itself_and_its_copies_are_one(seed: int, data: st.DataObject) -> None:
    rows = two_runs(seed)
    expected = whole([rows], Deduplicator())
    assert expected["count"]["exact"] == 2
    once = Deduplicator()
    assert whole([rows + rows], once) == expected
    assert sum(once.repeat_counts.values()) == sum(row["event"] == "frame" for row in rows)
    assert whole([rows, rows, rows + rows], Deduplicator()) == expected
    # one file was cut off: its lines are repeated in the complete one
    cut = rows[: data.draw(st.integers(2, 4))]
    assert whole([cut, rows], Deduplicator()) == expected
    assert whole([rows, cut], Deduplicator()) == expected
    assert whole([cut + rows], Deduplicator()) == expected
    assert whole([rows + cut[1:]], Deduplicator()) == expected


def test_a_session_that_came_before_has_no_beginning_either() -> None:
    rows = two_runs(3)
    twice, once = [(row["host"], row) for row in rows + rows], Deduplicator()
    found = [row for _, row in without_repeats(twice, once)]
    # lines before the first frame, too
    assert sorted(found, key=str) == sorted(rows, key=str)
    assert sum(once.repeat_counts.values()) == sum(row["event"] == "frame" for row in rows)


def test_a_later_session_without_a_frame_stands_where_it_stood() -> None:
    run = {"event": "fleet", "host": "fleet", "run": 2}
    failed = [{"event": "session", "host": "a"}, {"event": "notice", "host": "a"},
              {"event": "step_finished", "host": "a", "error": "no room"}]  # fmt: skip
    for rows in (stream("a", 1, 2) + failed + [run], stream("a", 1, 2) + failed[:2] + [run]):
        labelled = [(row["host"], row) for row in rows]
        assert [*without_repeats(labelled, Deduplicator())] == labelled


def test_what_is_another_session_is_counted() -> None:
    once = Deduplicator()
    first, again = stream("a", 1, 3), stream("a", 1, 3, START_MS + 0.001)
    # same figures at nearly the same time, but in another file: another host of the same name
    found = whole([first, again], once)
    assert found["hosts"]["total"] == 2 and not once.repeat_counts
    assert found["count"]["ios"] == 2 * whole([first], Deduplicator())["count"]["ios"]
    # the same figures, but of two hosts
    both = whole([first, stream("b", 1, 3)], once := Deduplicator())
    assert both["count"]["ios"] == found["count"]["ios"] and not once.repeat_counts


def test_totals_of_another_merger_are_known_by_what_they_say() -> None:
    total = {"event": "total", "second": 5, "fio": {"read": {"ios": 7}}}
    other = {**total, "fio": {"read": {"ios": 8}}}
    once = Deduplicator()
    rows = [("m", total), ("m", other), ("m", total), ("n", total), ("m", {"event": "merged"})]
    assert [name for name, _ in without_repeats(rows + rows[-1:], once)] == ["m", "m", "n", "m"]
    assert once.repeat_counts == {"m": 2}


@pytest.mark.parametrize("wrong", [{"t": None}, {"t": "x"}, {"wall_ms": []}, {"t": 10**400},
                                   {"t": float("nan")}])  # fmt: skip
def test_odd_frames_are_the_merger_s(wrong: Row) -> None:
    row = {**frame("a", random.Random(1), 1.0, START_MS), **wrong}
    assert len(list(without_repeats([("a", row)] * 2, Deduplicator()))) == 2


def test_a_file_that_is_named_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "n1.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in stream("n1", 1, 4)))
    (tmp_path / "link").symlink_to(path)
    os.link(path, tmp_path / "hard")
    names = [str(path), str(tmp_path / "link"), str(tmp_path / "hard"), f"{tmp_path}/./n1.jsonl"]
    assert main(["merge", "--format", "jsonl", str(path)]) == 0
    alone = capsys.readouterr().out
    assert main(["merge", "--format", "jsonl", *names, "--label", "x"]) == 0
    said = capsys.readouterr()
    assert said.out.replace('"x"', '"n1"') == alone
    assert said.err.count("is the same file as") == 3
    path.write_text(path.read_text() * 2)
    assert main(["merge", "--format", "jsonl", str(path)]) == 0
    said = capsys.readouterr()
    assert said.out == alone and "n1: 5 duplicate seconds" in said.err
