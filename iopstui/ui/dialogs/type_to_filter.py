"""Filter a list by typing, for every list without an input field.

A letter that is not a key of the list starts the filter; "/" does, too, and after it every letter
is text. Esc clears the filter, Backspace removes the last letter."""

from __future__ import annotations

from textual import events
from textual.screen import Screen

from iopstui.ui.core.modal import Modal

MAX_LETTERS = 40
FILTER_HINT = ("/", "Filter", "")
"""The key, for the line of keys."""


class TypeToFilter:
    """A mixin, placed before the screen's class. Calls ``apply_filter`` when the filter changes; a
    dialog shows the filter before its keys."""

    filter_text = ""
    letters_filter = True
    """Whether a letter that is not a key begins it, as / does."""
    typing_from_start = False
    """Whether every letter is text from the start; Esc without text then closes the screen."""
    _typing = False

    def apply_filter(self) -> None:
        """Show what has all of the words."""
        raise NotImplementedError

    @property
    def filter_hint(self) -> str:
        """The typed filter, for the line of keys; "" if there is none."""
        return f"filter: {self.filter_text}▏" if self._typing else ""

    def matches(self, *texts: str) -> bool:
        """Whether the ``texts`` together contain all words of the filter, whatever their case."""
        text = " ".join(texts).lower()
        return all(word in text for word in self.filter_text.lower().split())

    def on_key(self, event: events.Key) -> None:
        """Take text before it is looked up among the keys."""
        assert isinstance(self, Screen)
        if event.key == "escape" and self._typing and not self._is_empty_search:
            self._set_filter("", self.typing_from_start)
        elif event.key == "backspace" and self._typing:
            self._set_filter(
                self.filter_text[:-1], self.typing_from_start or len(self.filter_text) > 1
            )
        elif event.is_printable and event.character and self._is_text(event.key, event.character):
            # also where all letters are text from the start: users know the key from other lists
            is_new = not self.filter_text if self.typing_from_start else not self._typing
            begins = is_new and event.character == "/"
            self._set_filter(
                (self.filter_text + ("" if begins else event.character))[:MAX_LETTERS], True
            )
        else:
            return
        event.stop()
        event.prevent_default()

    @property
    def _is_empty_search(self) -> bool:
        return self.typing_from_start and not self.filter_text

    def _is_text(self, key: str, character: str) -> bool:
        if self._is_empty_search and key == "question_mark":
            return False
        if self._typing or character == "/":
            # a leading blank separates no words, and may be a key
            return bool(self.filter_text) or character != " "
        assert isinstance(self, Screen)
        return (
            self.letters_filter
            and character != " "
            and key not in self._bindings.key_to_bindings
            and key not in GLOBAL_KEYS
        )

    def _set_filter(self, text: str, typing: bool) -> None:
        changed = (text, typing) != (self.filter_text, self._typing)
        self.filter_text, self._typing = text, typing
        if changed:
            if isinstance(self, Modal):
                self.show_hints(self.filter_hint, typing and not self._is_empty_search)
            self.apply_filter()


GLOBAL_KEYS = frozenset({"question_mark", "S", "y"})
"""Keys that work on every screen."""
