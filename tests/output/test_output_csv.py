from __future__ import annotations

import csv
import io

import pytest
from fio_recordings import KINDS, statuses
from session_frames import session
from test_output_jsonl import ClosedPipe

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


def test_a_closed_pipe_raises() -> None:
    sink = CsvSink(ClosedPipe())
    with pytest.raises(BrokenPipeError):
        for event in session("3.42-a-randread-grp"):
            sink.handle(event)
