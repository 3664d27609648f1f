"""A key: what Textual calls it, how it is written, and what is bound to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """``names`` as Textual has them, joined by commas; ``label`` is how the key is written.

    Without ``names`` and ``label`` the palette alone has it.

    Of several keys of an action each has the ``argument`` that the action is done with, and a
    ``title`` for the command palette. ``on_dashboard``: bound by the dashboard itself, because a
    Textual screen would use the key to move its focus.
    """

    names: str
    label: str
    argument: object = None
    title: str = ""
    on_dashboard: bool = False


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key of the footer and what it does now."""

    key: str
    description: str


def press(action: str, number: int = 0) -> str:
    """Textual's action for the ``number``-th key of an action (IopstuiApp.action_do)."""
    return f"do({action!r}, {number})"


HELP = "app." + press("help")
"""For the bindings of a dialog over another screen: it has none of the application's."""
