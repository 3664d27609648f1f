"""A watch of an NFS mount as a table, CSV, InfluxDB lines and counters."""

from __future__ import annotations

import io
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from session_frames import session
from watch_frames import frame

from iopstui.events import Event, FrameReady
from iopstui.features.exports.metrics import Metrics
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.model.metrics.run_history import RunHistory
from iopstui.model.metrics.shares import OperationRates, RunShare, Share, ShareTotal
from iopstui.model.watch.totals import WatchTotals
from iopstui.output.csv_out import CsvSink
from iopstui.output.influx import InfluxSink
from iopstui.output.jsonl import frame_object
from iopstui.output.plain import PlainSink
from iopstui.output.sinks import make_watch_sink
from iopstui.output.table import TableSink
from iopstui.output.watch import share_header, share_rows, watch_sentences, watch_summary
from iopstui.session.run_rows import RUN_COLUMNS, add_run_event, run_columns, run_table_rows

TARGET = Target(DIRECTORY, "/mnt/n", None, (), "far away", "nfs4", "/mnt/n", share="srv:/export")
READ = OperationRates(2.0, 240, 240 * 65536, 3, 480, 1200, 1800, 0)
SHARE = Share(2.0, 260, 0, (130, 130), {"read": READ, "getattr": replace(READ, ops=10, errors=2)})
FRAME = replace(frame(4.0, {}, 2.0), share=SHARE)


def test_a_second_has_rows_for_reads_writes_and_others() -> None:
    read, write, other = share_rows(FRAME)
    assert share_header().split()[2:] == [
        "op", "ops/s", "kB/s", "kB/op", "retrans%", "RTT", "exe", "queue", "err%",
    ]  # fmt: skip
    assert read.split()[2:] == [
        "read", "120", "7.68k", "64.0", "1.2", "5.00", "ms", "7.50", "ms", "2.00", "ms", "0",
    ]  # fmt: skip
    assert write.split() == ["write", "0", "0", "–", "–", "–", "–", "–", "–"]
    assert other.split()[0] == "other" and other.split()[-1] == "20"
    assert all(len(line) <= 80 for line in (share_header(), read, write, other))


def test_an_unmeasured_mount_has_a_row_of_dashes() -> None:
    (row,) = share_rows(replace(FRAME, share=None))
    assert row.split()[2:] == ["read", *["–"] * 8]


def test_a_watch_on_a_share_prints_the_share_table() -> None:
    out = io.StringIO()
    sink = make_watch_sink("table", out, io.StringIO(), TARGET, "host", False)
    for watch_frame in (replace(FRAME, seconds=None), FRAME, FRAME):
        sink.handle(FrameReady(watch_frame.t, watch_frame))
    sink.close()
    assert out.getvalue().splitlines() == [share_header(), *share_rows(FRAME), *share_rows(FRAME)]


def test_json_csv_and_influx_have_the_same_figures() -> None:
    nfs = frame_object(FRAME)["kernel"]["nfs"]
    assert (nfs["ops/s"], nfs["connections"]) == (130.0, 2)
    assert (nfs["read"]["rtt"], nfs["read"]["retrans"], nfs["read"]["retrans%"]) == (5.0, 3, 1.25)
    assert nfs["write"]["rtt"] is None
    assert nfs["others"]["getattr"]["errors%"] == 20.0
    stream = io.StringIO()
    sink = CsvSink(stream, share_source="nfs")
    sink.handle(FrameReady(FRAME.t, FRAME))
    head, cells = (line.split(",") for line in stream.getvalue().splitlines())
    assert cells[head.index("kernel.nfs.read.rtt")] == "5.0"
    assert not any("*" in name for name in head)
    lines = io.StringIO()
    InfluxSink(lines, "h", TARGET).handle(FrameReady(FRAME.t, FRAME))
    (line,) = [row for row in lines.getvalue().splitlines() if row.startswith("nfs,")]
    assert "read.rtt=5.0" in line and "others.getattr.errors=2.0" in line


def test_the_summary_has_means_over_the_watch() -> None:
    totals = WatchTotals((), 1.0)
    slow = replace(SHARE, operations={"read": replace(READ, ops=60, rtt_ms=3000)})
    for share in (SHARE, None, slow):
        totals.add(replace(FRAME, share=share))
    head, read, write, other = watch_summary(totals).splitlines()[1:]
    assert head.split()[:2] == ["mean", "ops/s"]
    assert read.split()[:2] == ["read", "75.0"], "300 in the 4 s that were measured"
    assert read.split()[5:7] == ["14.0", "ms"], "4.2 s of RTT for 300 operations"
    assert write.split()[1:3] == ["0", "0"]
    assert other.split()[1] == "2.50"
    sentence = next(
        sentence for sentence in watch_sentences(totals) if sentence.startswith("NFS read")
    )
    assert sentence.startswith("NFS read: 75.0 operations/s, 7.68k kB/s, RTT 14.0 ms, execution")


