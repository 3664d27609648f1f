from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from fio_recordings import KINDS, OFF, ONLY_SUBMISSIONS, frames, items, raw, statuses
from slow_requests import exemplar
from watch_frames import frame as watch_frame

from iopstui.events import StepFinished
from iopstui.fio.stream.framing import Document
from iopstui.model.answer.answer import OF_A_SECOND, WAITS, WARNING, Answer
from iopstui.model.findings.advice import advise
from iopstui.model.fio.intervals import FioIntervals
from iopstui.model.metrics.frame import SOME_LATENCY, SUBMITTED
from iopstui.model.metrics.nvme import RunDrives
from iopstui.model.metrics.probe import LATENCY, ProbeInterval, ProbeIntervals, ProbeTotal
from iopstui.model.metrics.slow.slow_requests import SlowestTotal
from iopstui.model.metrics.summary import (
    DIFFERS,
    EXACT,
    UNCHECKED,
    Certificate,
    FramesTotal,
    certificate,
    fio_summary,
)
from iopstui.model.samples import DriveReading, FioStatus, ProbeSample
from iopstui.output.narration import Narrator
from iopstui.output.summary import (
    MAX_ROWS,
    drives_text,
    interruption,
    probe_text,
    rate_times_text,
    reconciliation,
    slowest_text,
    summary_text,
)


def total(name: str) -> FramesTotal:
    frames_total = FramesTotal()
    for frame in frames(name):
        frames_total.add(frame.fio)
    return frames_total


def fio_rows(name: str) -> list[dict[str, Any]]:
    """The rows of fio's last document."""
    documents = [item for item in items([raw(name)]) if isinstance(item, Document)]
    return list(documents[-1].data["jobs"])


@pytest.mark.parametrize("name", KINDS)
def test_figures_equal_those_of_fio(name: str) -> None:
    rows = fio_summary(statuses(name)[-1])["rows"]
    assert len(rows) == len(fio_rows(name))
    for row, fio_row in zip(rows, fio_rows(name), strict=True):
        assert (row["name"], row["error"]) == (fio_row["jobname"], fio_row["error"])
        for direction, figures in row["directions"].items():
            block = fio_row[direction]
            assert figures["iops"] == block["iops"]
            assert figures["total_ios"] == block["total_ios"]
            assert figures["runtime_ms"] == block["runtime"]
            assert figures["io_bytes"] == block["io_bytes"]
            if "bw_bytes" in block:
                assert figures["bw_bytes"] == block["bw_bytes"]
            if figures["clat_mean_ns"] is not None:
                assert figures["clat_mean_ns"] == block["clat_ns"]["mean"]
            if figures["lat_mean_ns"] is not None:
                assert figures["lat_mean_ns"] == block["lat_ns"]["mean"]
            source = block[f"{figures['percentiles_of']}_ns"]
            for key, value in figures["percentiles"].items():
                theirs = {f"p{float(p):g}": v for p, v in source["percentile"].items()}
                assert theirs[key] == value
            if figures["lat_max_ns"] is not None:
                assert figures["lat_max_ns"] == source["max"]


def test_a_direction_without_io_is_not_in_the_summary() -> None:
    (row,) = fio_summary(statuses("3.42-a-randread-grp")[-1])["rows"]
    assert list(row["directions"]) == ["read"]


def test_without_latencies_there_are_none_in_the_summary() -> None:
    for version in ("3.1", "3.16", "3.42"):
        (row,) = fio_summary(statuses(f"{version}-b-randrw-gtod")[-1])["rows"]
        for figures in row["directions"].values():
            assert figures["clat_mean_ns"] is None
            assert figures["percentiles"] == {}
            assert figures["lat_max_ns"] is None


