"""Change the tunables of the disks below the target, report the changes, and restore them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from iopstui import events
from iopstui.errors import IopstuiError, UsageError
from iopstui.linux.machine.topology import online_cpus
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.tunable import TunableRequest, irq_of, why_rq_affinity_cannot_matter
from iopstui.model.findings.tunable_effect import SPAN_S, SPANS, Alternation
from iopstui.safety.tunables import (
    AppliedChange,
    Tunables,
    queued_disks,
    read_tunable,
    why_not_changeable,
)
from iopstui.session.tick.context import Context
from iopstui.session.tick.findings import FindingTracker
from iopstui.session.tick.sampling import Sampling


class TunableChanges:
    """Changes tunables during a session. ``requests`` come from the command line. Used only in the
    session's thread."""

    def __init__(
        self, context: Context, sampling: Sampling, requests: Sequence[TunableRequest]
    ) -> None:
        self._context = context
        self._sampling = sampling
        self._tunables = Tunables(context.roots)
        self._requests = list(requests)

    def apply_initial(self) -> None:
        """Set the tunables of the command line before the first run."""
        now = [knob for knob in self._requests if knob.after_s is None]
        self._requests = [knob for knob in self._requests if knob.after_s is not None]
        for knob in now:
            self.change(knob.name, knob.value)

    def apply(self, knobs: Sequence[tuple[str, str]]) -> None:
        """Set a run's own tunables, if they don't have these values already."""
        for name, value in knobs:
            disks = self._disks(name)
            if any(read_tunable(disk, name, self._context.roots) != value for disk in disks):
                self.change(name, value)

    def reapply(self, settings: Sequence[tuple[str, str]]) -> None:
        """Set the tunables again after an experiment; a refusal becomes a Notice."""
        for setting in settings:
            try:
                self.apply([setting])
            except IopstuiError as error:
                self._context.notice("error", error.full_text)

    @property
    def has_delayed(self) -> bool:
        """Whether some tunables will be set later in a run."""
        return bool(self._requests)

    def apply_due(self, began_ns: int | None) -> None:
        """Set the tunables whose time in the run has come."""
        if began_ns is None or not self._requests:
            return
        seconds = (self._context.clock.monotonic_ns() - began_ns) / 1e9
        due = [knob for knob in self._requests if (knob.after_s or 0.0) <= seconds]
        self._requests = [knob for knob in self._requests if knob not in due]
        for knob in sorted(due, key=lambda knob: knob.after_s or 0.0):
            self.try_change(knob.name, knob.value)

    def try_change(self, name: str, value: str) -> IopstuiError | None:
        """Change a tunable; a refusal becomes a Notice and is returned."""
        try:
            self.change(name, value)
        except IopstuiError as error:
            self._context.notice("error", error.full_text)
            return error
        return None

    def try_apply(self, name: str, value: str) -> bool:
        """Set a tunable unless it has this value already; a refusal becomes a Notice. True if the
        tunable has this value now."""
        try:
            self.apply([(name, value)])
        except IopstuiError as error:
            self._context.notice("error", error.full_text)
            return False
        return True

    def change(self, name: str, value: str) -> None:
        """Change a tunable on every disk that has it. Raises UsageError, Refused or Missing."""
        context, disks = self._context, self._disks(name)
        # refuse before any change if one disk is known to refuse: all disks or none
        for refusal in (why_not_changeable(device, name, context.roots) for device in disks[1:]):
            if refusal is not None:
                raise refusal
        changes: list[AppliedChange] = []
        for device in disks:
            reason = why_rq_affinity_cannot_matter(device, online_cpus(context.roots))
            if name == "rq_affinity" and reason is not None:
                context.warn(f"rq_affinity has no effect on {device.name}: {reason}")
            try:
                changes.append(self._tunables.set(device, name, value))
            except IopstuiError:
                self._undo(changes, disks)
                raise
            self._emit_marks(changes, value)
        names = ", ".join(device.name for device in disks)
        before = "/".join(dict.fromkeys(change.before for change in changes))
        if len(disks) > 1:
            context.notice("info", f"{name} {before} → {changes[0].now} on all of them: {names}")
        if any(change.before != change.now for change in changes):
            self._sampling.note_tunable_change(names, name, before, changes[0].now)

    def _emit_marks(self, changes: Sequence[AppliedChange], value: str) -> None:
        """Put marks for these changes; disks with the same change share one."""
        context, change = self._context, changes[-1]
        context.refresh_devices()
        now, name = context.now(), change.name
        context.emit(events.TunableChanged(now, change.device, name, change.before, change.now))
        if all(
            (earlier.before, earlier.now) != (change.before, change.now) for earlier in changes[:-1]
        ):
            context.emit(events.Mark(now, f"{name} {change.before} → {change.now}"))
        if change.adjusted:
            context.notice("info", f"the kernel changed {name}={value} to {change.now}")

    def _undo(self, changes: Sequence[AppliedChange], disks: Sequence[BlockDevice]) -> None:
        """Undo the change on the disks before the one that refused it, or the disks would
        differ."""
        for change, device in zip(changes, disks, strict=False):
            with contextlib.suppress(IopstuiError):
                self._emit_marks(
                    [self._tunables.set(device, change.name, change.before)], change.before
                )

    def _disks(self, name: str) -> list[BlockDevice]:
        target = self._context.target
        disks, irq = queued_disks(target, self._context.devices), irq_of(name)
        if not disks:
            subject = ", ".join(target.devices_below) or target.path
            raise UsageError(f"Cannot change {name}: {subject} has no device with a request queue.")
        # if no disk has the interrupt, try the first one: its refusal lists the interrupts
        return [d for d in disks if irq in {v.irq for v in d.irqs}] or disks[:1] if irq else disks

    def restore(self) -> None:
        if self._tunables.changed:
            failed = self._tunables.restore()
            for problem in failed:
                self._context.notice("error", problem)
            if self._tunables.device_gone:
                self._context.notice("info", "the device is gone, and its changed tunables with it")
            elif not failed:
                self._context.notice("info", "all changed tunables restored")


