"""Changes that make no difference, each with the reason. They count as equal to the program."""

from __future__ import annotations

import re

from changes import Change

# (file, line before, line after, reason)
_EQUAL: tuple[tuple[str, str, str, str], ...] = (
    ("guard.py", "os.read(wake, 4096)", "os.read(wake, 4097)",
     "a pipe is emptied that holds a byte for each signal"),
)  # fmt: skip
# patterns: (file, or "" for all; part of the line before; its replacement; reason)
_KINDS = (
    ("", r"strict=True", r"strict=False", "zip's own check of lengths that are equal"),
    ("", r"\"utf-8\"", r"\"UTF-8\"", "another name of the same encoding"),
    ("", r"token_hex\(\d+\)", r"token_hex\(\d+\)", "a random name of another length"),
    ("kernel_files.py", r"^CHUNK = .*", r"CHUNK = 6\d << 1\d", "bytes that are read at once"),
    ("process.py", r"^READ_CHUNK = .*", r"READ_CHUNK = [12] << 2\d", "bytes that are read at once"),
)


def why(change: Change) -> str:
    """The reason why the change makes no difference; "" if a test has to notice it."""
    signs = {
        sign: [line[1:].strip() for line in change.diff.splitlines() if line.startswith(sign)]
        for sign in "-+"
    }
    for file, before, after, reason in _EQUAL:
        if (change.path.name, [before], [after]) == (file, signs["-"], signs["+"]):
            return reason
    if len(signs["-"]) == len(signs["+"]) == 1:
        return _kind(change.path.name, signs["-"][0], signs["+"][0])
    return ""


def _kind(name: str, before: str, after: str) -> str:
    for file, old, new, reason in _KINDS:
        for match in re.finditer(old, before) if file in ("", name) else ():
            context = re.escape(before[: match.start()]), re.escape(before[match.end() :])
            if re.fullmatch(new.join(context), after):
                return reason
    return ""
