"""--part: one of several machines uses its own area of a file or device."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.cli.values import target_part
from iopstui.errors import UsageError
from iopstui.fio.inspect import find_fio
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, DIRECTORY, FILE, Target, TargetPart, combine_targets
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.preflight.in_place import area_options
from iopstui.preflight.job import prepare

MIB = 1 << 20
JOB = "[a]\nrw=randread\nbs=4k\nsize=1g\n"


@given(st.integers(1, 50), st.integers(0, 1 << 50), st.sampled_from([4096, MIB, 3 * 4096]))
def test_parts_follow_each_other_and_cover_all_whole_blocks(of: int, size: int, block: int) -> None:
    end = 0
    for number in range(1, of + 1):
        offset, length = TargetPart(number, of).area(size, block)
        assert offset == end and length % block == 0
        end = offset + length
    assert end == size // block * block


def area(path: Path, part: str, text: str = JOB, size: str | None = None) -> tuple[int, int]:
    """offset= and size= of the prepared job."""
    job = path.parent / "job.fio"
    job.write_text(text)
    private = path.parent / "private"
    private.mkdir(0o700, exist_ok=True)
    request = RunRequest(str(job), {}, size, part=target_part(part))
    where = Target(DIRECTORY if path.is_dir() else FILE, str(path), None)
    prepared = prepare(request, where, find_fio(), private, {}, Roots())
    try:
        options = jobfile.effective_sections(prepared.text)[0].options
        assert prepared.options["part"] == part
        return int(options["offset"]), int(options["size"])
    finally:
        prepared.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of a little more than 50 MiB."""
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.truncate(50 * MIB + 999)
    return path


def test_a_file_is_divided_into_whole_mebibytes(data: Path) -> None:
    assert area(data, "1/3") == (0, 16 * MIB)
    assert area(data, "3/3") == (32 * MIB, 18 * MIB)
    # --size: only the first 12 MiB are divided
    assert area(data, "2/4", size="12m") == (3 * MIB, 3 * MIB)
    assert area(data, "2/2", JOB.replace("1g", "50%")) == (12 * MIB, 13 * MIB)


@pytest.mark.parametrize("part, text, size, says", [
    ("1/2", JOB + "offset=1m\n", None, "has offset="),
    ("1/2", JOB + "numjobs=2\noffset_increment=1m\n", None, "has offset_increment="),
    ("1/2", JOB, "51m", "has only 50 MiB"),
    ("1/2", JOB, "x", "is not a size"),
    ("1/20000", JOB, None, "cannot be divided into 20000 parts"),
    ("1/20", JOB.replace("4k", "4m"), None, "parts of at least 4 MiB"),
])  # fmt: skip
def test_what_cannot_be_divided_is_refused(
    data: Path, part: str, text: str, size: str | None, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        area(data, part, text, size)


def test_a_directory_or_a_job_with_files_of_its_own_has_no_parts(data: Path) -> None:
    with pytest.raises(UsageError, match="Part 1/2 of a directory"):
        area(data.parent, "1/2")
    job = data.parent / "own.fio"
    job.write_text(JOB + f"filename={data}\n")
    request = RunRequest(str(job), part=TargetPart(1, 2))
    with pytest.raises(UsageError, match="the job names its own files"):
        prepare(request, None, find_fio(), data.parent, {}, Roots())


def test_several_devices_share_the_size_of_the_smallest() -> None:
    devices = {name: BlockDevice(name, f"/dev/{name}", 8, 0, "scsi", size)
               for name, size in (("sda", 100 * MIB), ("sdb", 80 * MIB))}  # fmt: skip
    where = combine_targets([Target(DEVICE, f"/dev/{name}", name) for name in devices])
    found = area_options(TargetPart(2, 2), where, None, "[a]\nrw=read\nbs=1m\n", devices)
    # fio gives each file half of size=
    assert found == {"offset": str(40 * MIB), "size": str(80 * MIB)}


@pytest.mark.parametrize("text", ["", "2", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2", "1/999999"])
def test_what_is_no_part(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="not"):
        target_part(text)
