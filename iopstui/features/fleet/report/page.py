"""A report on many hosts, made from their JSON lines (data.py): a page with charts, Markdown, JSON
or a table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from iopstui import __version__
from iopstui import format as units
from iopstui.events import AnswerGiven, ExpectationChecked
from iopstui.features.fleet.findings import worst_of_hosts
from iopstui.features.fleet.merging.sums import Object
from iopstui.features.fleet.output.sinks import (
    LEAST_SHARED,
    direction_cells,
    direction_columns,
    ending,
    executed_text,
    mib_number,
)
from iopstui.features.fleet.report.data import (
    KERNEL,
    FleetHeat,
    FleetReportData,
    SecondRow,
    load_fleet_report,
)
from iopstui.model.answer.answer import CRITICAL, GOOD, NOTHING, UNKNOWN, WARNING, Answer
from iopstui.model.figures.figure import DEVICE
from iopstui.model.samples import DIRECTIONS
from iopstui.model.sizes import MIB
from iopstui.output.jsonl import clean
from iopstui.output.page.markup import (
    Block,
    Charts,
    FoldedBlocks,
    Heading,
    Pairs,
    Text,
    html,
    html_of,
    list_with_heading,
    markdown_of,
)
from iopstui.output.page.overview import (
    Overview,
    Reason,
    made_of,
    outcome_sentences,
    range_text,
    worst_answer,
)
from iopstui.output.page.svg import (
    HEAT_ROWS_PER_DECADE,
    LATENCIES,
    Curve,
    Times,
    chart,
    heat,
    linear,
    logarithmic,
)
from iopstui.recording.redact import REDACTED
from iopstui.session.tick.outcomes import VERDICTS, outcome_event_text, verdict_of
from iopstui.tables import Column, Table, texts

SHOWN = ("p50", "p99", "p99.9", "p99.99")
_IOPS, _BW, _MEAN, *_RANKS, _MAX = direction_columns(SHOWN)
WHOLE = (Column("name", ""), *direction_columns(SHOWN))
HOSTS = (
    Column("host", "host"), Column("outcome", "ended"), _IOPS, _BW, *_RANKS, _MAX,
    Column("absent", "seconds not counted"), Column("verdict", "fio's count"),
)  # fmt: skip
RUNS = (
    Column("run", "run"), Column("job", "job"), Column("hosts", "hosts"), _IOPS, _BW, *_RANKS[:3],
    Column("ended", "ended"),
)  # fmt: skip
SECONDS = (
    Column("wall_ms", "UTC", form=lambda wall_ms: (units.utc(wall_ms) or "")[11:19]),
    Column("", "hosts", read=lambda row: f"{row.counted}/{row.expected}"),
    *(Column(f"rates/{name}", name, form=units.number) for name in ("read", "write")), _BW,
    *(Column(f"latencies/{name}", name, form=units.latency) for name in SHOWN[:3]),
    Column("slowest", "slowest"),
)  # fmt: skip
MAX_SECONDS = 120


def heading(data: FleetReportData) -> str:
    return units.counted(data.certificate.hosts, "host")


def facts(data: FleetReportData) -> Iterator[tuple[str, str]]:
    """Facts about the file, as names and values."""
    yield "file", data.file
    if data.seconds:
        begin, end = data.seconds[0].wall_ms, data.seconds[-1].wall_ms
        yield "from", f"{units.utc(begin)} to {units.utc(end + data.interval_s * 1000)}"
        full = sum(row.counted == row.expected for row in data.seconds)
        yield (
            "measured",
            (
                f"{units.duration(data.length_s)}; in {full} of {len(data.seconds)} rows of "
                f"{data.interval_s:g} s all hosts that took part are counted"
            ),
        )
    if data.spread is not None:
        yield "started", executed_text(*data.spread, f"{len(data.start_times)} hosts")
    yield "hosts", " ".join(endings(data))
    yield from data.omissions


def endings(data: FleetReportData) -> Iterator[str]:
    """How the hosts ended, and whether the sums match fio's."""
    certificate = data.certificate
    shown = replace(certificate)
    for kind in ("failed", "interrupted", "lost", "differs", "unchecked", "ramp"):
        setattr(shown, kind, tuple(map(data.names, getattr(certificate, kind))))
    for line in ending(shown):
        yield f"{line[0].upper()}{line[1:].rstrip('.')}."


