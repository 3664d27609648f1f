"""Totals of many hosts, second by second, as a table, JSON lines or CSV, and messages about
them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TextIO

from iopstui import __version__
from iopstui.events import AnswerGiven, ExpectationChecked
from iopstui.features.fleet.merging.figures import FleetExpectation, figure
from iopstui.features.fleet.merging.merger import (
    MergeCertificate,
    MergedInterval,
    Merger,
    certify_merge,
)
from iopstui.features.fleet.merging.sums import (
    AWAITS,
    DISK_RATES,
    DirectionSum,
    HostSums,
    LatencySum,
    Object,
)
from iopstui.format import (
    MISSING,
    clock,
    counted,
    cut,
    first_of,
    latency,
    number,
    print_line,
    print_sentence,
    utc,
)
from iopstui.model.answer.answer import Answer
from iopstui.model.experiment.expectation import Outcome
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import DEVICE, RANKS, SCHEMA, SHOWN, TOTAL, Figure
from iopstui.model.fio.interval import IOPS
from iopstui.model.histogram import PERCENTILES, percentile_name
from iopstui.model.metrics.fields import BY_ID
from iopstui.model.samples import DIRECTIONS, READ, TRIM, WRITE
from iopstui.model.sizes import MIB
from iopstui.output.csv_out import CsvFile, cell_text
from iopstui.output.jsonl import dumps, event_object
from iopstui.output.summary import RAMP_WORDS
from iopstui.session.tick.outcomes import outcome_event
from iopstui.tables import TIME, WHOLE, WORDS, Column, head_line, row_line
from iopstui.text import printable

WIDTH = 80
MAX_NAMED = 6
LEAST_SHARED = 0.5
"""If all hosts have figures in less than this share of the run, the rates of the whole run get a
note."""


def mib_number(bytes_s: float | None) -> str:
    return number(None if bytes_s is None else bytes_s / MIB)


def direction_columns(percentiles: Sequence[str], width: int = 0) -> tuple[Column, ...]:
    return (
        Column("iops", "IOPS", width, number), Column("bw", "MiB/s", width, mib_number),
        Column("latencies/mean", "mean", width, latency),
        *(RANKS[name].column("latencies", width=width) for name in percentiles),
        Column("latencies/max_ns", "max", width, lambda highest: latency(highest or None)),
    )  # fmt: skip


def direction_cells(part: DirectionSum | None, kind: str = "") -> Object:
    """The figures of a direction; requests to a device have no bytes."""
    if part is None:
        return {"iops": None, "bw": None, "latencies": LatencySum()}
    latencies = part.latency(kind) if kind else part.main
    return {"iops": part.iops, "bw": None if kind else part.bw, "latencies": latencies}


_COLUMNS = (Column("name", "all hosts", 10, left=True), *direction_columns(SHOWN, 9))


def first_names(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    return first_of([printable(cut(name, 40)) for name in names], MAX_NAMED)


def missing_hosts(second: MergedInterval) -> str:
    """The hosts that are missing in a second's totals: "97 of 100 hosts: node03 missing"; "" if
    none is."""
    if second.counted >= second.expected or is_last(second):
        return ""
    why = []
    if second.missing:
        why.append(f"{first_names(second.missing)} missing")
    if second.incomplete:
        why.append(f"{first_names(second.incomplete)} incomplete")
    return f"{second.counted} of {counted(second.expected, 'host')}: {'; '.join(why)}"


def is_last(second: MergedInterval) -> bool:
    """Whether this is only the rest after the last whole second, which no host has measured
    completely."""
    return not second.counted and not second.missing


def executed_text(within: float, wrong: float, subject: str) -> str:
    """The largest difference between the hosts' start times (ms) by their clocks, with its
    error."""
    most = math.ceil((within + wrong) * 10) / 10
    return (f"fio started within {most:.1f} ms on {subject} ({within:.1f} ms by their clocks, "
            f"which may be off by {wrong:.2f} ms)")  # fmt: skip


def ending(certificate: MergeCertificate) -> Iterator[str]:
    """How the hosts ended, and whether their frames add up to fio's totals."""
    lines = [f"{counted(certificate.hosts, 'host')}: {certificate.finished} finished"]
    for names, outcome in (
        (certificate.failed, "failed"), (certificate.interrupted, "interrupted"),
        (certificate.lost, "lost (their end was not seen)"),
    ):  # fmt: skip
        if names:
            lines.append(f"{len(names)} {outcome}: {first_names(names)}")
    yield "; ".join(lines)
    if certificate.shared_seconds < LEAST_SHARED * certificate.seconds:
        shared = f"{certificate.shared_seconds} of {certificate.seconds} intervals"
        yield (f"{shared} have figures of all hosts; IOPS and MiB/s add up each host's own mean")
    if certificate.fio_ios is not None:
        yield _certificate(certificate)


