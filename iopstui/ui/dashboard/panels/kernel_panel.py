"""The kernel's figures for the target's devices in the same second, with the columns of iostat. If
there are several devices, the first row is their sum. Each device is followed by the devices
beneath it; devices beneath several of them come last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rich.style import Style

from iopstui import format as f
from iopstui.model.block.target import Layer, Target
from iopstui.model.figures.disk import DiskRates, util_column, util_text
from iopstui.model.figures.figure import Figure
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import combined_figure, warnings_of
from iopstui.model.metrics.shares import OperationRates, Share, SmbClient
from iopstui.model.samples import DriveReading
from iopstui.text import printable
from iopstui.ui.dashboard.panels import waits_bar
from iopstui.ui.draw.rows import Line, Piece, Row, Table, cells, message, pad, rule, table_for, wrap
from iopstui.ui.draw.style import (
    BOLD,
    BORDER,
    DEVICE,
    DIM,
    WARNING,
    WARNING_FROM,
    Charset,
    load_style,
)
from iopstui.ui.state.live import LiveState

LABEL, LONGEST = 7, 14
BAR = 10
SUM_OF = "sum of {}"
DASH = f"{f.MISSING} = no such request"
UNIT = "MB = MiB"
"""The unit of iostat's rMB/s and wMB/s, which is that of the other panels."""
UNIT_FROM = 96
"""From this width on, a title without a box has room for it."""


def _util_style(util: float | None) -> Style | None:
    """Highlight only a device that is busy most of the time."""
    return load_style(util) if util is not None and util >= WARNING_FROM else None


COLUMNS = (
    DiskRates.r_s.screen_column(DEVICE),
    DiskRates.w_s.screen_column(DEVICE),
    *(row.screen_column() for row in (
        DiskRates.r_bytes_s, DiskRates.w_bytes_s, DiskRates.rrqm_s, DiskRates.wrqm_s,
        DiskRates.r_await, DiskRates.w_await, DiskRates.aqu_sz, DiskRates.n_in_flight)),
    util_column(style_of=lambda disk: _util_style(disk.util), title="util%"),
    DiskRates.d_s.screen_column(), DiskRates.f_s.screen_column(),
)  # fmt: skip


def value(state: LiveState, target: Target, charset: Charset) -> list[Piece]:
    """For the border of its box: how busy the busiest device is, and what a dash means."""
    if target.only_shares:
        return share_value(state)
    frame = state.frame
    disks = [frame.disks.get(name) for name in target.devices_below] if frame is not None else []
    measured = [disk for disk in disks if disk is not None and disk.util is not None]
    if not measured:
        return []
    busiest = max(measured, key=lambda disk: disk.util or 0.0)
    util = busiest.util or 0.0
    full = round(min(util, 100.0) / 100 * BAR)
    return [
        ("util ", DIM), (f"{util_text(busiest)} %", BOLD), (" ", None),
        (charset.full * full, load_style(util)), (charset.empty * (BAR - full), BORDER),
        (f"  {UNIT} · {DASH}", DIM),
    ]  # fmt: skip


def rows(state: LiveState, target: Target, width: int, height: int, charset: Charset) -> list[Row]:
    """The panel: a row for each of the target's devices and each device beneath. The last row, if
    it fits, shows where the I/Os in flight are."""
    source = share_source(target) if target.only_shares else "/proc/diskstats"
    title = rule(
        width, charset, (box_title(target), BOLD), (f", this second ({source})", DIM),
        right=((f"{UNIT} · {DASH}" if width >= UNIT_FROM else DASH, DIM),),
    )  # fmt: skip
    body = [title, *_body(state, target, width, height - 1, charset)]
    drives = line(state.drives, state.t, width, charset)
    if drives is not None and height > 2 + row_count(target) and not target.only_shares:
        body.append(drives)
    if (
        height > len(body)
        and height > 2 + row_count(target)
        and state.frame is not None
        and (target.devices_below or target.only_shares)
    ):
        waits = waits_bar.line(state.frame.waits, width, charset)
        if waits is not None:
            return [*pad(body, height - 1, width), waits]
    return pad(body, height, width)


def row_count(target: Target) -> int:
    if target.only_shares:
        return share_row_count(target)
    return len(target.layers) + (len(target.devices_below) > 1)


def box_title(target: Target) -> str:
    return share_title(target) if target.only_shares else "Device (iostat)"


def _label(layer: Layer) -> str:
    name = printable(layer.name)
    suffix = f"×{layer.under}" if layer.under > 1 else ""
    return f"└{name}{suffix}" if layer.under else name


