"""Whether this user has used the screen before, and knows where its keys are."""

from __future__ import annotations

from iopstui.safety.journal import state_directory

FILE = "screen-used"
"""A file in the state directory: the edition of the keys that its user has seen."""
EDITION = "2"
"""It changes each time that keys move: then ``MOVED`` is shown once."""
MOVED = (
    "Keys that moved since your last version (shown once)",
    (
        ("C, x, i", "pages of u: cgroups, slowest requests, inside the kernel (Tab)"),
        ("W", "a page of o: where the I/Os wait, and the queue map"),
        ("R, H", "S: record, write a report, or save the screen"),
        ("g, V, T, B, A", "ctrl+p: overlay runs, base run, themes, bind queues, A/B of a setting"),
        ("Esc", "one level up everywhere; from the dashboard it leads home"),
    ),
)


def is_first_use() -> bool:
    """True once for each user."""
    try:
        file = state_directory() / FILE
        if file.exists():
            return False
        file.touch(mode=0o600)
        file.write_text(EDITION)
    except OSError:
        return False
    return True


def keys_moved() -> bool:
    """True once after keys have moved, for a user of an earlier version."""
    try:
        file = state_directory() / FILE
        if file.read_text(errors="replace") == EDITION:
            return False
        file.write_text(EDITION)
    except OSError:
        return False
    return True
