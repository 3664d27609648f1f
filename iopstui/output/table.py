"""Frames as a live table of 80 columns, for use without a screen.

The table goes to standard output, all messages to standard error. For the same second, fio's
figures are on the left and the device's on the right. If there are several devices, their sum comes
first, then each of them. The devices beneath a stacked device have rows of their own, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TextIO

from iopstui import format as units
from iopstui.events import AnswerGiven, Event, FrameReady, Notice, StepFinished, StepStarted
from iopstui.model.answer.answer import Answer
from iopstui.model.block.target import Layer, Target
from iopstui.model.figures.disk import DiskRates, util_column
from iopstui.model.figures.figure import RANKS, SHOWN
from iopstui.model.fio.interval import BW, DirectionInterval
from iopstui.model.metrics import frame as flags
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import RunDrives
from iopstui.model.metrics.probe import ProbeTotal
from iopstui.model.metrics.run_figures import RunEnergy, RunFigures
from iopstui.model.metrics.shares import OperationRates, RunShare, Share
from iopstui.model.metrics.slow.slow_requests import SlowestTotal
from iopstui.model.metrics.summary import FramesTotal
from iopstui.model.samples import DIRECTIONS, MIXED, READ, WRITE
from iopstui.output.narration import Narrator
from iopstui.output.summary import (
    drives_text,
    energy_text,
    probe_text,
    share_text,
    slow_ios_text,
    slowest_text,
    summary_text,
)
from iopstui.tables import Column, head_line, row_line
from iopstui.text import printable

HEADER_EVERY = 20
ROW_WIDTH = 75
LEFT_WIDTH = 47
"""Width of the part left of the device's figures."""
BELOW = "└ "
_FLAG_NAMES = (
    (flags.RESET, "reset"),
    (flags.RAMP, "ramp"),
    (flags.LATE, "late"),
    (flags.NO_FIO, "no fio"),
    (flags.HANDOVER, "2 runs"),
    (flags.APPROX_IOPS, "~IOPS"),
    (flags.APPROX_BW, "~MiB/s"),
    (flags.APART, "~dev"),
    (flags.PARTIAL, "partial"),
)
EXPLAINED = (
    (
        flags.NO_LATENCY,
        "this job measures no latency (gtod_reduce, disable_clat, io_submit_mode=offload ...), "
        "so those columns are empty",
    ),
    (
        flags.SOME_LATENCY,
        "latencies cover only some I/Os, because not all sections of the job measure them",
    ),
    (flags.SUBMITTED, "fio does not report completed I/Os here; submitted ones are shown"),
    (
        flags.APPROX_IOPS,
        "~IOPS: these I/Os are computed from bytes that fio copied clearly before the end of the "
        "second, while it waited for its slowest job",
    ),
    (
        flags.APPROX_BW,
        "~MiB/s: fio copied these bytes clearly before the end of the second, while it waited for "
        "its slowest job, and block sizes vary",
    ),
    (flags.APART, "~dev: the device's columns cover clearly other seconds than fio's"),
    (
        flags.WRONG_LATENCY,
        "fio's latencies are impossible: at these IOPS they need many more I/Os in flight than "
        "iodepth × numjobs (a bug of this fio version); the IOPS are not affected",
    ),
)
MIB_S = BW.column(title="MiB/s")
PERCENTILE_COLUMNS = tuple(RANKS[name].column() for name in SHOWN)
RATES = (DiskRates.r_s.column(), DiskRates.w_s.column())
QUEUE = (DiskRates.aqu_sz.column(), util_column())
DEVICE = (*RATES, *QUEUE)
SHARE = (
    OperationRates.ops_s.column("read", title=DiskRates.r_s.name, width=5),
    OperationRates.ops_s.column("write", title=DiskRates.w_s.name, width=5),
    OperationRates.rtt.column("data", title="RTT", width=6, form=units.dense_ms),
    OperationRates.resent.column("data", title="retr", width=4),
)
"""The columns for an NFS mount, instead of a device's: reads, writes, and for both together the
round-trip time and the number of retransmissions."""
SMB_SHARE = (
    *SHARE[:2],
    OperationRates.latency.column("data", title="lat", width=6, form=units.dense_ms),
    OperationRates.n_errors.column("data", title="err", width=4, form=units.number),
)
"""The columns for an SMB mount: like NFS, but with the latency on the connection and the errors."""