def _body(state: LiveState, target: Target, width: int, height: int, charset: Charset) -> list[Row]:
    if target.only_shares:
        return share_rows(state, target, width, charset)
    if not target.devices_below:
        why = printable(target.no_device) or "this target has no block device"
        return wrap(width, charset, f"No disk figures: {why}.", None)
    frame = state.frame
    if frame is None or frame.seconds is None:
        return [message(width, charset, state.why_no_rates)]
    several, layers = len(target.devices_below) > 1, target.layers
    labels = [_label(layer) for layer in layers] + [
        SUM_OF.format(len(target.devices_below))
    ] * several
    label = min(LONGEST, max(LABEL, *map(cells, labels)))
    table: Table[DiskRates] = table_for(COLUMNS, label, width, charset)
    body = [table.header("device")]
    notes: list[Row] = []
    if several:
        body.append(_sum_row(frame, target, table, width, charset))
    space = height - len(body)
    layers_shown = layers
    if len(layers) > space:
        # prefer the jobs' own devices to those beneath them
        layers_shown = tuple(sorted(layers, key=lambda layer: layer.under > 0))[: max(0, space - 1)]
    for layer in layers_shown:
        disk = frame.disks.get(layer.name)
        if disk is None:
            text = f"{printable(layer.name)}: not in /proc/diskstats in this second"
            body.append(message(width, charset, text))
            continue
        body.append(table.row(_label(layer), disk))
        extra = _discards_text(layer.name, disk, table.titles)
        if extra:
            notes.append(message(width, charset, extra))
    if len(layers_shown) < len(layers):
        more = len(layers) - len(layers_shown)
        body.append(message(width, charset, f"and {more} more devices, on a larger screen"))
    if target.without_device and several:
        notes.append(message(width, charset, _uncounted_text(target)))
    return [*body, *notes]


def _sum_row(
    frame: Frame, target: Target, table: Table[DiskRates], width: int, charset: Charset
) -> Row:
    disk = frame.combined(target.opened) if target.opened else None
    if disk is not None:
        return table.row(SUM_OF.format(len(target.devices_below)), disk)
    if target.nested is not None:
        top, below = map(printable, target.nested)
        why = f"{top} is on top of {below}: both count the same I/O"
    else:
        why = "not all devices were measured in this second"
    return message(width, charset, f"no sum: {why}")


def _uncounted_text(target: Target) -> str:
    first = target.without_device[0]
    more = f" and {len(target.without_device) - 1} more" if len(target.without_device) > 1 else ""
    return f"not in the sum: {printable(first.path)}{more} ({printable(first.no_device)})"


def _discards_text(name: str, disk: DiskRates, columns: set[str]) -> str:
    """Discards with their size and latency; also flushes, if they have no column."""
    parts = []
    if disk.d_s:
        parts.append(
            f"{f.number(disk.d_s)} discards/s of {f.milliseconds(disk.d_await)}, "
            f"{f.size(disk.d_bytes_s)}/s"
        )
    if disk.f_s and "f/s" not in columns:
        parts.append(f"{f.number(disk.f_s)} flushes/s of {f.milliseconds(disk.f_await)}")
    return f"{printable(name)}: {', '.join(parts)}" if parts else ""


# A row with health data (SMART) of the NVMe drives beneath the target.


OLD_S = 25.0
"""If a reading is older than this (two readings were missed), its age is shown."""
SEPARATOR: Piece = (" · ", DIM)

DriveReadings = Mapping[str, "tuple[float, DriveReading]"]
"""By controller: the time of the last reading (seconds of the session), and the reading."""


def line(drives: DriveReadings, now: float, width: int, charset: Charset) -> Row | None:
    """ "nvme0 47 °C · 3 % of endurance used · 864 MiB written · no warnings"; ``None`` without a
    reading. Several drives are added up, or the worst is shown. Parts that do not fit are left out;
    "…" stands for warnings."""
    if not drives:
        return None
    readings = {name: reading for name, (_, reading) in drives.items()}
    name = printable(next(iter(readings)))
    row = Line(width, charset).add(name if len(readings) == 1 else f"{len(drives)} drives", BOLD)
    row.add("  ")
    age = now - min(t for t, _ in drives.values())
    first = True
    for piece in (*_pieces(readings), *_age(age)):
        if row.try_add(*((piece,) if first else (SEPARATOR, piece))):
            first = False
        elif piece[1] == WARNING:
            # what is less important must not stand in its place
            row.add(" …", WARNING)
            break
    return row.build()


def _pieces(readings: Mapping[str, DriveReading]) -> Iterator[Piece]:
    problem = next((reading.problem for reading in readings.values() if reading.problem), "")
    for drive, reading in readings.items():
        for number, warning in enumerate(warnings_of(reading)):
            named = len(readings) > 1 and not number
            yield (f"{printable(drive)}: {warning}" if named else warning), WARNING
    temperature = combined_figure(readings, "temperature")
    most = "at most " if len(readings) > 1 else ""
    if not problem or temperature is not None:
        yield f"{most}{f.or_dash(temperature, '{:.0f}')} °C", None
    if problem:
        yield printable(problem), DIM
        return
    yield f"{f.or_dash(combined_figure(readings, 'used'), '{:.0f}')} % of endurance used", None
    yield f"{f.size(combined_figure(readings, 'bytes_written'))} written", None
    yield f"{f.size(combined_figure(readings, 'bytes_read'))} read", None
    amplification = combined_figure(readings, "write_amplification")
    if amplification is not None:
        yield f"write amplification {amplification:.2f}", None
    if not any(any(warnings_of(reading)) for reading in readings.values()):
        yield "no warnings", DIM


