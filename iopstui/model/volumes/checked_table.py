"""Read a TOML table key by key; collect every problem with its location."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any


class CheckedTable:
    """A table of a file that is being checked. Mistakes are added to ``problems`` as
    "class.gp3.iops: no source"; ``end`` adds unused keys."""

    def __init__(self, data: object, place: str, problems: list[str]) -> None:
        self.place = place
        self.problems = problems
        self.known: set[str] = set()
        self.data: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        if not isinstance(data, Mapping):
            self.add_problem("must be a table")

    def add_problem(self, problem: str) -> None:
        """Note a problem of this table."""
        self.problems.append(f"{self.place}: {problem}" if self.place else problem)

    def has(self, key: str) -> bool:
        """Whether it has the key; it then counts as known."""
        self.known.add(key)
        return key in self.data

    def table(self, key: str) -> CheckedTable:
        """A table below this one."""
        self.known.add(key)
        return CheckedTable(self.data.get(key), f"{self.place}.{key}".strip("."), self.problems)

    def tables(self, key: str) -> dict[str, CheckedTable]:
        """The tables of a table, by name."""
        if not self.has(key):
            return {}
        parent = self.table(key)
        return {name: parent.table(name) for name in parent.data}

    def text(self, key: str, needed: bool = False) -> str:
        """A text; "" without one."""
        value: object = self.data.get(key, "")
        self.known.add(key)
        if not isinstance(value, str):
            self.add_problem(f"{key} must be a text in quotes")
            return ""
        if needed and not value:
            self.add_problem(f"no {key}")
        return value

    def number(self, key: str) -> float | None:
        """A number that is not negative; ``None`` without one."""
        self.known.add(key)
        value = self.data.get(key)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or not 0 <= value < 1e15:
            self.add_problem(f"{key} must be a number, 0 or more")
            return None
        return float(value)

    def boolean(self, key: str) -> bool:
        """A boolean; false without one."""
        self.known.add(key)
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.add_problem(f"{key} must be true or false")
        return value is True

    def date(self, key: str) -> str:
        """A day."""
        self.known.add(key)
        value = self.data.get(key)
        if type(value) is datetime.date:
            return value.isoformat()
        self.add_problem(f"{key} must be a day such as 2024-05-31 (without quotes)")
        return ""

    def items(self, key: str) -> Sequence[object]:
        """An array; () without one."""
        self.known.add(key)
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self.add_problem(f"{key} must be an array")
            return ()
        return value

    def end(self) -> None:
        """Note unknown keys."""
        for key in self.data:
            if key not in self.known:
                self.add_problem(f"unknown key {key}")
