"""The output of `iopstui why`: sentences, then the evidence for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iopstui.format import first_of
from iopstui.model.answer.answer import GOOD, NOTHING, SIGNS, UNKNOWN, WAITS, WARNING, Answer
from iopstui.model.answer.evidence import evidence, excluded, not_seen
from iopstui.model.answer.judge import Pair
from iopstui.model.answer.process import (
    ProcessWaits,
    process_text,
    quick_disk,
    quick_text,
    waited_disk,
)
from iopstui.model.answer.situation import Situation
from iopstui.model.answer.use import FOR_IOCOST
from iopstui.model.block.target import Target
from iopstui.model.findings.advice import advise
from iopstui.text import printable

ANSWER = ("disk", "rule", "state", "verdict", "text", "who", "next")
"""The parts of each answer, in JSON."""
MAX_DISKS = 3
"""Limit for the disks that are named although no I/O waits for them."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answers, most urgent first; ``waits`` are the waits of the process that the user asked
    about, if any."""

    pairs: Sequence[Pair]
    verdict: str
    seconds: int
    waits: ProcessWaits | None = None
    no_probe: str = ""

    @property
    def sentences(self) -> list[str]:
        """The sentences: first about the process, then about all disks at fault, or else about the
        busiest disks."""
        sentences = []
        if self.waits is not None:
            sign = SIGNS[WARNING if self.verdict == WAITS else GOOD]
            sentences.append(f"{sign} {_process_sentence(self)}")
        faults = [pair for pair in self.pairs if pair[1].state != GOOD]
        quiet = [pair for pair in self.pairs if pair[1].state == GOOD]
        idle = [pair for pair in quiet if pair[1].rule == "quiet" and not pair[0].ios_s]
        shown = [pair for pair in quiet if pair not in idle][: max(1, MAX_DISKS - len(faults))]
        if not faults and not shown:
            shown, idle = idle[:1], idle[1:]
        sentences += [printable(answer.sentence) for _, answer in [*faults, *shown]]
        # the kernel does not count what RAM disks do
        idle = [pair for pair in idle if not pair[1].disk.startswith("ram")]
        if len(idle) > 0 and len(self.pairs) > 1:
            sentences.append(f"{SIGNS[GOOD]} idle: {_names(idle)}")
        return sentences


def without_disk(target: Target) -> Report:
    """The answer for a path that is on no disk of this machine."""
    in_memory = "in memory" in target.no_device
    answer = Answer(
        target.path, "no-disk", GOOD, f"{target.path} is on no disk: {target.no_device}",
        NOTHING if in_memory else UNKNOWN,
    )  # fmt: skip
    return Report([(Situation(target.path, (), ()), answer)], answer.verdict, 0)


def _names(pairs: Sequence[Pair], most: int = 6) -> str:
    return first_of([answer.disk for _, answer in pairs], most)


def _process_sentence(report: Report) -> str:
    waits = report.waits
    assert waits is not None
    text = _waits_text(report, waits)
    if (child := waits.named_child) is not None:
        text += f"; its child {_waits_text(report, child)}"
    quick = quick_disk(waits, report.pairs) if report.verdict == WAITS else None
    if quick is not None and waits.waiting is not None:
        text += f"; {printable(quick_text(quick, waits.waiting.for_disk))}"
    return text


def _waits_text(report: Report, waits: ProcessWaits) -> str:
    if not waits.state:
        return f"{waits.name} has ended while it was looked at"
    disk = waited_disk(waits, report.pairs)
    rules = {answer.rule for _, answer in report.pairs if answer.disk == disk}
    if not rules.isdisjoint(("limit", "near-limit", "iocost")) or any(
        place.startswith(FOR_IOCOST) for place in waits.places
    ):
        # a cgroup's limit makes I/O on the disk wait, not the disk itself
        disk = f"I/O on {disk}" if disk else "I/O"
    return printable(process_text(waits, disk))


def why_lines(report: Report) -> Iterator[str]:
    """The text, a line at a time."""
    yield from report.sentences
    details = _details(report)
    for line in details["evidence"]:
        yield f"  {printable(line)}"
    for name in ("excluded", "not seen"):
        if details[name]:
            yield f"  {name}: {printable('; '.join(details[name]))}"
    if details["next"]:
        yield f"  next: {printable(details['next'][0])}"


def _details(report: Report) -> dict[str, list[str]]:
    """Evidence, excluded causes, data that could not be read, and the next step."""
    lines: list[str] = []
    waits = report.waits
    hidden = []
    unread = False
    if waits is not None:
        waiting = waits.waiting or waits
        if waiting.places:
            lines.append(f"seen waiting in: {', '.join(waiting.places)}")
        unread = not waits.readable and not waits.kernel and waits.state != "Z"
        if unread:
            hidden.append("what it waits in, and its files (its user or root sees them)")
        if waits.running is None and waits.state not in ("", "Z"):
            hidden.append(f"its time on CPUs, and ready for one (no /proc/{waits.pid}/schedstat)")
    if not report.pairs:
        return {"evidence": lines, "excluded": [], "not seen": hidden, "next": []}
    situation, answer = report.pairs[0]
    if not situation.frames:
        return {"evidence": lines, "excluded": [], "not seen": hidden, "next": []}
    step = answer.next
    if waits is not None and unread and (waits.unclear or step == advise("root", answer.disk)):
        step = advise("root", str(waits.pid))
    elif waits is not None and report.verdict == WAITS and not step:
        quick = quick_disk(waits, report.pairs)
        step = advise("in-flight", quick.disk) if quick is not None else step
    return {
        "evidence": [*lines, *evidence(situation, answer)][:5],
        "excluded": excluded(situation, answer),
        "not seen": [*hidden, *not_seen(situation, report.no_probe)],
        "next": [step] if step else [],
    }


def why_json(report: Report, host: str, code: int) -> dict[str, object]:
    details = _details(report)
    return {
        "host": host,
        "seconds": report.seconds,
        "verdict": report.verdict,
        "exit_code": code,
        "sentences": report.sentences,
        "process": None if report.waits is None else _process_json(report.waits),
        "answers": [{name: getattr(answer, name) for name in ANSWER} for _, answer in report.pairs],
        "evidence": details["evidence"],
        "excluded": details["excluded"],
        "not_seen": details["not seen"],
        "next": details["next"][0] if details["next"] else "",
    }


def _process_json(waits: ProcessWaits) -> dict[str, object]:
    return {
        "pid": waits.pid, "comm": waits.comm, "command": waits.command, "state": waits.state,
        "waits_percent": dict(waits.percents), "running_percent": waits.running,
        "ready_percent": waits.ready, "places": list(waits.places),
        "devices": sorted(waits.devices),
    }  # fmt: skip