def _certificate(certificate: MergeCertificate) -> str:
    totals = f"{certificate.ios:,} I/Os, {certificate.bytes:,} bytes"
    if certificate.exact == certificate.hosts:
        if certificate.fio_bytes is None:
            totals = f"{certificate.ios:,} I/Os"
        return f"Verified: the intervals of all hosts add up to fio's own totals ({totals})."
    text = f"Verified on {certificate.exact} of {certificate.hosts}"
    if certificate.differs:
        text += f"; different on {first_names(certificate.differs)}"
        if certificate.ramp:
            hosts_text = (
                ""
                if certificate.ramp == certificate.differs
                else f" on {first_names(certificate.ramp)}"
            )
            text += f" (the difference{hosts_text} {RAMP_WORDS})"
    if certificate.unchecked:
        text += f"; not checked on {first_names(certificate.unchecked)}"
    return f"{text}. In all: {totals}."


def _device_rows(sums: HostSums, certificate: MergeCertificate) -> Iterator[str]:
    lines = sums.device.describe(certificate.hosts)
    if lines:
        yield f"{lines}, from a request's issue to its completion"
    for kind, part in sums.device.directions():
        yield row_line(_COLUMNS, {"name": kind, **direction_cells(part, DEVICE)})


def totals_text(merger: Merger) -> str:
    """A table of the whole run of all hosts, in at most 80 columns, and how the hosts ended."""
    sums, certificate = merger.run_sums(), certify_merge(merger)
    lines = []
    if sums.fio:
        parts = {name: sums.fio[name] for name in DIRECTIONS if name in sums.fio}
        lines.append(head_line(_COLUMNS))
        lines += [row_line(_COLUMNS, {"name": name, **direction_cells(part)})
                  for name, part in parts.items()]  # fmt: skip
    elif sums.device.hosts:
        lines.append(head_line(_COLUMNS))
    lines += _device_rows(sums, certificate)
    if merger.ran_apart:
        lines.append("The hosts ran at different times: IOPS and MiB/s add up their own means.")
    for line in ending(certificate):
        lines += textwrap.wrap(line, WIDTH)
    return "\n".join(lines)


def judge_expectations(
    merger: Merger, expected: Sequence[FleetExpectation], step: int = 1
) -> list[ExpectationChecked]:
    """The outcome of each expectation. An ``each.`` expectation is judged by the figure of the
    worst host."""
    total = merger.run_sums()
    by_host = {name: host.run_sums() for name, host in merger.hosts.items()
               } if any(one.per_host for one in expected) else {}  # fmt: skip
    return [
        _worst_of_hosts(one, by_host, step)
        if one.per_host
        else replace(outcome_event(0.0, step, _outcome(one, total)), expectation=one.text)
        for one in expected
    ]


def _outcome(one: FleetExpectation, sums: HostSums) -> Outcome:
    return Outcome(one.expectation, figure(sums, one.expectation.path), None)


def _worst_of_hosts(
    one: FleetExpectation, by_host: Mapping[str, HostSums], step: int
) -> ExpectationChecked:
    outcomes = {name: _outcome(one, sums) for name, sums in by_host.items()}
    values = [o.measured for o in outcomes.values() if o.measured is not None]
    worst = (max if one.expectation.op == "<=" else min)(values, default=None)
    missed = sorted(name for name, outcome in outcomes.items() if outcome.passed is False)
    unknown = sorted(name for name, outcome in outcomes.items() if outcome.passed is None)
    why = [f"the worst of {counted(len(outcomes), 'host')}"] if values else []
    why += [f"not met by {first_names(missed)}"] if missed else []
    why += [f"not measured on {first_names(unknown)}"] if unknown else []
    event = outcome_event(0.0, step, Outcome(one.expectation, worst, None, why="; ".join(why)))
    passed = False if missed else None if unknown or not outcomes else True
    return replace(event, expectation=one.text, passed=passed)


