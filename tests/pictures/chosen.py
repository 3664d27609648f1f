"""The pictures of the documents. A new one only needs an entry in ``PICTURES`` or ``STILLS``.

Not every machine can make these recordings. They were made in an emulated guest with 4 CPUs in two
sockets, whose disk has one queue; nameless.py then removed the names, and from affinity iopstui's
own CPU time, which is not that of a real CPU.

affinity    the disk limited to 800 IOPS; iopstui run /dev/vda --job randread-4k --set runtime=33
            --set numjobs=4 --set iodepth=4 --set cpus_allowed=0-3 --set cpus_allowed_policy=split
            --knob rq_affinity=0 --knob rq_affinity=1@10 --knob rq_affinity=2@21 --record RAW
busy        the disk limited to 80 MB/s; iopstui watch /dev/vda --for 40s --record RAW beside a fio
            that reads 4 KiB each; two dd bs=1M iflag=direct join it from second 16 to 29"""

from __future__ import annotations

from dataclasses import dataclass

from iopstui.recording.reader import DEMO

_RECORDINGS = "tests/fixtures/recordings"


@dataclass(frozen=True, slots=True)
class Picture:
    """``recording`` ("demo" or a file) and ``out`` are below the repository's root; ``rows`` is the
    height of the screen."""

    recording: str
    out: str
    rows: int = 36


@dataclass(frozen=True, slots=True)
class Still:
    """The screen with ``size`` (columns, rows) at second ``at_s`` of a recording."""

    recording: str
    out: str
    at_s: float
    size: tuple[int, int]


PICTURES = (
    Picture(DEMO, "docs/depth.svg"),
    Picture(f"{_RECORDINGS}/sweep.iops", "docs/sweep.svg"),
    # the map of completions is on screens with 53 rows or more
    Picture(f"{_RECORDINGS}/affinity.iops", "docs/affinity.svg", rows=53),
    Picture(f"{_RECORDINGS}/busy.iops", "docs/busy.svg"),
)

STILLS = (Still(DEMO, "docs/screen.svg", 33.0, (160, 45)),)
