"""Totals of many hosts, second by second: table, JSON lines or CSV on standard output."""

from __future__ import annotations

from typing import Protocol, TextIO

from iopstui.events import AnswerGiven
from iopstui.fleet.merging.certificate import certify_merge
from iopstui.fleet.merging.merger import MergedInterval, Merger
from iopstui.fleet.merging.sums import Object
from iopstui.format import MISSING, clock, cut, latency, milliseconds, number, print_line, utc
from iopstui.model.answer.answer import Answer
from iopstui.model.samples import READ, WRITE
from iopstui.model.sizes import MIB
from iopstui.output.csv_out import CsvFile, cell_text
from iopstui.output.fleet.columns import figure_cells, figure_columns, head_cells, head_columns
from iopstui.output.fleet.rows import merged_object, second_object, session_object
from iopstui.output.fleet.wording import SHOWN_PERCENTILES, is_last, missing_hosts, totals_text
from iopstui.output.jsonl import dumps, event_object
from iopstui.text import printable

HEADER_EVERY = 20
NAME_WIDTH = 13


class TotalsSink(Protocol):
    """A sink for totals. Passes ``BrokenPipeError`` of the data stream on."""

    def second(self, second: MergedInterval) -> None:
        """Take one second."""
        ...

    def answer(self, t: float, answer: Answer) -> None:
        """Take another answer, given after ``t`` seconds."""
        ...

    def end(self, merger: Merger) -> None:
        """No more seconds come."""
        ...


def totals_sink(kind: str, out: TextIO, err: TextIO, label: str) -> TotalsSink:
    """The sink for --format ``kind`` ("table", "jsonl" or "csv")."""
    if kind == "jsonl":
        return TotalLines(out, err, label)
    return TotalCsv(out, err) if kind == "csv" else TotalTable(out, err)


class _LossMessages:
    """Messages on ``err`` about hosts that are not counted, at each change."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._last_missing = self._last_device = ""

    def second(self, second: MergedInterval) -> None:
        message = missing_hosts(second)
        if message and message != self._last_missing:
            self._print_message(second, message)
        self._last_missing = message
        all_of_them = second.sums.device.hosts == second.counted
        device = "" if all_of_them else second.sums.device.describe(second.counted)
        if device and device != self._last_device:
            self._print_message(second, device)
        self._last_device = device

    def answer(self, t: float, answer: Answer) -> None:
        print_line(f"{clock(t)} {printable(answer.sentence)}", self._err)

    def _print_message(self, second: MergedInterval, message: str) -> None:
        print_line(f"[{(utc(second.wall_ms) or '')[11:19]}] {message}", self._err)

    def print_totals(self, merger: Merger, out: TextIO) -> None:
        print_line("\n" + totals_text(merger.run_sums(), certify_merge(merger)), out)


class TotalLines:
    """A JSON object for each second, which another merger can read, and one for the whole."""

    def __init__(self, out: TextIO, err: TextIO, label: str) -> None:
        self._out, self._err, self._label = out, err, label
        self._messages = _LossMessages(err)
        self._write(session_object(label))

    def second(self, second: MergedInterval) -> None:
        """Write one second."""
        self._messages.second(second)
        self._write(second_object(second, self._label))

    def answer(self, t: float, answer: Answer) -> None:
        """Write an answer."""
        self._write({**event_object(AnswerGiven(t, answer)), "host": self._label})

    def end(self, merger: Merger) -> None:
        """Write the totals of all hosts."""
        self._write(merged_object(merger, self._label))
        self._messages.print_totals(merger, self._err)

    def _write(self, row: Object) -> None:
        self._out.write(dumps(row) + "\n")
        self._out.flush()


class TotalCsv:
    """A row for each second; the header at once."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._err = err
        self._messages = _LossMessages(err)
        self._file = CsvFile(out, (column.name for column in (*head_columns(), *figure_columns())))

    def second(self, second: MergedInterval) -> None:
        """Write one second."""
        self._messages.second(second)
        self._file.row(map(cell_text, (*head_cells(second), *figure_cells(second.sums))))

    def answer(self, t: float, answer: Answer) -> None:
        """Print an answer beside the rows."""
        self._messages.answer(t, answer)

    def end(self, merger: Merger) -> None:
        """End: no more events follow."""
        self._messages.print_totals(merger, self._err)


class TotalTable:
    """A row of at most 80 columns for each second, the whole at the end."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._messages = _LossMessages(err)
        self._rows = 0
        self._fio = True

    def second(self, second: MergedInterval) -> None:
        """Print one second."""
        if is_last(second):
            return
        self._messages.second(second)
        fio = bool(second.sums.fio) or (not second.sums.kernel.hosts and self._fio)
        if self._rows % HEADER_EVERY == 0 or fio != self._fio:
            self._rows, self._fio = 0, fio
            print_line(_head(fio), self._out)
        self._rows += 1
        print_line(_fio_row(second) if fio else _kernel_row(second), self._out)

    def answer(self, t: float, answer: Answer) -> None:
        """Print an answer beside the rows."""
        self._messages.answer(t, answer)

    def end(self, merger: Merger) -> None:
        """Print the totals of all hosts."""
        self._messages.print_totals(merger, self._out)


def _head(fio: bool) -> str:
    names = ["read", "write", "MiB/s", *SHOWN_PERCENTILES] if fio else [
        "r/s", "w/s", "MiB/s", "r_await", "w_await", "aqu-sz"
    ]  # fmt: skip
    widths = (6, 6, 7, 7, 7, 7)
    cells = [f"{name:>{width}}" for name, width in zip(names, widths, strict=True)]
    last = "  slowest" if fio else ""
    return f"{'UTC':<8} {'hosts':>9} {' '.join(cells)}{last}"


def _start(second: MergedInterval) -> str:
    hosts = f"{second.counted}/{second.expected}"
    return f"{(utc(second.wall_ms) or MISSING)[11:19]:<8} {hosts:>9}"


def _fio_row(second: MergedInterval) -> str:
    fio, total = second.sums.fio, second.sums.total
    cells = [f"{number(fio[name].iops) if name in fio else MISSING:>6}" for name in (READ, WRITE)]
    cells.append(f"{number(total.bw / MIB) if total else MISSING:>7}")
    ranks = total.main.percentiles if total else {}
    cells += [f"{latency(ranks.get(name)):>7}" for name in SHOWN_PERCENTILES]
    slowest = second.sums.slowest
    name = f"  {cut(printable(slowest[1]), NAME_WIDTH)}" if slowest else ""
    return f"{_start(second)} {' '.join(cells)}{name}"


def _kernel_row(second: MergedInterval) -> str:
    kernel = second.sums.kernel
    figures = kernel.as_object() or {}
    moved = [kernel.rate(name) for name in ("rMB/s", "wMB/s")]
    amounts = [value for value in moved if value is not None]
    cells = [f"{number(kernel.rate(name)):>6}" for name in ("r/s", "w/s")]
    cells.append(f"{number(sum(amounts)) if amounts else MISSING:>7}")
    cells += [f"{milliseconds(figures.get(name)):>7}" for name in ("r_await", "w_await")]
    cells.append(f"{number(kernel.rate('aqu-sz')):>7}")
    return f"{_start(second)} {' '.join(cells)}"