def test_counters_of_operations_are_exported() -> None:
    metrics = Metrics("host")
    for _ in range(2):
        metrics.handle(FrameReady(FRAME.t, FRAME))
    samples = {family.name: family.samples for family in metrics.families()}
    for name, value in (("operations", 480), ("rtt_seconds", 2.4), ("retransmissions", 6)):
        (sample,) = [s for s in samples[f"iopstui_nfs_{name}"]
                     if dict(s.labels) == {"operation": "read"}]  # fmt: skip
        assert sample.value == value


def run_events() -> list[Event]:
    """Events of a run on the mount."""
    events = session("3.42-p-both", probed=True)
    return [
        FrameReady(event.t, replace(event.frame, share=SHARE, disks={}))
        if isinstance(event, FrameReady) else event
        for event in events
    ]  # fmt: skip


def test_a_run_s_table_has_the_server_s_rates_and_totals() -> None:
    out = io.StringIO()
    sink = TableSink(out, io.StringIO(), TARGET)
    for event in run_events():
        sink.handle(event)
    sink.close()
    lines = out.getvalue().splitlines()
    assert lines[0].split()[-1] == "srv:/export"
    assert lines[1].split()[-4:] == ["r/s", "w/s", "RTT", "retr"]
    assert lines[3].split()[-4:] == ["120", "0", "5.00ms", "3"]
    assert max(map(len, lines)) <= 80
    (total,) = [place for place, line in enumerate(lines) if line.startswith("NFS read: ")]
    assert " ".join(lines[total : total + 2]).startswith(
        "NFS read: 120/s of 64.0 kB, RTT 5.00 ms, queue 2.00 ms, exe 7.50 ms;"
    )
    assert not any(line.startswith("NFS write") for line in lines), "there was none"


def test_lines_for_screen_readers_have_rates_and_rtt() -> None:
    out = io.StringIO()
    sink = PlainSink(out, TARGET, 1.0)
    slow = replace(SHARE, operations={"read": replace(READ, rtt_ms=3000)})
    for number in range(9):
        share = SHARE if number < 3 else slow if number < 6 else None
        sink.handle(FrameReady(number, replace(FRAME, t=float(number), share=share)))
    first, second = out.getvalue().splitlines()
    assert first == (
        "0:00 NFS 120 reads/s, 0 writes/s, 7.68k kB/s, RTT 5.00 ms, 3 requests sent again."
    )
    assert "RTT 12.5 ms" in second


def test_the_runs_table_has_rtt_instead_of_a_queue_size() -> None:
    history = RunHistory()
    for event in run_events():
        add_run_event(history, event)
    (row,) = history.rows
    assert row.rtt_ms == 5.0
    head, line = run_table_rows([row])
    assert "RTT" in head.split() and "aqu-sz" not in head
    assert "5.00ms" in line.split()
    names = [column.title for column in run_columns([row])]
    assert "RTT" in names and "util %" not in names
    assert [*run_columns([replace(row, rtt_ms=None)])] == [*RUN_COLUMNS]


REPORTS = st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=8)


@given(REPORTS, st.integers(0, 8))
def test_a_run_covers_the_seconds_from_its_first_to_its_last_report(
    seconds: list[tuple[bool, int]], cut: int
) -> None:
    """While fio hangs on a mount it reports nothing. Such seconds count between two reports."""
    whole_run, first, second_part = RunShare(), RunShare(), RunShare()
    for number, (reported, ops) in enumerate(seconds):
        share = replace(SHARE, operations={"read": replace(READ, ops=ops)})
        whole_run.add(share, reported=reported)
        (first if number < cut else second_part).add(share, reported=reported)
    first.join(second_part)
    reports = [number for number, (reported, _) in enumerate(seconds) if reported]
    measured = seconds[reports[0] : reports[-1] + 1] if reports else []
    for total in (whole_run, first):
        if not measured:
            assert total.operations == {} and total.data is None
            continue
        reads = total.operations["read"]
        assert (reads.ops, reads.seconds) == (sum(ops for _, ops in measured), 2.0 * len(measured))


def test_parts_of_a_run_add_up() -> None:
    total, first, second_part = ShareTotal(), ShareTotal(), ShareTotal()
    slow = replace(SHARE, operations={"read": replace(READ, ops=60, rtt_ms=3000)})
    for number, share in enumerate((SHARE, None, slow)):
        total.add(share)
        (first if number == 0 else second_part).add(share)
    first.join(second_part)
    assert first.operations == total.operations
    assert total.data is not None and total.data.rtt == 14.0
    assert ShareTotal().data is None
