"""The columns of a flat table of many hosts' seconds: `merge --format csv`, and reports.

A percentile without its kind is that of the latencies which have a histogram. ``None`` is not
measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from iopstui.features.fleet.merging.merger import MergedInterval
from iopstui.features.fleet.merging.sums import AWAITS, DISK_RATES, DirectionSum, HostSums
from iopstui.format import utc
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.fields import BY_ID
from iopstui.model.metrics.paths import DEVICE, TOTAL
from iopstui.model.samples import READ, TRIM, WRITE
from iopstui.tables import TIME, WHOLE, WORDS, Column
from iopstui.text import printable

PERCENTILE_NAMES = tuple(map(percentile_name, PERCENTILES))
_FIO_FIELDS = ("iops", "bw", "ios", "bytes", "clat.mean", "lat.mean", *PERCENTILE_NAMES, "max")
_KERNEL_FIELDS = (*DISK_RATES[:4], *AWAITS.values(), DISK_RATES[4])
_DEVICE_FIELDS = ("iops", "ios", "mean", *PERCENTILE_NAMES, "max")
_FIO_PARTS = (READ, WRITE, TRIM, TOTAL)
_DEVICE_PARTS = (READ, WRITE, TOTAL)


def head_columns() -> Iterator[Column]:
    """When a second was, and who is in it."""
    yield Column("wall_ms", unit="ms", meaning="start of the second, since 1970")
    yield Column("utc", type=TIME, meaning="the same as date and time (UTC)")
    yield Column("interval_s", unit="s", meaning="length of the second")
    yield Column("expected", type=WHOLE, meaning="hosts that take part in it")
    yield Column("counted", type=WHOLE, meaning="hosts that were measured for the whole second")
    yield Column("missing", type=WORDS, meaning="hosts without data for this second")
    yield Column(
        "incomplete", type=WORDS, meaning="hosts that were measured for less than 80 % of it"
    )


def head_cells(second: MergedInterval) -> list[object]:
    """Cells of the totals."""
    return [
        second.wall_ms, utc(second.wall_ms), second.interval_s, second.expected, second.counted,
        printable(" ".join(second.missing)), printable(" ".join(second.incomplete)),
    ]  # fmt: skip


def figure_columns() -> Iterator[Column]:
    """Columns of the figures: fio's, the kernels' and the probes'."""
    for part in _FIO_PARTS:
        for name in _FIO_FIELDS:
            kind = "clat." if name in PERCENTILE_NAMES or name == "max" else ""
            yield BY_ID[f"fio.{part}.{kind}{name}"].column(f"fio.{part}.{name}")
    for name in _KERNEL_FIELDS:
        yield BY_ID[f"kernel.{TOTAL}.{name}"].column(f"kernel.{name}")
    yield Column("device.hosts", type=WHOLE, source="probe", meaning="hosts with a running probe")
    for part in _DEVICE_PARTS:
        for name in _DEVICE_FIELDS:
            yield BY_ID[f"{DEVICE}.{part}.{name}"].column(f"device.{part}.{name}")


def figure_cells(sums: HostSums) -> list[object]:
    """A value for each of ``figure_columns``."""
    row: list[object] = []
    for name in _FIO_PARTS:
        row += _of_fio(sums.part(name))
    kernel = sums.kernel.as_object() or {}
    row += [kernel.get(name) for name in _KERNEL_FIELDS]
    device = sums.device.as_object() or {}
    row.append(device.get("hosts"))
    for name in _DEVICE_PARTS:
        row += [device.get(name, {}).get(field) for field in _DEVICE_FIELDS]
    return row


def _of_fio(part: DirectionSum | None) -> list[object]:
    if part is None:
        return [None] * len(_FIO_FIELDS)
    main = part.main
    means = [part.latency(kind).mean for kind in ("clat", "lat")]
    return [part.iops, part.bw, part.ios, part.bytes, *means,
            *map(main.percentiles.get, PERCENTILE_NAMES), main.highest]  # fmt: skip
