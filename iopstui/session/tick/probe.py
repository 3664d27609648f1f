"""The probe of a session: start and stop it with the session, and report its problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from iopstui.linux.machine.topology import online_cpus
from iopstui.linux.sysattr import read_text
from iopstui.model.metrics.probe import (
    BPFTRACE,
    BUILT_IN,
    BUILT_IN_COST_US,
    COST_US,
    LATENCY,
    MATRIX,
    PROCESSES,
)
from iopstui.model.samples import ProbeSample
from iopstui.session.tick.context import Context
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.linux.probe.bpf_probe import BpfProbe
    from iopstui.linux.probe.script import Region


AUTOMATIC_MAX_IOPS = 100_000
"""Above this rate the probe is not on by itself: it would take some percent of a CPU."""
AUTOMATIC_AGAIN_IOPS = AUTOMATIC_MAX_IOPS / 2
"""Below this rate it is on again."""
IDLE_TICKS = 3
"""Ticks without a job before it is on by itself."""


class ProbeBackend(Protocol):
    """A way to count: iopstui's own BPF programs, or bpftrace."""

    def take(self) -> ProbeSample | None:
        """The newest reading, once."""

    def problem(self) -> str:
        """Why no more readings will come; "" while it works."""

    def close(self) -> None:
        """End it; idempotent."""


