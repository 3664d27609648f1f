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
    reconciliation,
    slowest_text,
    summary_text,
)


def total(name: str) -> FramesTotal:
    counted = FramesTotal()
    for frame in frames(name):
        counted.add(frame.fio)
    return counted


def stated(name: str) -> list[dict[str, Any]]:
    """The rows of the last document, as fio wrote them."""
    documents = [item for item in items([raw(name)]) if isinstance(item, Document)]
    return list(documents[-1].data["jobs"])


@pytest.mark.parametrize("name", KINDS)
def test_the_figures_are_exactly_fio_own(name: str) -> None:
    rows = fio_summary(statuses(name)[-1])["rows"]
    assert len(rows) == len(stated(name))
    for row, own in zip(rows, stated(name), strict=True):
        assert (row["name"], row["error"]) == (own["jobname"], own["error"])
        for direction, figures in row["directions"].items():
            block = own[direction]
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
    own = [row["read"] for row in stated("3.42-c-numjobs4-nogroup")]
    assert group["directions"]["read"]["rows"] == 4
    for key in ("iops", "io_bytes", "total_ios"):
        assert group["directions"]["read"][key] == pytest.approx(sum(row[key] for row in own))
    assert summary["total"]["read"]["iops"] == group["directions"]["read"]["iops"]


def test_rates_of_stages_that_follow_one_another_are_not_summed() -> None:
    summary = fio_summary(statuses("3.42-d-stonewall")[-1])
    assert len(summary["sums"]) == 2
    assert {part["iops"] for part in summary["total"].values()} == {None}
    assert all(part["io_bytes"] for part in summary["total"].values())


@pytest.mark.parametrize("name", KINDS)
def test_the_text_has_fio_figures_and_says_whether_the_frames_add_up(name: str) -> None:
    summary = fio_summary(statuses(name)[-1])
    text = summary_text(summary, total(name))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    held = certificate(summary, total(name))
    assert held.own_mean
    expected = UNCHECKED if name in ONLY_SUBMISSIONS else DIFFERS if name in OFF else EXACT
    assert held.verdict == expected
    assert ("up to fio's own total" in text) is (expected == EXACT)
    assert ("Not verified: fio " in " ".join(lines)) is (expected == UNCHECKED)
    if name in OFF:
        assert held.more_ios == OFF[name]
        assert held.ramp is (OFF[name] > 0)
        assert held.failed is (OFF[name] < 0)
    for own in stated(name):
        for direction in ("read", "write", "trim", "mixed"):
            if own.get(direction, {}).get("total_ios"):
                assert f"{own[direction]['iops']:.1f}" in text


def test_a_difference_is_said_in_figures() -> None:
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    short = FramesTotal()
    for frame in frames("3.42-a-randread-grp")[1:]:
        short.add(frame.fio)
    text = reconciliation(summary, short)
    read = summary["rows"][0]["directions"]["read"]
    assert read["total_ios"] > short.ios
    assert f"({short.ios - read['total_ios']:,}, {short.bytes - read['io_bytes']:,})" in text
    assert "Verified" not in text


def test_what_a_killed_fio_said_last_certifies_nothing() -> None:
    name = "3.42-a-randread-grp"
    killed = fio_summary(statuses(name)[-1], final=False)
    found = certificate(killed, total(name))
    assert (found.verdict, found.final) == (UNCHECKED, False)
    text = " ".join(summary_text(killed, total(name)).split())
    assert "fio's last report before it was killed (" in text and "final figures" not in text
    assert "Not verified: fio was killed before its final count; its last report had" in text
    assert "fio was killed" in interruption(killed) and "until then" in interruption({"rows": []})
    # recordings of versions before say nothing of it
    del killed["final"]
    assert certificate(killed, total(name)).verdict == EXACT


