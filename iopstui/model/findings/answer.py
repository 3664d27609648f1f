"""The answer of a run that was made to decide a finding. One run each, so it decides only clear
cases."""

from __future__ import annotations

from collections.abc import Callable

from iopstui import format as units
from iopstui.model.findings.advice import advise
from iopstui.model.findings.evidence import SteadyRun
from iopstui.model.findings.figures import SAME_SHARE, is_about_equal
from iopstui.model.findings.finding import Finding

CLEAR_GAIN = 0.2

Verdict = Callable[[SteadyRun, SteadyRun], str]


def answer_question(question: Finding, earlier: SteadyRun, now: SteadyRun) -> Finding:
    """The finding "answer". ``earlier`` is the run that raised the question, ``now`` the one with
    its ``options``."""
    verdict = _VERDICTS.get(question.rule, _iops_change_text)
    return Finding(
        "answer",
        f"{question.rule}, tested with {question.options}: IOPS {units.number(earlier.iops)} → "
        f"{units.number(now.iops)}, {units.size(earlier.bytes_s)}/s → {units.size(now.bytes_s)}/s, "
        f"latency {units.latency(earlier.lat_ns)} → {units.latency(now.lat_ns)}: "
        f"{verdict(earlier, now)}",
        advise("repeat"),
        "c",
    )


def _limit_kind_text(earlier: SteadyRun, now: SteadyRun) -> str:
    if is_about_equal(earlier.iops, now.iops):
        return "the limit is in IOPS"
    if is_about_equal(earlier.bytes_s, now.bytes_s):
        return "the limit is in bandwidth"
    return "neither stayed the same, so no fixed limit is shown"


def _block_cost_text(earlier: SteadyRun, now: SteadyRun) -> str:
    if now.lat_ns <= earlier.lat_ns * (1 - CLEAR_GAIN):
        return "yes, whole blocks are clearly faster"
    return "no, whole blocks are not clearly faster here"


def _iops_change_text(earlier: SteadyRun, now: SteadyRun) -> str:
    noise = 2 * max(earlier.spread or 0.0, now.spread or 0.0, SAME_SHARE / 2)
    change = now.iops / earlier.iops - 1 if earlier.iops else 0.0
    if abs(change) <= noise:
        return "no difference larger than the variation from second to second"
    return f"{'more' if change > 0 else 'fewer'} IOPS by {100 * abs(change):.0f} %"


_VERDICTS: dict[str, Verdict] = {"cap": _limit_kind_text, "misaligned": _block_cost_text}
