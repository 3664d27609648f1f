"""Find the kernel's block-layer tracepoints and their fields (tracefs ``format``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import read_text

Tracepoints = Mapping[str, frozenset[str]]
"""The names of the fields by tracepoint; one that the kernel lacks is absent."""

TRACEFS_MOUNTS = ("kernel/tracing", "kernel/debug/tracing")
NAMES = (
    "block_getrq",
    "block_rq_issue",
    "block_rq_complete",
    "block_rq_requeue",
    "block_rq_merge",
    "block_bio_queue",
    "block_bio_complete",
    "block_bio_frontmerge",
    "block_bio_backmerge",
)
# the one that a reading is asked for with
SIGNAL_GENERATE = "signal_generate"
_FIELD = re.compile(r"^\s*field:[^;]*?(\w+)(?:\[[^\]]*\])?;", re.MULTILINE)


def parse_format(text: str) -> frozenset[str]:
    """The names of a tracepoint's own fields."""
    return frozenset(name for name in _FIELD.findall(text) if not name.startswith("common_"))


def tracefs(roots: Roots) -> Path | None:
    """Mount point of tracefs; ``None`` if it is at neither of its places, or can't be read."""
    return next(
        (p for p in (roots.sys / mount for mount in TRACEFS_MOUNTS) if _events(p).is_dir()), None
    )


def read_tracepoints(roots: Roots) -> Tracepoints:
    """Tracepoints of NAMES and SIGNAL_GENERATE that this kernel has; empty without tracefs."""
    place = tracefs(roots)
    if place is None:
        return {}
    texts = {name: read_text(_events(place) / name / "format") for name in NAMES}
    texts[SIGNAL_GENERATE] = read_text(place / "events/signal" / SIGNAL_GENERATE / "format")
    return {name: parse_format(text) for name, text in texts.items() if text}


def _events(place: Path) -> Path:
    return place / "events" / "block"
