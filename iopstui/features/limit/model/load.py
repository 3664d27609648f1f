"""A job that sends I/Os at a rate whatever the disk does: its options, and what can't do that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from iopstui.model.findings.evidence import SYNCHRONOUS, JobShape
from iopstui.model.fio.jobfile import Section

MIN_DEPTH, MAX_DEPTH = 64, 4096
MAX_BUFFER_BYTES = 256 << 20
DEPTH_FACTOR = 16
"""Room for so many times the I/Os that arrive within the bound. A queue that is full nevertheless
has only slow ones in it."""
DEEPER = 4
_MIXED = ("rw", "randrw", "readwrite")
_SYNCS = ("fsync", "fdatasync", "sync_file_range")


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """How a job's load is set: its ``jobs``, and ``mixed``, the share of reads of a job that does
    both (``None``: it does one)."""

    jobs: int
    mixed: float | None
    largest_block: int

    def depth(self, rate: float, bound_s: float, deeper: int = 0) -> int:
        """I/Os that each job may have in flight."""
        room = max(MIN_DEPTH, math.ceil(DEPTH_FACTOR * rate * bound_s)) * int(DEEPER**deeper)
        return max(1, math.ceil(min(room, self.most_in_flight) / self.jobs))

    @property
    def most_in_flight(self) -> int:
        """All jobs together: fio has a buffer for each."""
        return min(MAX_DEPTH, max(MIN_DEPTH, MAX_BUFFER_BYTES // self.largest_block))

    def options(self, rate: float, depth: int, seed: int) -> dict[str, str]:
        """What is set for ``rate``. Another ``seed`` has other arrivals, as chance has."""
        each = rate / self.jobs
        rates = [each] if self.mixed is None else [each * self.mixed, each * (1 - self.mixed)]
        return {
            "rate_iops": ",".join(str(max(1, round(part))) for part in rates),
            "rate_process": "poisson", "iodepth": str(depth), "randseed": str(seed),
        }  # fmt: skip

    def asked(self, rate: float) -> float:
        """The rate that ``options`` sets, in whole I/Os a second."""
        parts = self.options(rate, 1, 0)["rate_iops"].split(",")
        return float(self.jobs * sum(map(int, parts)))


def open_loop(shape: JobShape, section: Section, largest_block: int) -> OpenLoop:
    """Of a job that can be sent at a rate."""
    rw = section.options.get("rw", section.options.get("readwrite", "read")).partition(":")[0]
    mixed = None
    if rw in _MIXED:
        read, write = section.options.get("rwmixread"), section.options.get("rwmixwrite")
        mixed = float(read) / 100 if read else 1 - float(write) / 100 if write else 0.5
    return OpenLoop(shape.jobs, mixed if mixed not in (0, 1) else None, largest_block)


def why_no_open_loop(shape: JobShape, options: Mapping[str, str]) -> tuple[str, str] | None:
    """Why a job's arrivals would wait for the disk, and what to do; ``None``: they need not."""
    synchronous = shape.engine in SYNCHRONOUS and not shape.offloads
    if synchronous:
        return (f"the engine {shape.engine} waits for each I/O before it sends the next one",
                "Add --set ioengine=libaio, or io_uring.")  # fmt: skip
    if shape.engine == "libaio" and not shape.direct:
        return ("libaio waits in the submission of I/Os that go through the page cache",
                "Add --set direct=1, or --set ioengine=io_uring.")  # fmt: skip
    if shape.paced:
        return "the job sets its own pace", "Remove its rate, thinktime, flow and latency_target."
    for name in _SYNCS:
        if options.get(name, "0") != "0":
            return (f"the job waits for its own syncs ({name}={options[name]})",
                    f"Add --set {name}=0, or limit another job.")  # fmt: skip
    return None


def may_be_full(per_second: float, slowest_s: float, room: int) -> bool:
    """Whether a second's in-flight I/Os can have filled the queue: no more can be in flight at once
    than arrived within the slowest one's time."""
    most = per_second * slowest_s
    return most + 4 * math.sqrt(most) + 4 >= room
