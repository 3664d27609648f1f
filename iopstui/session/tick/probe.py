"""The probe of a session: start and stop it with the session, and report its problems."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from iopstui.model.metrics.probe import COST_US, PARTS, REFUSED
from iopstui.model.samples import ProbeSample
from iopstui.session.tick.context import Context

if TYPE_CHECKING:
    from iopstui.linux.probe.bpf_probe import BpfProbe

AUTOMATIC_MAX_IOPS = 100_000
"""At more I/Os per second the automatic probe is switched off: it would take some percent of a
CPU."""
AUTOMATIC_AGAIN_IOPS = AUTOMATIC_MAX_IOPS / 2
"""At fewer I/Os per second it is switched on again."""
IDLE_TICKS = 3
"""After this many ticks without a job the probe is switched on automatically."""


class SessionProbe:
    """The probe of one session. Use it only in the session's thread."""

    def __init__(self, context: Context, automatic: bool = False) -> None:
        self._context = context
        self._probe: BpfProbe | None = None
        self._number = 0
        self._has_requests = False
        """Whether a followed disk has requests of its own: only those have details."""
        self._automatic = automatic
        """Whether it is switched automatically; False once the user has switched it."""
        # counted from 0 at the start, too: the first tick has no rate, and the screen should appear
        # before 0.1 s of CPU time goes into the programs
        self._idle_ticks = 0
        self.why_off = ""
        """Why the requested probe is off; "" if it is on."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The things that the probe counts (model/metrics/probe.py); empty while it is off."""
        return self._probe.parts if self._probe is not None else ()

    def switch(self, on: bool) -> None:
        """Start or stop counting. If it cannot, the reason is reported and the session goes on
        without it."""
        self.close()
        self.why_off, self._automatic = "", False
        if not on:
            return
        self._begin()
        if self.why_off:
            self._context.warn(f"no probe: {self.why_off}")
        else:
            missing = [part for part in PARTS if part not in self.parts]
            lacks = f"; {REFUSED}: {', '.join(missing)}" if missing and self._has_requests else ""
            self._context.notice("info", f"probe on: {cost_text()}{lacks}")

    def adjust(self, job_runs: bool, ios_s: float | None) -> None:
        """Called at each tick. Unless the user has switched the probe, let it count while no job
        runs and the disks do less than AUTOMATIC_MAX_IOPS. Without permission, silently do
        nothing."""
        self._idle_ticks = 0 if job_runs else self._idle_ticks + 1
        if not self._automatic:
            return
        if self._probe is not None:
            if job_runs or (ios_s or 0.0) > AUTOMATIC_MAX_IOPS:
                self.close()
        elif (
            self._idle_ticks >= IDLE_TICKS
            and (ios_s or 0.0) < AUTOMATIC_AGAIN_IOPS
            and not self.why_off
        ):
            self._begin()

    def make_way_for_job(self) -> None:
        """End a probe that was switched on automatically, because a job is about to start."""
        self._idle_ticks = 0
        if self._automatic:
            self.close()

    def _begin(self) -> None:
        # imported only when the probe is requested
        from iopstui.linux.probe.bpf import why_no_probe
        from iopstui.linux.probe.bpf_probe import BpfProbe, ProbeUnusable
        from iopstui.linux.probe.regions import regions

        context, levels = self._context, self._context.target.levels
        followed = [
            replace(region, level=levels.get(region.name, 0))
            for region in regions(context.target.tree, context.devices, context.roots)
        ]
        if not followed:
            self.why_off = "no block device below the target"
            return
        reason = why_no_probe(context.roots)
        if reason is not None:
            self.why_off = f"{reason[0]}. To fix it: {reason[1]}"
            return
        self._number += 1
        self._has_requests = any(not region.bios for region in followed)
        try:
            self._probe = BpfProbe(followed, self._number, context.clock, context.roots)
        except ProbeUnusable as error:
            self.why_off = str(error)

    def take(self) -> ProbeSample | None:
        """Return the last counts, once. If the counts differ from the disks' own, end the probe
        with a message."""
        probe = self._probe
        sample = probe.take() if probe is not None else None
        problem = probe.problem() if probe is not None else ""
        if not problem:
            return sample
        self.close()
        self.why_off = f"{problem}. See: iopstui doctor"
        if not self._automatic:
            self._context.warn(f"probe off: {self.why_off}")
        return None

    def close(self) -> None:
        """End the probe. Idempotent."""
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.close()


def cost_text() -> str:
    return f"about {COST_US:.1f} µs of CPU per I/O"
