"""The run that was asked for and has not begun yet, and what it will differ by."""

from __future__ import annotations

from iopstui.ui.core.options import BY_OPTION, shown_value

NOT_STOPPED, STOPS_WITHIN = 2, 30


class NextRun:
    """``asked``: a run was asked for and has neither begun nor failed yet."""

    def __init__(self, requested: bool = False, after: int | None = None) -> None:
        self.asked = requested
        self.turned: dict[str, str] = {}
        """What was turned and no run was asked for with yet, in words, by option."""
        self._sent: dict[str, str] = {}
        """The same once a run was asked for with it, until that has begun."""
        self._after = after
        """The run that must stop first."""
        self._reports = 0
        """How often that has reported since."""

    def copy(self) -> NextRun:
        """Copy of the current request."""
        duplicate = self.without_changes()
        duplicate.turned, duplicate._sent = dict(self.turned), dict(self._sent)
        duplicate._reports = self._reports
        return duplicate

    def without_changes(self) -> NextRun:
        """Return it without the changed options."""
        return NextRun(self.asked, self._after)

    @property
    def pending(self) -> str:
        """Differences between the next run and the one shown, in words."""
        return ", ".join({**self._sent, **self.turned}.values())

    def ask(self, after: int | None) -> None:
        """A run is asked for, with all that was turned; run ``after`` will be stopped first."""
        self.asked, self._after = True, after
        self._reports = -STOPS_WITHIN
        self._sent.update(self.turned)
        self.turned.clear()

    def note_change(self, option: str, change: str) -> None:
        """``option`` was turned; no run was asked for with it yet."""
        self.turned[option] = change

    def forget_turned(self) -> None:
        """Forget the changed options for which no run was asked."""
        self.turned.clear()

    def ask_no_more(self) -> None:
        """Forget the run that was asked for."""
        self.asked = False
        self.turned.clear()
        self._sent.clear()

    def mark_applied(self, step: int, title: str) -> None:
        """Mark the requested change as in force, unless the run's title denies it: then it came too
        late for this run, and another follows."""
        for option, change in list(self._sent.items()):
            knob = BY_OPTION.get(option)
            title_value = shown_value(knob, title) if knob is not None else None
            if title_value is None or title_value == change.rpartition(" ")[2].lower():
                del self._sent[option]
        self.asked = bool(self._sent)
        self._after = step if self._sent else None
        self._reports = 0

    def reported(self, step: int, final: bool) -> None:
        """Run ``step`` goes on reporting, though it should have been stopped: none follows."""
        self._reports += not final
        if self._after == step and self._reports >= NOT_STOPPED:
            self._none_follows()

    def finished(self, step: int, interrupted: bool) -> None:
        """Run ``step`` has ended; the one that had to stop first doesn't answer for the next."""
        if step != self._after or not interrupted:
            self._none_follows()

    def _none_follows(self) -> None:
        self.asked, self._after = False, None
        self._sent.clear()