def test_rows_of_a_group_are_summed() -> None:
    summary = fio_summary(statuses("3.42-c-numjobs4-nogroup")[-1])
    (group,) = summary["sums"]
    fio_reads = [row["read"] for row in fio_rows("3.42-c-numjobs4-nogroup")]
    assert group["directions"]["read"]["rows"] == 4
    for key in ("iops", "io_bytes", "total_ios"):
        assert group["directions"]["read"][key] == pytest.approx(sum(row[key] for row in fio_reads))
    assert summary["total"]["read"]["iops"] == group["directions"]["read"]["iops"]


def test_what_disturbed_the_run_stands_below_its_figures() -> None:
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    why = ("at least 94.6 MiB of 278 MiB a second on vda were not this job's", "CPU 1 was full")
    lines = summary_text(summary, None, disturbed=why).splitlines()
    assert " ".join(" ".join(lines[-2:]).split()) == f"disturbed: {why[0]}; {why[1]}"
    assert lines[:-2] == summary_text(summary, None).splitlines()


def test_rates_of_stonewalled_stages_are_not_summed() -> None:
    summary = fio_summary(statuses("3.42-d-stonewall")[-1])
    assert len(summary["sums"]) == 2
    assert {part["iops"] for part in summary["total"].values()} == {None}
    assert all(part["io_bytes"] for part in summary["total"].values())


@pytest.mark.parametrize("name", KINDS)
def test_the_summary_text_has_fio_s_figures_and_the_verdict(name: str) -> None:
    summary = fio_summary(statuses(name)[-1])
    text = summary_text(summary, total(name))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    result = certificate(summary, total(name))
    assert result.mean_is_consistent
    expected = UNCHECKED if name in ONLY_SUBMISSIONS else DIFFERS if name in OFF else EXACT
    assert result.verdict == expected
    assert ("up to fio's own total" in text) is (expected == EXACT)
    assert ("Not verified: fio " in " ".join(lines)) is (expected == UNCHECKED)
    if name in OFF:
        assert result.more_ios == OFF[name]
        assert result.ramp is (OFF[name] > 0)
        assert result.failed is (OFF[name] < 0)
    for fio_row in fio_rows(name):
        for direction in ("read", "write", "trim", "mixed"):
            if fio_row.get(direction, {}).get("total_ios"):
                assert f"{fio_row[direction]['iops']:.1f}" in text


@pytest.mark.parametrize(("submitted", "bytes_too", "left"), [(15, 0, True), (17, 0, False),
                                                              (15, 1, False)])  # fmt: skip
def test_ios_that_fio_left_at_its_end_are_said_to_be_that(
    submitted: int, bytes_too: int, left: bool
) -> None:
    # latency_target ends a run while its last I/Os are in flight (fio 3.33)
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    frames_total = total("3.42-a-randread-grp")
    summary["rows"][0]["depth"] = 16
    read = summary["rows"][0]["directions"]["read"]
    read["total_ios"] += submitted
    read["io_bytes"] += bytes_too * submitted * 4096
    assert certificate(summary, frames_total).left is left
    text = " ".join(reconciliation(summary, frames_total).split())
    assert ("the difference was submitted, and not counted as completed" in text) == left


def test_files_that_an_engine_opens_are_no_ios() -> None:
    jobs = statuses("3.42-a-randread-grp")[-1]
    creating = replace(jobs.jobs[0], options={**jobs.jobs[0].options, "ioengine": "filecreate"})
    summary = fio_summary(replace(jobs, jobs=(creating, *jobs.jobs[1:])))
    summary["rows"][0]["directions"]["read"]["total_ios"] -= 1
    text = " ".join(reconciliation(summary, total("3.42-a-randread-grp")).split())
    assert text.startswith("Different: ") and "(+1, " in text
    assert "The intervals count each opening of a file" in text


def test_a_difference_is_given_in_ios_and_bytes() -> None:
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    short = FramesTotal()
    for frame in frames("3.42-a-randread-grp")[1:]:
        short.add(frame.fio)
    text = reconciliation(summary, short)
    read = summary["rows"][0]["directions"]["read"]
    assert read["total_ios"] > short.ios
    assert f"({short.ios - read['total_ios']:,}, {short.bytes - read['io_bytes']:,})" in text
    assert "Verified" not in text


