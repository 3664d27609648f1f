"""The keys of a replay, which move through the recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iopstui.recording.player import Player
from iopstui.text import printable
from iopstui.ui.actions import EXPERIMENT_SCREEN, OVER_EXPERIMENT, REPLAY, Action, Footer, Part
from iopstui.ui.core.key import Key
from iopstui.ui.draw.charts.axis_rows import time_at, time_bar
from iopstui.ui.draw.layout import FULL_HEIGHT
from iopstui.ui.draw.rows import Row
from iopstui.ui.port import Port

HELP = "Keys of a replay (iopstui replay FILE)"
SEEK_S = 10.0
MARK_REACHED_S = 1.0
"""If a mark is no further away than this, the replay counts as being at the mark."""
RECORDED = "this is a recording; it cannot run jobs or change anything"
REPLACED_ACTIONS = frozenset({"freeze", "walk", "stride", "ends"})
"""Actions of the live screen that a replay replaces."""
EXPERIMENT_ACTIONS = frozenset({"sweep", "compare", "stop_experiment"})
"""Actions that, in a replay, only show recorded experiments."""


def works_in_replay(action: Action) -> bool:
    """Whether the action's key does the same in a recording as on the live screen."""
    return not action.measures and action.id not in REPLACED_ACTIONS | EXPERIMENT_ACTIONS


class ReplayKeys(Part):
    """Refuses keys that measure. Keys that change the view work as on a live screen."""

    def __init__(self, port: Port, session: Player[Any, Any]) -> None:
        super().__init__(port)
        self._session = session

    def strip(self, width: int, height: int, tabbed: bool) -> Sequence[Row]:
        """The whole recording as a bar, for the rows above the message."""
        session = self._session
        marks = [(t, printable(text)) for t, text in session.marks]
        labelled = bool(marks) and height >= FULL_HEIGHT
        return time_bar(session.at, session.end, marks, width, labelled, self.port.charset)

    def go_to(self, column: int, width: int) -> None:
        """Go to the second at this column of the bar, which has ``width`` columns."""
        self._session.seek(time_at(column, self._session.end, width))

    def refuses(self, action: Action) -> bool:
        """Refuse actions that would measure, change or mark something."""
        if action.measures:
            self.port.show_message("info", RECORDED)
        return action.measures

    @property
    def space_action(self) -> str:
        """What the space key does now, as its label in the footer."""
        session = self._session
        if session.at >= session.end and not session.growing:
            return "Again"
        return "Continue" if session.paused else "Pause"

    @property
    def position_text(self) -> str:
        mode = "FOLLOW" if self._session.growing else "REPLAY"
        at, end = map(self._session.time_text, (self._session.at, self._session.end))
        day, _, clock = end.rpartition(" ")
        return f"{mode} {at} / {clock if at.rpartition(' ')[0] == day else end}"

    @property
    def pace_text(self) -> str:
        return "paused" if self._session.paused else f"×{self._session.speed:g}"

    @property
    def mode(self) -> str | None:
        return REPLAY

    @property
    def has_marks(self) -> bool:
        return bool(self._session.marks)

    def pause(self) -> None:
        """Pause or resume; at the end, play from the beginning."""
        at_end = self._session.at >= self._session.end and not self._session.growing
        self._session.pause(not self._session.paused and not at_end)
        self._refresh()

    def seek(self, direction: int) -> None:
        """Jump a little forward or back."""
        self._session.seek_by(direction * SEEK_S)

    def next_mark(self) -> None:
        """Jump to the next mark; after the last one, to the first."""
        times = [t for t, _ in self._session.marks]
        if times:
            at = self._session.at + MARK_REACHED_S
            self._session.seek(next((t for t in times if t > at), times[0]))

    def ask_time(self) -> None:
        from iopstui.ui.dialogs.questions import Prompt

        session = self._session
        text = (f"Recorded: {session.time_text(0.0)} to {session.time_text(session.end)}. "
                f"Type a time, like {session.time_example}.")  # fmt: skip
        prompt = Prompt("Go to", text, "", session.time_of, self.port.charset)
        self.port.push(prompt, self._go_to_time)

    def _go_to_time(self, text: str | None) -> None:
        if text is not None:
            self._session.seek(self._session.time_of(text))

    def next_second(self, by: int) -> None:
        """Choose a cell of the heat map in the next or the previous second."""
        self.port.open_dashboard.walk(by)
        self.port.open_dashboard.paint(even_if_frozen=True)

    def edge(self, end: bool) -> None:
        """Jump to the beginning or to the end."""
        self._session.seek(self._session.end if end else 0.0)

    def speed(self, up: bool) -> None:
        self.port.show_message(
            "info", f"×{self._session.change_speed(up):g}: seconds of the recording in one"
        )
        self._refresh()

    def next_sample(self) -> None:
        """Show just the next sample, then pause."""
        self._session.step()

    def _refresh(self) -> None:
        self.port.refresh_footer()
        self.port.paint()

    ACTIONS = (
        Action(
            "pause", (Key("space", "space"),), pause, title="Pause or continue",
            help="pause, continue; at the end: play again", place=10,
            footer=(
                Footer(lambda replay: replay.pace_text, {REPLAY: 0, EXPERIMENT_SCREEN: 0},
                       key=lambda replay: replay.position_text),
                Footer(lambda replay: replay.space_action, {REPLAY: 10, EXPERIMENT_SCREEN: 10}),
            ),
            scope=OVER_EXPERIMENT,
        ),
        Action(
            "seek", (Key("left", "left", -1), Key("right", "right", 1)), seek,
            help="10 seconds back, forward; in the heat map one second", place=20,
            term="left right",
            footer=(Footer("10 s", {REPLAY: 30}, key="← →",
                           when=lambda keys: not keys.port.in_cell),),
            applies=lambda keys: not keys.port.in_cell,
        ),
        Action(
            "next_second", (Key("left", "left", -1), Key("right", "right", 1)), next_second,
            footer=(Footer("Second", {REPLAY: 5}, key="← →", when=lambda keys: keys.port.in_cell),),
            applies=lambda keys: keys.port.in_cell,
        ),
        Action(
            "edge", (Key("home", "home", False), Key("end", "end", True)), edge,
            help="to the start, to the end", place=30, term="home end",
            footer=(Footer("Go there", {REPLAY: 40}),),
        ),
        Action(
            "next_mark", (Key("n", "n"),), next_mark, help="to the next mark", place=35,
            footer=(Footer("Next mark", {REPLAY: 35}, when=lambda replay: replay.has_marks),),
        ),
        Action(
            "go_to", (Key("g", "g"),), ask_time, title="Go to a time",
            help="to a time that you type", place=36,
        ),
        Action(
            "speed", (Key("less_than_sign", "<", False), Key("greater_than_sign", ">", True)),
            speed, help="slower, faster", place=40, footer=(Footer("Speed", {REPLAY: 50}),),
        ),
        Action(
            "next_sample", (Key("full_stop", "."),), next_sample, help="next sample", place=50,
            footer=(Footer("Next sample", {REPLAY: 60}),),
        ),
    )  # fmt: skip
