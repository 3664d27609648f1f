"""A watch and a run on an SMB mount as tables, CSV, counters and sentences."""

from __future__ import annotations

import io
from dataclasses import replace

from session_frames import session
from watch_frames import frame

from iopstui.events import FrameReady
from iopstui.features.exports.metrics import Metrics
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.model.metrics.run_history import RunHistory
from iopstui.model.metrics.shares import OperationRates, Share, SmbClient
from iopstui.model.watch.totals import WatchTotals
from iopstui.output.csv_out import CsvSink
from iopstui.output.plain import PlainSink
from iopstui.output.sinks import make_watch_sink
from iopstui.output.table import TableSink
from iopstui.output.watch import watch_sentences, watch_summary
from iopstui.session.run_rows import add_run_event, run_columns

TARGET = Target(DIRECTORY, "/mnt/s", None, (), "far away", "cifs", "/mnt/s", share="//srv/data")
NOTHING = (None, None, None, None)
READ = OperationRates(2.0, 240, 240 * 65536, *NOTHING, 3, answers=480, answers_ms=1200.0)
CREATE = OperationRates(2.0, 10, None, *NOTHING, 2, answers=10, answers_ms=0.0)
SHARE = Share(
    2.0, 260, None, operations={"read": READ, "create": CREATE},
    smb=SmbClient(1, 4, 0, 0, 2, 480, 0, 4.0),
)  # fmt: skip
FRAME = replace(frame(4.0, {}, 2.0), share=SHARE)


def test_a_watch_has_rows_for_reads_writes_and_others() -> None:
    out = io.StringIO()
    sink = make_watch_sink("table", out, io.StringIO(), TARGET, "host", False)
    for watch_frame in (replace(FRAME, seconds=None), FRAME):
        sink.handle(FrameReady(watch_frame.t, watch_frame))
    sink.close()
    head, read, write, other = (line.split() for line in out.getvalue().splitlines())
    assert head[2:] == ["op", "ops/s", "kB/s", "kB/op", "err%", "latency"]
    assert read[2:] == ["read", "120", "7.68k", "64.0", "1.2", "2.50", "ms"]
    assert write == ["write", "0", "0", "–", "–", "–"]
    assert other == ["other", "5.00", "–", "–", "20", "<1", "ms"], "shorter than a tick"


def test_csv_has_only_columns_of_smb() -> None:
    out = io.StringIO()
    sink = CsvSink(out, share_source=TARGET.share_source)
    sink.handle(FrameReady(FRAME.t, FRAME))
    head, cells = (line.split(",") for line in out.getvalue().splitlines())
    assert cells[head.index("kernel.smb.read.latency")] == "2.5"
    assert cells[head.index("kernel.smb.in_flight")] == "4"
    assert not any("nfs" in name or "*" in name for name in head)


def test_the_summary_of_a_watch_leaves_out_uncounted_figures() -> None:
    totals = WatchTotals((), 1.0)
    for share in (SHARE, None, SHARE):
        totals.add(replace(FRAME, share=share))
    head, read, *_ = watch_summary(totals).splitlines()[1:]
    assert head.split() == ["mean", "ops/s", "kB/s", "kB/op", "err%", "latency"]
    assert read.split() == ["read", "120", "7.68k", "64.0", "1.2", "2.50", "ms"]
    first, _, last = [
        sentence for sentence in watch_sentences(totals) if sentence.startswith("SMB")
    ]
    assert first == "SMB read: 120 operations/s, 7.68k kB/s, latency 2.50 ms."
    assert last == "SMB other: 5.00 operations/s, latency <1 ms."


def test_counters_of_operations_are_exported() -> None:
    metrics = Metrics("host")
    for _ in range(2):
        metrics.handle(FrameReady(FRAME.t, FRAME))
    samples = {family.name: family.samples for family in metrics.families()}
    for name, value in (("operations", 480), ("answers", 960), ("answer_time_seconds", 2.4)):
        (sample,) = [s for s in samples[f"iopstui_smb_{name}"]
                     if dict(s.labels) == {"operation": "read"}]  # fmt: skip
        assert sample.value == value
    assert not samples.get("iopstui_nfs_operations")


def test_a_run_has_the_server_s_rates_and_totals() -> None:
    out, history = io.StringIO(), RunHistory()
    sink = TableSink(out, io.StringIO(), TARGET)
    for event in session("3.42-p-both", probed=True):
        if isinstance(event, FrameReady):
            event = replace(event, frame=replace(event.frame, share=SHARE, disks={}))
        sink.handle(event)
        add_run_event(history, event)
    sink.close()
    lines = out.getvalue().splitlines()
    assert lines[0].split()[-1] == "//srv/data"
    assert lines[1].split()[-4:] == ["r/s", "w/s", "lat", "err"]
    assert lines[3].split()[-4:] == ["120", "0", "2.50ms", "3"]
    assert max(map(len, lines)) <= 80
    ends = [line for line in lines if line.startswith("SMB ")]
    assert ends[0].startswith("SMB read: 120/s of 64.0 kB, latency 2.50 ms; ")
    assert ends[0].endswith("errors")
    assert ends[1].startswith("SMB other: 5.00/s, latency <1 ms; ")
    assert "RTT" not in [column.title for column in run_columns(history.rows)]


def test_lines_for_screen_readers_name_the_protocol_and_the_latency() -> None:
    out = io.StringIO()
    sink = PlainSink(out, TARGET, 1.0)
    for number in range(3):
        sink.handle(FrameReady(number, replace(FRAME, t=float(number))))
    (line,) = out.getvalue().splitlines()
    assert line == "0:00 SMB 120 reads/s, 0 writes/s, 7.68k kB/s, latency 2.50 ms."