def test_the_last_report_of_a_killed_fio_is_not_verified() -> None:
    name = "3.42-a-randread-grp"
    killed = fio_summary(statuses(name)[-1], final=False)
    result = certificate(killed, total(name))
    assert (result.verdict, result.final) == (UNCHECKED, False)
    text = " ".join(summary_text(killed, total(name)).split())
    assert "fio's last report before it was killed (" in text and "final figures" not in text
    assert f"{killed['rows'][0]['directions']['read']['iops']:.1f}" not in text, "no mean of then"
    assert "Not verified: fio was killed before its final count; its last report had" in text
    assert "fio was killed" in interruption(killed) and "until then" in interruption({"rows": []})
    # older recordings lack this key
    del killed["final"]
    assert certificate(killed, total(name)).verdict == EXACT


def certificate_with(name: str, job: str = "", **changes: Any) -> Certificate:
    """The certificate of a recording whose final report has these changed figures of reads."""
    summary = fio_summary(statuses(name, job)[-1])
    summary["rows"][0]["directions"]["read"].update(changes)
    frames_total = FramesTotal()
    for frame in frames(name, job):
        frames_total.add(frame.fio)
    return certificate(summary, frames_total)


def test_verification_fails_if_frames_and_fio_count_different_ios() -> None:
    """Frames count latency samples; fio's final report has the I/Os submitted, which may be more or
    fewer."""
    name = "3.42-a-randread-grp"
    read = fio_summary(statuses(name)[-1])["rows"][0]["directions"]["read"]
    assert certificate_with(name).verdict == EXACT
    for off in (-1, 1, 64):
        result = certificate_with(name, total_ios=read["total_ios"] + off)
        assert (result.verdict, result.more_ios, result.ramp) == (DIFFERS, -off, False)
    assert certificate_with(name, iops=1.01 * read["iops"]).verdict == DIFFERS
    assert certificate_with(name, io_bytes=read["io_bytes"] + 4096).verdict == DIFFERS


def test_verification_fails_if_latencies_of_only_some_ios_are_sampled() -> None:
    """Engine filestat: fio sampled 64,400 latencies of 2,560,329 I/Os."""
    assert certificate_with("3.33-q-filestat").verdict == EXACT
    assert total("3.33-q-filestat").ios == 6_614_350, "fio took 65,000 latencies"
    frames_total = FramesTotal()
    (final,) = statuses("3.42-l-size")[-1].jobs
    direction = next(iter(final.directions.values()))
    counts = replace(direction, issued=2_560_329, completed=64_400)
    status = FioStatus("fio-3.42", 0, (replace(final, directions={"read": counts}),))
    frames_total.add(FioIntervals().feed(replace(status, timestamp_ms=1), 0, 1.0, True))
    result = certificate(fio_summary(status), frames_total)
    assert result.verdict in (DIFFERS, UNCHECKED)
    assert result.ios == 2_560_329
    assert frames_total.ios != 64_400


def test_bytes_are_not_checked_against_a_wrong_block_size() -> None:
    """By fio's two counters each I/O has 4 KiB, so a block size of 8 KiB is not used."""
    name = "3.42-a-randread-grp"
    summary = fio_summary(statuses(name)[-1])
    summary["rows"][0]["block_size"] = 8192
    result = certificate(summary, total(name))
    assert (result.verdict, result.bytes) == (EXACT, None)


def test_bytes_of_ios_without_data_are_not_checked() -> None:
    frames_total = FramesTotal()
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    row = summary["rows"][0]
    row["directions"]["read"] |= {"io_bytes": 0, "total_ios": 20, "iops": 0, "runtime_ms": 0}
    row["block_size"] = None
    frames_total._ios[0], frames_total._bytes[0] = 20, 0
    text = reconciliation(summary, frames_total)
    assert text.endswith("Their 0 bytes are not checked: these I/Os move no data.")


