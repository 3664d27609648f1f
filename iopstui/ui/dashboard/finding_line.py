"""Findings: the rows above the footer, and a page with all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from rich.cells import cell_len

from iopstui import format as f
from iopstui.model.answer.answer import FINDING as ANSWER_OF_FINDING
from iopstui.model.answer.answer import GOOD, Answer
from iopstui.model.findings import finding
from iopstui.model.findings.advice import NO_ADVICE
from iopstui.model.findings.excluded import EXCLUDED_CAUSES
from iopstui.model.findings.finding import (
    CRITICAL,
    INFO,
    Finding,
    headline_of,
    period_text,
    severity_of,
)
from iopstui.session.tick.outcomes import (
    FAIL,
    PASS,
    UNJUDGED,
    UNKNOWN,
    short_steady_text,
    worst_outcome,
)
from iopstui.text import printable
from iopstui.ui.dashboard import bars
from iopstui.ui.draw import frame
from iopstui.ui.draw.rows import SIGN_COLUMNS, Line, Piece, Row, message, pad, wrap
from iopstui.ui.draw.style import BOLD, DIM, ERROR, FINDING, KEY, WARNING, Charset
from iopstui.ui.state.findings import FindingEntry
from iopstui.ui.state.live import LiveState

SIGNS: dict[str, Piece] = {
    INFO: ("●", KEY), finding.WARNING: ("▲", WARNING), CRITICAL: ("■", ERROR),
}  # fmt: skip
"""The sign of each severity, in its colour."""
ADVICE_ROOM = 28
"""Columns that the advice needs at least behind a headline."""
OUTCOME_STYLES = {PASS: FINDING, FAIL: ERROR, UNKNOWN: WARNING, UNJUDGED: WARNING}


def rows(
    state: LiveState, width: int, height: int, charset: Charset, answer: Answer | None = None
) -> list[Row]:
    """Exactly ``height`` rows, with or without a finding, so that nothing moves. After a run with
    expectations they show its outcomes. Advice takes precedence over evidence. ``answer`` is the
    one at the top of the screen."""
    if _has_outcomes(state):
        return pad(_outcome_rows(state, width, height, charset), height, width)
    entries = _entries(state, answer, width)
    if not entries:
        return pad([message(width, charset, _no_finding_text(state, answer))], height, width)
    finding, more = _current_finding(entries[0]), _more_text(len(entries) - 1)
    evidence = _evidence_beside(answer, entries[0], width)
    head = _head(
        entries[0], state, width - len(more), _is_headline_shown(entries[0], answer, width)
    )
    next_ = _advice_pieces(finding)
    if height < 2:
        line = Line(width - len(more), charset).extend(head)
        # of advice whose first words do not fit, "Next:" would be left
        if next_ and line.free >= min(ADVICE_ROOM, 2 + sum(cell_len(text) for text, _ in next_)):
            *begin, (words, _) = next_
            line.extend([("  ", None), *begin]).add_words(words)
        else:
            _add_evidence(line, evidence)
        return [(*line.build(), (more, DIM))]
    first = Line(width - len(more), charset).extend(head)
    second = Line(width, charset)
    if sum(cell_len(text) for text, _ in next_) + 3 <= width:
        _add_evidence(first, evidence)
        second.add("   ").extend(next_)
    else:
        _split_advice(first, second, next_)
    return pad([(*first.build(), (more, DIM)), second.build()], height, width)


def box_rows(
    state: LiveState, width: int, height: int, charset: Charset, answer: Answer | None = None
) -> list[Row]:
    """The finding in a box: headline, evidence, what to do next."""
    inner = width - frame.BORDER_COLUMNS
    if _has_outcomes(state):
        body = pad(_outcome_rows(state, inner, height - 2, charset), height - 2, inner)
        return _in_box("Outcome", (), _count(1), body, width, charset)
    entries = _entries(state, answer, width)
    if not entries:
        body = pad([message(inner, charset, _no_finding_text(state, answer))], height - 2, inner)
        return _in_box("Finding", (), (), body, width, charset)
    finding = _current_finding(entries[0])
    next_ = _advice_pieces(finding)
    last = _wrap_pieces(next_, inner, charset)
    if len(last) > 1 and height < 5:
        *begin, (words, _) = next_
        last = [Line(inner, charset).add(" ").extend(begin).add_words(words).build()]
    last = last[: max(1, height - 3)]
    space = height - 2 - len(last)
    evidence = _evidence_beside(answer, entries[0], width)
    head = Line(inner, charset).add(" ")
    head.extend(_head(entries[0], state, inner, _is_headline_shown(entries[0], answer, width))[1:])
    if space == 1:
        body = [_add_evidence(head, evidence).build()]
    else:
        lines = [head.build()] if head.used > 1 else []
        lines += wrap(inner, charset, evidence, None) if evidence else []
        body = lines[:space]
        if len(lines) > space > 0:
            last_line = "".join(text for text, _ in body[-1]).strip()
            body[-1] = message(inner, charset, f"{last_line} …", None)
    rows = [*pad(body, space, inner), *last]
    sign = SIGNS[severity_of(finding)]
    return _in_box("Finding", (sign,), _count(len(entries)), rows, width, charset)


def message_box(rows: Sequence[Row], width: int, height: int, charset: Charset) -> list[Row]:
    """The box of a message that is longer than its row, in place of the finding."""
    body = pad(rows, height - 2, width - frame.BORDER_COLUMNS)
    return _in_box("Message", (), (), body, width, charset)


def _entries(state: LiveState, answer: Answer | None, width: int) -> list[FindingEntry]:
    """The current findings. A finding that the answer quotes comes after the others that hold. It
    is left out if it adds nothing to the answer."""

    def says_more(entry: FindingEntry) -> bool:
        advice = _advice_pieces(_current_finding(entry))
        return bool(advice) or bool(_evidence_beside(answer, entry, width))

    entries = [one for one in state.current_findings()
               if not _is_quoted(one, answer) or says_more(one)]  # fmt: skip
    return sorted(entries, key=lambda one: (bool(one.ceased), _is_quoted(one, answer)))


def _is_quoted(entry: FindingEntry, answer: Answer | None) -> bool:
    return answer is not None and answer.rule == f"{ANSWER_OF_FINDING}{entry.finding.rule}"


def _is_headline_shown(entry: FindingEntry, answer: Answer | None, width: int) -> bool:
    """Whether the answer at the top quotes the finding, and its row is long enough for that: the
    result of a run quotes it at its end."""
    if answer is None or not _is_quoted(entry, answer):
        return False
    before, headline, _ = answer.text.lower().partition(headline_of(entry.finding).lower())
    return not headline or cell_len(before + headline) + SIGN_COLUMNS <= width


def _in_box(
    title: str, sign: Sequence[Piece], value: Sequence[Piece], body: Sequence[Row], width: int,
    charset: Charset,
) -> list[Row]:  # fmt: skip
    title_pieces = [*((f"{text} ", style) for text, style in sign), *frame.title_pieces(title)]
    first = frame.top(width, charset, "", title_pieces, value)
    return frame.box_rows(first, body, frame.bottom(width, charset), charset, False)


def _count(count: int) -> list[Piece]:
    text = f"1 of {count}" if count > 1 else ""
    return [(text, DIM), ("  ", None), ("f", KEY), (" all", DIM)]


def _head(
    entry: FindingEntry, state: LiveState, width: float = inf, quoted: bool = False
) -> list[Piece]:
    """Sign and headline, and if there is room, the seconds that the finding covers. Only the sign
    if the answer at the top quotes the finding."""
    finding = entry.finding
    sign, style = SIGNS[severity_of(finding)]
    if quoted:
        return [(f" {sign} ", style)]
    when = entry.ceased or _period_text(entry, state)
    run = f"In run {entry.step} (ended): " if _is_of_ended_run(entry, state) else ""
    pieces: list[Piece] = [(f" {sign} ", style), (run + printable(headline_of(finding)), BOLD)]
    room = width - sum(cell_len(text) for text, _ in pieces)
    fits = [one for one in (when, when.partition(",")[0]) if one and cell_len(one) + 3 <= room]
    return [*pieces, (f" ({fits[0]})", DIM)] if fits else pieces


def evidence_text(finding: Finding) -> str:
    """A finding's text without the headline, with which it may begin."""
    text = printable(finding.text)
    head, mark, evidence = text.partition(": ")
    return evidence if mark and head == printable(headline_of(finding)) else text


