from __future__ import annotations

import csv
import io

import pytest
from fio_recordings import KINDS, statuses
from session_frames import session
from test_output_jsonl import ClosedPipe

from iopstui.events import Mark
from iopstui.format import utc
from iopstui.model.block.target import Target
from iopstui.model.metrics.fields import find_field
from iopstui.output.csv_out import RUN_COLUMNS, CsvSink


def rows(name: str, device: str | None = "vda") -> list[dict[str, str]]:
    stream = io.StringIO()
    sink = CsvSink(stream, [device] if device else [])
    for event in session(name):
        sink.handle(event)
    sink.close()
    return list(csv.DictReader(io.StringIO(stream.getvalue()), strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_each_frame_is_a_row_of_the_same_length(name: str) -> None:
    table = rows(name)
    assert len(table) == len(statuses(name))
    assert all(None not in row and None not in row.values() for row in table)


def test_headings_are_fields_of_the_registry() -> None:
    stream = io.StringIO()
    CsvSink(stream, ["vda"]).close()
    (header,) = csv.reader(io.StringIO(stream.getvalue()))
    assert header[:6] == ["t", "wall_ms", "utc", "step", "seconds", "flags"]
    assert len(set(header)) == len(header)
    for name in ("fio.read.iops", "fio.write.bw", "fio.total.clat.p99.9", "kernel.disks.vda.r/s",
                 "kernel.disks.vda.aqu-sz", "kernel.disks.vda.util"):  # fmt: skip
        assert name in header
    assert tuple(header[-7:]) == RUN_COLUMNS
    for name in header[:-7]:
        head, _, tail = name.partition("kernel.disks.vda.")
        path = ("kernel", "disks", "vda", tail) if tail else None
        assert head in ("flags",) or find_field(path or ("t",)) is not None


def test_values_equal_those_of_json_lines() -> None:
    first, second = rows("3.42-a-randread-grp")[:2]
    assert first["kernel.disks.vda.r/s"] == ""
    assert float(second["kernel.disks.vda.r_await"]) == 0.5
    assert float(second["fio.read.iops"]) == pytest.approx(75500, rel=0.05)
    assert second["fio.read.clat.p99"].isdigit()
    assert second["utc"] == utc(float(second["wall_ms"])) != ""
    assert second["fio.write.iops"] == ""
    assert second["fio.read.lat.p99"] == ""


def test_a_target_on_nvme_has_smart_columns() -> None:
    stream = io.StringIO()
    sink = CsvSink(stream, ["vda"], on_nvme=True)
    for event in session("3.42-a-randread-grp", probed=True):
        sink.handle(event)
    last = list(csv.DictReader(io.StringIO(stream.getvalue())))[-1]
    assert float(last["nvme.temperature"]) == 27
    assert float(last["nvme.write_amplification"]) == 1.5
    assert not any(name.startswith("nvme") for name in rows("3.42-a-randread-grp")[0])
    assert Target("device", "/dev/nvme0n1", "nvme0n1", ("nvme0n1",)).on_nvme
    assert not Target("device", "/dev/vda", "vda", ("vda",)).on_nvme


def test_flags_are_one_column() -> None:
    assert [row["flags"] for row in rows("3.42-a-randread-grp")] == [
        "",
        "",
        "",
        "",
        "FINAL PARTIAL",
    ]


def test_without_a_device_there_are_no_disk_columns() -> None:
    assert not [
        name
        for name in rows("3.42-a-randread-grp", None)[0]
        if name.startswith(("kernel.disks", "kernel.total"))
    ]


def test_cells_of_a_missing_device_are_empty() -> None:
    assert {row["kernel.disks.sdz.util"] for row in rows("3.42-a-randread-grp", "sdz")} == {""}


def test_only_frames_are_written() -> None:
    stream = io.StringIO()
    CsvSink(stream).handle(Mark(0, "x"))
    assert stream.getvalue() == ""


def test_a_closed_pipe_raises() -> None:
    sink = CsvSink(ClosedPipe())
    with pytest.raises(BrokenPipeError):
        for event in session("3.42-a-randread-grp"):
            sink.handle(event)


def test_syncs_have_columns_of_their_own() -> None:
    found = [row for row in rows("3.42-p-fsync") if row["fio.sync.p99"]]
    assert len(found) > 2
    assert all(
        0 < float(row["fio.sync.p50"]) <= float(row["fio.sync.p99"]) <= float(row["fio.sync.max"])
        for row in found
    )