def test_bytes_of_varying_block_sizes_are_reported_as_unchecked() -> None:
    job = SIZES
    frames_total = FramesTotal()
    for frame in frames("3.42-a-randread-grp", job):
        frames_total.add(frame.fio)
    text = reconciliation(fio_summary(statuses("3.42-a-randread-grp", job)[-1]), frames_total)
    assert "up to fio's own total (" in text
    assert text.endswith("bytes are not checked: block sizes vary.")


SIZES = "[a]\nbsrange=4k-8k\nnumjobs=2\niodepth=32\ngroup_reporting\n"
GRP = "[global]\nioengine=psync\nrw=randread\ngroup_reporting\n"
TWO_SIZES = GRP + "gtod_reduce=1\n[big]\nbs=64k\n[small]\nbs=4k\n"
SWAPPED = GRP + "gtod_reduce=1\n[small]\nbs=4k\n[big]\nbs=64k\n"
SOME = GRP + "bs=4k\n[a]\ngtod_reduce=1\n[b]\n"


@pytest.mark.parametrize("with_job", [True, False])
@pytest.mark.parametrize(
    ("name", "job", "verdict", "flag"),
    [("3.33-q-grp-two-bs", TWO_SIZES, UNCHECKED, SUBMITTED),
     ("3.33-q-grp-two-bs-swapped", SWAPPED, UNCHECKED, SUBMITTED),
     ("3.33-q-grp-some-gtod", SOME, EXACT, SOME_LATENCY)],
)  # fmt: skip
def test_a_group_of_different_sections_uses_only_common_counters(
    name: str, job: str, verdict: str, flag: str, with_job: bool
) -> None:
    """Two sections with rate_iops=5000 each. fio prints only the last section's block size and
    gtod_reduce; figures computed from those would be wrong."""
    text = job if with_job else ""
    built = [frame for frame in frames(name, text) if frame.fio]
    for frame in built:
        assert frame.fio is not None
        # only if all I/Os have the same size is the length of the first interval known
        if frame is not built[0] or verdict == EXACT:
            assert frame.fio.total.iops == pytest.approx(10_000, rel=0.06)
        assert flag in frame.flags
        assert (SUBMITTED in frame.flags) is (verdict == UNCHECKED)
    assert certificate_with(name, text).verdict == verdict


def test_an_io_of_which_fio_counts_only_the_bytes_crossed_the_ramp_s_end() -> None:
    """fio 3.42 counted the bytes of 66,649 I/Os, 66,648 samples and 66,647 submissions."""
    name = "3.42-e-ramp"
    summary = fio_summary(statuses(name)[-1])
    more = certificate(summary, total(name)).more_ios
    (row,) = summary["rows"]
    for direction in row["directions"].values():
        direction["iops"] = 0
        direction["runtime_ms"] = 0
    row["directions"]["read"]["total_ios"] += more
    result = certificate(summary, total(name))
    assert (result.verdict, result.more_ios, result.ramp) == (DIFFERS, 0, True)
    row["depth"] = 0
    assert not certificate(summary, total(name)).ramp


def test_failed_ios_are_no_difference_if_fio_counts_them() -> None:
    name = "3.42-l-size"
    summary = fio_summary(statuses(name)[-1])
    (row,) = summary["rows"]
    row["failed"] = 7
    direction = next(iter(row["directions"].values()))
    direction["total_ios"] += 7
    direction["iops"] = 1000 * direction["total_ios"] / direction["runtime_ms"]
    assert certificate(summary, total(name)).verdict == EXACT
    row["failed"] = 6
    assert certificate(summary, total(name)).verdict == DIFFERS


