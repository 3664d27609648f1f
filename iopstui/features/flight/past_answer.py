"""`iopstui why DIR --at TIME`: the answer that held at that time, with its evidence."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from iopstui import format as units
from iopstui.cli.runs.why import EXIT_CODES
from iopstui.cli.terminal import print_message
from iopstui.features.flight.history import DAY_S, Usual, usual_at
from iopstui.features.flight.model.bad_times import (
    MIN_SECONDS,
    SiblingDays,
    SlowedDisk,
    Stretch,
    is_same,
    stretches,
    worst,
)
from iopstui.features.flight.model.times import local_text, utc_text
from iopstui.features.flight.span import Span, read_span
from iopstui.format import print_line
from iopstui.model.answer.answer import GOOD, NOTHING, SIGNS, Answer
from iopstui.model.answer.judge import Pair, Seen, combined_verdict, judge
from iopstui.model.answer.table import ENDED, idle_seconds
from iopstui.model.answer.use import DiskUse, mean_use
from iopstui.model.answer.who import are_alike
from iopstui.model.figures.disk import mean_ms
from iopstui.model.findings.advice import advise
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import median
from iopstui.output.pages.why import Report, why_json, why_lines
from iopstui.session.examination import INTERVAL_S
from iopstui.session.tick.sampling import LATE_FACTOR
from iopstui.text import printable

LATE_S = 3.0
"""How many seconds an answer lags behind its cause: the cause must hold in most of five seconds."""
MAX_LINES = 12
MAX_GROUPS = 3


def why_then(place: Path, at_s: float, length_s: float, as_json: bool) -> int:
    """Print the answer. The exit code is the verdict, as with `iopstui why`."""
    span = read_span(place, at_s, at_s + length_s)
    held = stretches(span.answers, span.began_s)
    main = worst(held)
    report = _report(span, main)
    code = EXIT_CODES[report.verdict]
    slowed = slowed_disk(span)
    for note in span.notes:
        print_message(note)
    if as_json:
        print_line(json.dumps(_json(span, report, held, code, slowed), indent=2), sys.stdout)
    else:
        usual = usual_at(place, (span.began_s + span.ended_s) / 2)
        print_line("\n".join(_lines(span, report, held, main, usual, slowed)), sys.stdout)
    return code


def _report(span: Span, main: Stretch | None) -> Report:
    """Judge the seconds of the worst answer again, for its figures and its evidence. If that gives
    another answer, the recorded one counts, because it was given with knowledge of the disk's
    health and limits."""
    part = span
    if main is not None and main.answer.state != GOOD:
        part = span.cut(main.began_s - LATE_S, main.ended_s - LATE_S)
    frames = [frame for _, frame in part.frames] or [frame for _, frame in span.frames]
    assert span.header is not None
    findings = [finding for _, finding in span.findings.values()]
    use = _of_same_seconds(mean_use([use for _, use in part.uses]), frames)
    seen = Seen(span.header.target, frames, span.devices, use=use, findings=findings)
    pairs = judge(seen)
    if pairs and pairs[0][1].rule == ENDED:
        # the job has ended: leave out the idle seconds at the end, because the answer is about the
        # whole span
        used = frames[: len(frames) - idle_seconds(pairs[0][0])]
        pairs = judge(replace(seen, frames=used))
    if main is not None:
        pairs = _with_recorded(pairs, main, _moment(span, main.said_s))
    verdict = combined_verdict(pairs)
    return Report(pairs, verdict, round(sum(frame.seconds or 0.0 for frame in frames)))


def _of_same_seconds(use: DiskUse | None, frames: Sequence[Frame]) -> DiskUse | None:
    """``use``, if it covers the same seconds as ``frames``; else ``None``. A reading of the users
    of the disks covers more time than a frame. If a disk did more or less in it than in the frames,
    it includes other seconds, and the shares of users may be wrong."""
    if use is None:
        return None
    seconds = sum(frame.seconds or 0.0 for frame in frames)
    for name, (read_s, written_s, *_) in use.disks.items():
        rates = [(frame.disks[name], frame.seconds or 0.0)
                 for frame in frames if name in frame.disks]  # fmt: skip
        did_s = sum((rate.data_s or 0.0) * length for rate, length in rates) / (seconds or 1.0)
        if rates and not are_alike(did_s, read_s + written_s):
            users = (replace(user, devices=user.devices - {name}) for user in use.users)
            use = replace(use, users=tuple(users))
    return use


def _with_recorded(pairs: list[Pair], main: Stretch, moment: str) -> list[Pair]:
    """Put the recorded answer first, with the situation of its disk. If these seconds give the same
    answer, their figures are used. If not, or if they don't say who did it, the recorded words are
    used, with the moment that they are about."""
    of_disk = [pair for pair in pairs if pair[1].disk == main.answer.disk]
    if not of_disk:
        return pairs
    situation, judged = of_disk[0]
    others = [pair for pair in pairs if pair[1].disk != main.answer.disk]
    recorded = main.answer
    if recorded.who:
        recorded = replace(recorded, who=f"{recorded.who} (at {moment})")
    else:
        recorded = replace(recorded, text=f"{recorded.text} (at {moment})")
    if not is_same(judged, recorded) or judged.verdict != recorded.verdict:
        judged = recorded
    elif judged.state != GOOD and not judged.who:
        judged = replace(judged, who=recorded.who)
    return [(situation, judged), *others]


def _lines(
    span: Span, report: Report, held: list[Stretch], main: Stretch | None,
    usual: Mapping[str, Usual], slowed: SlowedDisk | None,
) -> Iterator[str]:  # fmt: skip
    yield f"{local_text(span.began_s)} to {local_text(span.ended_s)}{_coverage(span)}"
    yield from why_lines(report)
    yield from (f"  {line}" for line in sibling_lines(span, slowed))
    yield from (f"  {line}" for line in _peak_lines(span, usual))
    groups = sorted(span.groups.items(), key=lambda one: -sum(one[1][2:]))[:MAX_GROUPS]
    if groups:
        texts = [f"{printable(path)} {units.size(sum(rates[2:]))}/s" for path, rates in groups]
        yield f"  cgroups, each in its busiest 5 s: {', '.join(texts)}"
    if len(held) > 1 or (main is not None and main.seconds < 0.9 * (span.ended_s - span.began_s)):
        yield "  then:"
        for one in held[:MAX_LINES]:
            yield (f"    {_moment(span, one.began_s)} for {units.duration(one.seconds)}: "
                   f"{_words(one.answer)}")  # fmt: skip
        if len(held) > MAX_LINES:
            yield f"    and {len(held) - MAX_LINES} more changes"


def _moment(span: Span, at: float) -> str:
    """The time of day, with the date if the span covers several days."""
    several = span.ended_s - span.began_s > DAY_S
    return local_text(at) if several else units.wall_clock(1e3 * at)


def _words(answer: Answer) -> str:
    """The words of an answer. If everything was well, they contain no figures, which would be those
    of a single moment."""
    if answer.state == GOOD and answer.verdict == NOTHING:
        return f"{SIGNS[GOOD]} nothing waits for a disk"
    return printable(answer.sentence)


def _coverage(span: Span) -> str:
    """How much of the time was recorded, and how finely; only if that is not all of it."""
    lengths = [frame.seconds or 0.0 for _, frame in span.frames]
    texts = []
    if sum(lengths) < 0.9 * (span.ended_s - span.began_s):
        texts.append(f"{units.duration(sum(lengths))} of it recorded")
    if max(lengths) > 5 * INTERVAL_S:
        texts.append(f"a sample every {round(median(lengths))} s")
    return f" ({', '.join(texts)})" if texts else ""


def _peak_lines(span: Span, usual: Mapping[str, Usual]) -> Iterator[str]:
    """The slowest second of each disk."""
    is_fine = all((frame.seconds or 0.0) <= LATE_FACTOR * INTERVAL_S for _, frame in span.frames)
    longest: dict[str, tuple[float, float]] = {}
    for name, ms, at in _second_means(span) if is_fine else _peaks(span):
        if ms > longest.get(name, (-1.0, 0.0))[0]:
            longest[name] = ms, at
    for name, (ms, at) in longest.items():
        # a peak is the highest second of an interval that may begin before the span or end after
        # it. If that second is outside the span, the highest one inside is not known
        if not (is_fine or span.began_s < at <= span.ended_s):
            continue
        yield (f"slowest second of {printable(name)}: {units.milliseconds(ms)} on average, "
               f"at {_moment(span, at)}{_compared(ms, usual.get(name))}")  # fmt: skip


def _second_means(span: Span) -> Iterator[tuple[str, float, float]]:
    """Each disk's mean request time (ms) in each second, and the second's time."""
    for at, frame in span.frames:
        for name, rates in frame.disks.items() if (frame.seconds or 0.0) >= MIN_SECONDS else ():
            if (ms := mean_ms(rates)) is not None:
                yield name, ms, at


def _peaks(span: Span) -> Iterator[tuple[str, float, float]]:
    """The slowest second of each disk in each recorded interval, in the form of
    ``_second_means``."""
    for at, peaks in span.peaks:
        for name, peak in peaks.disks.items():
            if peak.ms is not None:
                yield name, peak.ms, at - peak.ms_ago_s


def _compared(ms: float, usual: Usual | None) -> str:
    """Text in brackets on how ``ms`` compares with other days at this hour; "" if that is
    unknown."""
    if usual is None or not usual.ms:
        return ""
    return (f" ({ms / usual.ms:.1f}× the usual slowest second of a minute at this hour, by the "
            f"median of {usual.days} other days)")  # fmt: skip


def _json(
    span: Span, report: Report, held: list[Stretch], code: int, slowed: SlowedDisk | None
) -> dict[str, object]:
    assert span.header is not None
    return {
        **why_json(report, span.header.host, code),
        "began": utc_text(span.began_s),
        "ended": utc_text(span.ended_s),
        "slow_sibling": sibling_json(slowed),
        "then": [
            {"began": utc_text(one.began_s), "seconds": round(one.seconds, 1),
             "state": one.answer.state, "disk": one.answer.disk, "rule": one.answer.rule,
             "text": one.answer.text, "who": one.answer.who}
            for one in held
        ],
    }  # fmt: skip


# Which one of several equal disks is slow for its load, in a span of a flight recording.


MIN_SPAN_S = 86400.0
RULE, RULE_OF_ARRAY = "siblings", "slow-member"


def slowed_disk(span: Span) -> SlowedDisk | None:
    """The disk that is slow on the last days of a span, which must be longer than one day."""
    if span.ended_s - span.began_s <= MIN_SPAN_S:
        return None
    days = SiblingDays(span.devices, _day, span.same_since)
    for at, frame in span.frames:
        days.feed(at, frame)
    return days.slowed()


def _day(at: float) -> str:
    """The local day of a time, such as "2026-11-27"."""
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d")


def sibling_lines(span: Span, found: SlowedDisk | None) -> Iterator[str]:
    """Lines on the slow disk and the next step; without one, on the finding that held at the
    time."""
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
        f"a similar queue depth, size and mix: more than 1.2 times {since}{cause}"
    )


def sibling_json(found: SlowedDisk | None) -> dict[str, object] | None:
    """The disk, and for each day the ratio of its requests' times to those of its siblings."""
    if found is None:
        return None
    odd = found.odd
    return {"disk": odd.disk, "times": round(odd.times, 2), "siblings": list(odd.siblings),
            "array": odd.array, "since": found.since,
            "days": {day: round(times, 2) for day, times in found.days}}  # fmt: skip
