"""The tunables of the target's disks: their values, their meaning, and why one can't be changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import OptionList, Static

from iopstui.errors import UsageError
from iopstui.format import cut
from iopstui.model.block.tunable import parse_tunable
from iopstui.safety.tunables import TunableState
from iopstui.text import printable
from iopstui.ui.core import key
from iopstui.ui.core.key import Key
from iopstui.ui.core.modal import CLOSE_HINT, FRAME_ROWS, LIST_KEYS, Hint
from iopstui.ui.dialogs.questions import Choice, Picker, Prompt
from iopstui.ui.dialogs.text import FILTER_HINT, TypeToFilter
from iopstui.ui.draw.style import BOLD, DIM, ERROR, KEY, WARNING, Charset
from iopstui.ui.state.live import LiveState, missing_devices_text

HINTS: tuple[Hint, ...] = (
    ("Enter", "Change", "screen.take"), ("z", "Undo", "screen.undo"), FILTER_HINT, CLOSE_HINT,
)  # fmt: skip
RESTORED = "restored at the end"
LEAST_ROWS = 24
"""The rows of the box on a high terminal for few tunables: enough for each explanation."""
MESSAGE_ROWS = 4
NOTHING_TO_CHANGE = "none can be changed here"
UNEQUAL_VALUES = (
    "the disks had different values, so z cannot restore them; they are restored at the end"
)
NO_TUNABLES = "No device with a request queue here, so there are no tunables."


class Settings(TypeToFilter, Picker[None]):
    """Changes a tunable with ``set_tunable(name, value)``. The result arrives as a message of the
    session; the newest message is shown at the bottom."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        *LIST_KEYS,
        Binding("z", "undo", "undo"),
    ]

    size_class = "wide"
    about = (
        "Tunables of the disks' queues and interrupts: Enter changes the selected one, z restores "
        "it. All are restored at the end."
    )

    def __init__(
        self,
        read_tunables: Callable[[], Sequence[TunableState]],
        set_tunable: Callable[[str, str], None],
        state: LiveState,
        charset: Charset,
        no_tunables: str = NO_TUNABLES,
        opened_by: Key = key.SETTINGS,
    ) -> None:
        super().__init__("Tunables of the disks", charset, HINTS, opened_by)
        self._no_tunables = no_tunables
        self._read_tunables = read_tunables
        self._set_tunable = set_tunable
        self._state = state
        self.items: Sequence[TunableState] = []
        self._original_values: list[str | None] = []
        self._message = ""
        self._opened_at = state.t
        self._ready = False
        self._rows = LEAST_ROWS

    def _fit(self) -> None:
        super()._fit()
        self.box.styles.max_height = min(self.body_height + FRAME_ROWS, self._rows)

    def content(self) -> ComposeResult:
        """List, explanation, the newest message."""
        with Horizontal(classes="modal-body"):
            yield OptionList(id="jobs-list")
            with VerticalScroll(id="jobs-scroll", classes="modal-beside", can_focus=False):
                yield Static(id="jobs-text", classes="modal-text")
        yield Static(id="settings-said", classes="modal-said")

    def on_mount(self) -> None:
        """Focus the list."""
        self._rows = max(LEAST_ROWS, len(self._read_tunables()) + FRAME_ROWS + MESSAGE_ROWS)
        self._ready = True
        self.explain()
        self.paint()
        self.query_one(OptionList).focus()

    def paint(self) -> None:
        """Read the tunables again: the kernel does not notify of changes."""
        if not self._ready:
            return
        knobs = [
            knob
            for knob in self._read_tunables()
            if self.matches(knob.name, knob.meaning, knob.now)
        ]
        originals = [self._original_value(knob) for knob in knobs]
        if (knobs, originals) != (self.items, self._original_values):
            self._fill(knobs, originals)
        notice = self._state.visible_notice()
        message = notice.text if notice is not None and notice.t >= self._opened_at else ""
        if message != self._message:
            self._message = message
            is_problem = notice is not None and notice.level in ("error", "warning")
            text = Text(self.charset.text(message), style=ERROR if is_problem else "")
            self.query_one("#settings-said", Static).update(text)

    def apply_filter(self) -> None:
        self.paint()
        self._show_keys()

    def _show_keys(self) -> None:
        read_only = self.items and all(knob.refused for knob in self.items)
        self.set_title(self.heading, NOTHING_TO_CHANGE if read_only else RESTORED)
        self._hints = (FILTER_HINT, CLOSE_HINT) if read_only else HINTS
        self.show_hints(self.filter_hint, self._typing)

    def _fill(self, knobs: list[TunableState], originals: list[str | None]) -> None:
        chooser = self.query_one(OptionList)
        highlighted = chooser.highlighted or 0
        if [knob.name for knob in knobs] != [knob.name for knob in self.items]:
            self.show_items(knobs, map(self._label, knobs), min(highlighted, len(knobs) - 1))
        else:
            previous = zip(self.items, self._original_values, strict=True)
            for index, current in enumerate(zip(knobs, originals, strict=True)):
                if current != next(previous):
                    chooser.replace_option_prompt_at_index(index, self._label(current[0]))
        self.items, self._original_values = knobs, originals
        self.explain()
        self._show_keys()

    def _label(self, knob: TunableState) -> Text:
        label = Text(f"{printable(knob.name):<15}", style=BOLD)
        value, original = printable(knob.now), self._original_value(knob)
        if original is None:
            return label.append(self.charset.text(cut(value, 14)), style=KEY)
        label.append(self.charset.text(f"{cut(printable(original), 6)} → "), style="")
        return label.append(self.charset.text(cut(value, 6)), style=WARNING)

    def _original_value(self, knob: TunableState) -> str | None:
        """The value before this session changed it; ``None`` if it is unchanged."""
        originals, current = self._state.initial_tunables.get(knob.name, {}), dict(knob.by_disk)
        if all(current.get(disk, knob.now) == value for disk, value in originals.items()):
            return None
        return "/".join(dict.fromkeys(originals.values()))

    def action_undo(self) -> None:
        """Restore the original value of the tunable under the cursor."""
        knob: TunableState | None = self.selected
        if knob is None:
            return
        original = self._original_value(knob)
        if original is None:
            self._show_message(f"{knob.name} is as it was")
        elif len(set(self._state.initial_tunables[knob.name].values())) > 1:
            self._show_message(f"{knob.name}: {UNEQUAL_VALUES}")
        else:
            self._set_tunable(knob.name, original)

    def _show_message(self, message: str) -> None:
        self._message = message
        self.query_one("#settings-said", Static).update(Text(self.charset.text(printable(message))))

    def explain(self) -> None:
        knob: TunableState | None = self.selected
        empty_text = (
            "No tunable has all of these words." if self.filter_text else self._empty_text()
        )
        text = Text(self.charset.text(empty_text), style=DIM) if knob is None else self._about(knob)
        self.query_one("#jobs-text", Static).update(text)

    def _empty_text(self) -> str:
        missing = self._state.missing_devices
        if not missing:
            return self._no_tunables
        pronoun = "its" if len(missing) == 1 else "their"
        return f"{missing_devices_text(missing)}, so {pronoun} tunables can't be read or changed."

    def _about(self, knob: TunableState) -> Text:
        def clean(value: str) -> str:
            return self.charset.text(printable(value))

        text = Text().append(f"{clean(knob.name)} = {clean(knob.now)}\n\n", style=BOLD)
        original = self._original_value(knob)
        rows = [("Was", f"{original} when this session began to change it (z)")] if original else []
        rows += [*_meaning(knob.meaning), ("Allowed", knob.allowed)]
        rows += [(name, value) for name, value in knob.by_disk]
        for label, detail in rows:
            text.append(f"{clean(label)}: " if label else "  ", style=KEY)
            text.append(clean(detail) + "\n", style="")
        for label, detail in (
            ("No effect here", knob.idle),
            ("Can't be changed", knob.refused),
            ("Instead", knob.hint),
        ):
            if detail:
                text.append(f"\n{label}: ", style=WARNING)
                text.append(clean(detail) + "\n", style="")
        return text

    def take(self) -> None:
        """Ask for the new value of the tunable under the cursor."""
        knob: TunableState | None = self.selected
        if knob is None:
            return
        if knob.values:
            screen: Choice | Prompt = Choice(knob.name, knob.values, knob.now, self.charset)
        else:
            screen = Prompt(
                f"{knob.name} (now {knob.now})", f"Allowed: {knob.allowed}.", knob.now,
                lambda value: checked_value(knob.name, value), self.charset,
            )  # fmt: skip
        self.app.push_screen(screen, lambda value: self._set_value(knob.name, value))

    def _set_value(self, name: str, value: str | None) -> None:
        if value is not None and value.strip():
            self._set_tunable(name, value.strip())


def checked_value(name: str, value: str) -> str:
    """Check a value as ``--knob`` does. Raises UsageError for a value that no device accepts."""
    knob = parse_tunable(f"{name}={value}")
    if knob.after_s is not None:
        raise UsageError(
            f"{value!r} is not a value. Changes here are immediate: leave out @SECONDS"
        )
    return knob.value


def _meaning(meaning: str) -> list[tuple[str, str]]:
    """The meaning of a tunable, with a line for each value."""
    first, *values = re.split(r"(?:^|: |, |; )(?=-?\d )", meaning)
    if len(values) < 2:
        return [("Meaning", meaning)]
    return [("Meaning", first or "by value"), *(("", value) for value in values)]
