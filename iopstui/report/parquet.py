"""A recording's seconds as Parquet."""

from __future__ import annotations

from typing import BinaryIO

from iopstui.errors import UsageError
from iopstui.format import utc
from iopstui.linux.process.packages import require_packages
from iopstui.output.parquet import PACKAGE, ParquetSink
from iopstui.recording import layout as form
from iopstui.recording.partial_samples import ROWS_WITHOUT
from iopstui.recording.replay import ReplayFold, replay_events
from iopstui.report.redact import opened
from iopstui.report.sources import Source
from iopstui.report.table import print_why_incomplete
from iopstui.text import printable


def write_parquet(source: Source, redact: bool, out: BinaryIO) -> None:
    """A row for every frame, those of an experiment's runs too: ``step`` tells them apart. Missing
    (exit 5) without pyarrow, UsageError for a result of fio."""
    require_packages(PACKAGE)
    if not source.recorded:
        name = printable(str(source.path))
        raise UsageError(
            f"Parquet holds the seconds of a recording, but {name} is a fio result.",
            f"For CSV: iopstui report {name} -o {source.path.stem}.csv",
        )
    with opened(source.path, redact) as recording:
        recording.skip_unneeded_fields(ROWS_WITHOUT)
        target = recording.header.target
        about = _about(recording.header)
        shares, nvme = target.share_source, target.on_nvme
        sink = ParquetSink(out, target.devices_below, about, target.tree, shares, nvme)
        fold = ReplayFold(recording.header)
        try:
            for event in replay_events(recording, fold):
                sink.handle(event)
            sink.close()
        except BaseException:
            sink.abandon()
            raise
        print_why_incomplete(recording, fold)


def _about(header: form.Header) -> dict[str, str]:
    """Title: whose seconds these are."""
    metadata = {
        "version": header.iopstui,
        "host": header.host,
        "kernel": header.kernel,
        "target": header.target.path,
        "started": utc(header.started_ms) or "",
    }
    return {key: printable(value) for key, value in metadata.items()}
