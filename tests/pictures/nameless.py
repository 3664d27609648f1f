"""Copy a recording without this machine's names: host, kernel's suffix and mount points.

    .venv/bin/python tests/pictures/nameless.py RAW.iops OUT.iops [--emulated]

--emulated also leaves out iopstui's own CPU time: an emulated CPU needs many times as much as a
real one, so readers would think that iopstui costs that much."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from iopstui.model.block.device import BlockDevice, Mount
from iopstui.recording import layout as form
from iopstui.recording.coding import encoder
from iopstui.recording.reader import EventRecord, Record, Recording
from iopstui.recording.writer import Chunk, Recorder

HOST = "demo"


def copy(source: Path, out: Path, kernel: str = "", emulated: bool = False) -> None:
    """Copy every record of ``source`` to a new file ``out``, which anybody may read. ``kernel`` is
    the measured machine's, if ``source`` was put together on another one. ``emulated``: leave out
    iopstui's own CPU time. Raises UsageError if ``source`` is no recording or ``out`` exists; a
    damaged recording is copied up to the damage."""
    with Recording(source) as recording:
        release = (kernel or recording.header.kernel).partition("-")[0]
        header = dataclasses.replace(recording.header, host=HOST, kernel=release)
        head = {"layouts": form.all_layouts(), "header": encoder(form.Header)(header)}
        chunks: list[Chunk] = [(form.HEADER, 0.0, lambda: head)]
        chunks += (_chunk(record, emulated) for record in recording.records())
    recorder = Recorder(out)
    # all at once, because putting them one by one could overflow the queue
    recorder.put_all(chunks)
    recorder.close()
    if recorder.problem:
        raise OSError(recorder.problem)
    out.chmod(0o644)


def _chunk(record: Record, emulated: bool) -> Chunk:
    if not isinstance(record, EventRecord):
        raw = dataclasses.replace(record.raw, own_busy_s=None) if emulated else record.raw
        return (form.SAMPLE, record.t, (int(record.is_shown), raw))
    value = record.value
    if isinstance(value, form.RecordedDevices):
        value = form.RecordedDevices(tuple(map(_mounted_at_root, value.devices)))
    kind = type(value)
    record_data = [form.NAMES[kind], encoder(kind)(value)]
    return (form.EVENT, record.t, lambda: record_data)


def _mounted_at_root(device: BlockDevice) -> BlockDevice:
    if not device.mounts:
        return device
    return dataclasses.replace(device, mounts=(Mount("/", device.mounts[0].fstype),))


if __name__ == "__main__":
    copy(Path(sys.argv[1]), Path(sys.argv[2]), emulated="--emulated" in sys.argv[3:])