def _evidence_beside(answer: Answer | None, entry: FindingEntry, width: int) -> str:
    """The evidence; "" if the answer quotes all of it in one line of the screen, else with its
    seconds, which then stand in no headline: those of the answer may be others."""
    text = evidence_text(_current_finding(entry))
    if answer is not None and _is_quoted(entry, answer):
        seconds = period_text(entry.finding)
        # else the finding's own headline has them
        is_told_above = _is_headline_shown(entry, answer, width)
        text = f"{seconds}: {text}" if seconds and is_told_above else text
        return text if cell_len(answer.sentence) >= width else ""
    return text


def _add_evidence(line: Line, text: str) -> Line:
    """Add the words that fit, after a colon if they follow a headline. Adds nothing if not even one
    word fits."""
    mark = ": " if line.used > SIGN_COLUMNS else ""
    if not text or cell_len(text.partition(" ")[0]) + 3 > line.free:
        return line
    return line.add(mark).add_words(text)


def _advice_pieces(finding: Finding) -> list[Piece]:
    """Advice with its key; "" if there is none."""
    if not finding.advice and not finding.key and not finding.test:
        return []
    pieces: list[Piece] = [("Next: ", DIM)]
    if finding.test:
        pieces += [("t", KEY), (f" runs {printable(finding.options)}  ", None)]
    elif finding.key:
        pieces += [(printable(finding.key), KEY), ("  ", None)]
    # the text of older recordings, such as the demo, also contains the key
    advice = finding.advice.replace(f": {finding.key} on the live screen,", " with")
    return [*pieces, (printable(advice), None)] if advice else pieces


