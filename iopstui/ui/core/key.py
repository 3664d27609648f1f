"""A key: Textual's name, its label, and its action."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """``names`` are Textual's, joined by commas; ``label`` is how the key is written.

    Without ``names`` and ``label`` it is only in the palette. If an action has several keys, each
    has an ``argument`` for the action, and a ``title`` for the command palette. ``on_dashboard``:
    the dashboard binds it itself, because a Textual screen would use the key to move the focus."""

    names: str
    label: str
    argument: object = None
    title: str = ""
    on_dashboard: bool = False


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key of the footer and the description of its action."""

    key: str
    description: str


def press(action: str, number: int = 0) -> str:
    """Textual's action for the ``number``-th key of an action (IopstuiApp.action_do)."""
    return f"do({action!r}, {number})"


HELP = "app." + press("help")
"""The help action for a dialog over another screen, which lacks the application's bindings."""
