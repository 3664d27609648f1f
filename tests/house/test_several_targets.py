"""Several devices in one session: their sum, and every output that shows it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
import recordings as made
from disks import changed
from evidence_frames import device, disk, fio, frame, seconds
from fio_recordings import samples, statuses
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import UsageError
from iopstui.events import FrameReady
from iopstui.features.reports import report_data
from iopstui.features.reports import words as report_words
from iopstui.model.block.device import DeviceWatch
from iopstui.model.block.target import DEVICE, DIRECTORY, Layer, Target, combine_targets
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.experiment.point import PointMeter
from iopstui.model.figures.disk import DiskRates, disk_rates, sum_rates
from iopstui.model.figures.figure import TOTAL
from iopstui.model.findings import diagnosis
from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.finding import device_names_text
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.samples import DiskCounters, KernelSample, RawSample
from iopstui.output.csv_out import CsvSink
from iopstui.output.jsonl import frame_object, session_object
from iopstui.output.table import TableSink
from iopstui.recording import layout as form
from iopstui.recording.coding import Decoder, encoder
from iopstui.recording.reader import Recording
from iopstui.recording.replay import replay_events
from iopstui.recording.writer import Recorder, RecordingBuffer

LOOPS = tuple(
    Target(DEVICE, f"/dev/loop{n}", f"loop{n}", (f"loop{n}", "vda1", "vda")) for n in range(2)
)
BOTH = combine_targets(LOOPS)

# -- one target with several paths


def test_shared_underlying_devices_are_listed_once_at_the_end() -> None:
    assert BOTH.has_several and BOTH.devices_below == BOTH.opened == ("loop0", "loop1")
    assert BOTH.layers == (Layer("loop0"), Layer("loop1"), Layer("vda1", 2), Layer("vda", 2))
    assert set(BOTH.tree) == {"loop0", "loop1", "vda1", "vda"}
    assert (BOTH.path, BOTH.name) == ("/dev/loop0:/dev/loop1", "2 devices")


def test_underlying_devices_are_listed_below_their_device() -> None:
    target = combine_targets(
        [
            Target(DEVICE, "/dev/md0", "md0", ("md0", "sda", "sdb")),
            Target(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "vda1", "vda")),
        ]
    )
    names = [(layer.name, layer.under) for layer in target.layers]
    assert names == [("md0", 0), ("sda", 1), ("sdb", 1), ("dm-0", 0), ("vda1", 1), ("vda", 1)]


def test_a_single_target_is_unchanged() -> None:
    target = LOOPS[0]
    assert (
        combine_targets([target]) == target
        and not target.has_several
        and target.places == (target,)
    )
    assert target.layers == (Layer("loop0"), Layer("vda1", 1), Layer("vda", 1))
    assert target.opened == ("loop0",) and target.name == "loop0"


def test_two_directories_on_one_device_are_one_device() -> None:
    place = Target(DIRECTORY, "/a", "vda1", ("vda1", "vda"), "", "ext4", "/")
    target = combine_targets([place, replace(place, path="/b")])
    assert target.has_several and target.devices_below == ("vda1",) and target.name == "vda1"
    assert target.layers == (Layer("vda1"), Layer("vda", 1))


def test_a_file_system_on_several_devices_opens_each() -> None:
    spread = Target(
        DIRECTORY, "/b", "vdb1", ("vdb1", "vdb", "vdc1", "vdc"), "", "btrfs", "/b", also=("vdc1",)
    )
    assert spread.opened == ("vdb1", "vdc1")
    assert [layer.name for layer in spread.layers] == ["vdb1", "vdb", "vdc1", "vdc"]


def test_a_device_on_another_has_no_sum() -> None:
    partition = Target(DEVICE, "/dev/vda1", "vda1", ("vda1", "vda"))
    target = combine_targets([partition, Target(DEVICE, "/dev/vda", "vda", ("vda",))])
    assert target.nested == ("vda1", "vda") and target.opened == ()
    assert target.devices_below == ("vda1", "vda")


def test_a_place_without_a_device_is_named() -> None:
    memory = Target(DIRECTORY, "/dev/shm", None, (), "tmpfs keeps files in memory")
    target = combine_targets([memory, LOOPS[0]])
    assert [place.path for place in target.without_device] == ["/dev/shm"]
    assert target.device == "loop0" and target.opened == ("loop0",)


# -- the sum


def counters(name: str, values: list[int]) -> DiskCounters:
    reads, writes, read_ms, write_ms, sectors, weighted, flights, flushes = values
    # the kernel counts a request and its time together
    waited = (read_ms * bool(reads), write_ms * bool(writes), write_ms * bool(flushes))
    return DiskCounters(
        name, 7, 0, reads, 1, sectors, waited[0], writes, 2, sectors, waited[1], flights, read_ms,
        weighted, 0, 0, 0, 0, flushes, waited[2],
    )  # fmt: skip


def sum_counters(parts: list[DiskCounters]) -> DiskCounters:
    sums = {
        field.name: sum(getattr(part, field.name) for part in parts)
        for field in fields(DiskCounters)
        if field.name not in ("name", "major", "minor")
    }
    return replace(parts[0], **sums)


INCREASES = st.lists(
    st.lists(st.integers(0, 10**6), min_size=8, max_size=8), min_size=2, max_size=5
)


@given(growth=INCREASES, seconds=st.floats(0.25, 60))
def test_the_sum_equals_rates_of_summed_counters(growth: list[list[int]], seconds: float) -> None:
    zero = [counters(f"d{n}", [0] * 8) for n in range(len(growth))]
    after = [counters(f"d{n}", values) for n, values in enumerate(growth)]
    rates = [disk_rates(now, before, seconds) for now, before in zip(after, zero, strict=True)]
    total = sum_rates([rate for rate in rates if rate is not None])
    expected = disk_rates(sum_counters(after), sum_counters(zero), seconds)
    assert total is not None and expected is not None and total.util is None
    for field in fields(DiskRates):
        if field.name != "io_ms":
            assert getattr(total, field.name) == pytest.approx(getattr(expected, field.name)), (
                field.name
            )


def test_means_are_weighted_by_requests() -> None:
    slow = changed(disk(10.0), r_await=100.0)
    fast = changed(disk(990.0), r_await=1.0)
    total = sum_rates([slow, fast])
    assert total is not None and total.r_await == pytest.approx((10 * 100 + 990) / 1000)
    assert total.r_s == 1000 and total.aqu_sz == 2.0 and total.in_flight == 2


def test_a_figure_missing_on_one_device_is_missing_in_the_sum() -> None:
    lost = replace(disk(10.0), reads=None, read_ms=None)
    total = sum_rates([disk(10.0), lost])
    assert total is not None and total.r_s is None and total.r_await is None and total.w_s == 0
    assert sum_rates([]) is None and sum_rates([lost]) is lost
    partial = frame(1.0, disks={"loop0": disk(1.0)})
    assert partial.combined(("loop0", "loop1")) is None and partial.combined(()) is None


def test_an_idle_device_does_not_change_the_await() -> None:
    idle = changed(disk(0.0), r_await=None)
    total = sum_rates([idle, changed(disk(5.0), r_await=3.0)])
    assert total is not None and total.r_await == pytest.approx(3.0)


# -- frames and outputs


def with_loop_devices(number: int, raw: RawSample) -> RawSample:
    """A sample with two loop devices and the disk below them; loop1 does twice as much as loop0."""
    disks = {
        name: counters(name, [n, 0, n, 0, 8 * n, 4 * n, 3, 0])
        for name, n in (("loop0", 100 * number), ("loop1", 200 * number), ("vda", 7 * number))
    }
    kernel = KernelSample(raw.arrived_ns, raw.wall_ms, 0, disks, {}, {}, {}, None)
    return replace(raw, kernel=kernel)


RAWS = [with_loop_devices(n, raw) for n, raw in enumerate(samples(statuses("3.42-a-randread-grp")))]


def frames(target: Target = BOTH) -> list[FrameReady]:
    builder = FrameBuilder(opened=target.opened)
    built_frames = [builder.feed(raw) for raw in RAWS]
    return [FrameReady(built_frame.t, built_frame) for built_frame in built_frames]


def test_json_lines_name_the_devices_and_have_their_sum() -> None:
    first = session_object("here", BOTH)
    assert first["targets"] == ["/dev/loop0", "/dev/loop1"] and first["device"] is None
    assert first["opened"] == ["loop0", "loop1"]
    kernel = frame_object(frames()[1].frame)["kernel"]
    total, disks = kernel[TOTAL], kernel["disks"]
    assert total["reads"] == 300 and total["util"] is None
    assert total["r/s"] == pytest.approx(disks["loop0"]["r/s"] + disks["loop1"]["r/s"], abs=2e-6)


def test_the_sum_of_one_device_is_the_device() -> None:
    kernel = frame_object(frames(LOOPS[0])[1].frame)["kernel"]
    assert kernel[TOTAL] == kernel["disks"]["loop0"] and kernel[TOTAL]["util"] is not None
    assert session_object("here", LOOPS[0])["device"] == "loop0"


def test_csv_has_columns_for_the_sum_and_each_device() -> None:
    stream = io.StringIO()
    sink = CsvSink(stream, BOTH.devices_below)
    for event in frames():
        sink.handle(event)
    row = list(csv.DictReader(io.StringIO(stream.getvalue()), strict=True))[1]
    assert row["kernel.total.reads"] == "300" and row["kernel.disks.loop1.reads"] == "200"
    assert "kernel.total.util" not in row and "kernel.disks.loop0.util" in row


def test_csv_of_one_device_has_no_sum() -> None:
    stream = io.StringIO()
    CsvSink(stream, ["loop0"]).close()
    assert "kernel.total" not in stream.getvalue()


def table_lines(target: Target) -> list[str]:
    out = io.StringIO()
    sink = TableSink(out, io.StringIO(), target)
    for event in frames(target)[:2]:
        sink.handle(event)
    return out.getvalue().splitlines()


def test_the_table_shows_sum_devices_and_underlying_disks() -> None:
    lines = table_lines(BOTH)
    assert "2 devices together" in lines[0] and max(map(len, lines)) <= 80
    _, total, loop0, loop1, vda1, vda = lines[-6:]
    assert total.split()[-4:] == ["299", "0", "1.20", "–"]
    assert loop0.split() == ["loop0", "99.8", "0", "0.40", "10"]
    assert loop1.split() == ["loop1", "200", "0", "0.80", "20"]
    assert vda1.split()[:4] == ["└", "vda1", "(below", "2)"] and "–" in vda1, "it was not measured"
    assert vda.split()[:4] == ["└", "vda", "(below", "2)"] and "6.99" in vda


def test_the_table_says_that_there_is_no_sum() -> None:
    nested = combine_targets([LOOPS[0], Target(DEVICE, "/dev/vda", "vda", ("vda",))])
    lines = table_lines(nested)
    assert lines[0].endswith("2 devices without a sum")
    assert lines[-4].split()[-4:] == ["–"] * 4 and lines[-3].split()[:2] == ["loop0", "99.8"]


def test_the_table_shows_the_layers_of_a_stack() -> None:
    lines = table_lines(Target(DEVICE, "/dev/loop0", "loop0", ("loop0", "vda")))
    assert lines[0].split()[-1] == "loop0"
    assert [line.split()[:2] for line in lines[-1:]] == [["└", "vda"]]
    assert len(table_lines(Target(DEVICE, "/dev/loop0", "loop0", ("loop0",)))) == len(lines) - 2


# -- a recording


def test_several_devices_are_recorded_and_replayed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "two.iops")
    tape = RecordingBuffer(BOTH, dict, 1.0, True, (), recorder)
    for raw in RAWS:
        tape.sample(raw)
    tape.stop()
    with Recording(tmp_path / "two.iops") as recording:
        assert recording.header.target == BOTH
        replayed = [
            frame_object(e.frame) for e in replay_events(recording) if isinstance(e, FrameReady)
        ]
    assert replayed == [frame_object(event.frame) for event in frames()]


def test_an_older_recording_has_one_target() -> None:
    old = {"Target": ["kind", "path", "device", "tree", "no_device", "fstype", "mountpoint"]}
    values = ["device", "/dev/vda1", "vda1", ["vda1", "vda"], "", None, None]
    target = Decoder(old, form.NAMES)(Target, values)
    assert target == Target(DEVICE, "/dev/vda1", "vda1", ("vda1", "vda")) and not target.has_several
    assert target.opened == ("vda1",)


def test_an_older_iopstui_can_read_a_new_recording() -> None:
    layout = form.all_layouts()["Target"]
    values = encoder(Target)(BOTH)
    assert layout[:7] == [
        "kind", "path", "device", "tree", "no_device", "fstype", "mountpoint",
    ]  # fmt: skip
    assert values[2] == "loop0" and values[3] == list(BOTH.tree)
    assert json.loads(json.dumps(values)) == values


# -- findings and expectations


def make_frames(count: int, iops: float, reads_by_device: dict[str, float]) -> tuple[object, ...]:
    rates = {name: disk(value) for name, value in reads_by_device.items()}
    return tuple(seconds(count, interval=fio(iops), disks=rates))


TWO = (device(name="loop0"), device(name="loop1"))


def test_fio_is_compared_with_the_sum_of_the_devices() -> None:
    frames = make_frames(4, 10_000, {"loop0": 5_000.0, "loop1": 5_000.0})
    assert diagnosis.count_mismatch(Evidence(frames, devices=TWO)) is None  # type: ignore[arg-type]
    finding = diagnosis.count_mismatch(Evidence(frames, devices=TWO[:1]))  # type: ignore[arg-type]
    assert finding is not None and "other devices" not in finding.text
    less = make_frames(4, 10_000, {"loop0": 3_000.0, "loop1": 3_000.0})
    finding = diagnosis.count_mismatch(Evidence(less, devices=TWO))  # type: ignore[arg-type]
    assert finding is not None and "loop0 and loop1 together 6" in finding.text


def test_uncounted_targets_explain_a_difference() -> None:
    frames = make_frames(4, 10_000, {"loop0": 5_000.0})
    evidence = Evidence(frames, devices=TWO[:1], uncounted_targets=("tmpfs keeps files in memory",))  # type: ignore[arg-type]
    finding = diagnosis.count_mismatch(evidence)
    assert finding is not None and "tmpfs keeps files in memory" in finding.text


def test_a_tag_shortage_counts_the_queues_of_all_devices() -> None:
    from iopstui.model.findings.evidence import JobShape

    disks = {name: changed(disk(5_000.0), aqu_sz=128.0) for name in ("loop0", "loop1")}
    frames = tuple(replace(f, disks=disks) for f in make_frames(4, 10_000, {"loop0": 1.0}))
    deep = JobShape(jobs=2, iodepth=150)
    finding = diagnosis.tag_shortage(Evidence(frames, devices=TWO, shape=deep))  # type: ignore[arg-type]
    assert finding is not None and "has 256.0 (aqu-sz)" in finding.text
    assert "loop0 has one queue" in finding.text and "loop1 has one queue" in finding.text
    assert (
        diagnosis.tag_shortage(Evidence(frames, devices=TWO, shape=JobShape(iodepth=256))) is None
    )  # type: ignore[arg-type]


def test_device_names_as_text() -> None:
    devices = [device(name=f"vd{letter}") for letter in "abcdefg"]
    assert (
        device_names_text(devices[:1]) == "vda"
        and device_names_text(devices[:3]) == "vda, vdb and vdc"
    )
    assert device_names_text(devices) == "vda, vdb, vdc and 4 more" and device_names_text([]) == ""


def test_a_removed_device_of_several_ends_the_run() -> None:
    watch = DeviceWatch(BOTH.devices_below)
    reduced = replace(RAWS[2].kernel, disks={"loop0": RAWS[2].kernel.disks["loop0"]})  # type: ignore[union-attr, type-var]
    assert watch.feed(replace(RAWS[1], fio=None)) == ""
    assert "loop1 has disappeared" in watch.feed(replace(RAWS[2], fio=None, kernel=reduced))


def test_an_expectation_of_several_devices_uses_their_sum() -> None:
    total = parse_expectation("r/s>=5k", BOTH.tree, 0.0, BOTH.opened)
    assert total.path == ("kernel", TOTAL, "r/s")
    single = parse_expectation("loop1.util<=90%", BOTH.tree, 0.0, BOTH.opened)
    assert single.path == ("kernel", "disks", "loop1", "util")
    with pytest.raises(UsageError) as caught:
        parse_expectation("util<=90%", BOTH.tree, 0.0, BOTH.opened)
    assert "loop0.util or loop1.util" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        parse_expectation("r/s>=1", ("vda1", "vda"), 0.0, ())
    assert "no total" in caught.value.message
    alone = parse_expectation("util<=90%", ("vda",), 0.0, ("vda",))
    assert alone.path == ("kernel", "disks", "vda", "util")


def test_the_mean_of_a_run_uses_the_sum() -> None:
    meter = Meter(("kernel", TOTAL, "r/s"))
    point = PointMeter(0.0)
    for event in frames():
        meter.add(event.frame)
        point.add(event.frame)
    result = point.point()
    assert meter.value == pytest.approx(300, rel=0.05)
    assert result is not None and result.device_iops == pytest.approx(300, rel=0.05)
    assert result.util is None and result.await_ns == pytest.approx(1e6)


def test_a_report_has_rows_for_the_sum_and_each_device() -> None:
    run = report_data.Run(1)
    for event in frames():
        run.add(event.frame, BOTH.tree)
    rows = list(report_words.device_rows(BOTH, [run]))
    assert [row[0] for row in rows] == [
        "1, 2 devices together", "1, loop0", "1, loop1", "1, └ vda1", "1, └ vda",
    ]  # fmt: skip
    total, loop0, loop1 = (int(row[1]) for row in rows[:3])
    assert total == loop0 + loop1 == 3 * loop0 and rows[3][1] == "–"
    single = list(report_words.device_rows(made.TARGET, [run]))
    assert [row[0] for row in single] == ["1"]