def held_against(name: str, job: str = "", **changes: Any) -> Certificate:
    """The frames of a recording against its last document with other figures of its reads."""
    summary = fio_summary(statuses(name, job)[-1])
    summary["rows"][0]["directions"]["read"].update(changes)
    counted = FramesTotal()
    for frame in frames(name, job):
        counted.add(frame.fio)
    return certificate(summary, counted)


def test_the_certificate_fails_where_the_frames_count_other_ios_than_fio() -> None:
    """The frames are made of latency samples: what if fio submitted more, or less, than these?"""
    name = "3.42-a-randread-grp"
    read = fio_summary(statuses(name)[-1])["rows"][0]["directions"]["read"]
    assert held_against(name).verdict == EXACT
    for off in (-1, 1, 64):
        found = held_against(name, total_ios=read["total_ios"] + off)
        assert (found.verdict, found.more_ios, found.ramp) == (DIFFERS, -off, False)
    assert held_against(name, iops=1.01 * read["iops"]).verdict == DIFFERS
    assert held_against(name, io_bytes=read["io_bytes"] + 4096).verdict == DIFFERS


def test_the_certificate_fails_where_latency_samples_are_not_the_ios() -> None:
    """filestat: 64,400 samples of 2,560,329 I/Os were certified."""
    assert held_against("3.33-q-filestat").verdict == EXACT
    assert total("3.33-q-filestat").ios == 6_614_350, "fio took 65,000 latencies"
    few = FramesTotal()
    (final,) = statuses("3.42-l-size")[-1].jobs
    read = next(iter(final.directions.values()))
    counts = replace(read, issued=2_560_329, completed=64_400)
    status = FioStatus("fio-3.42", 0, (replace(final, directions={"read": counts}),))
    few.add(FioIntervals().feed(replace(status, timestamp_ms=1), 0, 1.0, True))
    found = certificate(fio_summary(status), few)
    assert found.verdict in (DIFFERS, UNCHECKED)
    assert found.ios == 2_560_329
    assert few.ios != 64_400


def test_lost_frames_are_seen_where_the_ios_cannot_be_checked() -> None:
    """Sizes differ, so fio's bytes are no check of the count, but they are one of the frames."""
    name, job = "3.42-a-randread-grp", SIZES
    whole = held_against(name, job)
    assert (whole.verdict, whole.bytes) == (EXACT, None)
    assert held_against(name, job, io_bytes=1).verdict == DIFFERS


def test_bytes_are_not_held_against_a_size_that_the_ios_do_not_have() -> None:
    """fio's two counters say that the I/Os are of 4 KiB, whatever the job file says."""
    name = "3.42-a-randread-grp"
    summary = fio_summary(statuses(name)[-1])
    summary["rows"][0]["block_size"] = 8192
    found = certificate(summary, total(name))
    assert (found.verdict, found.bytes) == (EXACT, None)


def test_the_bytes_of_ios_that_move_none_are_not_checked() -> None:
    counted = FramesTotal()
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    row = summary["rows"][0]
    row["directions"]["read"] |= {"io_bytes": 0, "total_ios": 20, "iops": 0, "runtime_ms": 0}
    row["block_size"] = None
    counted._ios[0], counted._bytes[0] = 20, 0
    text = reconciliation(summary, counted)
    assert text.endswith("Their 0 bytes are not checked: these I/Os move no data.")


def test_bytes_of_several_sizes_are_said_not_to_be_checked() -> None:
    job = SIZES
    counted = FramesTotal()
    for frame in frames("3.42-a-randread-grp", job):
        counted.add(frame.fio)
    text = reconciliation(fio_summary(statuses("3.42-a-randread-grp", job)[-1]), counted)
    assert "up to fio's own total (" in text
    assert text.endswith("bytes are not checked: block sizes vary.")


