"""The one of several like disks that is slow for its load, in a span of a flight recording."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from iopstui.features.flight.model.sibling_days import SiblingDays, SlowedDisk
from iopstui.features.flight.model.times import local_text
from iopstui.features.flight.span import Span
from iopstui.model.findings.advice import advise
from iopstui.text import printable

MIN_SPAN_S = 86400.0
RULE, RULE_OF_ARRAY = "siblings", "slow-member"


def slowed_disk(span: Span) -> SlowedDisk | None:
    """The disk that is slow on the last days of a span, which must be longer than one."""
    if span.ended_s - span.began_s <= MIN_SPAN_S:
        return None
    days = SiblingDays(span.devices, _day, span.same_since)
    for at, frame in span.frames:
        days.feed(at, frame)
    return days.slowed()


def _day(at: float) -> str:
    """The local day of a time: "2026-11-27"."""
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d")


def sibling_lines(span: Span, found: SlowedDisk | None) -> Iterator[str]:
    """What was found, and the next step; in a shorter span what was found then."""
    if found is not None:
        disk = found.odd.disk
        yield printable(_text(found))
        yield f"  next: {printable(advise(RULE_OF_ARRAY if found.odd.array else RULE, disk))}"
    elif RULE in span.findings:
        at, finding = span.findings[RULE]
        yield f"at {local_text(at)}: {printable(finding.text)}"


def _text(found: SlowedDisk) -> str:
    odd, (first, times) = found.odd, found.days[0]
    count = len(found.days)
    if found.since == first:
        since = f"on all {count} days compared, the first {first}"
    else:
        since = (f"since {found.since}, and {times:.2f} times on {first}, the first of {count} "
                 "days compared")  # fmt: skip
    cause = "" if odd.array else "; it is slow, or its requests are harder"
    return (
        f"requests of {odd.disk} take {odd.times:.1f} times as long as those of {odd.peers} with "
        f"such a queue depth, size and mix: more than 1.2 times {since}{cause}"
    )


def sibling_json(found: SlowedDisk | None) -> dict[str, object] | None:
    """The disk; how many times as long as its siblings' its requests took, by day."""
    if found is None:
        return None
    odd = found.odd
    return {"disk": odd.disk, "times": round(odd.times, 2), "siblings": list(odd.siblings),
            "array": odd.array, "since": found.since,
            "days": {day: round(times, 2) for day, times in found.days}}  # fmt: skip
