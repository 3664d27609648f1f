"""Jobs on several directories or files at once, as the real fio takes them."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopstui.errors import Refused, UsageError
from iopstui.fio.inspect import SectionFiles, find_fio
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice, Hctx
from iopstui.model.block.target import DEVICE, DIRECTORY, FILE, Target, combine_targets
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.preflight import job as module
from iopstui.preflight.job import prepare
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.staging import LentScratch, SharedScratch
from iopstui.safety import scratch
from iopstui.safety.scratch import scratch_sizes

OWN_FILES = "[global]\nrw=randrw\nbs=4k\nsize=1g\n[reader/1]\nnumjobs=2\n[writer]\n"
SHARED = "[a]\nrw=randread\nbs=4k\nsize=1g\nfilename=x:y\nnumjobs=3\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "private").mkdir(0o700)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def both(here: Path) -> Target:
    return combine_targets([Target(DIRECTORY, str(here / name), None) for name in ("one", "two")])


def ready(
    here: Path, text: str, where: Target, size: str | None = None, destroy: tuple[str, ...] = ()
) -> PreparedJob:
    job = here / "job.fio"
    job.write_text(text)
    request = RunRequest(str(job), {}, size, destroy)
    return prepare(request, where, find_fio(), here / "private", {}, Roots())


@pytest.fixture
def laid_out(here: Path, both: Target) -> Iterator[PreparedJob]:
    """Three jobs with files of their own, which fio has laid out."""
    prepared = ready(here, OWN_FILES, both, "2m")
    assert prepared.layout_text is not None
    (here / "layout.fio").write_text(prepared.layout_text)
    command = [find_fio().path, "--create_only=1", str(here / "layout.fio")]
    subprocess.run(command, check=True, capture_output=True, cwd=prepared.cwd)
    yield prepared
    prepared.close()


def sizes(directory: Path) -> list[int]:
    (made,) = directory.iterdir()
    return sorted(f.stat().st_size for f in made.iterdir() if not f.is_symlink())


def test_each_job_has_a_part_of_its_file_in_each_directory(
    here: Path, both: Target, laid_out: PreparedJob
) -> None:
    assert sizes(here / "one") == sizes(here / "two") == [2 << 20] * 3
    assert laid_out.layout_bytes == 2 * 3 * (2 << 20)
    assert len(set(map(os.path.realpath, laid_out.files))) == 6
    assert all(os.path.exists(name) for name in laid_out.files), "fio's names are known"
    laid_out.close()
    assert list((here / "one").iterdir()) == list((here / "two").iterdir()) == []


def test_a_file_that_jobs_share_is_in_each_directory(here: Path, both: Target) -> None:
    prepared = ready(here, SHARED, both)
    try:
        names = {os.path.realpath(name) for name in prepared.files}
        assert sorted((Path(n).parent.parent.name, Path(n).name) for n in names) == [
            ("one", "x"), ("one", "y"), ("two", "x"), ("two", "y"),
        ]  # fmt: skip
    finally:
        prepared.close()


def test_all_parts_together_are_no_larger_than_in_one_directory(here: Path, both: Target) -> None:
    prepared = ready(here, OWN_FILES, both)
    try:
        assert prepared.layout_bytes is not None
        assert 0 < prepared.layout_bytes <= scratch.DEFAULT_BYTES
    finally:
        prepared.close()


def test_files_of_several_numbers_cannot_be_spread(here: Path, both: Target) -> None:
    with pytest.raises(UsageError, match="nrfiles=3"):
        ready(here, "[a]\nrw=read\nsize=1m\nnrfiles=3\n", both)
    assert list((here / "one").iterdir()) == list((here / "two").iterdir()) == []


def test_no_other_names_are_made_up() -> None:
    assert jobfile.objections([("filename_format", jobfile.spread_format(3))]) == ()
    for value in ("$filenum/../$jobnum", "$filenum/3.$jobnum/x", "x$filenum/3.$jobnum", "a"):
        assert jobfile.objections([("filename_format", value)])


def test_where_one_can_t_be_made_none_is_left(here: Path) -> None:
    with pytest.raises(UsageError, match="three"):
        scratch.make_scratches([here / "one", here / "three"])
    assert list((here / "one").iterdir()) == []


def test_a_kept_one_is_removed_from_each_directory(here: Path) -> None:
    kept = SharedScratch([here / "one", here / "two"])
    assert [len(list((here / name).iterdir())) for name in ("one", "two")] == [1, 1]
    (kept.scratch.parts[1].path / "file").write_bytes(b"x" * 8192)
    assert kept.scratch.used_bytes() >= 8192
    kept.close()
    assert list((here / "one").iterdir()) == list((here / "two").iterdir()) == []


def test_files_of_a_point_with_more_jobs_are_not_those_of_a_point_with_fewer(here: Path) -> None:
    kept = SharedScratch([here / "one"])
    lent = LentScratch(kept.scratch, 8 << 20)
    (here / "job.fio").write_text("[a]\nrw=randread\nbs=4k\nsize=8m\n")
    where = Target(DIRECTORY, str(here / "one"), None)

    def of(jobs: int) -> PreparedJob:
        request = RunRequest(str(here / "job.fio"), {"numjobs": str(jobs)})
        return prepare(request, where, find_fio(), here / "private", {}, Roots(), lent=lent)

    more = of(4)
    for name in more.files:
        Path(name).write_bytes(bytes(8 << 20))
    assert more.overrun_reason() == "" and of(4).layout_text is None
    fewer = of(1)
    assert fewer.layout_text is None and fewer.overrun_reason() == ""
    (kept.scratch.path / "undeclared").write_bytes(bytes(20 << 20))
    assert "scratch files grew to 28 MiB instead of 24" in fewer.overrun_reason()
    kept.close()


def test_room_is_shared_within_a_file_system_and_the_fullest_decides(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = {"one": 60, "two": 60, "/": 20}
    monkeypatch.setattr(scratch, "MIN_SPARE", 0)
    monkeypatch.setattr(scratch, "usable_bytes", lambda path: rooms.get(path.name, rooms["/"]))
    systems = {str(here / "one"): 1, str(here / "two"): 1, "/": 2}
    monkeypatch.setattr(
        scratch.os, "stat", lambda path: os.stat_result((0, 0, systems[str(path)], *[0] * 7))
    )
    assert scratch.usable_bytes_for_all([here / "one"]) == 60
    assert scratch.usable_bytes_for_all([here / "one", here / "two"]) == 60
    assert scratch.usable_bytes_for_all([here / "one", Path("/")]) == 40


def test_a_size_that_was_asked_for_is_each_part_s() -> None:
    jobs = [Section("a", {"bs": "1m"}), Section("b", {})]
    parts = [SectionFiles(one, tuple(f"{n}/{one}" for n in range(3))) for one in "ab"]
    assert scratch_sizes(jobs, parts, "8m", 1 << 30, None, 3) == [24 << 20] * 2
    with pytest.raises(UsageError, match="6 scratch files of 8m would need 48 MiB"):
        scratch_sizes(jobs, parts, "8m", 47 << 20, None, 3)
    # no part is smaller than an I/O
    for size in scratch_sizes(jobs, parts, None, 100 << 20, None, 3):
        assert size % 3 == 0 and size // 3 % (1 << 20) == 0


# -- files


def files(here: Path, *sizes: int) -> Target:
    found = []
    for n, size in enumerate(sizes):
        path = here / f"data:{n}"
        path.write_bytes(bytes([n + 1]) * size)
        found.append(Target(FILE, str(path), None))
    return combine_targets(found)


def test_every_section_works_on_all_files_whatever_their_names(here: Path) -> None:
    where = files(here, 1 << 20, 4 << 20, 2 << 20)
    prepared = ready(here, "[a]\nrw=read\nsize=1g\n[b]\nrw=randread\nsize=1g\n", where)
    prepared.close()
    assert set(prepared.files) == {place.path for place in where.places}
    assert prepared.text.count(f"size={3 << 20}") == 2, "three times the smallest"


def test_a_smaller_size_of_the_job_is_shared_out(here: Path) -> None:
    prepared = ready(here, "[a]\nrw=read\nsize=64k\n", files(here, 1 << 20, 1 << 20))
    prepared.close()
    assert "size=65536" in prepared.text
    prepared = ready(here, "[a]\nrw=read\n", files(here, 1 << 20, 1 << 20), "256k")
    prepared.close()
    assert f"size={512 << 10}" in prepared.text, "--size is each one's"


def test_fio_extends_no_file(here: Path) -> None:
    where = files(here, 1 << 20, 3 << 20)
    words = tuple(place.path for place in where.places)
    prepared = ready(here, "[a]\nrw=write\nbs=64k\nsize=1g\n", where, destroy=words)
    prepared.close()
    (here / "run.fio").write_text(prepared.text)
    subprocess.run([find_fio().path, str(here / "run.fio")], check=True, capture_output=True)
    assert [os.stat(place.path).st_size for place in where.places] == [1 << 20, 3 << 20]
    second = Path(where.places[1].path).read_bytes()
    assert second[: 1 << 20] != b"\2" * (1 << 20) and second[1 << 20 :] == b"\2" * (2 << 20)


def test_each_file_s_content_needs_its_word(here: Path) -> None:
    where = files(here, 1 << 20, 1 << 20)
    first, second = (place.path for place in where.places)
    for words in ((), (first,), (second,)):
        with pytest.raises(Refused):
            ready(here, "[a]\nrw=write\nbs=64k\nsize=1g\n", where, destroy=words)
    ready(here, "[a]\nrw=write\nbs=64k\nsize=1g\n", where, destroy=(second, first)).close()


def test_each_file_is_locked(here: Path) -> None:
    where = files(here, 1 << 20, 1 << 20)
    for place in where.places:
        prepared = ready(here, "[a]\nrw=read\nsize=1g\n", where)
        with open(place.path, "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert prepared.guard is not None
            with pytest.raises(Refused, match="Cannot start a second job on"):
                prepared.guard.engage({})
        prepared.guard.engage({})
        prepared.close()


# -- queues


def queued(name: str, *queues: tuple[int, ...]) -> BlockDevice:
    return BlockDevice(
        name, f"/dev/{name}", 259, 0, "nvme", 1,
        hctxs=tuple(Hctx(n, cpus, 64, 0) for n, cpus in enumerate(queues)),
    )  # fmt: skip


def test_jobs_are_bound_to_the_first_device_s_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "initial_cpus", lambda: frozenset({0, 1, 2, 3}))
    devices = {
        "a": queued("a", (0, 1), (2, 3)), "b": queued("b", (0, 1), (2, 3)),
        "c": queued("c", (0, 1, 2, 3)), "dm-0": BlockDevice("dm-0", "/dev/dm-0", 253, 0, "dm", 1),
    }  # fmt: skip
    trees = {"a": ("a",), "b": ("b",), "c": ("c",), "dm-0": ("dm-0", "c")}

    def notes(*names: str) -> tuple[str, ...]:
        where = combine_targets([Target(DEVICE, f"/dev/{n}", n, trees[n]) for n in names])
        binding = module.bind_jobs("[x]\nnumjobs=2\n", {}, where, devices)
        assert binding.option == ("0,2" if names[0] in "ab" else "0,1")
        return binding.notes

    assert not any("serve other CPUs" in note for note in notes("a", "b"))
    assert "jobs are bound to the CPUs of a's queues; the queues of c serve other CPUs" in notes(
        "a", "dm-0"
    )
    assert not any("serve other CPUs" in note for note in notes("dm-0"))