def _age(seconds: float) -> Iterator[Piece]:
    if seconds > OLD_S:
        yield f"read {f.clock(seconds)} ago", WARNING


# Figures of the target's NFS or SMB mount in the same second, for READ, WRITE and all other
# operations, and how the mount is mounted. Those of NFS are nfsiostat's.


SHARE_ROWS = 4
"""Rows for READ, WRITE, the other operations, and the mount's options."""
SHARE_LABEL = 7


def _if_any(figure: Figure) -> Callable[[OperationRates], Style | None]:
    return lambda row: WARNING if figure.value(row) else None


SHARE_COLUMNS = (
    OperationRates.ops_s.screen_column(DEVICE),
    OperationRates.kb_s.screen_column(),
    OperationRates.kb_op.screen_column(),
    OperationRates.resent.screen_column(style_of=_if_any(OperationRates.resent)),
    OperationRates.rtt.screen_column(title="avg RTT"),
    OperationRates.exe.screen_column(title="avg exe"),
    OperationRates.queue.screen_column(title="avg queue"),
    OperationRates.n_errors.screen_column(style_of=_if_any(OperationRates.n_errors)),
)
SMB_COLUMNS = (*SHARE_COLUMNS[:3], SHARE_COLUMNS[-1], OperationRates.latency.screen_column())


def share_title(target: Target) -> str:
    return "Share (SMB)" if target.smb_shares else "Share (nfsiostat)"


def share_source(target: Target) -> str:
    return "/proc/fs/cifs/Stats" if target.smb_shares else "/proc/self/mountstats"


def share_row_count(target: Target) -> int:
    """How many rows a share has; SMB has one more, for the client's state."""
    return SHARE_ROWS + bool(target.smb_shares)


def share_value(state: LiveState) -> list[Piece]:
    """The text for the border of its box: how many requests were sent per second, over all
    operations."""
    share = state.frame.share if state.frame is not None else None
    if share is None:
        return []
    return [("RPC/s " if share.smb is None else "SMB/s ", DIM), (f.number(share.ops_s), BOLD)]


def share_rows(state: LiveState, target: Target, width: int, charset: Charset) -> list[Row]:
    frame = state.frame
    if frame is None or frame.seconds is None:
        return [message(width, charset, state.why_no_rates)]
    mount = message(width, charset, _mount_text(target))
    share = frame.share
    if share is None:
        return [*wrap(width, charset, _why_missing(target), None), mount]
    table: Table[OperationRates] = Table(
        SHARE_COLUMNS if share.smb is None else SMB_COLUMNS, SHARE_LABEL, width, charset
    )
    body = [table.header("op")]
    body += [table.row(name, rates) for name, rates in _operations(share)]
    if share.smb is not None:
        body.append(message(width, charset, _client_state_text(share.smb)))
    return [*body, mount]


def _why_missing(target: Target) -> str:
    if not target.smb_shares:
        return "The mount was not measured in this second."
    return (
        "Not measured in this second: /proc/fs/cifs/Stats does not have the share, or its counters "
        "began again."
    )


def _client_state_text(smb: SmbClient) -> str:
    """The client's state, and how many shares the latencies cover."""
    lost = f"{smb.disconnected} disconnected · " if smb.disconnected else ""
    slow = f" · {smb.slow} slow" if smb.slow else ""
    state = f"{lost}in flight {_count(smb.in_flight)} · reconnects {_count(smb.reconnects)}{slow}"
    if smb.clock_ms is None:
        return f"{state} · no latency: kernel without CIFS_STATS2, or SMB 1"
    sources = "the connection" if smb.shares == 1 else f"the connection's {smb.shares} shares"
    return f"{state} · latency of {sources}, clock {smb.clock_ms:g} ms"


def _count(number: int | None) -> str:
    return f.MISSING if number is None else str(number)


def _operations(share: Share) -> Iterator[tuple[str, OperationRates]]:
    yield "read", share.read
    yield "write", share.write
    yield "other", share.other


def _mount_text(target: Target) -> str:
    """The export and the options of the first mount, and how many more there are."""
    first = next(place for place in target.places if place.mountpoint in target.shares)
    more = f" and {len(target.shares) - 1} more" if len(target.shares) > 1 else ""
    return printable(f"{first.share}{more} · {first.mount_options}")
