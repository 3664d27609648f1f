"""The probe of a session: begun and ended with it, told of in notices, never missed for long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iopstui.linux.devices.topology import online_cpus
from iopstui.linux.sysattr import read_text
from iopstui.model.metrics.probe import COSTS, MATRIX
from iopstui.model.samples import ProbeSample
from iopstui.session.context import Context

if TYPE_CHECKING:
    from iopstui.linux.probe.process import ProbeProcess


class Probe:
    """Used in the session's thread alone: bpftrace is killed when that ends."""

    def __init__(self, context: Context, interval_s: float) -> None:
        self._context = context
        self._interval_ms = max(250, round(interval_s * 1000))
        self._process: ProbeProcess | None = None
        self._begun = 0
        self._answered = False
        self.parts: tuple[str, ...] = ()

    def switch(self, parts: Sequence[str]) -> None:
        """Count these parts from now on; none: end the probe. What is in the way is told, and the
        session goes on without it."""
        self.close()
        if not parts:
            return
        # nothing of it is loaded before it is asked for
        from iopstui.linux.probe.process import ProbeProcess, keys_for
        from iopstui.linux.probe.ready import why_not
        from iopstui.linux.probe.regions import regions
        from iopstui.linux.probe.script import script
        from iopstui.linux.probe.tracepoints import read_tracepoints

        context = self._context
        followed = regions(context.target.tree, context.devices, context.roots)
        if not followed:
            context.warn("no probe: nothing under the target is a block device")
            return
        reason = why_not(context.roots, parts, followed)
        if reason is not None:
            context.warn(f"no probe: {reason[0]}. To mend it: {reason[1]}")
            return
        have = read_tracepoints(context.roots)
        keys = keys_for(len(online_cpus(context.roots)), MATRIX in parts)
        self._begun += 1
        self._answered = False
        self.parts = tuple(parts)
        self._process = ProbeProcess(
            script(parts, followed, have, self._interval_ms),
            followed, parts, self._begun, keys, context.clock, self._group_of,
        )  # fmt: skip
        words = f"the probe ({', '.join(parts)}) begins, which takes some seconds: {costs(parts)}"
        context.notice("info", words)

    @property
    def begins(self) -> bool:
        """Whether its programs are being loaded."""
        return self._process is not None and not self._answered

    def take(self) -> ProbeSample | None:
        """What it printed last, once. A probe that has ended, or doesn't answer, is told of."""
        process = self._process
        if process is None:
            return None
        sample = process.take()
        if sample is not None:
            self._answered = True
            return sample
        problem = process.problem()
        if problem:
            self.close()
            self._context.warn(f"the probe is off: {problem}. To look at it: iopstui doctor")
        return None

    def close(self) -> None:
        """End it; idempotent."""
        process, self._process = self._process, None
        self.parts = ()
        if process is not None:
            process.close()

    def _group_of(self, pid: int) -> str:
        """A task's cgroup (v2: the one line of /proc/PID/cgroup; else blkio's)."""
        text = read_text(self._context.roots.proc / str(pid) / "cgroup") or ""
        rows = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
        found = {row[1]: row[2] for row in rows}
        return next((path for kind, path in found.items() if "blkio" in kind), found.get("", ""))


def costs(parts: Sequence[str]) -> str:
    """What these parts cost, in words."""
    total = sum(COSTS[part] for part in parts)
    return f"about {total:.1f} µs of CPU for each I/O"