def session_object(label: str) -> Object:
    """The first line, which says that totals follow."""
    return {
        "event": "session", "host": label, "schema": SCHEMA, "iopstui": __version__, "merged": True,
    }  # fmt: skip


def second_object(second: MergedInterval, label: str) -> Object:
    """The totals of a second. ``label`` is the name of the merger."""
    slowest = second.sums.slowest
    return {
        "event": "total",
        "host": label,
        "schema": SCHEMA,
        "second": second.number,
        "interval_s": second.interval_s,
        "wall_ms": second.wall_ms,
        "utc": utc(second.wall_ms),
        "hosts": {
            "expected": second.expected,
            "counted": second.counted,
            "missing": list(second.missing),
            "incomplete": list(second.incomplete),
        },
        "flags": dict(sorted(second.flags.items())),
        "slowest": {"host": slowest[1], "p99": slowest[0]} if slowest else None,
        "fio": second.sums.fio_object(),
        "kernel": second.sums.kernel.as_object(),
        "device": second.sums.device.as_object(),
    }


def merged_object(merger: Merger, label: str) -> Object:
    """The totals of all hosts from start to end, and whether they are complete."""
    rates = merger.run_sums()
    certificate = certify_merge(merger).as_object()
    slowest = rates.slowest
    return {
        "event": "merged",
        "host": label,
        "schema": SCHEMA,
        "interval_s": merger.interval_s,
        "hosts": certificate["hosts"],
        "lost": certificate["lost"],
        "late": dict(sorted(merger.late_frames.items())),
        "count": certificate["count"],
        "slowest": {"host": slowest[1], "p99": slowest[0]} if slowest else None,
        "fio": rates.fio_object(),
        "kernel": None,
        "device": rates.device.as_object(),
    }


HEADER_EVERY = 20


def _of_disks(figure: Figure, width: int = 7) -> Column:
    return Column("", figure.name, width, figure.form,
                  read=lambda row: row.sums.kernel.value(figure))  # fmt: skip


_HEAD = (
    Column("", "UTC", 8, left=True, read=lambda row: (utc(row.wall_ms) or MISSING)[11:19]),
    Column("", "hosts", 9, read=lambda row: f"{row.counted}/{row.expected}"),
)  # fmt: skip
_FIO = (
    *_HEAD,
    *(IOPS.column(f"sums/fio/{name}", title=name, width=6) for name in (READ, WRITE)),
    Column("sums/total/bw", "MiB/s", 7, mib_number),
    *(RANKS[name].column("sums/total/main") for name in SHOWN),
    Column("sums/slowest", " slowest", 14, left=True,
           form=lambda slowest: f" {printable(slowest[1])}" if slowest else ""),
)  # fmt: skip
_KERNEL = (
    *_HEAD, _of_disks(DiskRates.r_s, 6), _of_disks(DiskRates.w_s, 6),
    Column("sums/kernel/mib_s", "MiB/s", 7, number),
    *map(_of_disks, (DiskRates.r_await, DiskRates.w_await, DiskRates.aqu_sz)),
)  # fmt: skip


class TotalsSink(Protocol):
    """A sink for totals. Passes ``BrokenPipeError`` of the data stream on."""

    def second(self, second: MergedInterval) -> None:
        """Process a second."""

    def answer(self, t: float, answer: Answer) -> None:
        """Process an answer, which was given after ``t`` seconds."""

    def end(self, merger: Merger) -> None:
        """End the output: no more seconds come."""


def totals_sink(kind: str, out: TextIO, err: TextIO, label: str) -> TotalsSink:
    """The sink for --format ``kind`` ("table", "jsonl" or "csv")."""
    if kind == "jsonl":
        return TotalLines(out, err, label)
    return TotalCsv(out, err) if kind == "csv" else TotalTable(out, err)


class _LossMessages:
    """Messages on ``err`` about hosts that are not counted, whenever these change."""

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
        print_sentence(f"{clock(t)} {printable(answer.sentence)}", self._err)

    def _print_message(self, second: MergedInterval, message: str) -> None:
        print_sentence(f"[{(utc(second.wall_ms) or '')[11:19]}] {message}", self._err)

    def print_totals(self, merger: Merger, out: TextIO) -> None:
        print_line("\n" + totals_text(merger), out)