def totals_rows(data: FleetReportData) -> Iterator[Object]:
    """The whole run of all hosts by direction: fio's I/Os, and the requests that the probes
    counted."""
    for name in DIRECTIONS:
        if name in data.totals.fio:
            yield {"name": name, **direction_cells(data.totals.fio[name])}
    device = data.totals.device
    for kind, direction in device.directions():
        hosts = f"{device.hosts} of {units.counted(data.certificate.hosts, 'host')}"
        yield {"name": f"device {kind} ({hosts})", **direction_cells(direction, DEVICE)}


def totals_title(data: FleetReportData) -> str:
    return f"All I/Os of all hosts{', of all runs together' if data.has_several_runs else ''}"


def run_rows(data: FleetReportData) -> list[Object]:
    """If there are several runs, a row for each, with its messages."""
    return [
        {"run": row.number, "job": data.names.text(row.job), "hosts": f"{row.finished}/{row.hosts}",
         # no messages in a redacted report, because they name hosts
         "ended": "; ".join((row.ending, *(() if data.redact else row.messages))),
         **direction_cells(row.totals.total)}
        for row in data.runs
    ]  # fmt: skip


def host_rows(data: FleetReportData) -> list[Object]:
    """A row for each host, beginning with the highest p99."""
    rows = []
    for name, host in data.hosts.items():
        outcome = host.outcome or ("ended" if host.has_ended else "lost")
        error = data.errors.get(name, "")
        row = {
            "host": data.names(name), "absent": data.absent_seconds.get(name, 0),
            "outcome": f"{outcome}: {error}" if error and error != REDACTED else outcome,
            "verdict": host.io_totals.verdict, **direction_cells(host.run_sums().total),
        }  # fmt: skip
        rows.append((-row["latencies"].percentiles.get("p99", 0), texts(HOSTS, row), row))
    return [row for *_, row in sorted(rows, key=lambda placed: placed[:2])]


