"""Actions: what each key does, defined in one place.

Bindings, the footer, the help's list of keys, the command palette and docs/reference/keys.md are
all made from the ``ACTIONS`` of the parts, which ui/keys.py collects. To add a key, add an
``Action``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from iopstui.ui.core.key import Key, KeyHint, press

if TYPE_CHECKING:
    from iopstui.ui.port import Port

DynamicText = str | Callable[[Any], str]
"""A fixed text, or a function of the part that returns one. "" means: not offered now."""

IDLE, RUNNING, EXPERIMENT, LESSON = "idle", "running", "experiment", "lesson"
EXPERIMENT_SCREEN, REPLAY = "experiment screen", "replay"
"""Modes of the screen; each has its own footer."""
FIRST_QUIET_POSITION = 1000
"""In the footer of an experiment or a lesson, quiet keys begin at this position."""

DASHBOARD, OVER_EXPERIMENT, ANYWHERE = "dashboard", "over experiment", "anywhere"
"""Where a key works: only on the dashboard, also on an experiment's screen, or everywhere."""
BOTH_SCREENS = frozenset({DASHBOARD, EXPERIMENT_SCREEN})
HOME = "home"
ALL_SCREENS = BOTH_SCREENS | {HOME}


@dataclass(frozen=True, slots=True)
class Footer:
    """An action's entry in the footer. ``text`` is shown in the footer of the modes in
    ``positions``, each with its position: smaller ones come first. ``key`` is how the key is
    written there, if not as in the action's keys."""

    text: DynamicText
    positions: Mapping[str, int]
    when: Callable[[Any], bool] = lambda part: True
    key: DynamicText = ""

    def position(self, mode: str, quiet: bool) -> int | None:
        if mode in self.positions:
            return self.positions[mode]
        if quiet and mode in (EXPERIMENT, LESSON) and IDLE in self.positions:
            return FIRST_QUIET_POSITION + self.positions[IDLE]
        return None


@dataclass(frozen=True, slots=True)
class Action:
    """The action of one or several keys. ``handler`` is a method of the action's part. ``help`` is
    its line in the help and in docs, sorted by ``place``; ``term`` is how the keys are written
    there, if they are not simply listed. ``title`` and ``note`` are for the command palette.
    ``applies`` returns whether there is anything to do now."""

    id: str
    keys: tuple[Key, ...]
    handler: Callable[..., object]
    title: DynamicText = ""
    note: DynamicText = ""
    help: str = ""
    place: int = 0
    term: str = ""
    footer: tuple[Footer, ...] = ()
    applies: Callable[[Any], bool] = lambda part: True
    scope: str = DASHBOARD
    disturbs: frozenset[str] = frozenset()
    """Modes in which the action is refused: EXPERIMENT, LESSON."""
    offered_on: frozenset[str] = frozenset({DASHBOARD})
    """The screens whose palette has the action: DASHBOARD, EXPERIMENT_SCREEN, HOME."""
    measures: bool = False
    """Whether the action runs, changes or marks something, which is impossible in a recording."""

    @property
    def quiet(self) -> bool:
        """True if the action disturbs neither a lesson nor an experiment."""
        return not self.disturbs

    @property
    def key_text(self) -> str:
        return self.term or "  ".join(key.label for key in self.keys if key.label)


def bindings(actions: Iterable[Action], on_dashboard: bool = False) -> list[BindingType]:
    """Bindings for the application; or, with ``on_dashboard``, for the dashboard, which then binds
    them itself."""
    return [
        Binding(
            key.names,
            ("app." if on_dashboard else "") + press(action.id, number),
            key.title or (action.title if isinstance(action.title, str) else "") or action.id,
            priority=key.names == "ctrl+c",
            show=key.names != "ctrl+c",
        )
        for action in actions
        for number, key in enumerate(action.keys)
        if key.names and key.on_dashboard == on_dashboard
    ]


def bindings_of_screen(actions: Iterable[Action]) -> list[BindingType]:
    """Return the bindings of all keys, for a screen that takes other keys as text."""
    return [
        Binding(key.names, "app." + press(action.id, number), key.title or action.id, show=False)
        for action in actions
        for number, key in enumerate(action.keys)
        if key.names
    ]


def help_rows(actions: Iterable[Action]) -> tuple[tuple[str, str], ...]:
    """(keys, description) in the order of the help."""
    documented = sorted(
        (action for action in actions if action.help), key=lambda action: action.place
    )
    return tuple((action.key_text, action.help) for action in documented)