class TableSink:
    """Prints one row per frame, and fio's final figures at the end. Passes ``BrokenPipeError`` on.

    ``target`` says which devices' figures are in the right half (``None``: no device)."""

    def __init__(self, out: TextIO, err: TextIO, target: Target | None = None) -> None:
        self._out = out
        self._narrator = Narrator(err)
        self._target = target
        self._rows = 0
        self._seen: tuple[str, ...] = ()
        self._explained: set[str] = set()
        self._total = FramesTotal()
        self._probed = ProbeTotal()
        self._run = RunFigures()
        self._drives, self._energy = RunDrives(), RunEnergy()
        self._slowest = SlowestTotal()
        self._share = RunShare()
        self._answer: Answer | None = None

    def handle(self, event: Event) -> None:
        if isinstance(event, FrameReady):
            self._frame(event.frame)
            return
        self._narrator.handle(event)
        if isinstance(event, AnswerGiven):
            self._answer = event.answer
        elif isinstance(event, StepStarted):
            self._answer = None
            self._rows, self._seen = 0, ()
            self._explained, self._total = set(), FramesTotal()
            self._probed, self._run = ProbeTotal(), RunFigures()
            self._drives, self._energy = RunDrives(), RunEnergy()
            self._slowest, self._share = SlowestTotal(), RunShare()
        elif isinstance(event, StepFinished) and event.summary:
            figures = self._total, self._run.waits.value, self._answer
            self._print("\n" + summary_text(event.summary, *figures, event.disturbed))
            more = (
                probe_text(self._probed), slowest_text(self._slowest),
                slow_ios_text(event.summary), drives_text(self._drives),
                energy_text(self._energy), share_text(self._share),
            )  # fmt: skip
            for text in filter(None, more):
                self._print(text)

    def close(self) -> None:
        self._out.flush()
        self._narrator.close()

    def _frame(self, frame: Frame) -> None:
        self._total.add_frame(frame)
        self._run.add(frame)
        self._drives.add(frame.nvme)
        self._energy.add(frame)
        self._share.add(frame.share, reported=frame.fio is not None)
        if frame.fio is not None:
            self._probed.add(frame.probe, frame.opened)
            self._slowest.add(frame)
        self._explain(frame)
        before, self._seen = self._seen, self._all_seen(frame)
        directions = shown_directions(self._seen)
        if self._rows % HEADER_EVERY == 0 or directions != shown_directions(before):
            self._rows = 0
            self._print(header(directions, self._target, _bins_of(frame)))
        self._rows += 1
        self._print("\n".join(rows(frame.whole, directions, self._target)))

    def _all_seen(self, frame: Frame) -> tuple[str, ...]:
        now = frame.fio.directions if frame.fio else ()
        return tuple(name for name in DIRECTIONS if name in now or name in self._seen)

    def _explain(self, frame: Frame) -> None:
        present = frame.flags
        if self._target is None or not _has_figures(self._target):
            present -= {flags.APART}
        for flag, text in EXPLAINED:
            if flag in present and flag not in self._explained:
                self._explained.add(flag)
                self._narrator.handle(Notice(frame.t, "info", text))

    def _print(self, text: str) -> None:
        units.print_line(text, self._out)


def shown_directions(seen: tuple[str, ...]) -> tuple[str, ...]:
    """The two columns of directions. With more than two, the second is the sum of the rest."""
    split = tuple(name for name in seen if name != MIXED) or seen
    if not split:
        return (READ, WRITE)
    if len(split) > 2:
        return (split[0], "other")
    if len(split) == 1 and split[0] in (READ, WRITE):
        return (READ, WRITE)
    return split if len(split) == 2 else (split[0], "")