def second_rows(data: FleetReportData) -> list[SecondRow]:
    """Totals of each second, or of every n-th if there are many."""
    return data.seconds[:: max(1, -(-len(data.seconds) // MAX_SECONDS))]


def which_seconds(data: FleetReportData) -> str:
    """Which seconds ``second_rows`` contains, in words."""
    step = max(1, -(-len(data.seconds) // MAX_SECONDS))
    return "every row" if step == 1 else f"every {step}th row; CSV and JSON have all"


READS, WRITES, QUEUE = (figure.name for figure in KERNEL)
Figures = Mapping[str, float | None]


def charts(data: FleetReportData) -> list[str]:
    if not data.seconds:
        return []
    times = Times(0.0, max(data.length_s, data.interval_s))
    return [
        *_of_fio(data, times),
        *_of_kernels(data, times),
        *_hosts(data, times),
        _heat("Latency of every I/O of all hosts (stronger colour: more "
              "I/Os)", data, data.heat, times),
        _heat("Device latency from the probes (stronger colour: more requests)",
              data, data.device_heat, times),
    ]  # fmt: skip


def _curves(
    data: FleetReportData, series: Sequence[tuple[str, str]], of: Callable[[SecondRow], Figures]
) -> list[Curve]:
    """A curve for each name, with its style, made from each second's figure of that name."""
    middle = data.interval_s / 2
    return [
        Curve(name, style, [(row.t + middle, of(row).get(name)) for row in data.seconds])
        for name, style in series
    ]


def _values(curves: list[Curve]) -> list[float]:
    return [value for curve in curves for _, value in curve.points if value]


def _of_fio(data: FleetReportData, times: Times) -> Iterator[str]:
    curves = _curves(data, (("read", "fio"), ("write", "device")), lambda row: row.rates)
    rates = [curve for curve in curves if _values([curve])]
    yield chart("IOPS of all counted hosts", rates, linear(_values(rates)), units.number,
                times)  # fmt: skip
    ranks = _curves(data, LATENCIES, lambda row: row.latencies)
    if _values(ranks):
        yield chart("Latency of all I/Os of all hosts (logarithmic)", ranks,
                    logarithmic(_values(ranks)), units.latency, times)  # fmt: skip
    moved = _curves(data, (("all", "fio"),),
                    lambda row: {"all": row.bw / MIB if row.bw is not None else None})  # fmt: skip
    yield chart("MiB/s", moved, linear(_values(moved)), units.number, times)


def _of_kernels(data: FleetReportData, times: Times) -> Iterator[str]:
    """Charts from /proc/diskstats; none if the hosts' files are on no disk."""
    if all(row.kernel[READS] is None for row in data.seconds):
        return
    curves = _curves(data, ((READS, "fio"), (WRITES, "device")), lambda row: row.kernel)
    yield chart("Requests per second at the devices of all hosts (kernel)", curves,
                linear(_values(curves)), units.number, times)  # fmt: skip
    waiting = _curves(data, ((QUEUE, "device"),), lambda row: row.kernel)
    yield chart(f"Requests in flight at the devices of all hosts ({QUEUE})", waiting,
                linear(_values(waiting)), units.number, times)  # fmt: skip
    if any(row.util for row in data.seconds):
        busy = _curves(data, (("highest", "p999"), ("middle", "fio")), lambda row: row.util)
        top = 100.0 if max(_values(busy), default=0.0) <= 100 else None
        yield chart("util of the hosts' devices (percent): highest and median", busy,
                    linear(_values(busy), top), units.percent, times)  # fmt: skip


def _hosts(data: FleetReportData, times: Times) -> Iterator[str]:
    curves = _curves(data, (("hosts", "fio"),), lambda row: {"hosts": float(row.counted)})
    top = linear([float(row.expected) for row in data.seconds])
    yield chart("Counted hosts", curves, top, units.number, times)


def _heat(title: str, data: FleetReportData, fleet_heat: FleetHeat, times: Times) -> str:
    lows = [row for _, row in fleet_heat.cells]
    if not lows:
        return ""
    covered = Times(0.0, fleet_heat.columns * fleet_heat.width * data.interval_s)
    return heat(
        title, fleet_heat.cells, (min(lows), max(lows)), fleet_heat.columns, HEAT_ROWS_PER_DECADE,
        units.latency, Times(0.0, max(times.end, covered.end)), covered=covered,
    )  # fmt: skip


SCHEMA = 1
MAX_HOSTS = 200


def rendered(
    path: Path, kind: str, redact: bool, outcomes: Sequence[ExpectationChecked] = ()
) -> str:
    """The report as text of a ``kind`` in ``RENDER``. Raises UsageError for a file without
    frames."""
    data = load_fleet_report(path, redact)
    # no reasons in a redacted report, because they name hosts
    data.outcomes = [replace(each, why="") for each in outcomes] if redact else outcomes
    return RENDER[kind](data)


def _blocks(data: FleetReportData, drawn: Sequence[str], most: int) -> Iterator[Block]:
    """The page's content, with at most ``most`` hosts. The first chart is on the first screen."""
    rest = list(drawn)
    yield Heading(1, heading(data))
    yield from overview(data).blocks(rest)
    yield Pairs([*facts(data)])
    if data.runs:
        yield from (Heading(2, "Runs"), Table.from_rows(RUNS, run_rows(data), left_columns=2))
    if rows := [*totals_rows(data)]:
        yield from (Heading(2, totals_title(data)), Table.from_rows(WHOLE, rows))
    if rest:
        yield from (Heading(2, "Charts"), Charts(rest))
    # the totals that `merge` writes have no hosts
    if hosts := host_rows(data):
        yield from (
            Heading(2, "Hosts, slowest first"),
            Table.from_rows(HOSTS, hosts[:most], left_columns=2),
        )
    if len(hosts) > most:
        yield Text(f"{len(hosts) - most} more hosts: see CSV and JSON.")
    seconds = Table.from_rows(SECONDS, second_rows(data), left_columns=2)
    yield from list_with_heading("Outcomes", map(outcome_event_text, data.outcomes))
    yield FoldedBlocks(f"Seconds ({which_seconds(data)})", [seconds])


def _markdown(data: FleetReportData) -> str:
    return markdown_of(_blocks(data, (), MAX_HOSTS), data.file)


def _html(data: FleetReportData) -> str:
    drawn = [f"<figure>{chart}</figure>" for chart in charts(data) if chart]
    body = [*html(_blocks(data, drawn, sys.maxsize))]
    return html_of(f"iopstui: {heading(data)}", body, data.file)


def _json(data: FleetReportData) -> str:
    hosts = [
        {"host": data.names(name), "outcome": host.outcome or None, "ended": host.has_ended,
         "error": data.errors.get(name), "seconds_not_counted": data.absent_seconds.get(name, 0),
         "count": host.io_totals.as_object(), "fio": host.run_sums().fio_object()}
        for name, host in data.hosts.items()
    ]  # fmt: skip
    document = {
        "report": SCHEMA, "iopstui": __version__, "file": data.file,
        "overview": overview(data).as_object(),
        "interval_s": data.interval_s, "words": [*endings(data)],
        "spread_ms": data.spread[0] if data.spread else None,
        "clocks_within_ms": data.spread[1] if data.spread else None,
        "left_out": data.broken_lines, "fio": data.totals.fio_object(),
        "device": data.totals.device.as_object(), "hosts": hosts,
        "verdicts": [asdict(each) for each in data.outcomes],
        "runs": [
            {"run": row.number, "job": cells["job"], "hosts": row.hosts, "finished": row.finished,
             "how": row.ending, "said": [] if data.redact else list(row.messages),
             "fio": row.totals.fio_object()}
            for row, cells in zip(data.runs, run_rows(data), strict=True)
        ],
        "seconds": [asdict(row) for row in data.seconds],
    }  # fmt: skip
    return json.dumps(clean(document), indent=1, allow_nan=False) + "\n"


RENDER: Mapping[str, Callable[[FleetReportData], str]] = {
    "html": _html, "md": _markdown, "json": _json
}  # fmt: skip


# The first screen of a report on many hosts.


NO_ANSWER = (
    "The file has no answer of a host about its disk. Short recordings have none, nor do the "
    "totals that `merge` writes."
)


def overview(data: FleetReportData) -> Overview:
    """The overview, for somebody who has to decide."""
    given = _answers(data)
    recorded = [*_recorded_outcomes(data)]
    verdicts = [*map(verdict_of, data.outcomes), *(verdict for verdict, _ in recorded)]
    texts = [text for verdict in VERDICTS for one, text in recorded if one == verdict]
    compared = " ".join([*outcome_sentences(data.outcomes), *texts[:1]])
    return made_of([*_of_hosts(data)], verdicts, given, _measured(data), compared, NO_ANSWER)


def _recorded_outcomes(data: FleetReportData) -> Iterator[tuple[str, str]]:
    """The outcomes of --expect that were recorded at the end of each run: the verdict, and a
    sentence. Expectations that the report itself judges are left out."""
    asked = {" ".join(outcome_event_text(each).split()) for each in data.outcomes}
    said = [(f"Run {run.number}: ", run.messages) for run in data.runs] or [("", data.messages)]
    for run, messages in said:
        for message in messages:
            verdict = next((v for v in VERDICTS if message.upper().startswith(f"{v} ")), "")
            if verdict and message not in asked:
                shown = REDACTED if data.redact else message[len(verdict) :].strip()
                yield verdict, f"{run}{verdict} {shown}."


def _measured(data: FleetReportData) -> str:
    hosts, total = units.counted(data.certificate.hosts, "host"), data.totals.total
    if total is None and not data.jobs:
        return (f"No job ran: {units.duration(data.length_s)} of other programs' I/O on {hosts} "
                "were recorded.")  # fmt: skip
    if len(data.runs) > 1:
        rates = {run.number: run.totals.total.iops if run.totals.total else None
                 for run in data.runs}  # fmt: skip
        hosts = units.counted(max(run.hosts for run in data.runs), "host")
        return f"fio ran {len(rates)} times on up to {hosts}{range_text(rates)}."
    job = f" {data.names.text(data.jobs[0])}" if len(data.jobs) == 1 else ""
    length_s = max((host.run_s for host in data.hosts.values()), default=data.length_s)
    span = "for" if data.hosts else "within"
    text = f"fio ran{job} on {hosts}{_apart(data)} {span} {units.duration(length_s)}"
    if total is None:
        return f"{text}; it counted no I/O."
    p99 = total.main.percentiles.get("p99")
    latency = f", p99 {units.latency(p99)}" if p99 is not None else ""
    return f"{text}: {units.number(total.iops)} IOPS, {mib_number(total.bw)} MiB/s{latency}."


def _apart(data: FleetReportData) -> str:
    """A note that the rates are sums of figures that were measured at different times; ""
    otherwise."""
    certificate = data.certificate
    shared = certificate.shared_seconds >= LEAST_SHARED * certificate.seconds
    return "" if shared else ", which did not all run at one time,"


def _of_hosts(data: FleetReportData) -> Iterator[Reason]:
    """The states that the report has because of hosts whose figures are not complete."""
    certificate = data.certificate
    hosts = units.counted(certificate.hosts, "host")
    if certificate.failed:
        yield CRITICAL, f"{len(certificate.failed)} of {hosts} failed"
    if certificate.lost:
        yield CRITICAL, f"the end of {len(certificate.lost)} of {hosts} was not seen"
    if certificate.interrupted:
        yield WARNING, f"{len(certificate.interrupted)} of {hosts} were interrupted"


def _answers(data: FleetReportData) -> list[AnswerGiven]:
    """Findings that compare hosts, then the gravest answers of single hosts."""
    worst = {name: worst_answer(told) for name, sessions in data.answers.items()
             if (told := [given for answers in sessions for given in answers.values()])
             }  # fmt: skip
    found = sorted(data.findings.values(), key=lambda given: given.t)
    return [*(_shown(data, given) for given in found), *_of_themselves(data, worst)]


def _shown(data: FleetReportData, given: AnswerGiven) -> AnswerGiven:
    """The answer as the report may show it. In a redacted report only its state is kept, because
    its text names programs, disks and cgroups."""
    if not data.redact:
        return given
    private = replace(given.answer, text=REDACTED, who="", disk="")
    return replace(given, answer=private)


def _of_themselves(
    data: FleetReportData, worst: Mapping[str, AnswerGiven]
) -> Iterator[AnswerGiven]:
    """One answer that stands for all single hosts."""
    if not worst:
        return
    bad = {data.names(name): _shown(data, given) for name, given in worst.items()
           if given.answer.state != GOOD}  # fmt: skip
    if bad:
        name, answer = worst_of_hosts({name: given.answer for name, given in bad.items()})
        yield AnswerGiven(bad[name].t, answer)
        return
    hosts = data.certificate.hosts
    all_told = len(worst) == hosts and all(given.answer.verdict == NOTHING
                                           for given in worst.values())  # fmt: skip
    text = f"{len(worst)} of {units.counted(hosts, 'host')} gave an answer, and none is a warning"
    yield AnswerGiven(max(given.t for given in worst.values()),
                      Answer("", "hosts", GOOD, text, NOTHING if all_told else UNKNOWN),
                      )  # fmt: skip
