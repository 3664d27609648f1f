"""Changes that change nothing that counts, each with the reason: they are not asked about."""

from __future__ import annotations

from changes import Change

# (file, the line before, the line after, why)
_EQUAL: tuple[tuple[str, str, str, str], ...] = ()


def why(change: Change) -> str:
    """Why nobody need notice it, "" if somebody has to."""
    signs = {
        sign: [line[1:].strip() for line in change.diff.splitlines() if line.startswith(sign)]
        for sign in "-+"
    }
    for file, before, after, reason in _EQUAL:
        if (change.path.name, [before], [after]) == (file, signs["-"], signs["+"]):
            return reason
    return ""
