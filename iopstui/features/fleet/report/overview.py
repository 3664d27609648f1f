"""What the first screen of a report on many hosts says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from iopstui import format as units
from iopstui.events import AnswerGiven
from iopstui.features.fleet.answer import worst_of_hosts
from iopstui.features.fleet.output.wording import LEAST_SHARED, mib_number
from iopstui.features.fleet.report.data import FleetReportData, FleetRun
from iopstui.model.answer.answer import CRITICAL, GOOD, NOTHING, UNKNOWN, WARNING, Answer
from iopstui.output.page.overview import (
    Overview,
    Reason,
    answer_reasons,
    answer_text,
    expectation_reasons,
    light,
    outcome_sentences,
    worst_answer,
)
from iopstui.recording.redact import REDACTED
from iopstui.session.tick.outcomes import VERDICTS, outcome_event_text, verdict_of

NO_ANSWER = (
    "The file holds no answer of a host about its disk. Short ones have none, and neither have the "
    "totals that `merge` writes."
)


def overview(data: FleetReportData) -> Overview:
    """What somebody who decides reads first."""
    given = _answers(data)
    recorded = [*_recorded_outcomes(data)]
    verdicts = [*map(verdict_of, data.outcomes), *(verdict for verdict, _ in recorded)]
    reasons = [*_of_hosts(data), *expectation_reasons(verdicts), *answer_reasons(given)]
    state, reason = light(reasons, given)
    texts = [text for verdict in VERDICTS for one, text in recorded if one == verdict]
    compared = " ".join([*outcome_sentences(data.outcomes), *texts[:1]])
    return Overview(state, reason, _measured(data), answer_text(given), compared, NO_ANSWER)


def _recorded_outcomes(data: FleetReportData) -> Iterator[tuple[str, str]]:
    """The outcomes of --expect at the end of each run: the verdict, and a sentence. Those that the
    report was asked for are not said twice."""
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
        return f"fio ran {len(data.runs)} times on up to {_most_hosts(data.runs)}{_range(data)}."
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
    """Says of rates that they add up what was not measured at one time."""
    certificate = data.certificate
    shared = certificate.shared_seconds >= LEAST_SHARED * certificate.seconds
    return "" if shared else ", which did not all run at one time,"


def _most_hosts(runs: Sequence[FleetRun]) -> str:
    return units.counted(max(run.hosts for run in runs), "host")


def _range(data: FleetReportData) -> str:
    known = [(total.iops, run.number) for run in data.runs if (total := run.totals.total)]
    if not known:
        return "; it counted no I/O"
    least, most = min(known), max(known)
    if units.number(least[0]) == units.number(most[0]):
        without = len(data.runs) - len(known)
        rest = f"; {without} counted no I/O" if without else " each"
        return f": {units.number(most[0])} IOPS{rest}"
    return (f": from {units.number(least[0])} IOPS (run {least[1]}) to "
            f"{units.number(most[0])} IOPS (run {most[1]})")  # fmt: skip


def _of_hosts(data: FleetReportData) -> Iterator[Reason]:
    """Hosts whose figures are not whole."""
    certificate = data.certificate
    hosts = units.counted(certificate.hosts, "host")
    if certificate.failed:
        yield CRITICAL, f"{len(certificate.failed)} of {hosts} failed"
    if certificate.lost:
        yield CRITICAL, f"the end of {len(certificate.lost)} of {hosts} was not seen"
    if certificate.interrupted:
        yield WARNING, f"{len(certificate.interrupted)} of {hosts} were interrupted"


def _answers(data: FleetReportData) -> list[AnswerGiven]:
    """What differs between hosts, and then the gravest of what they said of themselves."""
    worst = {name: worst_answer(told) for name, sessions in data.answers.items()
             if (told := [given for answers in sessions for given in answers.values()])
             }  # fmt: skip
    found = sorted(data.findings.values(), key=lambda given: given.t)
    return [*(_shown(data, given) for given in found), *_of_themselves(data, worst)]


def _shown(data: FleetReportData, given: AnswerGiven) -> AnswerGiven:
    """The answer as the report may show it: redacted it keeps its state alone, because what it
    says names programs, disks and cgroups."""
    if not data.redact:
        return given
    private = replace(given.answer, text=REDACTED, who="", disk="")
    return replace(given, answer=private)


def _of_themselves(
    data: FleetReportData, worst: Mapping[str, AnswerGiven]
) -> Iterator[AnswerGiven]:
    """One answer for all hosts."""
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
    text = f"the answers of {len(worst)} of {units.counted(hosts, 'host')} hold no warning"
    yield AnswerGiven(max(given.t for given in worst.values()),
                      Answer("", "hosts", GOOD, text, NOTHING if all_told else UNKNOWN),
                      )  # fmt: skip
