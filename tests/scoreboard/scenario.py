"""What a scenario consists of, and what its session has to find."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from effect import Effect

HERE, LAB = "here", "lab"
SHARED_VECTORS, THREADIRQS, SOCKETS = "lab-shared-vectors", "lab-threadirqs", "lab-sockets"
PLACES: Mapping[str, str] = {
    HERE: "this machine: loop devices on files in memory, cgroups",
    LAB: "a virtual machine: null_blk, dm, md, scsi_debug, virtio and AHCI disks",
    SHARED_VECTORS: "a virtual machine whose disk has four queues and one interrupt",
    THREADIRQS: "a virtual machine whose interrupts are served by threads",
    SOCKETS: "a virtual machine with two sockets, a memory node in each",
}


class Absent(Exception):
    """The machine lacks something that a scenario needs; the message names it, and the scenario is
    left out."""


@dataclass
class Bench:
    """The place where one scenario's devices are made. ``stack`` removes them again, the last one
    first.

    ``here`` is a directory in memory. The session works on ``path``; ``node`` is the block device
    whose counters are read (the one below a file system). The session enters the cgroups in
    ``groups``; ``limits`` is the file that limits them. ``pids`` are the programs beside it, each
    the leader of a session of processes, in the order of their start; ``others`` the nodes of
    further disks that they use."""

    stack: ExitStack
    here: Path
    path: str = ""
    node: str = ""
    groups: list[Path] = field(default_factory=list)
    limits: Path | None = None
    pids: list[int] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def disk(self) -> str:
        """The kernel's name of ``node``, "" if there is none."""
        return kernel_name(self.node) if self.node else ""


def kernel_name(node: str) -> str:
    """The kernel's name of a block device: dm-0 of /dev/mapper/x."""
    number = os.stat(node).st_rdev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name


Recipe = Callable[[Bench], str]
"""Makes a device (or a directory on one), registers its removal, and gives its path."""
Action = Callable[[Bench], None]
"""Changes something in mid run."""
Beside = Callable[[Bench], None]
"""Begins other load, and registers its end."""
Proof = Callable[[Effect], str]
"""Why the kernel's counters don't show the scenario's physical effect; "" if they do."""


def no_proof(effect: Effect) -> str:
    """No proof, for scenarios whose effect the disk's counters don't show."""
    return ""


@dataclass(frozen=True)
class Scenario:
    """One situation. ``what`` describes it in the table.

    ``job`` has fio's options (``None``: the session runs no job, and ``during`` counts from its
    beginning). ``runs`` has the options that change for each run, all in one session; each run
    takes ``seconds``, after ``quiet`` seconds without a job. ``during`` has (seconds after the last
    run's first document of fio, what happens then).

    ``expected``: rule -> words that must be in each of its findings. ``allowed``: rules that may
    have findings, too, because these would be true. ``never``: words that no finding may have.

    ``more`` is further text of the job file, for sections after the first. ``truths`` are rules
    that may have findings if the counters show that these are true. ``fails``: fio itself has to
    end with an error."""

    name: str
    place: str
    what: str
    device: Recipe
    job: Mapping[str, object] | None
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    never: tuple[str, ...] = ()
    runs: tuple[Mapping[str, str], ...] = ({},)
    seconds: float = 7.0
    quiet: float = 0.0
    size: str | None = None
    beside: tuple[Beside, ...] = ()
    during: tuple[tuple[float, Action], ...] = ()
    watch: tuple[str, ...] = ()
    proof: Proof = no_proof
    more: str = ""
    truths: Mapping[str, Callable[[Effect], bool]] = field(default_factory=dict)
    fails: bool = False

    @property
    def length(self) -> float:
        """Seconds that the session runs, without making and removing its devices."""
        return self.quiet + self.seconds * (1 if self.job is None else len(self.runs))
