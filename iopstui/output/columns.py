"""A column of a flat table: its heading, type and description."""

from __future__ import annotations

from dataclasses import dataclass

TIME, WHOLE, WORDS, FIGURE = "time", "whole", "words", "figure"
"""The types: a time (UTC, ms), a whole number, a text, and any number."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``unit``, ``source`` and ``meaning`` are those of a field
    (model/metrics/fields.py)."""

    name: str
    type: str = FIGURE
    unit: str = ""
    source: str = "iopstui"
    meaning: str = ""