def _wrap_pieces(pieces: Sequence[Piece], width: int, charset: Charset) -> list[Row]:
    """Pieces as rows, broken between words."""
    lines = [Line(width, charset).add(" ")]
    for text, style in pieces:
        for word in text.replace(" ", " \n").split("\n"):
            if lines[-1].used + cell_len(word.rstrip()) > width and lines[-1].used > 1:
                lines.append(Line(width, charset).add(" "))
            lines[-1].add(word, style)
    return [line.build() for line in lines] if pieces else []


def _current_finding(entry: FindingEntry) -> Finding:
    """The finding. Once it has ended, its advice is removed, because the cause is gone."""
    if not entry.ceased:
        return entry.finding
    return replace(entry.finding, advice=NO_ADVICE, key="", test=())


def _is_of_ended_run(entry: FindingEntry, state: LiveState) -> bool:
    """Whether a finding is about a run that has ended, so that its text may no longer be true."""
    if state.step is None or not entry.step:
        return False
    ended = state.finished is not None and entry.t <= state.finished.t
    return ended or entry.step != state.step.step


def _period_text(entry: FindingEntry, state: LiveState) -> str:
    """Since when the finding holds; after the run's end, the seconds that its figures cover."""
    if entry.finding.since is None or _is_of_ended_run(entry, state):
        return period_text(entry.finding)
    return f"since {f.clock(entry.first)}"


def _has_outcomes(state: LiveState) -> bool:
    return bool(state.outcomes) and not state.running


def is_empty(state: LiveState) -> bool:
    return not _has_outcomes(state) and not state.current_findings()


def _split_advice(first: Line, second: Line, next_: Sequence[Piece]) -> None:
    """Write the advice after the headline, and continue it in the second row."""
    first.add("  ")
    second.add("   ")
    target = first
    words = [(word, style) for text, style in next_
             for word in text.replace(" ", " \n").split("\n")]  # fmt: skip
    for number, (word, style) in enumerate(words, 1):
        if target is first and cell_len(word.rstrip()) > first.free:
            target = second
        needs = cell_len(word) + 1 if number < len(words) else cell_len(word.rstrip())
        if target is second and needs > second.free:
            second.add("…")
            return
        target.add(word if cell_len(word) <= target.free else word.rstrip(), style)


def _outcome_rows(state: LiveState, width: int, height: int, charset: Charset) -> list[Row]:
    level, text = worst_outcome(state.outcomes)
    first = Line(width - len(_more_text(0)), charset).add(" outcome: ", FINDING)
    first.add(level, OUTCOME_STYLES[level]).add("  " + printable(text.removeprefix(level)))
    second = Line(width, charset).add(" " * 10)
    if state.steady is not None:
        second.add(short_steady_text(state.steady))
    return [(*first.build(), (_more_text(0), DIM)), second.build()][:height]


def _all_outcome_rows(state: LiveState, width: int, charset: Charset) -> list[Row]:
    """All outcomes of the last run, and whether it was steady."""
    if not state.outcomes:
        return []
    title = f" outcomes of run {state.outcomes[0].step}"
    page: list[Row] = [Line(width, charset).add(title, BOLD).build()]
    for judged in state.outcomes:
        level, text = worst_outcome([judged])
        page += wrap(width, charset, printable(text), OUTCOME_STYLES[level])
    if state.steady is not None:
        page += wrap(width, charset, printable(state.steady.text), None)
    return [*page, message(width, charset, "")]


def _no_finding_text(state: LiveState, answer: Answer | None) -> str:
    named = answer is not None and (answer.state != GOOD or bool(answer.next))
    besides = " besides the answer at the top" if named else ""
    watching = state.frame is not None and state.step is None
    if (state.running and not state.creating_file) or watching:
        return f"No findings{besides}: every rule is checked each second"
    run = state.step.step if state.step is not None and state.finished is not None else 0
    if not run or state.running:
        return ""
    if any(entry.step == run for entry in state.findings.entries):
        return f"No findings{besides} at the end of run {run}; f: earlier ones"
    return f"No findings{besides} in run {run}"


def _more_text(count: int) -> str:
    return f"  f: {count} more " if count else "  f: all "


