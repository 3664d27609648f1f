"""Keep iopstui off the measured CPUs if other CPUs are available.

fio must not inherit CPUs or priority: it is started inside ``unpinned``, by the only thread that
keeps its priority."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from iopstui.errors import UsageError
from iopstui.format import ranges
from iopstui.linux import own_threads
from iopstui.linux.kernel_files import parse_cpu_list
from iopstui.model.block.device import BlockDevice

_LIST = re.compile(r"[\d\s,-]+")


def job_cpus(text: str) -> frozenset[int] | None:
    """The CPUs to which a job file confines its jobs; ``None`` if a job is not confined or its CPUs
    are unknown."""
    from iopstui.model.fio import jobfile

    allowed: set[int] = set()
    for section in jobfile.effective_sections(text):
        option = section.options.get("cpus_allowed", "")
        cpus = parse_cpu_list(option)
        # fio accepts more ("0-max"): then the CPUs are unknown
        if not cpus or not _LIST.fullmatch(option):
            return None
        allowed.update(cpus)
    return frozenset(allowed) or None


def measured_cpus(jobs: Iterable[int], disks: Sequence[BlockDevice]) -> frozenset[int]:
    """The CPUs of the jobs, and the CPUs that serve the interrupts of their queues."""
    cpus = set(jobs)
    for disk in disks:
        used_queues = {hctx.index for hctx in disk.hctxs if cpus & set(hctx.cpus)}
        # if the interrupts of the queues are known, other interrupts (configuration,
        # administration) don't matter
        queues_known = any(vector.hctx is not None for vector in disk.irqs)
        for vector in disk.irqs:
            of_all = vector.shared or (vector.hctx is None and not queues_known)
            if of_all or vector.hctx in used_queues:
                cpus.update(vector.effective_cpus)
    return frozenset(cpus)


class OwnCpus:
    """Sets the CPUs and priority of iopstui's own threads.

    ``cpus`` None: chosen for each job (``for_job``); empty: never confined. ``nice`` (0 to 19) is
    the priority of all threads but the session's, which must read the kernel on time."""

    def __init__(self, cpus: Sequence[int] | None = (), nice: int = 0) -> None:
        self._automatic = cpus is None
        self._cpus = frozenset(cpus or ())
        self._nice = nice
        impossible = self._cpus - own_threads.initial_cpus()
        if impossible:
            raise UsageError(
                f"iopstui cannot run on CPU {ranges(impossible)}, only on "
                f"{ranges(own_threads.initial_cpus())}."
            )

    def begin(self) -> str:
        """Apply the requested CPUs and priority in the session's thread, before anything else.
        Returns what failed, in words, or ""."""
        try:
            if self._cpus:
                own_threads.pin(self._cpus)
            if self._nice:
                own_threads.renice_others(self._nice)
        except OSError as error:
            return f"--cpu or --nice could not be applied: {error.strerror}"
        return ""

    def for_job(self, text: str, disks: Sequence[BlockDevice]) -> str:
        """Move, before a job starts, to a CPU that neither the job nor its device uses, if there is
        one. Returns what was done, in words, or ""."""
        if not self._automatic:
            return ""
        jobs = job_cpus(text)
        spare = own_threads.initial_cpus() - measured_cpus(jobs, disks) if jobs else frozenset()
        cpus = spare or own_threads.initial_cpus()
        if cpus == own_threads.current_cpus():
            return ""
        try:
            own_threads.pin(cpus)
        except OSError:
            return ""
        if not spare:
            return "iopstui may run on every CPU again"
        return f"iopstui itself runs on CPU {ranges(spare)}: not used by the job or the device"

    def unpinned(self) -> AbstractContextManager[None]:
        """Context in which new processes are not confined to these CPUs."""
        return own_threads.unpinned()
