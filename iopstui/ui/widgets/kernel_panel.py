"""What the kernel counted in the same second: iostat's figures for the target's devices."""

from __future__ import annotations

from iopstui.model.rates import DiskRates
from iopstui.model.target import Target
from iopstui.text import printable
from iopstui.ui import format as f
from iopstui.ui.rows import Column, Row, Table, message, pad, rule, wrap
from iopstui.ui.state import LiveState
from iopstui.ui.style import BOLD, DEVICE, DIM, Charset

LABEL = 7

COLUMNS: tuple[Column[DiskRates], ...] = (
    Column("r/s", 6, lambda d: f.count(d.r_s), style=DEVICE),
    Column("w/s", 6, lambda d: f.count(d.w_s), style=DEVICE),
    Column("rMB/s", 6, lambda d: f.mebibytes(d.r_bytes_s)),
    Column("wMB/s", 6, lambda d: f.mebibytes(d.w_bytes_s)),
    Column("rrqm/s", 7, lambda d: f.count(d.rrqm_s), drop=3),
    Column("wrqm/s", 7, lambda d: f.count(d.wrqm_s), drop=3),
    Column("r_await", 8, lambda d: f.milliseconds(d.r_await)),
    Column("w_await", 8, lambda d: f.milliseconds(d.w_await)),
    Column("aqu-sz", 7, lambda d: f.count(d.aqu_sz), drop=1),
    Column("infl", 5, lambda d: f.whole(d.in_flight), drop=2),
    Column("util%", 6, lambda d: f.percent(d.util)),
    Column("d/s", 6, lambda d: f.count(d.d_s), drop=6),
    Column("f/s", 6, lambda d: f.count(d.f_s), drop=5),
)


def rows(state: LiveState, target: Target, width: int, height: int, charset: Charset) -> list[Row]:
    """The panel: one row for the target's device and each one under it."""
    title = rule(
        width, charset, ("kernel, this second", BOLD), (" (/proc/diskstats)", DIM),
        right=((f"{f.NOTHING} = no such request", DIM),),
    )  # fmt: skip
    return pad([title, *_body(state, target, width, height - 1, charset)], height, width)


def _body(state: LiveState, target: Target, width: int, height: int, charset: Charset) -> list[Row]:
    if target.device is None:
        why = printable(target.no_device) or "this target is on no block device"
        return wrap(width, charset, f"{why}: the kernel counts no disk I/O for it.", None)
    frame = state.frame
    if frame is None or frame.seconds is None:
        return [message(width, charset, "first reading; a rate needs two")]
    table = Table(COLUMNS, LABEL, width, charset)
    found = [table.header("device")]
    notes: list[Row] = []
    for index, name in enumerate(target.tree):
        label = printable(name) if index == 0 else f"└{printable(name)}"
        disk = frame.disks.get(name)
        if disk is None:
            words = f"{printable(name)}: no row in /proc/diskstats in this second"
            found.append(message(width, charset, words))
            continue
        found.append(table.row(label, disk))
        extra = _extra(name, disk, table.titles)
        if extra:
            notes.append(message(width, charset, extra))
    hidden = len(found) - height
    if hidden > 0:
        found = found[: height - 1]
        found.append(message(width, charset, f"and {hidden + 1} more devices below it"))
    return [*found, *notes]


def _extra(name: str, disk: DiskRates, shown: set[str]) -> str:
    """Discards and flushes, in words where they have no column."""
    parts = []
    if disk.d_s and "d/s" not in shown:
        parts.append(f"{f.count(disk.d_s)} discards/s of {f.milliseconds(disk.d_await)}")
    if disk.f_s and "f/s" not in shown:
        parts.append(f"{f.count(disk.f_s)} flushes/s of {f.milliseconds(disk.f_await)}")
    return f"{printable(name)}: {', '.join(parts)}" if parts else ""