def texts(state: LiveState, answer: Answer | None) -> Iterator[str]:
    """Each finding in one line: headline, seconds, evidence and advice. A finding that ``answer``
    repeats is left out."""
    for entry in state.current_findings():
        finding = entry.finding
        if _is_quoted(entry, answer):
            continue
        advice = "".join(piece for piece, _ in _advice_pieces(_current_finding(entry)))
        head = "".join(piece for piece, _ in _head(entry, state)[1:])
        yield ". ".join(filter(None, (f"{head}: {evidence_text(finding)}".rstrip("."), advice)))


EARLIER_S, MOST_EARLIER = 60.0, 3
"""Answers of so many seconds are listed below that of now, at most so many."""
NO_FINDINGS = (
    "No findings besides what is said above. A set of rules checks every second (without a job: "
    "the kernel figures only). Findings are listed here with their numbers."
)


def list_rows(
    state: LiveState,
    width: int,
    charset: Charset,
    answer: Answer | None = None,
    elsewhere: str = "",
) -> list[Row]:
    """The whole answer, the outcomes of the last run, then all kept findings of the session, the
    newest first. ``elsewhere`` says where to find more of them."""
    verdicts = [
        *_answer_rows(answer, width, charset), *_earlier_rows(state, answer, width, charset),
        *_message_rows(state, width, charset), *_all_outcome_rows(state, width, charset),
    ]  # fmt: skip
    if not state.findings.entries:
        return verdicts + wrap(width, charset, elsewhere or NO_FINDINGS)
    over_at = state.t if state.ended else state.finished.t if state.finished is not None else -1.0
    now = {id(entry) for entry in state.current_findings() if entry.t > over_at}
    page = verdicts
    for entry in sorted(state.findings.entries, key=lambda entry: -entry.t):
        active, ended = id(entry) in now, _is_of_ended_run(entry, state)
        page += _entry_rows(entry, active, ended, width, charset)
    return page + (wrap(width, charset, elsewhere) if elsewhere else [])


def _answer_rows(answer: Answer | None, width: int, charset: Charset) -> list[Row]:
    if answer is None:
        return []
    page = wrap(width, charset, printable(answer.sentence_with_span), BOLD)
    if answer.next:
        page += wrap(width, charset, f"Next: {printable(str(answer.next))}", None)
    return [*page, message(width, charset, "")]


def _message_rows(state: LiveState, width: int, charset: Charset) -> list[Row]:
    """The message below the panels, where its row may be too short for it."""
    text, style = bars.message_piece(state)
    return [*wrap(width, charset, text, style), message(width, charset, "")] if text else []


def _earlier_rows(
    state: LiveState, answer: Answer | None, width: int, charset: Charset
) -> list[Row]:
    """The other answers of the last seconds, the newest first: the line at the top may have changed
    since somebody read it and asked for all of it."""
    found: dict[str, tuple[float, Answer]] = {}
    for entry in state.recent_seconds:
        if entry.answer is not None and state.t - EARLIER_S <= entry.frame.t <= state.t:
            found.pop(entry.answer.rule, None)
            found[entry.answer.rule] = entry.frame.t, entry.answer
    others = [one for rule, one in found.items() if answer is None or rule != answer.rule]
    page = [
        row
        for t, one in others[: -MOST_EARLIER - 1 : -1]
        for row in wrap(width, charset, f"Up to {f.clock(t)}: {printable(one.text)}", DIM)
    ]
    return [*page, message(width, charset, "")] if page else []


def _entry_rows(
    entry: FindingEntry, active: bool, ended: bool, width: int, charset: Charset
) -> Sequence[Row]:
    when = f.clock(entry.first)
    if entry.t - entry.first >= 1 and not (active or entry.ceased):
        when += f" to {f.clock(entry.t)}"
    run = f"  run {entry.step}{' (ended)' * ended}" if entry.step else "  no job"
    sign, style = SIGNS[severity_of(entry.finding)]
    headline = printable(headline_of(entry.finding))
    title = Line(width, charset).add(f" {sign} ", style).add(headline, BOLD).build()
    head = Line(width, charset).add(f" {when}", DIM).add(run, DIM)
    head.add("  active now" if active and not entry.ceased else "", FINDING)
    head.add(f"  {entry.ceased}" if entry.ceased else "")
    finding = _current_finding(entry)
    seconds = period_text(finding)
    head.add(f"  seconds {seconds}" if seconds else "", DIM)
    body = wrap(width, charset, evidence_text(finding), None)
    if _advice_pieces(finding):
        body += _wrap_pieces(_advice_pieces(finding), width, charset)
    excluded = EXCLUDED_CAUSES.get(finding.rule)
    if excluded is not None:
        body += wrap(width, charset, f"Excluded: {excluded}", DIM)
    return [title, head.build(), *body, message(width, charset, "")]
