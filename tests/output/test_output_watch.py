"""A watch as a table, and its summary."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from disks import changed
from session_frames import whole_frames
from watch_frames import frame, rates, watched

from iopstui.events import FindingEnded, FindingReported, FrameReady, Mark
from iopstui.model.answer.answer import GOOD, Answer
from iopstui.model.block.target import DEVICE, Target, TargetPath, combine_targets
from iopstui.model.cgroups import DiskUse, GroupRates
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import PARTIAL, Frame
from iopstui.model.watch.totals import WatchTotals
from iopstui.output.jsonl import JsonlSink
from iopstui.output.sinks import NarratedSink, make_watch_sink
from iopstui.output.table import HEADER_EVERY
from iopstui.output.watch import WatchTable, header, rows, watch_sentences, watch_summary

ONE = Target(DEVICE, "/dev/vda", "vda", ("vda",))
TWO = combine_targets(
    [TargetPath(DEVICE, f"/dev/{name}", name, (name,)) for name in ("vda", "vdb")]
)
HIGH = changed(
    rates(999_999, 999_999, 9_999, 4096),
    r_bytes_s=5e10, w_bytes_s=5e10, r_await=123_456.0, w_await=123_456.0, aqu_sz=123_456.7,
    util=100.0,
)  # fmt: skip


def table_lines(frames: list[Frame], target: Target = ONE) -> list[str]:
    out = io.StringIO()
    sink = WatchTable(out, io.StringIO(), target)
    for watch_frame in frames:
        sink.handle(FrameReady(watch_frame.t, watch_frame))
    sink.close()
    return out.getvalue().splitlines()


def test_a_row_has_the_figures_of_iostat() -> None:
    lines = table_lines(watched([rates(100, 50, 2)]))
    assert lines == [
        "     UTC     time       disk   r/s   w/s rMB/s wMB/s r_await w_await aqu-sz util",
        "01:46:41     0:01        vda   100  50.0  0.39  0.20 2.00 ms 2.00 ms   0.30   30",
    ]


def test_the_last_part_of_a_second_has_no_row() -> None:
    whole = frame(1.0, {"vda": rates(100)})
    rest = replace(frame(1.1, {"vda": rates(900)}), seconds=0.1, flags=frozenset({PARTIAL}))
    assert len(table_lines([whole, rest])) == 2
    assert len(table_lines([rest])) == 2, "a watch of less than a second has nothing else"


def test_several_disks_have_rows_below_their_sum() -> None:
    two_disks = frame(3.0, {"vda": rates(10, wait_ms=1), "vdb": rates(30, wait_ms=5)})
    _, sum_row, vda, vdb = table_lines([two_disks], TWO)
    assert sum_row.split()[:5] == ["01:46:43", "0:03", "2", "devices", "40.0"]
    # the sum's await is weighted by requests, its util has no meaning
    assert "4.00 ms" in sum_row and sum_row.endswith("–")
    assert vda.split()[:2] == ["vda", "10.0"] and vdb.split()[:2] == ["vdb", "30.0"]


def test_no_line_is_wider_than_80_columns() -> None:
    long = Target(DEVICE, "/dev/x", "a-device-with-a-long-name", ("a-device-with-a-long-name",))
    wide = [
        *rows(frame(1e6, {"vda": HIGH, "vdb": HIGH}), TWO),
        *rows(frame(1e6, {long.tree[0]: HIGH}), long),
        *rows(frame(1e6, {"vda": HIGH}), ONE, probed=True),
        header(), header(True),
    ]  # fmt: skip
    assert [line for line in wide if len(line) > 80] == []


def test_the_heading_is_repeated_and_the_first_sample_has_no_row() -> None:
    lines = table_lines(watched([rates(1)] * (HEADER_EVERY + 1)))
    heads = [n for n, line in enumerate(lines) if "r_await" in line]
    assert heads == [0, HEADER_EVERY + 1] and len(lines) == HEADER_EVERY + 3


def test_with_the_probe_device_latencies_replace_the_awaits() -> None:
    out = io.StringIO()
    sink = make_watch_sink("table", out, io.StringIO(), ONE, "host", probed=True)
    frames = whole_frames("3.33-p-mixed", probed=True)
    for watch_frame in frames:
        sink.handle(FrameReady(watch_frame.t, watch_frame))
    assert "dev p50 dev p99" in out.getvalue() and "r_await" not in out.getvalue()
    last = frames[-1].probe
    assert last is not None and (vda := last.combined(["vda"])) is not None
    assert f"{vda.device.percentiles['p50'] / 1000:.2f} µs" in out.getvalue().splitlines()[-2]


def test_messages_of_a_watch_go_to_standard_error() -> None:
    out, err = io.StringIO(), io.StringIO()
    sink = make_watch_sink("table", out, err, ONE, "host", probed=False)
    sink.handle(Mark(61.0, "trigger r/s>5 for 1s: 7"))
    sink.handle(FindingReported(61.0, Finding("a", "it is busy")))
    sink.handle(FindingEnded(95.0, "a", "it is busy", 61.0, 85.0))
    assert out.getvalue() == ""
    assert err.getvalue().splitlines() == [
        "[1:01] mark: trigger r/s>5 for 1s: 7", "[1:01] finding: it is busy",
        "[1:35] finding ended at 1:25, after 24 s: it is busy",
    ]  # fmt: skip


def test_json_lines_are_those_of_a_run() -> None:
    sink = make_watch_sink("jsonl", io.StringIO(), io.StringIO(), ONE, "host", probed=False)
    assert isinstance(sink, NarratedSink) and isinstance(sink._data, JsonlSink)


def totals_of(disks: list[DiskRates | None]) -> WatchTotals:
    totals = WatchTotals(["vda"], 1.0)
    for watch_frame in watched(disks):
        totals.add(watch_frame)
    return totals


def test_the_summary_has_means_triggers_and_findings() -> None:
    totals = totals_of([rates(100, 50, 2), rates(300, 50, 4), None])
    totals.fired["util>99% for 1m"] = 0
    totals.trigger("r/s>5 for 1s")
    totals.trigger("r/s>5 for 1s")
    totals.trigger("w/s>5 for 1s")
    totals.found(2.0, Finding("a", "it is busy", since=0.0, until=2.0))
    totals.found(3.0, Finding("a", "it is busier", since=1.0, until=3.0))
    assert watch_summary(totals).splitlines() == [
        "watched for 0:03, no gaps",
        "                    r/s         w/s        MiB/s     r_await w_await util",
        "disk              mean   max  mean   max  mean   max    mean    mean mean",
        "vda                200   300  50.0  50.0  0.98  1.37 3.50 ms 3.00 ms   65",
        "vda was not measured for 1.0 s of that time",
        "trigger util>99% for 1m: never fired",
        "trigger r/s>5 for 1s: fired 2 times",
        "trigger w/s>5 for 1s: fired once",
        "finding 0:00-0:03, reported 2 times: it is busier",
    ]


def test_gaps_are_reported() -> None:
    totals = totals_of([rates(1)])
    totals.add(frame(6.0, {"vda": rates(1, seconds=5.0)}, 5.0))
    assert watch_summary(totals).startswith("watched for 0:06, 4.0 s of it without samples\n")


@pytest.mark.parametrize("disks", [[], [None], [HIGH] * 3])
def test_any_summary_fits_80_columns(disks: list[DiskRates | None]) -> None:
    totals = totals_of(disks)
    totals.found(1.0, Finding("a", "long words " * 30))
    assert all(len(line) <= 80 for line in watch_summary(totals).splitlines())


def test_lines_of_the_summary_break_between_words() -> None:
    totals = totals_of([rates(1)])
    totals.answers.add(61.0, Answer("vda", "busy", GOOD, f"{'x' * 54} waits for vg-data"))
    _, first, second, *_ = watch_summary(totals).splitlines()
    assert second == "  vg-data"
    assert first.startswith("[1:01] ● xxx"), "as in the lines between the rows"


def test_ended_findings_are_in_the_summary() -> None:
    totals = WatchTotals(["vda"], 1.0)
    busy = Finding("busy", "it is busy", since=2.0, until=5.0)
    totals.found(5.0, busy)
    totals.note_end("busy", 2.0, 26.0)
    assert "finding 0:02-0:26, ended after 24 s in total: it is busy" in watch_summary(totals)
    totals.found(40.0, Finding("busy", "it is busy", since=37.0, until=40.0))
    lines = " ".join(watch_summary(totals).split())
    assert "0:02-0:40, reported 2 times, ended after 24 s in total, then came back: it is" in lines
    totals.note_end("busy", 37.0, 41.0)
    lines = " ".join(watch_summary(totals).split())
    assert "0:02-0:41, reported 2 times, ended 2 times after 28 s in total: it is" in lines


def test_the_summary_has_the_means_of_each_cgroup() -> None:
    def second(*counts: float) -> Frame:
        groups = tuple(
            GroupRates(f"/{name}.service", {"vda": DiskUse(count, 0.0, count * 1e6, 0.0)},
                       {"io.some": 50.0} if name == "a" else {})
            for name, count in zip("abcdefghijkl", counts, strict=False)
        )  # fmt: skip
        return replace(frame(1.0, {}, 2.0), groups=groups)

    totals = WatchTotals((), 2.0)
    for watch_frame in (second(10.0, 60.0), second(20.0), replace(second(), groups=None)):
        totals.add(watch_frame)
    head, first, second_, *_ = watch_summary(totals).splitlines()[1:]
    assert head.split() == ["cgroup,", "mean", "r/s", "w/s", "rMiB/s", "wMiB/s"]
    assert first.split() == ["b.service", "30.0", "0", "28.6", "0"], "60 in one of two readings"
    assert second_.split() == ["a.service", "15.0", "0", "14.3", "0", "I/O", "wait", "2.0", "s"]
    sentences = [sentence for sentence in watch_sentences(totals) if sentence.startswith("Cgroup")]
    assert sentences[0] == "Cgroup b.service: 30.0 reads/s, 0 writes/s, 28.6 MiB/s."
    totals.add(second(*range(12)))
    assert "and 2 more cgroups" in watch_summary(totals)
    assert max(map(len, watch_summary(totals).splitlines())) <= 80


def test_pressure_that_no_disk_explains_is_no_waiting_for_one() -> None:
    def last(aqu: float) -> str:
        group = GroupRates("/a.service", {"vda": DiskUse(1.0, 0.0, 1e6, 0.0)}, {"io.some": 90.0})
        totals = WatchTotals(("vda",), 1.0)
        for n in range(1, 6):
            disks = {"vda": changed(rates(5), aqu_sz=aqu)}
            totals.add(replace(frame(float(n), disks), groups=(group,)))
        return watch_summary(totals)

    assert "I/O wait 4.5 s" in last(1.2) and "*" not in last(1.2)
    assert "pressure* 4.5 s" in last(0.01)
    assert "* waited longer than these disks took: other disks, limits, " in last(0.01)
