"""A section of a lesson's file: typed keys, with an error for each mistake."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import NoReturn

from iopstui.errors import UsageError
from iopstui.features.lessons.model.formula import Formula, FormulaError, parse_formula
from iopstui.features.lessons.model.text import (
    Paragraph,
    Template,
    parse_paragraphs,
    parse_template,
)


class Section:
    """A section of the file; every error message names it."""

    def __init__(self, label: str, header: str, keys: Mapping[str, str]) -> None:
        self._label = label
        self.header = header
        self.keys = dict(keys)

    def fail(self, problem: str, hint: str = "") -> NoReturn:
        """UsageError that names the file and the section."""
        raise UsageError(f"{self._label}: [{self.header}]: {problem}.", hint)

    def check(self, allowed: Iterable[str]) -> None:
        """Fail for a key that is not ``allowed``."""
        allowed_keys = sorted(allowed)
        for key in self.keys:
            if key not in allowed_keys:
                matches = difflib.get_close_matches(key, allowed_keys, n=1)
                self.fail(
                    f"{key!r} does not belong here",
                    (f"Did you mean {matches[0]}? " if matches else "")
                    + f"Known: {', '.join(allowed_keys)}",
                )

    def text(self, key: str, default: str | None = None) -> str:
        """A key as one line; fails if it is missing and has no ``default``."""
        value = " ".join(self.keys.get(key, "").split())
        if value:
            return value
        if default is None:
            self.fail(f"{key!r} is missing", f"Add a line: {key} = ...")
        return default

    def number(self, key: str, default: float | None, low: float, high: float) -> float:
        """A key as a number from ``low`` to ``high``."""
        text = self.text(key, None if default is None else str(default))
        try:
            value = float(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            self.fail(f"{key} = {text}: that is not a number from {low:g} to {high:g}")
        return value

    def formula(self, key: str) -> Formula | None:
        """A key as a formula; ``None`` if it is missing."""
        if key not in self.keys:
            return None
        try:
            return parse_formula(self.keys[key])
        except FormulaError as error:
            self.fail(f"{key}: {error}")

    def template(self, key: str) -> Template:
        """A key as one line with figures in it."""
        return self.filled(key, self.text(key))

    def filled(self, key: str, text: str) -> Template:
        """``text``, from the key ``key``, as one with figures in it."""
        try:
            return parse_template(text)
        except FormulaError as error:
            self.fail(f"{key}: {error}")

    def paragraphs(self, key: str) -> tuple[Paragraph, ...]:
        """A key as paragraphs; none if it is missing."""
        try:
            return parse_paragraphs(self.keys.get(key, ""))
        except FormulaError as error:
            self.fail(f"{key}: {error}")

    def lines(self, key: str) -> list[str]:
        """The lines of a key that are not empty."""
        return [line.strip() for line in self.keys.get(key, "").splitlines() if line.strip()]

    def word_list(self, key: str) -> tuple[str, ...]:
        """The words of a key, between blanks or commas."""
        return tuple(self.keys.get(key, "").replace(",", " ").split())


def suggest_names(name: str, candidates: Iterable[str]) -> str:
    """The names that were probably meant, else all known names."""
    names = list(candidates)
    matches = difflib.get_close_matches(name, names, n=2)
    if matches:
        return f"Did you mean {' or '.join(matches)}?"
    return f"Known: {', '.join(sorted(names))}" if names else ""
