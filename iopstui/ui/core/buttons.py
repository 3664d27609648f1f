"""Buttons of forms. Selections and buttons are visible without colours, too."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Button, RadioButton


class Radio(RadioButton):
    """A choice of several: ``(*)`` if it is the chosen one, ``( )`` if not."""

    @property
    def _button(self) -> Content:
        return Content("(*)" if self.value else "( )")


def push_button(label: str, name: str, primary: bool = False) -> Button:
    """A button in brackets, one row high."""
    button = Button(Content(f"[ {label} ]"), id=name, compact=True)
    button.variant = "primary" if primary else "default"
    return button