class SessionProbe:
    """The probe of one session. Use it only in the session's thread: bpftrace is killed when
    that ends."""

    def __init__(self, context: Context, interval_s: float, automatic: bool = False) -> None:
        self._context = context
        self._interval_ms = max(250, round(interval_s * 1000))
        self._counter: ProbeBackend | None = None
        self._keeper: ProbeBackend | None = None
        """Keeps single requests where bpftrace counts."""
        self._with_own_programs = False
        self._followed: list[Region] = []
        self._probe_number = 0
        self._answered = False
        self._automatic = automatic
        """Whether it is on by itself; until somebody switches it."""
        self._idle_ticks = IDLE_TICKS
        self.parts: tuple[str, ...] = ()
        self.why_off = ""
        """What is in the way of the probe that was asked for; "" while nothing is."""

    def switch(self, parts: Sequence[str]) -> None:
        """Count these parts from now on; none: end the probe. What is in the way is told, and the
        session goes on without it. What cannot count everything counts latencies."""
        self.close()
        self.why_off, self._automatic = "", False
        if not parts or not self._find_disks():
            return
        own_problem = ""
        if set(parts) <= {LATENCY, PROCESSES}:
            own_problem = self._begin_own(parts)
            if not own_problem:
                return
        self._begin_bpftrace(parts, own_problem)

    def adjust(self, job_runs: bool, ios_s: float | None) -> None:
        """Called each tick: where nobody has switched it, count latencies while no job runs and
        the disks do less than AUTOMATIC_MAX_IOPS. Without a right to do so, say nothing."""
        self._idle_ticks = 0 if job_runs else self._idle_ticks + 1
        if not self._automatic:
            return
        if self._counter is not None:
            if job_runs or (ios_s or 0.0) > AUTOMATIC_MAX_IOPS:
                self.close()
        elif (
            self._idle_ticks >= IDLE_TICKS
            and (ios_s or 0.0) < AUTOMATIC_AGAIN_IOPS
            and not self.why_off
            and self._find_disks()
        ):
            programs = self._own_programs(self._followed)
            if isinstance(programs, str):
                self.why_off = programs
            else:
                self._set_counter((LATENCY,), programs, True)

    def make_way_for_job(self) -> None:
        """A job is about to start: end a probe that nobody asked for."""
        self._idle_ticks = 0
        if self._automatic:
            self.close()

    def _find_disks(self) -> bool:
        """Find what is to be followed; False if there is nothing."""
        # nothing of it is loaded before it is asked for
        from iopstui.linux.probe.regions import regions

        context, levels = self._context, self._context.target.levels
        disk_regions = regions(context.target.tree, context.devices, context.roots)
        self._followed = [
            replace(region, level=levels.get(region.name, 0)) for region in disk_regions
        ]
        if not self._followed:
            self._turn_off("no block device below the target")
        return bool(self._followed)

    def _begin_own(self, parts: Sequence[str]) -> str:
        """Why it doesn't count; "" if it does."""
        programs = self._own_programs(self._followed)
        if isinstance(programs, str):
            return programs
        if not set(parts) <= set(programs.parts):
            programs.close()
            return "the kernel does not let them count by process"
        self._set_counter(parts, programs, True)
        message = f"probe on ({', '.join(parts)}), with own programs: {costs(parts, BUILT_IN)}"
        self._context.notice("info", message)
        return ""

    def _own_programs(self, followed: Sequence[Region]) -> BpfProbe | str:
        """Programs of its own for these disks, or why there are none."""
        from iopstui.linux.probe.bpf_probe import BpfProbe, ProbeUnusable

        context = self._context
        try:
            return BpfProbe(followed, self._probe_number + 1, context.clock, context.roots)
        except ProbeUnusable as error:
            return str(error)

    def _keep_requests(self) -> str:
        """Keep single requests of those disks of the stack that have any, where others below or
        above are followed by their bios. The words for it; "" if that is not so."""
        with_requests = [region for region in self._followed if not region.bios]
        if not with_requests or len(with_requests) == len(self._followed):
            return ""
        programs = self._own_programs(with_requests)
        if isinstance(programs, str):
            return ""
        self._keeper = programs
        names = ", ".join(region.name for region in with_requests)
        return f"; own programs keep single requests of {names}, {costs((LATENCY,), BUILT_IN)}"

    def _begin_bpftrace(self, parts: Sequence[str], own_problem: str) -> None:
        from iopstui.linux.probe.availability import ONLY_ROOT, why_no_probe
        from iopstui.linux.probe.process import ProbeProcess, map_keys_for
        from iopstui.linux.probe.script import script
        from iopstui.linux.probe.tracepoints import read_tracepoints

        context, followed = self._context, self._followed
        own_hint = f" (own programs would cost less but do not work: {own_problem})"
        reason = why_no_probe(context.roots, parts, followed)
        if reason is not None and not own_problem and not self._begin_own((LATENCY,)):
            self._context.notice("info", f"only latencies are counted: {reason[0]}")
            return
        if reason is not None:
            # the same right was missing for both
            hint = own_hint if own_problem and reason[0] != ONLY_ROOT else ""
            self._turn_off(f"{reason[0]}. To fix it: {reason[1]}{hint}")
            return
        have = read_tracepoints(context.roots)
        keys = map_keys_for(len(online_cpus(context.roots)), MATRIX in parts)
        counter = ProbeProcess(
            script(parts, followed, have, self._interval_ms),
            followed, parts, self._probe_number + 1, keys, context.clock, self._group_of,
        )  # fmt: skip
        self._set_counter(parts, counter, False)
        note = self._keep_requests() if set(parts) <= {LATENCY} else ""
        message = f"probe on ({', '.join(parts)}), with bpftrace, ready in some seconds: "
        why = note or (own_hint if own_problem else "")
        context.notice("info", message + costs(parts) + why)

    def _turn_off(self, why: str) -> None:
        self.why_off = why
        if not self._automatic:
            self._context.warn(f"no probe: {why}")

    def _set_counter(
        self, parts: Sequence[str], counter: ProbeBackend, with_own_programs: bool
    ) -> None:
        self._probe_number += 1
        self._answered = False
        self.parts = tuple(parts)
        self._counter, self._with_own_programs = counter, with_own_programs

    @property
    def is_starting(self) -> bool:
        """Whether its programs are being loaded."""
        return self._counter is not None and not self._answered

    def take(self) -> ProbeSample | None:
        """The last counts, once. A probe that has ended, or doesn't answer, is told of; programs of
        its own that count something else are replaced by bpftrace's."""
        counter = self._counter
        if counter is None:
            return None
        sample = self._with_requests(counter.take())
        problem = counter.problem()
        if sample is not None and not (problem and self._with_own_programs):
            self._answered = True
            return sample
        if problem:
            parts, with_own_programs = self.parts, self._with_own_programs
            self.close()
            if self._automatic:
                self.why_off = problem
            elif with_own_programs:
                self._begin_bpftrace(parts, problem)
            else:
                self.why_off = f"{problem}. See: iopstui doctor"
                self._context.warn(f"probe off: {self.why_off}")
        return None

    def _with_requests(self, sample: ProbeSample | None) -> ProbeSample | None:
        """A reading of bpftrace's with the requests that were kept until now."""
        kept_sample = self._keeper.take() if self._keeper is not None else None
        if sample is None or kept_sample is None:
            return sample
        return replace(sample, exemplars=kept_sample.exemplars)

    def close(self) -> None:
        """End it; idempotent."""
        backends = (self._counter, self._keeper)
        self._counter = self._keeper = None
        self.parts = ()
        for backend in backends:
            if backend is not None:
                backend.close()

    def _group_of(self, pid: int) -> str:
        """A task's cgroup (v2: the one line of /proc/PID/cgroup; else blkio's)."""
        text = read_text(self._context.roots.proc / str(pid) / "cgroup") or ""
        rows = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
        paths = {row[1]: row[2] for row in rows}
        path = next((path for kind, path in paths.items() if "blkio" in kind), paths.get("", ""))
        return printable(path)


def costs(parts: Sequence[str], by: str = BPFTRACE) -> str:
    """Cost of these parts, in words."""
    total = BUILT_IN_COST_US if by == BUILT_IN else sum(COST_US[part] for part in parts)
    return f"about {total:.1f} µs of CPU per I/O"
