"""Set a tunable back and forth while a job runs, and report the difference. It ends with the value
that was in force at the start, however it ends; the session restores the first one."""

from __future__ import annotations

from iopstui import events
from iopstui.model.findings.tunable_effect import SPAN_S, SPANS, Alternation
from iopstui.session.tick.context import Context
from iopstui.session.tick.findings import FindingTracker
from iopstui.session.tunable_changes import TunableChanges


class TunableAlternation:
    """Used in the session's thread. ``start`` begins, ``follow`` takes the next step when it is
    due, ``stop`` ends it early."""

    def __init__(self, context: Context, changes: TunableChanges, tracker: FindingTracker) -> None:
        self._context = context
        self._tracker = tracker
        self._changes = changes
        self._active: Alternation | None = None
        self._listens = False
        # whether a change is its own; why it has to end
        self._sets = False
        self._why = ""

    @property
    def is_active(self) -> bool:
        """Whether one is under way."""
        return self._active is not None

    def start(self, name: str, values: tuple[str, str]) -> None:
        """Begin with the first of the values; the second one is in force now."""
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
        """End it early."""
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
        # the last change alone would be reported in its place
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
