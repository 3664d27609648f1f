"""Wording of messages about many hosts."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from iopstui.fleet.merging.certificate import MergeCertificate
from iopstui.fleet.merging.merger import MergedSecond
from iopstui.fleet.merging.sums import DirectionSum, HostSums
from iopstui.format import counted, cut, latency, number
from iopstui.model.experiment.expectation import Outcome
from iopstui.model.rates import MIB
from iopstui.model.samples import DIRECTIONS
from iopstui.output.summary import RAMP_WORDS
from iopstui.text import printable

WIDTH = 80
MAX_NAMED = 6
SHOWN_PERCENTILES = ("p50", "p99", "p99.9")
_HEADING = " ".join((
    f"{'all hosts':<10}",
    *(f"{name:>9}" for name in ("IOPS", "MiB/s", "mean", *SHOWN_PERCENTILES, "max")),
))  # fmt: skip


def first_names(names: Sequence[str]) -> str:
    """The first few of them."""
    told = ", ".join(printable(cut(name, 40)) for name in names[:MAX_NAMED])
    more = len(names) - MAX_NAMED
    return f"{told} and {more} more" if more > 0 else told


def missing_hosts(second: MergedSecond) -> str:
    """Hosts missing in a second's totals: "97 of 100 hosts: node03 missing"; "" if none is."""
    if second.counted >= second.expected or is_last(second):
        return ""
    why = []
    if second.missing:
        why.append(f"{first_names(second.missing)} missing")
    if second.incomplete:
        why.append(f"{first_names(second.incomplete)} incomplete")
    return f"{second.counted} of {counted(second.expected, 'host')}: {'; '.join(why)}"


def is_last(second: MergedSecond) -> bool:
    """Whether it is only what was left for the last samples: nobody has all of it."""
    return not second.counted and not second.missing


def executed_text(within: float, wrong: float, who: str) -> str:
    """Largest difference between the hosts' start times (ms), by their clocks, with its error."""
    most = math.ceil((within + wrong) * 10) / 10
    return (f"fio started within {most:.1f} ms on {who} ({within:.1f} ms by their clocks, which "
            f"may be off by {wrong:.2f} ms)")  # fmt: skip


def ending(found: MergeCertificate) -> Iterator[str]:
    """Describe how the hosts ended, and whether their frames add up to fio's totals."""
    words = [f"{counted(found.hosts, 'host')}: {found.finished} finished"]
    for names, how in (
        (found.failed, "failed"), (found.interrupted, "interrupted"),
        (found.lost, "lost (their end was not seen)"),
    ):  # fmt: skip
        if names:
            words.append(f"{len(names)} {how}: {first_names(names)}")
    yield "; ".join(words)
    if found.fio_ios is not None:
        yield _certificate(found)


def _certificate(found: MergeCertificate) -> str:
    held = f"{found.ios:,} I/Os, {found.bytes:,} bytes"
    if found.exact == found.hosts:
        if found.fio_bytes is None:
            held = f"{found.ios:,} I/Os"
        return f"Verified: the intervals of all hosts add up to fio's own totals ({held})."
    words = f"Verified on {found.exact} of {found.hosts}"
    if found.differs:
        words += f"; different on {first_names(found.differs)}"
        if found.ramp:
            where = "" if found.ramp == found.differs else f" on {first_names(found.ramp)}"
            words += f" (the difference{where} {RAMP_WORDS})"
    if found.unchecked:
        words += f"; not checked on {first_names(found.unchecked)}"
    return f"{words}. In all: {held}."


def _device_rows(whole: HostSums, found: MergeCertificate) -> Iterator[str]:
    words = whole.device.describe(found.hosts)
    if words:
        yield f"{words}, from a request's issue to its completion"
    for kind, part in whole.device.directions():
        own = part.latencies
        yield _row(kind, part.iops, None, own.mean_ns, own.percentiles, own.max_ns)


def totals_text(whole: HostSums, found: MergeCertificate) -> str:
    """A table the whole run of all hosts in at most 80 columns, and how they ended."""
    lines = []
    if whole.fio:
        lines.append(_HEADING)
        lines += [direction_row(name, whole.fio[name]) for name in DIRECTIONS if name in whole.fio]
    elif whole.device.hosts:
        lines.append(_HEADING)
    lines += _device_rows(whole, found)
    for words in ending(found):
        lines += textwrap.wrap(words, WIDTH)
    return "\n".join(lines)


def direction_row(name: str, part: DirectionSum) -> str:
    """Return the row of one direction."""
    _, main = part.main
    own = (main.mean_ns, main.percentiles(), main.max_ns or None)
    return _row(name, part.iops, part.bw, *own)


def _row(
    name: str, iops: float, bw: float | None, mean: float | None, ranks: Mapping[str, int],
    highest: int | None,
) -> str:  # fmt: skip
    values = [mean, *(ranks.get(rank) for rank in SHOWN_PERCENTILES), highest]
    cells = [f"{latency(value):>9}" for value in values]
    moved = number(None if bw is None else bw / MIB)
    return f"{name:<10} {number(iops):>9} {moved:>9} {' '.join(cells)}"


def outcome_text(text: str, found: Mapping[str, Outcome]) -> str:
    """Outcome of an --expect: of the totals (""), or of each host, the worst first."""
    missed = sorted(name for name, one in found.items() if one.passed is False)
    unknown = sorted(name for name, one in found.items() if one.passed is None)
    verdict = "FAIL" if missed else "not measured" if unknown or not found else "PASS"
    values = [one for name, one in found.items() if one.measured is not None]
    words = f"{verdict}  {text}"
    if values:
        op = max if values[0].expectation.op == "<=" else min
        worst = op(one.measured or 0.0 for one in values)
        unit = values[0].expectation.unit
        measured = latency(worst) if unit == "ns" else f"{number(worst)} {unit}".strip()
        words += f": {measured}{'' if '' in found else ' at the worst'}"
    for names, what in ((missed, "not met by"), (unknown, "not measured on")):
        if names and names != [""]:
            words += f"; {what} {first_names(names)}"
    return words
