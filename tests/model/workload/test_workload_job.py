"""A captured workload as a fio job."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.capture.model.job import describe, job_text
from iopstui.features.capture.model.phases import Phase
from iopstui.features.capture.model.workload import (
    CLOSED,
    METADATA_PROCESS,
    OPEN,
    Arrivals,
    Stream,
    Workload,
)
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import objections

EVEN = Arrivals(100, 0, 1, 900, 10)
READS = Stream("db", "read", 10.0, 7000, 7000 * 4096, 0, workers=3.2, sizes={4096: 7000},
               depths={8: 7000}, regions=dict.fromkeys(range(64), 110), arrivals=EVEN)  # fmt: skip
WRITES = replace(READS, kind="write", ios=3000, sequential=2999, sizes={8192: 1500, 16384: 1500},
                 depths={1: 3000}, regions={1: 3000})  # fmt: skip
FLUSHES = Stream("db", "flush", 10.0, 300, 0)


def workload(*streams: Stream) -> Workload:
    totals: dict[str, Stream] = {}
    for one in streams:
        before = totals.get(one.kind)
        ios = one.ios + (before.ios if before else 0)
        totals[one.kind] = replace(one, process="", ios=ios)
    return Workload("vda", 10.0, streams, totals)


def sections(text: str) -> dict[str, dict[str, str]]:
    return {one.name: dict(one.options) for one in jobfile.effective_sections(text)}


def test_metadata_is_left_to_the_scratch_file_s_file_system() -> None:
    metadata = replace(WRITES, process=METADATA_PROCESS, ios=1000)
    for loop in (OPEN, CLOSED):
        text = job_text(workload(READS, metadata), loop)
        assert list(sections(text)) == ["db-read"]
        assert "# Left out, 12 % of the requests: metadata of the file system." in text
    with pytest.raises(ValueError, match="no reads or writes"):
        job_text(workload(metadata), OPEN)


def test_phases_run_one_after_the_other() -> None:
    day, idle = workload(READS, WRITES), workload(replace(READS, ios=1))
    night = workload(replace(WRITES, process="backup"))
    phases = [Phase(0.0, day), Phase(10.0, idle), Phase(20.0, replace(night, seconds=400.0))]
    text = job_text(workload(READS, WRITES), OPEN, "", phases)
    assert "# Phase 2 of 3, 10 s to 20 s of the capture: hardly any requests, left out" in text
    found = sections(text)
    # fio starts a section with stonewall when those above have ended
    assert [(name, "stonewall" in one) for name, one in found.items()] == [
        ("db-read", True), ("db-write", False), ("backup-write", True)
    ]  # fmt: skip
    assert [one["runtime"] for one in found.values()] == ["10", "10", "300"]
    one_phase = job_text(day, OPEN, "", phases[:1])
    assert one_phase == job_text(day, OPEN) and "stonewall" not in one_phase


def test_open_loop_keeps_the_rate_of_each_direction() -> None:
    found = sections(job_text(workload(READS, WRITES, FLUSHES), OPEN))
    assert set(found) == {"db-read", "db-write"}
    read, write = found["db-read"], found["db-write"]
    assert (read["rw"], read["bs"], read["rate_iops"]) == ("randread", "4k", "700")
    # 300/s of 12 KiB on average: for fio, rate_iops times the smallest size (8 KiB) is the rate in
    # bytes
    assert (write["rw"], write["bssplit"], write["rate_iops"]) == ("write", "8k/50:16k/50", "450")
    assert write["fdatasync"] == "10" and "fdatasync" not in read
    assert read["filename"] == write["filename"] == "db.scratch"
    assert read["size"] == "64m"
    assert int(read["iodepth"]) >= 16 and "rate_process" not in read
    # fio flushes every tenth write with one in flight only
    assert write["iodepth"] == "1"


def test_closed_loop_keeps_depth_mix_and_workers() -> None:
    found = sections(job_text(workload(READS, WRITES, FLUSHES), CLOSED))
    assert set(found) == {"db-read-write"}
    both = found["db-read-write"]
    assert (both["rw"], both["rwmixread"], both["percentage_random"]) == ("randrw", "70", "100,0")
    # 7,000 requests at depth 8 and 3,000 at depth 1
    assert (both["iodepth"], both["numjobs"]) == ("6", "3")
    assert both["bssplit"] == "4k/100,8k/50:16k/50"
    assert not {"rate_iops", "thinktime"} & set(both)


def test_how_arrivals_become_options() -> None:
    poisson = replace(READS, arrivals=Arrivals(100, 100 * (70 * 70 + 70), 90, 900, 10))
    bursts = replace(READS, arrivals=Arrivals(100, 7 * 1000 * 1000, 1000, 70, 7))
    (one,) = sections(job_text(workload(poisson), OPEN)).values()
    assert one["rate_process"] == "poisson"
    # fio 3.33 crashes where it has to flush as well
    writes = replace(poisson, kind="write")
    (one,) = sections(job_text(workload(writes, FLUSHES), OPEN)).values()
    assert "rate_process" not in one and one["fdatasync"] == "23"
    (one,) = sections(job_text(workload(bursts), OPEN)).values()
    assert (one["thinktime_blocks"], one["rate_ignore_thinktime"]) == ("1000", "1")
    assert int(one["rate_iops"]) > 10_000 and one["thinktime"].endswith("us")


def test_what_is_left_out_is_said() -> None:
    rare = Stream("cron", "read", 10.0, 2, 8192, sizes={4096: 2}, depths={1: 2}, arrivals=EVEN)
    discards = Stream("db", "discard", 10.0, 50, 50 << 20, sizes={1 << 20: 50})
    text = job_text(workload(READS, rare, discards), OPEN)
    assert "cron (reads)" in text and "5.00 discards/s of 1 MiB" in text
    assert set(sections(text)) == {"db-read"}
    with pytest.raises(ValueError, match="no reads or writes"):
        job_text(workload(rare), OPEN)


# what the file system does for itself is left out of a job
NAMES = st.text(max_size=60).filter(lambda name: name not in ("", METADATA_PROCESS))


@given(NAMES, NAMES, st.sampled_from([OPEN, CLOSED]))
def test_it_never_names_the_captured_disk_or_any_path(process: str, device: str, loop: str) -> None:
    made = replace(workload(replace(READS, process=process), replace(WRITES, process=process)),
                   device=device)  # fmt: skip
    text = job_text(made, loop)
    # foreign names stand in comments or in words that no path can be made of
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.partition("=")
            assert "/" not in value or name in ("bssplit", "random_distribution")
            if name == "filename":
                assert value.endswith(".scratch")
    for one in jobfile.effective_sections(text):
        assert one.options["filename"].endswith(".scratch")
        assert objections(one.options.items()) == ()
    assert len(jobfile.effective_sections(text)) == (2 if loop == OPEN else 1)


@pytest.mark.parametrize("loop", [OPEN, CLOSED])
def test_fio_takes_it(tmp_path: Path, loop: str) -> None:
    hot = replace(READS, regions={n: 900 if n < 20 else 20 for n in range(100)}, sequential=2000)
    bursts = replace(WRITES, process="a log/writer", arrivals=Arrivals(100, 3 * 10**6, 1000, 30, 7))
    job = tmp_path / "captured.fio"
    job.write_text(job_text(workload(hot, WRITES, FLUSHES, bursts), loop))
    done = subprocess.run(["fio", "--parse-only", str(job)], capture_output=True, text=True,
                          cwd=tmp_path, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["captured.fio"]


def test_a_stream_in_words() -> None:
    assert describe(READS) == "700 reads/s, 4 KiB, random, depth 8.0, working set 64 MiB"
    bursts = replace(WRITES, arrivals=Arrivals(100, 3 * 10**6, 1000, 30, 7))
    assert "8 KiB to 16 KiB, sequential, in bursts" in describe(bursts)
    assert describe(Stream("db", "read", 1.0, 0, 0)) == "no reads"
    mixed = replace(READS, sequential=2800, sizes={4096: 6900, 8192: 100})
    assert "4 KiB, 40 % sequential" in describe(mixed)