def test_without_frames_the_summary_does_not_mention_them() -> None:
    assert "interval" not in summary_text(fio_summary(statuses("3.42-a-randread-grp")[-1]), None)


def test_the_answer_is_first_unless_it_has_figures_of_a_single_second() -> None:
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    plain = summary_text(summary, None)
    limit = Answer("vda", "limit", WARNING, "Not the disk", WAITS)
    assert summary_text(summary, None, answer=limit) == f"▲ Not the disk\n{plain}"
    long = replace(limit, text=f"{'x' * 72} vg-data")
    assert summary_text(summary, None, answer=long).splitlines()[1] == "vg-data"
    second = replace(limit, rule=OF_A_SECOND, text="fio does 57.7k IOPS")
    assert summary_text(summary, None, answer=second) == plain
    second = replace(second, next=advise("shallower"))
    text = summary_text(summary, None, answer=second)
    assert text.startswith("Next: compare with a smaller iodepth") and text.endswith(plain)
    figures = "fio does 57.7k IOPS; in flight 7.9: dm-3 7.8, above the device 0.1"
    text = summary_text(summary, None, answer=replace(second, text=figures))
    assert text.startswith("Next: "), "no figures of a second"
    reason = "dm-3 sends none to dm-2; it is idle"
    second = replace(second, text=f"{figures}; {reason}", reason=reason)
    text = summary_text(summary, None, answer=second)
    assert text.startswith("At the end: dm-3 sends none to dm-2; it is idle\nNext: compare with")


def test_many_rows_are_shown_as_a_sum() -> None:
    status = statuses("3.42-c-numjobs4-nogroup")[-1]
    many_rows = replace(status, jobs=status.jobs * MAX_ROWS)
    lines = summary_text(fio_summary(many_rows), None).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("sum")


def test_errors_are_shown_with_their_meaning() -> None:
    text = summary_text(fio_summary(statuses("3.42-g5-enospc-run")[-1]), None)
    assert "g: error 28 (No space left on device)" in text


def test_the_summary_of_a_run_without_ios() -> None:
    text = summary_text(fio_summary(statuses("3.42-g2-perm")[-1]), total("3.42-g2-perm"))
    assert "error 13" in text
    assert "0.000 s" in text
    summary_text(fio_summary(FioStatus("fio-3.42", 0, ())), FramesTotal())


def test_an_interruption_without_results_says_so() -> None:
    early = StepFinished(0.4, 1, 130, "", True)
    later = replace(early, summary={"rows": [{"name": "a"}]})
    stream = io.StringIO()
    narrator = Narrator(stream)
    for event in (early, later):
        narrator.handle(event)
    first, second = stream.getvalue().splitlines()
    assert "no results" in first
    assert "cover the time until then" in second


