"""Evidence of a self-test: everything that was read and run, as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from iopstui.errors import UsageError

FORMAT = 1
ADDED_FIELDS = {"probe_frames", "probe_counters", "iostat"}
"""Fields that the first bundles don't have."""
Row = list[Any]


@dataclass(slots=True)
class Evidence:
    """``machine`` are versions and facts, without names. ``job``, ``stream`` and ``log`` are a job
    that selftest gives fio itself: its text, fio's JSON with a document a second, and a row for
    each I/O (direction 0 or 1, latency in ns, bytes). ``frames`` are iopstui's own seconds of a run
    on the directory, ``counters`` what the kernel counted meanwhile (CounterLog). ``queues`` and
    ``vectors`` are iopstui's queue map, ``queue_text``, ``vector_names`` and ``affinity`` the
    kernel's own text. ``probe_frames`` are the probe's seconds of a second run, ``probe_counters``
    what the kernel counted in it, ``iostat`` what iostat printed beside the first run (IostatLog).
    ``missing`` says, by check, why it could not be made."""

    machine: dict[str, Any] = field(default_factory=dict)
    job: str = ""
    stream: str = ""
    log: list[Row] = field(default_factory=list)
    disk: str = ""
    frames: list[dict[str, Any]] = field(default_factory=list)
    counters: list[Row] = field(default_factory=list)
    queues: dict[str, list[int]] = field(default_factory=dict)
    vectors: list[dict[str, Any]] = field(default_factory=list)
    queue_text: dict[str, str] = field(default_factory=dict)
    vector_names: dict[str, str] = field(default_factory=dict)
    affinity: dict[str, str] = field(default_factory=dict)
    probe_frames: list[dict[str, Any]] = field(default_factory=list)
    probe_counters: list[Row] = field(default_factory=list)
    iostat: list[Row] = field(default_factory=list)
    fence: dict[str, Any] = field(default_factory=dict)
    restore: dict[str, Any] = field(default_factory=dict)
    known_latency: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    missing: dict[str, str] = field(default_factory=dict)

    def as_object(self) -> dict[str, Any]:
        """Ready for ``json.dumps``."""
        return {"format": FORMAT, **asdict(self)}


def parse_evidence(data: Any) -> Evidence:
    """The evidence in a bundle's JSON. Raises UsageError for anything else."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UsageError("This is not a bundle of `iopstui selftest` that this version can read.",
                         "Make one with: iopstui selftest -o FILE")  # fmt: skip
    empty = Evidence()
    values: dict[str, Any] = {}
    for name in Evidence.__dataclass_fields__:
        default = getattr(empty, name)
        value = data.get(name, default if name in ADDED_FIELDS else None)
        if default is not None and type(value) is not type(default) and not (
            isinstance(default, float) and isinstance(value, int)
        ):  # fmt: skip
            raise UsageError(f"The bundle is damaged: {name} is missing or of another kind.")
        values[name] = value
    return Evidence(**values)
