"""Key d: choose what is measured, at the beginning or later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iopstui.errors import EXIT_OK, IopstuiError
from iopstui.ui.actions import EXPERIMENT, IDLE, LESSON, Action, Footer, Part
from iopstui.ui.core.key import Key
from iopstui.ui.core.messages import Controller, Discover, Loads, MakeController, MakeWatch
from iopstui.ui.port import Port

if TYPE_CHECKING:
    from iopstui.ui.dialogs.picker_rows import Entry


class TargetKeys(Part):
    """Makes the session for the targets that were chosen; ``opened`` is told of it, ``closed``
    when it is given up for another. ``loads`` is what the disks do, for the picker; ``lessons``
    opens their list, ``demo`` notes that the demo is wanted, ``None`` where there is none."""

    def __init__(
        self,
        port: Port,
        make: MakeController,
        discover: Discover,
        watch: MakeWatch | None,
        opened: Callable[[Controller], None],
        closed: Callable[[], None],
        loads: Loads | None,
        lessons: Callable[[], None] | None,
        demo: Callable[[], None] | None,
    ) -> None:
        super().__init__(port)
        self._make = make
        self._discover = discover
        self._watch = watch
        self._opened = opened
        self._closed = closed
        self._loads = loads
        self._lessons = lessons
        self._demo = demo
        self._pick = True

    def begin(self, targets: Sequence[str], pick: bool) -> None:
        """Opens ``targets``, or the picker. Where no picker was wanted, what can't be opened ends
        the screen."""
        self._pick = pick
        if pick:
            self._open_picker()
        else:
            self._open(targets)

    def _open_picker(self, reason: str = "") -> None:
        from iopstui.ui.dialogs.picker import Picker

        picker = Picker(
            self._discover, self.port.charset, reason, self._watch, self._loads, self._entries()
        )
        self.port.push(picker, self._picked)

    def _entries(self) -> list[Entry]:
        """What can be had without a device, before there is a session."""
        from iopstui.ui.dialogs.picker_rows import DEMO, DOCTOR, LESSONS

        if self.port.session is not None:
            return []
        wanted = ((LESSONS, self._lessons), (DEMO, self._demo), (DOCTOR, self._demo))
        return [entry for entry, there in wanted if there is not None]

    def _picked(self, choice: tuple[str, ...] | Entry | None) -> None:
        """``()`` is the scratch file; ``None`` leaves."""
        if choice is None:
            if self.port.session is None:
                self.port.leave(EXIT_OK)
            return
        if not isinstance(choice, tuple):
            self._enter(choice)
            return
        if self.port.session is not None:
            self._closed()
        self._open(choice)

    def _enter(self, entry: Entry) -> None:
        from iopstui.ui.dialogs.picker_rows import DEMO, DOCTOR, LESSONS

        if entry == DOCTOR:
            from iopstui.ui.dialogs.text import doctor_screen

            self.port.push(doctor_screen(self.port.charset), lambda _: self._open_picker())
        elif entry == DEMO and self._demo is not None:
            self._demo()
            self.port.leave(EXIT_OK)
        else:
            self._open(())
            if entry == LESSONS and self._lessons is not None and self.port.session is not None:
                self._lessons()

    def _open(self, targets: Sequence[str]) -> None:
        try:
            session = self._make(targets)
        except IopstuiError as error:
            if self._pick:
                self._open_picker(f"{error.message} {error.hint}".strip())
            else:
                self.port.leave_with(error)
            return
        self._pick = True
        self._opened(session)

    def choose_device(self) -> None:
        """Choose another target in the picker."""
        if self.port.dashboard is None:
            return
        if self.port.state.running:
            words = "a job is running: stop it first (r), then choose a device (d)"
            self.port.say("info", words)
            return
        self._open_picker()

    ACTIONS = (
        Action(
            "choose_device", (Key("d", "d"),), choose_device, title="Choose a device",
            help="choose another device (not while a job runs). Devices come and go in the list as"
            " they do; space marks several, and Enter opens them together", place=110,
            footer=(Footer("device", {IDLE: 60}),), disturbs=frozenset({EXPERIMENT, LESSON}),
            measures=True,
        ),
    )  # fmt: skip
