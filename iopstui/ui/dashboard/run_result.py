"""The result of the last run: it is the answer until another run starts."""

from __future__ import annotations

import re
from dataclasses import replace

from iopstui import format as f
from iopstui.model.answer.answer import CRITICAL, GOOD, OF_A_SECOND, SIGNS, WARNING, Answer
from iopstui.model.metrics.run_history import DONE
from iopstui.session.run_rows import brief_reason, change_text, means_text
from iopstui.ui.state.live import LiveState

_FIRST_PART = re.compile(r"(?:Not the disk: )?[^:;]+")


def run_result(state: LiveState, by_clock: bool = False) -> Answer | None:
    """What the last run has done, how long ago that was, and beside it what the disk does now.
    ``by_clock``: at what time it ended, for a text that is read later. ``None`` while a job runs,
    before the first one, and where there is worse to tell."""
    if state.running or state.finished is None or state.step is None:
        return None
    ended, now = state.finished, state.answer
    at_end = state.run_answers.get(ended.step)
    if now is not None and now.state == CRITICAL and now is not at_end:
        return None
    of_experiment = _experiment_text(state, by_clock)
    text = of_experiment or _run_text(state, at_end, by_clock)
    if not text:
        return None
    answer = Answer("", OF_A_SECOND, WARNING if ended.error else GOOD, "")
    # the last point's answer is none on the whole sweep
    answer = at_end if at_end is not None and not of_experiment else answer
    beside = _now_text(now) if now is not at_end else ""
    # a short line leaves out the end of a text, but not who
    is_well = now is None or now.state == GOOD
    if is_well and beside:
        return replace(answer, text=f"{text}; {beside}", who="", over_s=0)
    return replace(answer, text=text, who=beside, over_s=0)


def _lowered(text: str) -> str:
    """A sentence inside another one: "The job waits", but neither "I/Os" nor "CPUs"."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def time_of(state: LiveState, t: float) -> str:
    """The time of day at second ``t`` of the session: "at 21:18:20 UTC"; without any clock "40 s
    ago"."""
    frame = state.frame
    stamp = f.utc(frame.wall_ms - 1000 * (frame.t - t)) if frame is not None else None
    return f"at {stamp[11:19]} UTC" if stamp else _ago(state.t - t)


def _ago(seconds: float) -> str:
    return f"{f.duration(seconds if seconds < 60 else 60 * (seconds // 60))} ago"


def _when(state: LiveState, t: float, by_clock: bool) -> str:
    return time_of(state, t) if by_clock else _ago(state.t - t)


def _run_text(state: LiveState, at_end: Answer | None, by_clock: bool) -> str:
    """ "Run 1 ended 40 s ago: 73.4k IOPS, 287 MiB/s, p99 1.29 ms; at its end in flight 16.0"."""
    ended, row = state.finished, state.ended_run
    if ended is None or row is None:
        return ""
    verb = "ended" if row.ended == DONE else "failed" if ended.error else "was stopped"
    name = state.runs.name_of(row) if by_clock else f"run {row.step}"
    head = f"{name[:1].upper()}{name[1:]} {verb} {_when(state, ended.t, by_clock)}"
    if row.iops is None:
        return f"{head}: {ended.error}" if ended.error else f"{head} without results"
    said = at_end.text.removeprefix("Before the run ended: ") if at_end is not None else ""
    if at_end is not None and at_end.rule == OF_A_SECOND:
        # the figures of its last second are not those of the run
        said = said.partition("; ")[2]
    said = f"at its end {_lowered(said)}" if said else ""
    disturbed = f"disturbed: {'; '.join(row.disturbed)}" if row.disturbed else ""
    means, reason = f"{head}: {means_text(row)}", brief_reason(row.disturbed)
    if reason:
        # a short line leaves out the other figures before what spoiled them all
        iops, rate, *tail = means_text(row).split(", ")
        means = ", ".join((f"{head}: {iops}{reason}", *tail, rate))
    if at_end is not None and at_end.state != GOOD:
        # the sign is that of the end, and not of the difference to another run
        parts = [means, said, change_text(row), disturbed]
    else:
        parts = [", ".join(filter(None, (means, change_text(row)))), disturbed, said]
    return "; ".join(filter(None, parts))


def _experiment_text(state: LiveState, by_clock: bool) -> str:
    """The first sentence on a sweep or comparison that the last run was part of."""
    experiment, ended = state.experiment, state.finished
    over = experiment.finished if experiment is not None else None
    if experiment is None or ended is None or over is None or over.t < ended.t:
        return ""
    sentence = next(iter(experiment.sentences()), "")
    load = f": {experiment.recommended}" if experiment.recommended else ""
    head = f"The {experiment.noun} ended {_when(state, over.t, by_clock)}{load} (w shows it)"
    return f"{head}: {sentence}" if sentence else head


def _now_text(now: Answer | None) -> str:
    """ "now vda is idle"."""
    first = _FIRST_PART.match(now.text) if now is not None else None
    if now is None or first is None:
        return ""
    sign = f"{SIGNS[now.state]} " if now.state != GOOD else ""
    return f"now {sign}{_lowered(first[0].strip())}"