# Set a tunable back and forth while a job runs, and report the difference. However it ends, the
# tunable then has the value from its start; the session restores the original one.


class TunableAlternation:
    """Sets a tunable to two values in turn. Used only in the session's thread. ``start`` begins,
    ``follow`` takes the next step when it is due, ``stop`` ends it early."""

    def __init__(self, context: Context, changes: TunableChanges, tracker: FindingTracker) -> None:
        self._context = context
        self._tracker = tracker
        self._changes = changes
        self._active: Alternation | None = None
        self._listens = False
        # True while a change of the tunable is made here; the reason to end the alternation
        self._sets = False
        self._why = ""

    @property
    def is_active(self) -> bool:
        """Whether an alternation is under way."""
        return self._active is not None

    def start(self, name: str, values: tuple[str, str]) -> None:
        """Begin with the first of the values; the second one is the current value."""
        if self._active is not None:
            return
        if not self._listens:
            self._listens = True
            self._context.add_sink(self._take)
        devices = ", ".join(self._context.target.devices_below)
        self._active = Alternation(devices, name, values)
        self._context.notice(
            "info", f"{name} {values[0]} and {values[1]} in turn for {SPANS * SPAN_S:.0f} s"
        )
        self._set_next()

    def stop(self, why: str) -> None:
        """End the alternation early."""
        active, self._active, self._why = self._active, None, ""
        if active is not None:
            self._changes.try_apply(active.name, active.values[1])
            self._context.notice("info", f"{active.name}: {why}, so nothing is compared")

    def follow(self) -> None:
        """Set the next value, or report the result."""
        active = self._active
        if self._why:
            self.stop(self._why)
        if self._active is None or active is None or not active.is_due(self._context.now()):
            return
        if active.next_value is not None:
            self._set_next()
            return
        self._active = None
        context = self._context
        finding = active.finding(
            [context.device(name) for name in context.target.opened if name in context.devices]
        )
        if finding is None:
            context.notice("warning", f"{active.name}: too few whole seconds to compare")
            return
        # forget the last change, or its effect would be reported separately
        self._tracker.forget_tunable_change()
        context.emit(events.FindingReported(context.now(), finding))
        context.notice("info", finding.text)

    def _set_next(self) -> None:
        active = self._active
        if active is None or active.next_value is None:
            return
        self._sets = True
        is_set = self._changes.try_apply(active.name, active.next_value)
        self._sets = False
        if not is_set:
            self.stop("it could not be set")
            return
        active.begin_span(self._context.now())

    def _take(self, event: events.Event) -> None:
        if self._active is None:
            return
        if isinstance(event, events.FrameReady):
            self._active.add(event.frame)
        elif isinstance(event, events.StepFinished | events.StepStarted):
            self._why = "the run ended"
        elif isinstance(event, events.TunableChanged) and not self._sets:
            self._why = "another setting was changed"