def test_a_count_of_1_is_singular(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    first_frame = FramesTotal()
    first_frame.add(frames("3.42-a-randread-grp")[0].fio)
    assert reconciliation(summary, first_frame).startswith(
        f"Different: 1 interval with {first_frame.ios:,} I/Os, "
    )
    monkeypatch.setattr(FramesTotal, "ios", 1)
    assert reconciliation(summary, first_frame).startswith("Different: 1 interval with 1 I/O, ")


@pytest.mark.parametrize(("missed", "share"), [(0, None), (1, "0.01 %"), (42, "0.42 %")])
def test_requests_that_the_probe_missed_are_counted_and_reported(
    missed: int, share: str | None
) -> None:
    """The summary reports missed requests from 1 in 10,000 on."""
    first = ProbeSample(10**9, 10**9, (LATENCY,), 1, {"vda": {"read": {100: 0}}}, {}, {}, {}, (),
                        {"missed": 0})  # fmt: skip
    latencies = {"vda": {"read": {100: 10_000 - missed}}}
    second = replace(first, time_ns=2 * 10**9, arrived_ns=2 * 10**9, device=latencies,
                     counts={"missed": missed})  # fmt: skip
    fold, total = ProbeIntervals(), ProbeTotal()
    for sample in (first, second):
        total.add(fold.feed(sample, sample.arrived_ns), ("vda",))
    text = probe_text(total)
    assert f"read {10_000 - missed} requests" in text and "incomplete" not in text
    assert ("not in these figures" in text) == (share is not None)
    assert share is None or f"{share} of the requests" in text


def test_the_slowest_requests_show_where_they_waited() -> None:
    slow = SlowestTotal()
    assert slowest_text(slow) == ""
    flush = {"kind": "flush", "flags": "FF", "sector": None, "offset": None, "size": 0}
    exemplars = (
        *(exemplar(1000 * n, pid=n) for n in range(50, 60)),
        exemplar(90_000, inserted_ns=None, comm="", error=10, **flush),
    )
    probe = replace(
        ProbeInterval(1.0, 0.0, (), {}, {}, (), None, None, 0, 0, 0, None, None),
        exemplars=exemplars, read_ns=10**9,
    )  # fmt: skip
    slow.add(replace(watch_frame(7.0, {}), probe=probe))
    head, *lines = slowest_text(slow).splitlines()
    assert head.startswith("slowest requests") and max(map(len, lines)) <= 80
    text = " ".join(line.strip() for line in lines)
    assert "0:07 read 59.0 µs: 1.00 µs plugged, 10.0 µs queued, 48.0 µs device; sector 2048" in text
    assert text.count("read") == 3 and "fio (56)" not in text
    assert (
        "flush 90.0 µs: 11.0 µs queued, 79.0 µs device; FF, – (700), CPU 0 → 1, status 10" in text
    )


def test_the_smart_summary_of_a_run_s_drives() -> None:
    drives = RunDrives()
    assert drives_text(drives) == ""
    began = dict.fromkeys(("media_errors", "units_written", "thermal_1", "thermal_1_s"), 0)
    now = {"kelvin": 350, "media_errors": 0, "units_written": 2000, "thermal_1": 2,
           "thermal_1_s": 31, "critical_warning": 4, "used": 7}  # fmt: skip
    drives.add({"nvme0": DriveReading(now, began)})
    text = drives_text(drives)
    assert all(len(line) <= 80 for line in text.splitlines())
    joined = " ".join(text.split())
    assert joined == (
        "nvme0 (SMART): at most 77 °C, 977 MiB written, media errors +0, throttled lightly +2 "
        "times, for 31 s, 7 % of endurance used, critical warning 0x04"
    )


def test_without_root_missing_smart_figures_are_explained() -> None:
    drives = RunDrives()
    why = "The drive's own figures need root: run with sudo."
    drives.add({"nvme0": DriveReading({"kelvin": 320}, {}, why)})
    drives.add({"nvme1": DriveReading({}, {}, why)})
    assert drives_text(drives).splitlines() == [
        f"nvme0: at most 47 °C. {why}", f"nvme1: {why}"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("read_ms", "write_ms", "says"),
    [
        (5002, 5000, ""),
        (4600, 5002, ""),
        (712, 5002, "for each direction's own time: reads 0.712 s, writes 5.002 s"),
    ],
)
def test_rates_over_a_part_of_the_run_are_said_to_be(read_ms: int, write_ms: int, says: str
                                                     ) -> None:  # fmt: skip
    part = {"rows": 2, "iops": 1.0, "bw_bytes": 1.0}
    sums = {"read": {**part, "runtime_ms": read_ms}, "write": {**part, "runtime_ms": write_ms}}
    summary = {"sums": [{"group": 0, "directions": sums}], "all": {"runtime_ms": 5002}}
    assert says in rate_times_text(summary) and bool(rate_times_text(summary)) == bool(says)
    assert rate_times_text({"sums": summary["sums"] * 2, "all": summary["all"]}) == ""
    assert rate_times_text({"rows": []}) == ""
