"""Recognise a file of the JSON lines of hosts."""

from __future__ import annotations

from pathlib import Path

from iopstui.untrusted import parse_json

FIRST_LINE = 4 << 20


def is_fleet(path: Path) -> bool:
    """Whether a file holds JSON lines of hosts (fleet --record, merge, run --format jsonl), by its
    first one."""
    try:
        # opening a pipe would wait for its writer
        if not path.is_file():
            return False
        with path.open("rb") as file:
            line = file.readline(FIRST_LINE)
        # behind any prefix of a launcher
        start = line.find(b"{")
        row = parse_json(line[start:], is_large=False) if start >= 0 else None
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and isinstance(row.get("event"), str)
