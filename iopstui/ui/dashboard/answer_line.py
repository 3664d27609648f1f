"""The answer for the dashboard: the last one given, or what a recording's figures say."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.model.answer.answer import CRITICAL, GOOD, OF_A_SECOND, Answer
from iopstui.model.answer.change import NEWS_S, change_answer
from iopstui.model.answer.judge import Seen, judge
from iopstui.model.answer.tracker import WINDOW
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.ui.state.live import LiveState


def answer_of(
    state: LiveState, target: Target | None, devices: Mapping[str, BlockDevice]
) -> Answer | None:
    """The answer that was given; right after a changed option, what that changed; after a ramp its
    knee, while its best depth runs; of a recording without answers, what its figures say."""
    if state.ramp is not None and state.running and not _is_bad(state.answer):
        return state.ramp
    changed = _changed(state)
    if changed is not None:
        return changed
    if state.answer is not None or target is None or state.frame is None:
        return state.answer
    last = [entry.frame for entry in state.recent_seconds if entry.t <= state.frame.t][-WINDOW:]
    frames = [frame for frame in last if frame.seconds and frame.step == state.frame.step]
    findings = [entry.finding for entry in state.current_findings()]
    pairs = judge(Seen(target, frames, devices, findings=findings)) if frames else []
    return pairs[0][1] if pairs else None


def _is_bad(answer: Answer | None) -> bool:
    return answer is not None and answer.state == CRITICAL


def _changed(state: LiveState) -> Answer | None:
    """What an option changed that was changed a few seconds ago, unless there is more to say."""
    step, answer = state.step, state.answer
    if step is None or not state.running or state.t > step.t + 2 * NEWS_S:
        return None
    if answer is not None and (answer.state != GOOD or answer.rule != OF_A_SECOND):
        return None
    rows = state.runs.rows[-2:]
    if len(rows) < 2 or rows[1].step != step.step:
        return None
    return change_answer(rows[0], rows[1])