SIZES = "[a]\nbsrange=4k-8k\nnumjobs=2\niodepth=32\ngroup_reporting\n"
GRP = "[global]\nioengine=psync\nrw=randread\ngroup_reporting\n"
TWO_SIZES = GRP + "gtod_reduce=1\n[big]\nbs=64k\n[small]\nbs=4k\n"
SWAPPED = GRP + "gtod_reduce=1\n[small]\nbs=4k\n[big]\nbs=64k\n"
SOME = GRP + "bs=4k\n[a]\ngtod_reduce=1\n[b]\n"


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("name", "job", "verdict", "flag"),
    [("3.33-q-grp-two-bs", TWO_SIZES, UNCHECKED, SUBMITTED),
     ("3.33-q-grp-two-bs-swapped", SWAPPED, UNCHECKED, SUBMITTED),
     ("3.33-q-grp-some-gtod", SOME, EXACT, SOME_LATENCY)],
)  # fmt: skip
def test_a_group_of_different_sections_is_counted_by_what_all_of_them_have(
    name: str, job: str, verdict: str, flag: str, known: bool
) -> None:
    """Two sections, each rate_iops=5000. fio prints the last one's block size and gtod_reduce:
    85,000, 5,300 and 5,000 IOPS were shown."""
    text = job if known else ""
    built = [frame for frame in frames(name, text) if frame.fio]
    for frame in built:
        assert frame.fio is not None
        assert frame.fio.total.iops == pytest.approx(10_000, rel=0.06)
        assert flag in frame.flags
        assert (SUBMITTED in frame.flags) is (verdict == UNCHECKED)
    assert held_against(name, text).verdict == verdict


def test_one_row_that_cannot_be_checked_leaves_nothing_certified() -> None:
    summary = fio_summary(statuses("3.33-q-grp-two-bs")[-1])
    assert "exactly" not in reconciliation(summary, total("3.33-q-grp-two-bs"))


def test_an_io_whose_bytes_alone_fio_counts_was_under_way_when_the_ramp_ended() -> None:
    """fio 3.42: 66,649 I/Os' bytes, 66,648 samples, 66,647 submissions."""
    name = "3.42-e-ramp"
    summary = fio_summary(statuses(name)[-1])
    more = certificate(summary, total(name)).more_ios
    (row,) = summary["rows"]
    for direction in row["directions"].values():
        direction["iops"] = 0
        direction["runtime_ms"] = 0
    row["directions"]["read"]["total_ios"] += more
    found = certificate(summary, total(name))
    assert (found.verdict, found.more_ios, found.ramp) == (DIFFERS, 0, True)
    row["depth"] = 0
    assert not certificate(summary, total(name)).ramp


def test_failed_ios_are_no_difference_where_fio_counts_them() -> None:
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


def test_without_frames_nothing_is_said_about_them() -> None:
    assert "frames" not in summary_text(fio_summary(statuses("3.42-a-randread-grp")[-1]), None)


def test_many_rows_are_shown_by_their_sums() -> None:
    status = statuses("3.42-c-numjobs4-nogroup")[-1]
    many = replace(status, jobs=status.jobs * MAX_ROWS)
    lines = summary_text(fio_summary(many), None).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("sum")


def test_errors_are_told_with_their_meaning() -> None:
    text = summary_text(fio_summary(statuses("3.42-g5-enospc-run")[-1]), None)
    assert "g: error 28 (No space left on device)" in text


def test_a_run_that_did_nothing() -> None:
    text = summary_text(fio_summary(statuses("3.42-g2-perm")[-1]), total("3.42-g2-perm"))
    assert "error 13" in text
    assert "0.000 s" in text
    summary_text(fio_summary(FioStatus("fio-3.42", 0, ())), FramesTotal())


def test_a_reset_drops_what_was_counted_before() -> None:
    counted = FramesTotal()
    ramp = [frame.fio for frame in frames("3.42-e-ramp") if frame.fio and frame.fio.ramp]
    for interval in ramp:
        counted.add(interval)
    assert counted.ios > 0
    assert total("3.42-e-ramp").ios < counted.ios + total("3.42-e-ramp").ios


