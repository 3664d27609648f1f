from __future__ import annotations

import pytest

from iopstui.errors import UsageError
from iopstui.fio.inspect import SectionFiles
from iopstui.fio.job_text import read_job
from iopstui.fio.library import find_job, job_paths
from iopstui.model.fio.jobfile import effective_sections
from iopstui.safety.scratch import (
    bytes_by_file,
    files_of,
    last_offset,
    scratch_sizes,
    scratch_total,
    shared_name,
    time_based_values,
)

SMALL = 64 << 20


def timed(text: str, size: int = SMALL) -> list[str]:
    jobs = effective_sections(text)
    return time_based_values(jobs, [size] * len(jobs))


@pytest.mark.parametrize(
    ("options", "expected"),
    [("size=1000G\nruntime=300", "1"), ("size=1000G\ntimeout=300", "1"), ("runtime=5", "1"),
     ("size=50%\nruntime=5", "1"), ("size=64m\nruntime=5", "0"), ("size=1m\nruntime=5", "0"),
     ("size=1000G", "0"), ("size=1m\ntime_based\nruntime=5", "1"),
     ("size=1000G\nruntime=5\nio_size=1g", "0"), ("size=1000G\nruntime=5\nnumber_ios=9", "0")],
)  # fmt: skip
def test_a_job_whose_file_is_cut_runs_for_its_runtime(options: str, expected: str) -> None:
    assert timed(f"[a]\n{options}\n") == [expected]


def test_each_section_by_itself() -> None:
    assert timed("[global]\nruntime=5\n[a]\nsize=1g\n[b]\nsize=1m\n[c]\nsize=1m\ntime_based\n") == [
        "1", "0", "1",
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(job_paths()))
def test_every_shipped_job_with_a_runtime_lasts_as_long_on_a_small_file(name: str) -> None:
    """Without time_based, azure-read would end after 2.9 of its 30 s, ksyun-qd32-randread after 2.4
    of 300."""
    jobs = effective_sections(read_job(find_job(name)))
    expected = ["1" if "runtime" in job.options else "0" for job in jobs]
    assert time_based_values(jobs, [SMALL] * len(jobs)) == expected


MIB = 1 << 20
GIB = 1 << 30


def sizes(
    text: str, files: list[SectionFiles], wanted: str | None = None, room: int = 100 * GIB,
    **more: int,
) -> list[int]:  # fmt: skip
    return scratch_sizes(effective_sections(text), files, wanted, room, **more)


def one_file(count: int = 1) -> list[SectionFiles]:
    return [SectionFiles(f"{n}", (f"/s/{n}",)) for n in range(count)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", 512 * MIB),
        ("size=1g", 512 * MIB),
        ("size=64m", 64 * MIB),
        ("size=50%", 512 * MIB),
        ("size=10000", 8192),  # rounded to whole blocks of 4 KiB
        ("size=1000", 4096),
        ("size=3m\nbs=1m", 3 * MIB),
        ("size=5m\nbs=2m", 4 * MIB),  # rounded to whole blocks of the job's size
        ("size=1m\nbs=2m", 2 * MIB),  # enough for one block
    ],
)
def test_a_file_is_as_large_as_the_job_says_up_to_512_mib(options: str, expected: int) -> None:
    assert sizes(f"[a]\n{options}\n", one_file()) == [expected]


def test_all_sections_share_512_mib_and_the_room_there_is() -> None:
    text = "[a]\n[b]\nsize=1m\n"
    assert sizes(text, one_file(2)) == [256 * MIB, MIB]
    assert sizes(text, one_file(2), room=100 * MIB) == [50 * MIB, MIB]
    assert sizes(text, one_file(2), most=10 * MIB) == [10 * MIB, MIB]
    shared = [SectionFiles("a", ("/s/x",)), SectionFiles("b", ("/s/x",))]
    assert sizes(text, shared) == [512 * MIB, MIB]


def test_clones_with_files_of_their_own_count_each() -> None:
    """fio(1): size= is what each job writes, so numjobs=4 without a common file needs 4 times as
    much; nrfiles=2 splits it."""
    clones = [SectionFiles("a", tuple(f"/s/a.{n}" for n in range(4)), sets=4)]
    assert sizes("[a]\nnumjobs=4\n", clones) == [128 * MIB]
    split = [SectionFiles("a", ("/s/a.0", "/s/a.1"))]
    assert sizes("[a]\nnrfiles=2\n", split) == [512 * MIB]
    assert bytes_by_file(split, [512 * MIB]) == {"/s/a.0": 256 * MIB, "/s/a.1": 256 * MIB}
    assert bytes_by_file(split, [3]) == {"/s/a.0": 2, "/s/a.1": 2}


def test_a_shared_file_is_as_large_as_its_largest_user_says() -> None:
    shared = [SectionFiles("a", ("/s/x",)), SectionFiles("b", ("/s/x", "/s/y"))]
    assert bytes_by_file(shared, [100, 60]) == {"/s/x": 100, "/s/y": 30}
    assert bytes_by_file(shared, [10, 60]) == {"/s/x": 30, "/s/y": 30}


