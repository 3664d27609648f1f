"""Recordings made without a session, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fio_recordings import samples, statuses
from session_frames import kernel, probe

from iopstui import events
from iopstui.model.block.device import BlockDevice, Hctx, IrqVector
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.model.findings.diagnosis import Finding
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.metrics.summary import fio_summary
from iopstui.model.samples import JobThread, RawSample
from iopstui.recording import layout as form
from iopstui.recording.reader import EventRecord, Recording, SampleRecord
from iopstui.recording.writer import Recorder, RecordingBuffer

RUN = "3.33-p-mixed"
EARLIER_DEMO = Path(__file__).parents[1] / "fixtures" / "recordings" / "second-demo.iops"
"""The demo of earlier versions: two runs; rq_affinity is changed in the second."""
VDA = BlockDevice(
    "vda", "/dev/vda", 254, 0, "virtio-blk", 1 << 30, serial="SECRET-1",
    hctxs=(Hctx(0, (0, 1), 256, None),), irqs=(IrqVector(36, "virtio0-req.0", 0),),
)  # fmt: skip
TARGET = Target(DIRECTORY, "/srv/data", "vda", ("vda",), "", "ext4", "/")


def raws(name: str, probed: bool = False) -> list[RawSample]:
    """Raw samples with fio's and the kernel's part, as a session takes them."""
    return [
        replace(
            sample,
            kernel=kernel(number, sample.arrived_ns, sample.wall_ms + 2),
            jobs=(JobThread(0, 100, 1, (1,), 0.4 * number),),
            own_busy_s=0.01 * number,
            probe=probe(number, sample.arrived_ns) if probed else None,
        )
        for number, sample in enumerate(samples(statuses(name)))
    ]


def long_run(count: int, name: str) -> list[RawSample]:
    """``count`` samples, a second apart: one run of fio, and the idle time after it."""
    whole = raws(name)
    start = whole[0].arrived_ns
    return [
        replace(
            whole[min(n, len(whole) - 1)],
            seq=n,
            arrived_ns=start + n * 1_000_000_000,
            wall_ms=1e12 + n * 1000,
            kernel=kernel(n, start + n * 1_000_000_000, 1e12 + n * 1000),
            fio=whole[n].fio if n < len(whole) else None,
            step=1 if n < len(whole) else 0,
            final=False,
        )
        for n in range(count)
    ]


def tape(path: Path | None, idle_frames: bool = True) -> RecordingBuffer:
    """A recording buffer that writes to ``path`` from its first sample on."""
    recorder = Recorder(path) if path is not None else None
    return RecordingBuffer(TARGET, lambda: {"vda": VDA}, 1.0, idle_frames, (), recorder)


def others(name: str) -> tuple[list[object], list[object]]:
    """The events around a run: before its first sample, and after its last."""
    final = statuses(name)[-1]
    before: list[object] = [
        form.JobRun(
            1, "randread-4k", {"iodepth": "8"}, None, False, "[a]\nname=\xe4\n", ("/srv/data/x",)
        ),
        events.StepStarted(
            0.0, 1, "randread-4k", "randread 4k", ("fio", "j"), True, "run", final.version
        ),
        events.Mark(0.5, "mark <1>"),
    ]
    after: list[object] = [
        events.TunableChanged(1.0, "vda", "rq_affinity", "1", "2"),
        events.FindingReported(1.5, Finding("rule", "all I/O completes on CPU 1", "try 2", "a")),
        events.StepFinished(2.0, 1, 0, "", False, fio_summary(final), ("a line of fio",)),
    ]
    return before, after


def write(path: Path, name: str = RUN, taken: Sequence[RawSample] | None = None) -> list[RawSample]:
    """Write a complete recording of one run. Returns its raw samples."""
    taken = raws(name) if taken is None else taken
    before, after = others(name)
    one = tape(path)
    tell(one, [taken[0], *before, *taken[1:], *after])
    assert one.close(events.SessionEnded(2.5, 0)) == ""
    return list(taken)


def tell(one: RecordingBuffer, happenings: Iterable[object]) -> None:
    for what in happenings:
        if isinstance(what, RawSample):
            one.sample(what)
        elif isinstance(what, form.JobRun):
            one.job(what)
        else:
            one.event(what)  # type: ignore[arg-type]


def read(path: Path) -> tuple[list[SampleRecord], list[EventRecord], str]:
    """The samples, all other records, and the damage."""
    with Recording(path) as recording:
        records = list(recording.records())
        return (
            [r for r in records if isinstance(r, SampleRecord)],
            [r for r in records if isinstance(r, EventRecord)],
            recording.damage,
        )


def frames(taken: Iterable[RawSample]) -> list[Frame]:
    builder = FrameBuilder(opened=TARGET.opened)
    return [builder.feed(raw) for raw in taken]
