"""A run that is ready and waits for the word to start."""

from __future__ import annotations

from iopstui import events
from iopstui.preflight.prepared import Prepared
from iopstui.records import dataclass
from iopstui.session.context import Context


@dataclass(frozen=True, slots=True)
class Word:
    """Start at ``at_ns`` (CLOCK_MONOTONIC). ``offset_ms`` is by how much this machine's clock is
    ahead of that of who says so, ``error_ms`` how wrong that can be (``None``: not compared)."""

    at_ns: int
    offset_ms: float | None = None
    error_ms: float | None = None


def armed(context: Context, step: int, prepared: Prepared) -> events.Armed:
    """The event that says so."""
    made = tuple(f"{path}/" for path in map(str, prepared.made))
    writes = () if prepared.read_only else tuple(
        name for name in prepared.files if not name.startswith(made)
    )  # fmt: skip
    return events.Armed(context.now(), step, writes if prepared.scratch is None else ())


def executed(context: Context, step: int, word: Word, monotonic_ns: int) -> events.Executed:
    """The event that says when fio was executed."""
    now_ns = context.clock.monotonic_ns()
    ago_ms = (now_ns - monotonic_ns) / 1e6
    return events.Executed(
        context.now() - ago_ms / 1e3,
        step,
        context.clock.wall_ms() - ago_ms,
        monotonic_ns,
        (monotonic_ns - word.at_ns) / 1e6,
        word.offset_ms,
        word.error_ms,
    )