class TotalLines:
    """Writes a JSON object for each second, which another merger can read, and one for the whole
    run."""

    def __init__(self, out: TextIO, err: TextIO, label: str) -> None:
        self._out, self._err, self._label = out, err, label
        self._messages = _LossMessages(err)
        self._write(session_object(label))

    def second(self, second: MergedInterval) -> None:
        self._messages.second(second)
        self._write(second_object(second, self._label))

    def answer(self, t: float, answer: Answer) -> None:
        self._write({**event_object(AnswerGiven(t, answer)), "host": self._label})

    def end(self, merger: Merger) -> None:
        self._write(merged_object(merger, self._label))
        self._messages.print_totals(merger, self._err)

    def _write(self, row: Object) -> None:
        self._out.write(dumps(row) + "\n")
        self._out.flush()


class _TextSink:
    """Prints everything except the seconds as text."""

    _messages: _LossMessages

    def answer(self, t: float, answer: Answer) -> None:
        """Print an answer with the messages."""
        self._messages.answer(t, answer)


class TotalCsv(_TextSink):
    """Writes a row of CSV for each second, and the header at once."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._err = err
        self._messages = _LossMessages(err)
        self._file = CsvFile(out, (column.id for column in (*head_columns(), *figure_columns())))

    def second(self, second: MergedInterval) -> None:
        self._messages.second(second)
        self._file.row(map(cell_text, (*head_cells(second), *figure_cells(second.sums))))

    def end(self, merger: Merger) -> None:
        """End the output: no more seconds come."""
        self._messages.print_totals(merger, self._err)


class TotalTable(_TextSink):
    """Prints a row of at most 80 columns for each second, and the whole run at the end."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._messages = _LossMessages(err)
        self._rows = 0
        self._fio = True

    def second(self, second: MergedInterval) -> None:
        if is_last(second):
            return
        self._messages.second(second)
        fio = bool(second.sums.fio) or (not second.sums.kernel.hosts and self._fio)
        if self._rows % HEADER_EVERY == 0 or fio != self._fio:
            self._rows, self._fio = 0, fio
            print_line(head_line(_FIO if fio else _KERNEL), self._out)
        self._rows += 1
        print_line(row_line(_FIO if fio else _KERNEL, second), self._out)

    def end(self, merger: Merger) -> None:
        self._messages.print_totals(merger, self._out)


# The columns of a flat table of many hosts' seconds, for `merge --format csv` and reports.
#
# A percentile without a kind is that of the latencies that have a histogram. ``None``: not
# measured.


PERCENTILE_NAMES = tuple(map(percentile_name, PERCENTILES))
_FIO_FIELDS = ("iops", "bw", "ios", "bytes", "clat.mean", "lat.mean", *PERCENTILE_NAMES, "max")
_KERNEL_FIELDS = (*DISK_RATES[:4], *AWAITS.values(), DISK_RATES[4])
_DEVICE_FIELDS = ("iops", "ios", "mean", *PERCENTILE_NAMES, "max")
_FIO_PARTS = (READ, WRITE, TRIM, TOTAL)
_DEVICE_PARTS = (READ, WRITE, TOTAL)


def head_columns() -> Iterator[Column]:
    """The columns for a second's time and its hosts."""
    yield Column("wall_ms", unit="ms", meaning="start of the second, since 1970")
    yield Column("utc", type=TIME, meaning="start of the second as date and time (UTC)")
    yield Column("interval_s", unit="s", meaning="length of the second")
    yield Column("expected", type=WHOLE, meaning="hosts that take part in it")
    yield Column("counted", type=WHOLE, meaning="hosts that were measured for the whole second")
    yield Column("missing", type=WORDS, meaning="hosts without data for this second")
    yield Column(
        "incomplete", type=WORDS, meaning="hosts that were measured for less than 80 % of it"
    )


def head_cells(second: MergedInterval) -> list[object]:
    return [
        second.wall_ms, utc(second.wall_ms), second.interval_s, second.expected, second.counted,
        printable(" ".join(second.missing)), printable(" ".join(second.incomplete)),
    ]  # fmt: skip


def figure_columns() -> Iterator[Column]:
    """The columns for the figures of fio, the kernel and the probes."""
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
