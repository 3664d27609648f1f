"""The requested run that has not begun yet, and what it will differ by."""

from __future__ import annotations

from iopstui.ui.core.options import BY_OPTION, title_value

MAX_LATE_REPORTS, STOP_REPORTS = 2, 30


class NextRun:
    """``requested``: a run was requested and has neither begun nor failed yet."""

    def __init__(self, requested: bool = False, after: int | None = None) -> None:
        self.requested = requested
        self.changes: dict[str, str] = {}
        """Changes for which no run was requested yet, as text by option."""
        self._sent_changes: dict[str, str] = {}
        """Changes that a requested run has, until it has begun."""
        self._after = after
        """The run that must stop first."""
        self._reports = 0
        """How often that has reported since."""

    def copy(self) -> NextRun:
        """Copy of the current request."""
        duplicate = self.without_changes()
        duplicate.changes, duplicate._sent_changes = dict(self.changes), dict(self._sent_changes)
        duplicate._reports = self._reports
        return duplicate

    def without_changes(self) -> NextRun:
        """Return it without the changed options."""
        return NextRun(self.requested, self._after)

    @property
    def pending(self) -> str:
        """Differences between the next run and the one shown, in words."""
        return ", ".join({**self._sent_changes, **self.changes}.values())

    def request(self, after: int | None) -> None:
        """Request a run with all changes; run ``after`` will be stopped first."""
        self.requested, self._after = True, after
        self._reports = -STOP_REPORTS
        self._sent_changes.update(self.changes)
        self.changes.clear()

    def note_change(self, option: str, change: str) -> None:
        """Note a change of ``option`` for which no run was requested yet."""
        self.changes[option] = change

    def forget_changes(self) -> None:
        """Forget the changes for which no run was requested."""
        self.changes.clear()

    def cancel(self) -> None:
        """Forget the requested run."""
        self.requested = False
        self.changes.clear()
        self._sent_changes.clear()

    def mark_applied(self, step: int, title: str) -> None:
        """Mark the requested change as in force, unless the run's title denies it: then it came too
        late for this run, and another follows."""
        for option, change in list(self._sent_changes.items()):
            knob = BY_OPTION.get(option)
            running_value = title_value(knob, title) if knob is not None else None
            if running_value is None or running_value == change.rpartition(" ")[2].lower():
                del self._sent_changes[option]
        self.requested = bool(self._sent_changes)
        self._after = step if self._sent_changes else None
        self._reports = 0

    def reported(self, step: int, final: bool) -> None:
        """Run ``step`` goes on reporting, though it should have been stopped: none follows."""
        self._reports += not final
        if self._after == step and self._reports >= MAX_LATE_REPORTS:
            self._drop_request()

    def finished(self, step: int, interrupted: bool) -> None:
        """Run ``step`` has ended; the one that had to stop first doesn't answer for the next."""
        if step != self._after or not interrupted:
            self._drop_request()

    def _drop_request(self) -> None:
        self.requested, self._after = False, None
        self._sent_changes.clear()
