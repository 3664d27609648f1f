"""Check that a load curve is credible before reporting a knee."""

from __future__ import annotations

from collections.abc import Sequence

from iopstui.format import number
from iopstui.model.experiment.disturbance import moved_between
from iopstui.model.experiment.point import Point

NOISE_DIP = 0.10
"""Without repeats: how far IOPS may fall and rise again between points by noise."""
OTHER_IO_SHARE = 0.10
MIN_OTHER_BYTES = 1 << 20
"""Bytes/s: what the device may move beside fio's I/O (metadata, a log) without being load."""


def why_not_credible(points: Sequence[Point], names: Sequence[str]) -> str:
    """Why points of rising load, ``names`` of each, make no credible curve; "" if they may."""
    pairs = list(zip(points, names, strict=True))
    if any(point.disturbed for point in points):
        return f"disturbed at {_named([name for point, name in pairs if point.disturbed])}"
    moved = moved_between(points)
    if moved:
        return moved
    busy = [name for point, name in pairs if other_load(point)]
    if busy:
        most = max(other_load(point) for point in points)
        return (
            f"at {_named(busy)} the device moved up to {100 * most:.0f} % more than "
            "fio did (other load, or what file system and page cache add); see `iopstui watch`"
        )
    place = _lowest_valley(points)
    if place is None:
        return ""
    low, after = points[place], max(point.iops for point in points[place + 1 :])
    before = max(point.iops for point in points[:place])
    return (
        f"IOPS fall at {names[place]} ({number(before)}, {number(low.iops)}, then {number(after)} "
        f"again), by more than {_noise_text(low)}: something else changed in between; "
        + ("measure again" if low.runs > 1 else "check with --repeats 3")
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def other_load(point: Point) -> float:
    """Return by which share the device moved more bytes than fio; 0 if that is negligible or
    unknown."""
    if point.device_bw is None or point.bw <= 0:
        return 0.0
    more = point.device_bw - point.bw
    return more / point.bw if more > max(OTHER_IO_SHARE * point.bw, MIN_OTHER_BYTES) else 0.0


def _noise_text(point: Point) -> str:
    return "its repeats differ" if point.runs > 1 else f"{100 * NOISE_DIP:.0f} %"


def _iops_bounds(point: Point) -> tuple[float, float]:
    if point.iops_within is not None:
        return point.iops_within
    # of two single runs the one may be lower by so much
    return point.iops * (1 - NOISE_DIP / 2), point.iops * (1 + NOISE_DIP / 2)


def _lowest_valley(points: Sequence[Point]) -> int | None:
    """The lowest point that lies, beyond noise, below one before it and below one behind it."""
    bounds = [_iops_bounds(point) for point in points]
    valleys = [
        place
        for place, (_, high) in enumerate(bounds)
        if any(low > high for low, _ in bounds[:place])
        and any(low > high for low, _ in bounds[place + 1 :])
    ]
    return min(valleys, key=lambda place: points[place].iops, default=None)