class Part:
    """A group of keys and their actions; it knows the application only as a ``port``."""

    ACTIONS: ClassVar[tuple[Action, ...]] = ()
    HIDES: ClassVar[frozenset[str]] = frozenset()
    """Ids of actions that the footer and the command palette leave out while this part is there."""

    def __init__(self, port: Port) -> None:
        self.port = port

    @property
    def mode(self) -> str | None:
        """The screen's mode, if this part sets it; else ``None``."""
        return None

    def refuses(self, action: Action) -> bool:
        """True if ``action`` must not be done: the part has then shown why, or has done something
        else."""
        return False

    def offers(self, action: Action) -> bool:
        """Whether the command palette may offer ``action`` now."""
        return True


@dataclass
class Actions:
    """The actions of all parts of an application. ``excluded`` are ids of actions that are left out
    because others replace them. If several parts set the screen's mode, the last one of ``parts``
    wins."""

    parts: Sequence[Part]
    excluded: frozenset[str] = frozenset()
    by_id: dict[str, tuple[Action, Part]] = field(init=False)

    def __post_init__(self) -> None:
        self.by_id = {
            action.id: (action, part)
            for part in self.parts
            for action in part.ACTIONS
            if action.id not in self.excluded
        }

    def is_possible(self, action: str, on_dashboard: bool, over_experiment: bool) -> bool:
        """Whether the action's key has an effect on the present screen."""
        entry = self.by_id.get(action)
        if entry is None:
            return False
        # if an action does not apply, another action may have the same key
        if not entry[0].applies(entry[1]):
            return False
        scope = entry[0].scope
        return on_dashboard or scope == ANYWHERE or (scope == OVER_EXPERIMENT and over_experiment)

    def perform(self, name: str, number: int = 0) -> object:
        """Do the action with the argument of its ``number``-th key, unless a part refuses it."""
        action, part = self.by_id[name]
        if not action.applies(part) or any(p.refuses(action) for p in self.parts):
            return None
        argument = action.keys[number].argument
        return action.handler(part) if argument is None else action.handler(part, argument)

    @property
    def mode(self) -> str:
        return next((part.mode for part in reversed(self.parts) if part.mode), IDLE)

    def _visible(self) -> Iterator[tuple[Action, Part]]:
        hidden = frozenset().union(*(part.HIDES for part in self.parts))
        return (entry for entry in self.by_id.values() if entry[0].id not in hidden)

    def footer(self, mode: str) -> list[KeyHint]:
        """The keys that are useful in ``mode`` now. Each occurs once, with its most important
        action."""
        hints: list[tuple[int, KeyHint]] = []
        for action, part in self._visible():
            for footer in action.footer:
                place = footer.position(mode, action.quiet)
                if place is not None and footer.when(part):
                    key = _text_for(footer.key, part) or " ".join(
                        key.label for key in action.keys if key.label
                    )
                    hints.append((place, KeyHint(key, _text_for(footer.text, part))))
        by_key: dict[str, KeyHint] = {}
        for _, hint in sorted(hints, key=lambda item: item[0]):
            by_key.setdefault(hint.key, hint)
        return [*by_key.values()]

    def palette(self, screen: str) -> list[tuple[str, str, Callable[[], object]]]:
        """(title, help text, command) for the palette of DASHBOARD, EXPERIMENT_SCREEN or HOME."""
        commands: list[tuple[str, str, Callable[[], object]]] = []
        for action, part in self._visible():
            if screen not in action.offered_on or not action.applies(part):
                continue
            if not all(p.offers(action) for p in self.parts):
                continue
            for number, key in enumerate(action.keys):
                title = key.title or _text_for(action.title, part)
                if title and (number == 0 or key.title):
                    help_text = _palette_text(key.label, _text_for(action.note, part))
                    commands.append((title, help_text, _performer(self, action.id, number)))
        return commands


def _text_for(text: DynamicText, part: Part) -> str:
    return text if isinstance(text, str) else text(part)


def _palette_text(key: str, note: str) -> str:
    if not key:
        return note
    if not note:
        return f"key {key}"
    return f"key {key}, {note}" if key == ":" else f"key {key}: {note}"


def _performer(actions: Actions, name: str, number: int) -> Callable[[], object]:
    return lambda: actions.perform(name, number)
