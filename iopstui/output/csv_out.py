"""Frames as CSV: one row per frame. Headings are ids of model/metrics/fields.py.

It has the main figures only; JSON lines have everything. An empty cell means that the value is
missing."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from iopstui.events import Event, FrameReady, Mark, StepStarted, TunableChanged
from iopstui.model.figures.figure import ANY, DEVICE, TOTAL, WAIT
from iopstui.model.metrics.fields import FIELDS
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.nvme import FIGURES as DRIVE_FIGURES
from iopstui.model.metrics.nvme import NVME
from iopstui.model.metrics.run_history import options_of_run
from iopstui.model.samples import READ, TRIM, WRITE
from iopstui.model.sources import BY_NAME
from iopstui.output.jsonl import clean, main_figures
from iopstui.text import printable

_FIRST_COLUMNS = ("t", "wall_ms", "utc", "step", "seconds", "flags")
_FORMULA = ("=", "+", "-", "@")
_WAITS = ("ios", "cpu", "above", "queue", "device", "unknown", "cache", "unsent")
RUN_COLUMNS = ("run", "job", "iodepth", "numjobs", "bs", "tunables", "marks")
"""The last columns: a frame's run with its main options, the known tunables, and the marks since
the previous frame."""
_OMITTED = {"ios", "bytes", "n", "bins_of", "bins"}


class CsvFile:
    """Rows of cells below one header; unknown values stay empty."""

    def __init__(self, out: TextIO, head: Iterable[str]) -> None:
        self._out = out
        self._writer = csv.writer(out, lineterminator="\n")
        self._writer.writerow(head)

    def row(self, cells: Iterable[Any]) -> None:
        """Write one row at once."""
        self._writer.writerow("" if cell is None else cell for cell in cells)
        self._out.flush()


class CsvSink:
    """Writes the header together with the first frame. Passes ``BrokenPipeError`` on."""

    def __init__(
        self,
        stream: TextIO,
        devices: Sequence[str] = (),
        layers: Sequence[str] = (),
        share_source: str = "",
        on_nvme: bool = False,
        tunables: Mapping[str, str] | None = None,
    ) -> None:
        """``tunables``: the values at the beginning, by "DEVICE.NAME"."""
        self._stream = stream
        self._runs: dict[int, list[str]] = {}
        self._tunables, self._marks = dict(tunables or {}), list[str]()
        self._writer = csv.writer(stream, lineterminator="\n")
        self._columns = list(session_columns(devices, layers, share_source, on_nvme))
        self._figures = Figures(self._columns)
        self._started = False

    def handle(self, event: Event) -> None:
        match event:
            case StepStarted():
                options = options_of_run(event.title, event.options)
                cells = (event.job, *map(options.get, ("iodepth", "numjobs", "bs")))
                self._runs[event.step] = [str(event.step), *(cell or "" for cell in cells)]
            case TunableChanged():
                self._tunables[f"{event.device}.{event.name}"] = event.now
            case Mark():
                self._marks.append(event.text)
            case FrameReady():
                self._start()
                figures = map(cell_text, self._figures.from_frame(event.frame))
                self._writer.writerow([*figures, *map(cell_text, self._run_cells(event.frame))])
                self._stream.flush()
                self._marks.clear()

    def close(self) -> None:
        """Close: no more events follow. The header is written even if no frame ever came."""
        self._start()
        self._stream.flush()

    def _run_cells(self, frame: Frame) -> Iterator[str]:
        run = self._runs.get(frame.step) or [str(frame.step or ""), "", "", "", ""]
        tunables = " ".join(f"{name}={value}" for name, value in self._tunables.items())
        yield from map(printable, (*run, tunables, "; ".join(self._marks)))

    def _start(self) -> None:
        if not self._started:
            self._started = True
            heads = (printable(".".join(path)) for path in self._columns)
            self._writer.writerow([*heads, *RUN_COLUMNS])


class Figures:
    """Reads the values of some columns from a frame, in order; unknown values are ``None``."""

    def __init__(self, columns: Sequence[tuple[str, ...]]) -> None:
        # columns next to each other are usually in the same object, which is then looked up once
        self._groups = [
            (parent, [path[-1] for path in paths])
            for parent, paths in groupby(columns, lambda path: path[:-1])
        ]

    def from_frame(self, frame: Frame) -> Iterator[Any]:
        row = main_figures(frame)
        for parent, names in self._groups:
            part = value_at(row, parent)
            values = part if isinstance(part, dict) else {}
            for name in names:
                value = values.get(name)
                yield None if value is None else clean(value)


def session_columns(
    devices: Sequence[str],
    layers: Sequence[str] = (),
    share_source: str = "",
    on_nvme: bool = False,
) -> Iterator[tuple[str, ...]]:
    """The columns of a session with these devices: their sum if there are several, then each
    device. All flags are in one column. ``layers`` are the devices in which I/Os may wait;
    ``share_source`` is "nfs" or "smb" if the target is on such a mount; ``on_nvme``: it is on an
    NVMe drive."""
    yield from ((name,) for name in _FIRST_COLUMNS)
    for part in (READ, WRITE, TRIM, TOTAL, "sync"):
        yield from _paths("fio", part)
    for kind in (READ, WRITE, TOTAL):
        yield from (path for path in _paths(DEVICE, kind) if len(path) == 3)
    if len(devices) > 1:
        yield from (path for path in _paths("kernel", TOTAL) if path[-1] != "util")
    for device in devices:
        for path in _paths("kernel", "disks"):
            yield tuple(device if key == ANY else key for key in path)
    for source in BY_NAME:
        yield from _paths("kernel", source)
    if share_source:
        yield from (path for path in _paths("kernel", share_source) if ANY not in path)
    if on_nvme:
        yield from ((NVME, figure.name) for figure in DRIVE_FIGURES)
    yield from ((WAIT, name) for name in _WAITS)
    yield from ((WAIT, "layers", name) for name in layers)


def _paths(*owner: str) -> list[tuple[str, ...]]:
    """The paths of an object's fields that have a column."""
    paths = (field.path for field in FIELDS)
    return [path for path in paths if path[:2] == owner and not _OMITTED & set(path)]


def value_at(row: Any, path: Sequence[str]) -> Any:
    """The value at a path of a frame object; ``None`` where the path ends early."""
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row


def cell_text(value: Any) -> str:
    """A value as a cell. An apostrophe is put before a text that a spreadsheet would execute as a
    formula, because names may come from other machines."""
    if value is None:
        return ""
    text = " ".join(value) if isinstance(value, list) else str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