def test_an_interruption_does_not_speak_of_figures_where_there_are_none() -> None:
    early = StepFinished(0.4, 1, 130, "", True)
    later = replace(early, summary={"rows": [{"name": "a"}]})
    said = io.StringIO()
    narrator = Narrator(said)
    for event in (early, later):
        narrator.handle(event)
    first, second = said.getvalue().splitlines()
    assert "no results" in first
    assert "cover the time until then" in second


def test_one_is_no_plural(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    one = FramesTotal()
    one.add(frames("3.42-a-randread-grp")[0].fio)
    assert reconciliation(summary, one).startswith(f"Different: 1 interval with {one.ios:,} I/Os, ")
    monkeypatch.setattr(FramesTotal, "ios", 1)
    assert reconciliation(summary, one).startswith("Different: 1 interval with 1 I/O, ")


@pytest.mark.parametrize(("missed", "said"), [(0, None), (1, "0.01 %"), (42, "0.42 %")])
def test_requests_that_the_probe_did_not_see_are_counted_and_said(
    missed: int, said: str | None
) -> None:
    """Its own programs lose some without a count of the kernel's; from 1 in 10,000 on told."""
    first = ProbeSample(10**9, 10**9, (LATENCY,), 1, {"vda": {"read": {100: 0}}}, {}, {}, {}, (),
                        {"missed": 0})  # fmt: skip
    seen = {"vda": {"read": {100: 10_000 - missed}}}
    second = replace(first, time_ns=2 * 10**9, arrived_ns=2 * 10**9, device=seen,
                     counts={"missed": missed})  # fmt: skip
    fold, total = ProbeIntervals(), ProbeTotal()
    for one in (first, second):
        total.add(fold.feed(one, one.arrived_ns), ("vda",))
    text = probe_text(total)
    assert f"read {10_000 - missed} requests" in text and "incomplete" not in text
    assert ("not in these figures" in text) == (said is not None)
    assert said is None or f"{said} of the requests" in text


def test_the_slowest_requests_say_where_they_waited() -> None:
    slow = SlowestTotal()
    assert slowest_text(slow) == ""
    flush = {"kind": "flush", "flags": "FF", "sector": None, "offset": None, "size": 0}
    kept = (
        *(exemplar(1000 * n, pid=n) for n in range(50, 60)),
        exemplar(90_000, inserted_ns=None, comm="", error=10, **flush),
    )
    probe = replace(
        ProbeInterval(1.0, 0.0, (), {}, {}, (), None, None, None, None, 0, 0, 0, None, None),
        exemplars=kept, read_ns=10**9,
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


def test_what_a_run_did_to_its_drives() -> None:
    drives = RunDrives()
    assert drives_text(drives) == ""
    began = dict.fromkeys(("media_errors", "units_written", "thermal_1", "thermal_1_s"), 0)
    now = {"kelvin": 350, "media_errors": 0, "units_written": 2000, "thermal_1": 2,
           "thermal_1_s": 31, "critical_warning": 4, "used": 7}  # fmt: skip
    drives.add({"nvme0": DriveReading(now, began)})
    text = drives_text(drives)
    assert all(len(line) <= 80 for line in text.splitlines())
    words = " ".join(text.split())
    assert words == (
        "nvme0 (SMART): at most 77 °C, 977 MiB written, media errors +0, throttled lightly +2 "
        "times, for 31 s, 7 % of endurance used, critical warning 0x04"
    )


def test_an_ordinary_user_is_told_what_he_does_not_see() -> None:
    drives = RunDrives()
    why = "The drive's own figures need root: run with sudo."
    drives.add({"nvme0": DriveReading({"kelvin": 320}, {}, why)})
    drives.add({"nvme1": DriveReading({}, {}, why)})
    assert drives_text(drives).splitlines() == [
        f"nvme0: at most 47 °C. {why}", f"nvme1: {why}"
    ]  # fmt: skip
