"""A recording as Parquet, read by pyarrow: the cells equal those of the CSV."""

from __future__ import annotations

import csv
import errno
import io
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import recordings as made

from iopstui import events
from iopstui.cli.program import main
from iopstui.errors import Missing, UsageError
from iopstui.features.reports import rows as report_rows
from iopstui.features.reports.files import report, write_report, write_report_file
from iopstui.features.reports.formats import DEFAULT_OPTIONS, ReportOptions
from iopstui.features.reports.rows import ParquetTable
from iopstui.model.metrics.fields import find_field
from iopstui.output.csv_out import RUN_COLUMNS, CsvSink
from iopstui.recording.reader import Recording, recording_path
from iopstui.recording.replay import replay_events
from iopstui.tables import Column

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
LOGS = Path(__file__).parents[1] / "fixtures" / "fiologs"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.iops"


def read_table(path: Path, redact: bool = False) -> Any:
    out = io.BytesIO()
    write_report([path], "parquet", ReportOptions(redact), out)
    return pyarrow.parquet.read_table(out)


def csv_rows(path: Path) -> list[dict[str, str]]:
    """The figures per second. The CSV report of an experiment has its points instead."""
    stream = io.StringIO()
    with Recording(path) as recording:
        target = recording.header.target
        sink = CsvSink(stream, target.devices_below, target.tree, on_nvme=target.on_nvme)
        for event in replay_events(recording):
            sink.handle(event)
        sink.close()
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    return [{name: row[name] for name in row if name not in RUN_COLUMNS} for row in rows]


def parquet_value(name: str, text: str) -> object:
    """The value in Parquet of a cell of the CSV."""
    if name == "flags":
        return text
    if text == "":
        return None
    if name == "utc":
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(text) if name == "step" else float(text)


@pytest.mark.parametrize(
    ("name", "rows"),
    [("demo", report_rows.ROWS), ("demo", 10), ("affinity", 5), ("places", 2), ("sweep", 3)],
)
def test_every_cell_equals_that_of_the_csv(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_rows, "ROWS", rows)
    path = recording_path("demo") if name == "demo" else RECORDINGS / f"{name}.iops"
    expected = csv_rows(path)
    parquet_table = read_table(path)
    assert (
        parquet_table.column_names == list(expected[0]) and len(parquet_table) == len(expected) > 2
    )
    for name in parquet_table.column_names:
        assert parquet_table[name].to_pylist() == [
            parquet_value(name, row[name]) for row in expected
        ], name


def test_types_do_not_depend_on_what_was_measured(path: Path) -> None:
    buffer = made.tape(path)
    made.tell(buffer, made.raws(made.RUN)[:1])
    buffer.close(events.SessionEnded(1.0, 0))
    bare, demo = read_table(path), read_table(made.EARLIER_DEMO)
    assert set(bare["fio.read.iops"].to_pylist()) == {None}, "nothing ran: not known, and not 0"
    assert bare.schema.types == demo.schema.types and len(bare) == 1
    assert {str(kind) for kind in bare.schema.types} == {
        "double", "int64", "string", "timestamp[ms, tz=UTC]"
    }  # fmt: skip


def test_a_recording_without_samples_is_a_table_without_rows() -> None:
    out = io.BytesIO()
    with ParquetTable(out, [Column("kernel.disks.vda.r/s")], {}):
        pass
    parquet_table = pyarrow.parquet.read_table(out)
    assert len(parquet_table) == 0 and parquet_table.column_names == ["kernel.disks.vda.r/s"]


