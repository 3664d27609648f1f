"""What the evidence shows: the rows above the footer, and all of it on a screen of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from iopstui import format as f
from iopstui.model.findings.evidence import Finding, seconds_words
from iopstui.session.tick.outcomes import FAIL, PASS, UNJUDGED, UNKNOWN, together
from iopstui.session.tick.steady import steady_short
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Piece, Row, message, pad, wrap
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FINDING, KEY, WARNING, Charset
from iopstui.ui.state.findings import FoundEntry
from iopstui.ui.state.live import LiveState

NEWS_S = 5.0
VERDICTS = {PASS: FINDING, FAIL: ERROR, UNKNOWN: WARNING, UNJUDGED: WARNING}


def rows(state: LiveState, width: int, height: int, charset: Charset) -> list[Row]:
    """``height`` rows, whether there is a finding or not: nothing moves when one comes. After a
    run that was judged they show its outcome."""
    if _judged(state):
        return pad(_verdict(state, width, height, charset), height, width)
    found = state.current_findings()
    if not found:
        return pad([message(width, charset, _nothing(state))], height, width)
    finding, more = _now(found[0]), len(found) - 1
    when = seconds_words(finding) + _ago(found[0], state)
    when = found[0].ceased or when
    title = f" finding {when}: " if when else " finding: "
    first = Line(width - len(_more(more)), charset).add(title, FINDING)
    if height < 2:
        first.add(_sentence(finding))
        return [(*first.done(), (_more(more), DIM))]
    room, words = first.left, printable(finding.text)
    if cell_len(words) > room:
        return [*_over_two(first, finding, _more(more), width, charset)]
    first.add(words)
    second = Line(width, charset).add(" ")
    for text, style in _advice(finding):
        second.add(text, style)
    return pad([(*first.done(), (_more(more), DIM)), second.done()], height, width)


def _now(entry: FoundEntry) -> Finding:
    """The finding; of one that has ceased nothing to be tried: its cause is gone."""
    if not entry.ceased:
        return entry.finding
    return replace(entry.finding, advice="", key="", test=())


def _ago(entry: FoundEntry, state: LiveState) -> str:
    """How long ago the last of its seconds was, once they are not those that are shown: a rule
    that goes on is told again now and then only, and one that ceased is not told off."""
    until = entry.finding.until
    run = state.finished
    if until is None or (run is not None and entry.t <= run.t):
        return ""
    ago = state.t - until
    return f" ({f.clock(ago)} ago)" if ago >= NEWS_S else ""


def _judged(state: LiveState) -> bool:
    return bool(state.judged) and not state.running


def empty(state: LiveState) -> bool:
    """Whether its rows have nothing to say."""
    return not _judged(state) and not state.current_findings()


def _over_two(
    first: Line, finding: Finding, more: str, width: int, charset: Charset
) -> tuple[Row, Row]:
    """A sentence longer than its row goes on in the one of the advice."""
    words = _sentence(finding)
    cut = words[: first.left].rpartition(" ")[0] or words[: first.left]
    first.add(cut)
    second = Line(width, charset).add(" " * 10).add(words[len(cut) :].strip())
    return (*first.done(), (more, DIM)), second.done()


def _verdict(state: LiveState, width: int, height: int, charset: Charset) -> list[Row]:
    level, words = together(state.judged)
    first = Line(width - len(_more(0)), charset).add(" outcome: ", FINDING)
    first.add(level, VERDICTS[level]).add("  " + printable(words.removeprefix(level)))
    second = Line(width, charset).add(" " * 10)
    if state.steady is not None:
        second.add(steady_short(state.steady))
    return [(*first.done(), (_more(0), DIM)), second.done()][:height]


def _verdicts(state: LiveState, width: int, charset: Charset) -> list[Row]:
    """All outcomes of the last run, and whether it was steady."""
    if not state.judged:
        return []
    title = f" outcomes of run {state.judged[0].step}"
    found: list[Row] = [Line(width, charset).add(title, BOLD).done()]
    for judged in state.judged:
        level, words = together([judged])
        found += wrap(width, charset, printable(words), VERDICTS[level])
    if state.steady is not None:
        found += wrap(width, charset, printable(state.steady.text), None)
    return [*found, message(width, charset, "")]


def _nothing(state: LiveState) -> str:
    if state.running and not state.layout:
        return "finding: nothing stands out in these seconds"
    return ""


def _more(count: int) -> str:
    return f"  f: {count} more " if count else "  f: all "


def _sentence(finding: Finding) -> str:
    advice = printable(finding.advice)
    return printable(finding.text) + (f" → {advice}" if advice else "")


def _advice(finding: Finding) -> list[Piece]:
    pieces: list[Piece] = []
    if finding.test:
        pieces += [("key ", DIM), ("t", KEY), (" decides it  ", None)]
    elif finding.key:
        pieces += [("key ", DIM), (printable(finding.key), KEY), ("  ", None)]
    if finding.advice:
        pieces.append((f"→ {printable(finding.advice)}", None))
    return pieces


def listed(state: LiveState, width: int, charset: Charset) -> list[Row]:
    """The last run's outcomes, then all findings of the session that are kept, the newest
    first."""
    verdicts = _verdicts(state, width, charset)
    if not state.findings.entries:
        words = (
            "Nothing has been found yet. Each second is checked against a set of rules (without a "
            "job: the kernel's side of it); what they find is shown here, with its numbers."
        )
        return verdicts + wrap(width, charset, words)
    now = {id(entry) for entry in state.current_findings()}
    found = verdicts
    for entry in sorted(state.findings.entries, key=lambda one: -one.t):
        found += _entry(entry, id(entry) in now, width, charset)
    return found


def _key(finding: Finding) -> str:
    if finding.test:
        return f" (key t runs the job with {printable(finding.options)})"
    return f" (key {printable(finding.key)})" if finding.key else ""


def _entry(entry: FoundEntry, holds: bool, width: int, charset: Charset) -> Sequence[Row]:
    when = f.clock(entry.first)
    if entry.t - entry.first >= 1 and not entry.ceased:
        when += f" to {f.clock(entry.t)}"
    run = f"  run {entry.step}" if entry.step else "  no job"
    head = Line(width, charset).add(f" {when}", BOLD).add(run, DIM)
    head.add("  holds now" if holds and not entry.ceased else "", FINDING)
    head.add(f"  {entry.ceased}" if entry.ceased else "")
    finding = _now(entry)
    seconds = seconds_words(finding)
    head.add(f"  of {seconds}" if seconds else "", DIM)
    body = wrap(width, charset, printable(finding.text), None)
    if finding.advice:
        body += wrap(width, charset, f"→ {printable(finding.advice)}{_key(finding)}", DIM)
    return [head.done(), *body, message(width, charset, "")]
