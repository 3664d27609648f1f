"""The answer for the dashboard: the last one given, or what a recording's figures say."""

from __future__ import annotations

from collections.abc import Mapping

from iopstui.model.answer.answer import Answer
from iopstui.model.answer.judge import Seen, judge
from iopstui.model.answer.tracker import WINDOW
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.ui.state.live import LiveState


def answer_of(
    state: LiveState, target: Target | None, devices: Mapping[str, BlockDevice]
) -> Answer | None:
    """The answer that was given; of a recording without any, what its figures say."""
    if state.answer is not None or target is None or state.frame is None:
        return state.answer
    last = [entry.frame for entry in state.recent_seconds if entry.t <= state.frame.t][-WINDOW:]
    frames = [frame for frame in last if frame.seconds and frame.step == state.frame.step]
    findings = [entry.finding for entry in state.current_findings()]
    pairs = judge(Seen(target, frames, devices, findings=findings)) if frames else []
    return pairs[0][1] if pairs else None