def test_each_column_has_unit_and_meaning(path: Path) -> None:
    made.write(path)
    schema = read_table(path).schema
    beside = json.loads(schema.metadata[b"iopstui.fields"])
    for column in schema:
        head, _, tail = column.name.partition("kernel.disks.vda.")
        disk, percentile = ("kernel", "disks", "vda", tail), column.name.split("p99.9")
        parts = disk if tail else tuple(percentile[0].split("."))
        if len(percentile) > 1:
            parts = (*parts[:-1], "p99.9" + percentile[1])
        field = find_field(("flags", "*") if head == "flags" else parts)
        assert field is not None, column.name
        metadata = {key.decode(): value.decode() for key, value in column.metadata.items()}
        assert metadata["unit"] == field.unit and metadata["meaning"] == field.meaning.strip()
        assert beside[column.name] == {key: metadata[key] for key in ("unit", "source", "meaning")}
    started_at = schema.metadata[b"iopstui.started"].decode()
    assert datetime.fromisoformat(started_at.replace("Z", "+00:00")).tzinfo == timezone.utc


def test_a_redacted_table_has_nothing_private() -> None:
    plain, bare = (read_table(recording_path("demo"), redact) for redact in (False, True))
    assert bare.schema.metadata[b"iopstui.host"] == b"redacted"
    assert bare.schema.metadata[b"iopstui.target"] == b"redacted"
    assert bare.equals(plain), "figures stay"


def test_a_symlink_is_replaced_not_its_target(path: Path, tmp_path: Path) -> None:
    made.write(path)
    link_target, out = tmp_path / "other", tmp_path / "x.parquet"
    link_target.write_text("another's")
    out.symlink_to(link_target)
    assert report([str(path)], str(out)) == 0
    assert link_target.read_text() == "another's" and not out.is_symlink()
    assert pyarrow.parquet.read_metadata(out).num_rows == len(csv_rows(path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other", "run.iops", "x.parquet"]


class FullDisk(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() > 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def test_a_full_disk_leaves_the_old_file(path: Path, tmp_path: Path) -> None:
    made.write(path)
    with pytest.raises(OSError, match="No space left"):
        write_report([path], "parquet", DEFAULT_OPTIONS, FullDisk())
    out = tmp_path / "x.parquet"
    out.write_text("old")
    with pytest.raises(UsageError, match=r"Cannot write the report .*No space left"):
        write_report_file(
            out, lambda _: write_report([path], "parquet", DEFAULT_OPTIONS, FullDisk())
        )
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.iops", "x.parquet"]


def test_a_recording_that_is_cut_off_gives_its_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.iops"
    cut.write_bytes(recording_path("demo").read_bytes()[:30_000])
    for name in ("x.parquet", "x.csv"):
        assert report([str(cut)], str(tmp_path / name)) == 0
        assert "the recording is damaged or cut off" in capsys.readouterr().err
    rows = pyarrow.parquet.read_metadata(tmp_path / "x.parquet").num_rows
    assert 5 < rows == len(csv_rows(cut)) < len(csv_rows(recording_path("demo")))


# -- errors


def test_without_pyarrow_the_command_to_install_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["report", "demo", "-o", str(tmp_path / "x.parquet")]) == 5
    stderr = capsys.readouterr().err
    assert "pyarrow is missing" in stderr and f"{sys.executable} -m pip install pyarrow" in stderr
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Missing, match="pyarrow"):
        ParquetTable(io.BytesIO(), [], {})


def test_inputs_without_rows_per_second_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a fio result") as caught:
        write_report([LOGS / "avg.json"], "parquet", DEFAULT_OPTIONS, io.BytesIO())
    assert "-o avg.csv" in caught.value.hint
    with pytest.raises(UsageError, match="Parquet holds the rows of one recording, not of 2"):
        write_report([recording_path("demo")] * 2, "parquet", DEFAULT_OPTIONS, io.BytesIO())
    fleet = tmp_path / "fleet.jsonl"
    fleet.write_text('{"event": "fleet", "schema": 1, "hosts": ["a"]}\n')
    with pytest.raises(UsageError, match=r"but no frames"):
        write_report([fleet], "parquet", DEFAULT_OPTIONS, io.BytesIO())


def test_binary_output_to_a_terminal_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert report(["demo"], None, "parquet") == 0
    assert capsysbinary.readouterr().out.startswith(b"PAR1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(UsageError, match="is a binary format"):
        report(["demo"], "-", "parquet")
    assert capsysbinary.readouterr().out == b""
