"""Lines as launchers print them: labelled, cut, mixed; and real output of srun and mpirun."""

from __future__ import annotations

import io
import json
import lzma
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.fleet.deduplication import Deduplicator, without_repeats
from iopstui.features.fleet.merging.merger import Merger, certify_merge
from iopstui.features.fleet.output.labelled_rows import LabelledLines, label_name, line_rows
from iopstui.features.fleet.program.merge_rows import merge_files

RECORDED = Path(__file__).parents[1] / "fixtures" / "launchers"
Row = dict[str, object]

SAFE_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cn", "Zl", "Zp"]), max_size=40
)
ROWS = st.lists(
    st.builds(
        lambda text, nested: {"event": "x", "text": text, "nested": nested},
        SAFE_TEXT,
        st.dictionaries(SAFE_TEXT, st.integers(), max_size=5),
    ),
    min_size=1,
    max_size=5,
)


def read(data: bytes) -> tuple[dict[str, list[Row]], dict[str, int]]:
    lines = LabelledLines()
    found: dict[str, list[Row]] = {}
    for line in data.splitlines(keepends=True):
        for label, row in lines.feed(line):
            found.setdefault(label, []).append(row)
    lines.end()
    return found, lines.unreadable


def mixed(each: dict[str, list[bytes]], seed: int) -> bytes:
    """The pieces of all tasks, mixed; each task's pieces stay in order."""
    rng, left, out = random.Random(seed), {task: [*pieces] for task, pieces in each.items()}, b""
    while tasks := [task for task, pieces in left.items() if pieces]:
        out += left[rng.choice(tasks)].pop(0)
    return out


def text(rows: list[Row]) -> bytes:
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(10, 80), st.integers())
def test_lines_that_srun_labels_and_cuts_are_whole_again(
    tasks: list[list[Row]], longest: int, seed: int
) -> None:
    each = {}
    for n, rows in enumerate(tasks):
        pieces = []
        for line in text(rows).splitlines():
            cut = [line[at : at + longest] for at in range(0, len(line), longest)]
            pieces += [f"{n:>2}: ".encode() + piece + b"\n" for piece in cut]
        each[str(n)] = pieces
    found, unreadable = read(mixed(each, seed))
    assert found == {str(n): rows for n, rows in enumerate(tasks)}
    assert not unreadable


@pytest.mark.parametrize("tag", ["[1,{}]<stdout>:", "[prterun-n1-7@1,{}]<stdout>: "])
@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(10, 200), st.integers())
def test_blocks_that_mpirun_tags_in_mid_line_are_whole_again(
    tag: str, tasks: list[list[Row]], block: int, seed: int
) -> None:
    each = {}
    for n, rows in enumerate(tasks):
        data, own = text(rows), tag.format(n).encode()
        pieces = []
        for at in range(0, len(data), block):
            lines = data[at : at + block].splitlines(keepends=True)
            pieces.append(b"".join(own + line for line in lines))
        each[str(n)] = pieces
    found, unreadable = read(mixed(each, seed))
    assert found == {str(n): rows for n, rows in enumerate(tasks)}
    assert not unreadable


@given(ROWS)
def test_lines_without_labels_are_read_as_they_are(rows: list[Row]) -> None:
    assert read(text(rows)) == ({"": rows}, {})


def test_a_line_that_never_ends_is_left_out_and_counted() -> None:
    data = b'n1: {"event":"a","x":\nn1: {"event":"b"}\nn2: {"event":"c"\n'
    assert read(data) == ({"n1": [{"event": "b"}]}, {"n1": 1, "n2": 1})


def test_text_that_is_no_json_is_left_out_and_the_next_lines_count() -> None:
    data = b'slurmstepd: error: x\n3: {"event":"a"}\n3: hello\n3: {"event":"b"}\nnot {json}\n'
    assert read(data) == ({"3": [{"event": "a"}, {"event": "b"}]}, {"": 2, "3": 1})


@pytest.mark.parametrize("label, name", [
    (b" 3: ", "3"), (b"[1,12]<stdout>:", "12"), (b"[prterun-n1-77@1,4]<stdout>: ", "4"),
    (b"node07: ", "node07"), (b"[pod/bench-0/fio] ", "pod/bench-0/fio"), (b"", ""),
])  # fmt: skip
def test_what_a_label_names(label: bytes, name: str) -> None:
    assert label_name(label) == name


def recorded(file: str) -> bytes:
    return lzma.decompress((RECORDED / file).read_bytes())


@pytest.mark.parametrize("file, hosts, sums", [
    ("srun-22.05-labelled.jsonl.xz", {"vm", "vm#0", "vm#2", "vm#3"},
     107_118 + 103_383 + 113_462 + 98_613),
    ("mpirun-4.1-tagged.jsonl.xz", {"vm", "vm#0", "vm#2"}, 124_405 + 128_951 + 138_740),
])  # fmt: skip
def test_recorded_output_adds_up_to_what_fio_counted(file: str, hosts: set[str], sums: int) -> None:
    told: list[str] = []
    merger = Merger()
    rows = line_rows(io.BytesIO(recorded(file)), "stdin", told.append)
    for name, row in without_repeats(rows, Deduplicator()):
        merger.feed(name, row)
    list(merger.finish())
    outcome = certify_merge(merger)
    assert merger.hosts.keys() == hosts
    assert (outcome.ios, outcome.fio_ios) == (sums, sums)
    assert "Several tasks run on hosts named vm" in told[0]


def test_lines_that_come_late_are_shown_at_the_end_with_all_hosts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # sorted by host, as clush -L prints them
    data = sorted(
        recorded("srun-22.05-labelled.jsonl.xz").splitlines(True), key=lambda one: one[:2]
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"".join(data))))
    assert merge_files([], [], 1.0, "all", "table") == 0
    out, err = capsys.readouterr()
    assert [line.split()[1] for line in out.splitlines() if line[2:3] == ":"] == ["4/4"] * 4
    assert "late, so all rows are shown at the end" in err
