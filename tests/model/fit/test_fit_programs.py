"""The files of fits/: how programs write, beside what strace saw of the real ones."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from iopstui.errors import UsageError
from iopstui.features.fit.model import parse_program
from iopstui.features.fit.setup import Programs, read_programs, split_words

PROGRAMS = read_programs(Path("/nowhere"))
SEEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "fixtures/fit/strace.json").read_text()
)
"""For each program's log, under the load that its file names: writes by size, the share of them
that follow the write before or write its last page again, syncs by call, and bytes between two
syncs."""
GOOD: dict[str, Any] = {
    "title": "Mine", "needs": "It needs this.", "job": {"rw": "write", "size": "1m"},
    "figure": [{"name": "sync.p99", "means": "what it means"}],
}  # fmt: skip


def values(counts: dict[str, int]) -> list[int]:
    return [int(value) for value, count in counts.items() for _ in range(count)]


@pytest.mark.parametrize("name", sorted(PROGRAMS.by_name))
def test_a_job_writes_as_the_real_program_does(name: str) -> None:
    program, seen = PROGRAMS.by_name[name], SEEN[name]
    job, (sync,) = program.job, seen["syncs"]
    assert sync == program.seen["sync"]
    assert job["rw"] == "write" and seen["sequential"] >= 0.95
    if sync == "fdatasync":
        assert job["fdatasync"] == "1" and "fsync" not in job
        a_sync = statistics.mean(values(seen["bytes_per_sync"]))
        assert program.block_size == pytest.approx(a_sync, rel=0.05)
        assert program.seen["bytes_per_sync"] == pytest.approx(a_sync, rel=0.01)
    else:
        a_write = statistics.median(values(seen["writes"]))
        assert program.block_size == pytest.approx(a_write, rel=0.05)
        assert int(job["fsync"]) * program.block_size == pytest.approx(128 << 20, rel=0.01)


def test_every_shipped_program_is_usable_and_says_what_was_seen() -> None:
    assert not PROGRAMS.problems
    assert set(PROGRAMS.by_name) == set(SEEN)
    assert all(program.seen["program"] for program in PROGRAMS.by_name.values())


def test_only_what_was_published_is_a_bound() -> None:
    bounds = {name: one.bound for name, one in PROGRAMS.by_name.items() if one.bound is not None}
    assert list(bounds) == ["etcd"]
    assert bounds["etcd"].expectation.required == 10e6
    assert bounds["etcd"].url.startswith("https://etcd.io/")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"job": {"size": "1m", "exec_prerun": "touch /x"}}, "exec_prerun is not allowed"),
        ({"job": {"size": "1m", "filename": "/dev/sda"}}, "filename is not allowed"),
        ({"job": {"size": "1m", "ioengine": "external:/x.so"}}, "ioengine must be one of"),
        ({"job": {"size": "1m", "rw": "write\nexec_prerun=x"}}, "one line"),
        ({"job": {"size": "1m", "bs": "${X}"}}, "without $"),
        ({"job": {"rw": "write"}}, "no size"),
        ({"job": {"size": "1m", "bssplit": "4k"}}, "bssplit must be of the form"),
        ({"seconds": 600}, "seconds must be 1 to 27"),
        ({"figure": [{"name": "sync.p98", "means": "x"}]}, "is called sync.p98"),
        ({"bound": {"expect": "sync.p99<=10"}}, "needs a unit"),
        ({"bound": {"expect": "util<=10%"}}, "no block device"),
        ({"figure": []}, ""),
        ({"titel": "x"}, "unknown key titel"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_named(change: dict[str, Any], problem: str) -> None:
    program, problems = parse_program({**GOOD, **change}, "mine")
    if not problem:
        assert not problems
        return
    assert program is None
    assert any(problem in one for one in problems)


def test_a_file_of_the_user_takes_the_place_of_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "etcd.toml").write_text(
        'title = "My etcd"\nneeds = "x"\n[job]\nsize = "1m"\n'
        '[[figure]]\nname = "sync.p99"\nmeans = "x"\n'
    )
    (tmp_path / "broken.toml").write_text('title = "')
    programs = read_programs(tmp_path)
    assert programs.by_name["etcd"].title == "My etcd"
    assert len(programs.problems) == 1 and "broken.toml is not used" in programs.problems[0]


def test_programs_are_found_by_their_other_names_and_measured_once() -> None:
    assert [one.name for one in PROGRAMS.choose(["K3s", "etcd", "pg"])] == ["etcd", "postgresql"]
    assert PROGRAMS.choose([]) == tuple(PROGRAMS.by_name.values())


def test_a_wrong_name_is_answered_with_those_near_to_it() -> None:
    with pytest.raises(UsageError) as caught:
        PROGRAMS.choose(["postgre"])
    assert "Did you mean postgres" in caught.value.hint
    with pytest.raises(UsageError, match="neither a directory nor a program"):
        split_words(["etdc"], PROGRAMS)


def test_the_first_word_is_a_directory_unless_it_is_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etcd").mkdir()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)

    def chosen(*words: str) -> tuple[str, int]:
        directory, programs = split_words(words, PROGRAMS)
        return directory, len(programs)

    assert chosen() == (".", len(PROGRAMS.by_name))
    assert chosen("etcd") == (".", 1)
    assert chosen("./etcd", "etcd") == ("./etcd", 1)
    assert chosen("data", "sqlite", "pg") == ("data", 2)
    assert Programs().problems == ()