def test_a_size_asked_for_is_exactly_that_for_every_section() -> None:
    text = "[a]\nsize=1m\n[b]\n"
    assert sizes(text, one_file(2), "2g") == [2 * GIB, 2 * GIB]
    assert sizes(text, one_file(2), "2g", room=4 * GIB) == [2 * GIB, 2 * GIB]
    with pytest.raises(
        UsageError, match=r"2 scratch files of 2g would need 4096 MiB.* 4095 MiB may"
    ):
        sizes(text, one_file(2), "2g", room=4 * GIB - 1)


@pytest.mark.parametrize("wanted", ["", "0", "large", "50%"])
def test_what_is_no_size_is_refused(wanted: str) -> None:
    with pytest.raises(UsageError, match=f"--size '{wanted}' is not a size"):
        sizes("[a]\n", one_file(), wanted)


def test_in_several_directories_a_size_is_that_of_all_parts() -> None:
    assert sizes("[a]\n", one_file(), "64m", spread=3) == [192 * MIB]
    with pytest.raises(UsageError, match="3 scratch files of 64m would need 192 MiB"):
        sizes("[a]\n", one_file(), "64m", room=191 * MIB, spread=3)
    # each part in whole blocks
    assert sizes("[a]\nsize=100k\n", one_file(), spread=3) == [98304]


@pytest.mark.parametrize(("room", "enough"), [(4 * MIB, True), (4 * MIB - 1, False), (0, False)])
def test_less_than_4_mib_is_no_place_for_a_scratch_file(room: int, enough: bool) -> None:
    if enough:
        assert sizes("[a]\n", one_file(), room=room) == [room]
        return
    with pytest.raises(UsageError, match=rf"Only {room >> 20} MiB of this file system"):
        sizes("[a]\n", one_file(), room=room)


def test_a_file_holds_at_least_one_of_the_largest_blocks() -> None:
    text = "[a]\nbs=4k\n[b]\nbs=8m\n"
    assert sizes(text, one_file(2), room=16 * MIB) == [8 * MIB, 8 * MIB]
    with pytest.raises(UsageError, match="too little"):
        sizes(text, one_file(2), room=16 * MIB - 1)


def test_the_total_is_that_of_all_files() -> None:
    clones = [SectionFiles("a", ("/s/a.0", "/s/a.1"), sets=2), SectionFiles("b", ("/s/b",))]
    text = "[a]\nsize=1m\nnumjobs=2\n[b]\nsize=2m\n"
    assert scratch_total(text, clones, None, GIB, None) == 4 * MIB
    assert scratch_total(text, clones, "1m", GIB, None) == 3 * MIB


@pytest.mark.parametrize(
    ("text", "count"),
    [("[a]\n", 1), ("[a]\n[b]\n", 2), ("[a]\nnumjobs=3\n[b]\n", 4),
     ("[a]\nfilename=x\nnumjobs=3\n[b]\nfilename=/elsewhere/x\n", 1),
     ("[a]\nfilename=x\n[b]\nfilename=y\n[c]\n", 3), ("", 1)],
)  # fmt: skip
def test_how_many_files_a_text_needs(text: str, count: int) -> None:
    assert files_of(text) == count


@pytest.mark.parametrize(
    ("filename", "name"),
    [("", ""), ("x", "x"), ("dir/x", "x"), ("a:dir/b", "a:b"), (":", ""), ("a:", "a")],
)
def test_the_name_of_a_shared_file(filename: str, name: str) -> None:
    (job,) = effective_sections(f"[a]\nfilename={filename}\n" if filename else "[a]\n")
    assert shared_name(job) == name


OFFSETS = """
[global]
filename=x
[a]
offset=0
size=64m
[b]
offset=16m
size=48m
[c]
offset=8m
offset_increment=4m
numjobs=3
size=8m
"""


def test_what_lies_before_an_offset_is_part_of_the_file() -> None:
    """fio adds size= to offset=, so the file is larger than size=."""
    jobs = effective_sections(OFFSETS)
    files = [SectionFiles(name, ("/s/x",)) for name in "abc"]
    sizes = scratch_sizes(jobs, files, None, GIB)
    assert sizes == [64 * MIB, 48 * MIB, 8 * MIB]
    assert bytes_by_file(files, sizes, list(map(last_offset, jobs))) == {"/s/x": 64 * MIB}
    assert scratch_total(OFFSETS, files, None, GIB, None) == 64 * MIB
    assert scratch_sizes(jobs, files, "32m", GIB) == [32 * MIB, 16 * MIB, 16 * MIB]
    assert scratch_sizes(jobs, files, None, GIB, 20 * MIB) == [20 * MIB, 4 * MIB, 4 * MIB]
    with pytest.raises(UsageError) as error:
        scratch_sizes(jobs, files, "16m", GIB)
    assert error.value.message == (
        "[b] starts at 16 MiB of each scratch file (offset=), but scratch files have only 16 "
        "MiB here."
    )
