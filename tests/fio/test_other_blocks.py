"""The runs of an experiment read other random blocks each, seen in fio's own log of its I/Os."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iopstui.experiment.runner import new_seed
from iopstui.model.fio.jobfile import other_blocks, with_overrides

JOB = "[job]\nrw=randread\nbs=4k\nioengine=psync\nsize=64m\nnumber_ios=20\nthread=1\n"


def blocks(place: Path, text: str) -> list[tuple[str, ...]]:
    """The offsets that fio read in each file, which is one of a job."""
    log = place / "log"
    log.unlink(missing_ok=True)
    (place / "job.fio").write_text(with_overrides(text, {"write_iolog": str(log)}))
    subprocess.run(["fio", "job.fio"], cwd=place, check=True, capture_output=True)
    read: dict[str, list[str]] = {}
    for line in log.read_text().splitlines():
        words = line.split()
        if "read" in words:
            read.setdefault(words[-4], []).append(words[-2])
    return [tuple(offsets) for offsets in read.values()]


def test_each_run_and_each_of_its_jobs_reads_other_blocks(tmp_path: Path) -> None:
    text = JOB + "numjobs=2\n"
    assert sorted(blocks(tmp_path, text)) == sorted(blocks(tmp_path, text)), "fio without a seed"
    first = new_seed()
    read: list[tuple[str, ...]] = []
    for seed in (first, first + 1, first + 2):
        options = other_blocks(text, seed)
        read += blocks(tmp_path, with_overrides(text, options))
    assert len(read) == 6 == len(set(read))


@pytest.mark.parametrize(
    "more", ["randrepeat=1", "allrandrepeat=1", "randseed=7", "verify=crc32c", "verify_only"]
)
def test_a_job_that_needs_its_own_sequence_keeps_it(more: str) -> None:
    assert other_blocks(JOB, 5) == {"randrepeat": "0", "randseed": "5"}
    assert other_blocks(f"{JOB}[other]\n{more}\n", 5) == {}
    assert other_blocks(f"[global]\n{more}\n{JOB}", 5) == {}
