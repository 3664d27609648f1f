"""One second of a disk, made from figures."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import Figure, from_object


def disk_of(seconds: float = 1.0, **figures: Any) -> DiskRates:
    """A second with these figures, named as in DiskRates (``r_s``, ``aqu_sz`` ...) or as its
    increases; all other figures are unknown."""
    rows = _rows()
    shown = {}
    for name, value in figures.items():
        if name.endswith("req_size") and f"{name[0]}_bytes_s" in figures:
            continue
        row = rows.get(name) or rows[f"n_{name}"]
        shown[row.name] = value if value is None or row.scale == 1 else value / row.scale
    disk = from_object(DiskRates, shown, seconds)
    whole = {
        field.name: round(count)
        for field in fields(DiskRates)
        if (count := getattr(disk, field.name)) is not None and abs(count - round(count)) < 1e-6
        and field.name != "seconds"
    }  # fmt: skip
    return replace(disk, **whole)


def changed(disk: DiskRates, **figures: Any) -> DiskRates:
    """The same second with other figures."""
    # counts that follow from a given rate
    counts = {f"n_{kind}s" for kind in ("read", "write", "discard") if f"{kind[0]}_s" in figures}
    before = {name: getattr(disk, name) for name in _rows() if name not in counts}
    return disk_of(disk.seconds, **before | figures)


def _rows() -> dict[str, Figure]:
    return {
        name: row
        for name, row in vars(DiskRates).items()
        if isinstance(row, Figure) and not row.inner
    }