def header(directions: tuple[str, ...], target: Target | None, bins_of: str) -> str:
    """The two lines above the rows."""
    on = target.devices_below if target is not None else ()
    manner = "together" if target is not None and target.opened else "without a sum"
    name = f"{len(on)} devices {manner}" if len(on) > 1 else (on or ("no device",))[0]
    if target is not None and target.only_shares:
        name = target.places[0].share or name
    name = units.cut(printable(name), 24)
    groups = f"{'':5} {'fio: I/Os per second':<22}{bins_of + ' of all I/Os':<21}  {name}"
    names = [*(f"{name:>5}" for name in directions), head_line((MIB_S, *PERCENTILE_COLUMNS)), ""]
    columns = _share_columns(target) if target is not None and target.only_shares else DEVICE
    return f"{groups.rstrip()}\n {'time'} {' '.join(names)} {head_line(columns)}"


def rows(frame: Frame, directions: tuple[str, ...], target: Target | None) -> list[str]:
    """Return a frame in at most 80 columns, then a row for each further device."""
    if target is None or not _has_figures(target):
        return [_row(replace(frame, flags=frame.flags - {flags.APART}), directions, None)]
    if target.only_shares:
        return [_row(frame, directions, frame.share, _share_columns(target))]
    layers = target.layers if len(target.devices_below) > 1 else target.layers[1:]
    combined = frame.combined(target.opened)
    return [
        _row(frame, directions, combined),
        *discard_rows(combined),
        *(_layer(layer, frame.disks.get(layer.name)) for layer in layers),
    ]


def discard_rows(disk: DiskRates | None) -> Iterator[str]:
    """A row about the discards in an interval and their latency, because discards have no
    columns."""
    if disk is not None and disk.d_s:
        took = f"{units.milliseconds(disk.d_await)} each"
        rates = f"{units.number(disk.d_s)}/s, {units.size(disk.d_bytes_s)}/s"
        yield f"{f'discards: {rates}, {took}':>{ROW_WIDTH}}"


def _has_figures(target: Target) -> bool:
    """Whether there are figures for the right half of the table. A file system in memory has no
    device."""
    return bool(target.devices_below or target.shares)


def _share_columns(target: Target) -> tuple[Column, ...]:
    return SMB_SHARE if target.smb_shares else SHARE


def _layer(layer: Layer, disk: DiskRates | None) -> str:
    name = f"{BELOW * bool(layer.under)}{printable(layer.name)}"
    if layer.under > 1:
        name += f" (below {layer.under})"
    return f"{units.cut(name, LEFT_WIDTH):>{LEFT_WIDTH}}  {row_line(DEVICE, disk)}"


def _row(
    frame: Frame,
    directions: tuple[str, ...],
    kernel: DiskRates | Share | None,
    columns: tuple[Column, ...] = DEVICE,
) -> str:
    total = frame.fio.total if frame.fio else None
    cells = [f"{units.clock(frame.t):>5}"]
    cells += [f"{_iops(frame, name, directions):>5}" for name in directions]
    cells += [row_line((MIB_S, *PERCENTILE_COLUMNS), total), "", row_line(columns, kernel)]
    return " ".join([*cells, flag_text(frame.flags)]).rstrip()


def flag_text(present: frozenset[str]) -> str:
    """The frame's flags in at most seven characters: the gravest one, with "+" if there are
    more."""
    if flags.HANDOVER in present:
        # a frame with a handover is always partial, too
        present -= {flags.PARTIAL}
    names = [flag_name for flag, flag_name in _FLAG_NAMES if flag in present]
    if not names:
        return ""
    return names[0] if len(names) == 1 else f"{names[0]}+"


def _iops(frame: Frame, name: str, directions: tuple[str, ...]) -> str:
    if frame.fio is None:
        return units.MISSING if name else ""
    parts = frame.fio.directions
    if name == "other":
        chosen = [part for key, part in parts.items() if key not in (directions[0], MIXED)]
    else:
        chosen = [parts[name]] if name in parts else []
    return units.number(_sum_iops(chosen)) if name else ""


def _sum_iops(parts: list[DirectionInterval]) -> float | None:
    rates = [part.iops for part in parts if part.iops is not None]
    return sum(rates) if rates else None


def _bins_of(frame: Frame) -> str:
    return frame.fio.total.bins_of if frame.fio else "clat"
