"""Where the I/Os of some seconds wait, for the rules (model/metrics/waits.py has the
arithmetic)."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.model.findings.evidence import Evidence
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.waits import MeanWaits, Waits


def frame_waits(frames: Sequence[Frame]) -> list[Waits]:
    """Waits of each frame; empty if one has none, or no I/O completed in it."""
    waits = [frame.waits for frame in frames if frame.waits is not None]
    return waits if len(waits) == len(frames) and not any(w.stalled for w in waits) else []


def mean_waits(frames: Sequence[Frame]) -> Waits | None:
    """The mean of ``frame_waits``; ``None`` if that is empty."""
    total = MeanWaits()
    for frame, waits in zip(frames, frame_waits(frames), strict=False):
        total.add(waits, frame.seconds or 1.0)
    return total.value


def devices_below(name: str, evidence: Evidence) -> tuple[str, ...]:
    """The devices directly below one."""
    return next((link.below for link in evidence.links if link.name == name), ())


def devices_above(name: str, evidence: Evidence) -> tuple[str, ...]:
    return tuple(link.name for link in evidence.links if name in link.below)


def layers_down_from(name: str, evidence: Evidence) -> set[str]:
    """A layer and all below it; for a whole disk also its partitions that are layers."""
    layers: set[str] = set()
    parts = (device.name for device in evidence.tree if device.disk == name)
    waiting = [name, *parts]
    while waiting:
        layer = waiting.pop()
        if layer not in layers:
            layers.add(layer)
            waiting += devices_below(layer, evidence)
    return layers


def ios_above(waits: Waits, names: set[str], writes: bool) -> float:
    """I/Os that may wait above these layers: those not in them, not waiting for a CPU, and not in
    an unknown place. I/Os in the page cache count if the job ``writes``."""
    inside = sum(ios for name, ios in waits.layers.items() if name in names)
    elsewhere = (waits.cpu or 0.0) + waits.unsent + waits.unknown
    return waits.ios - inside - elsewhere - (0.0 if writes else waits.cache)
