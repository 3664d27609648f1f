"""Run scenarios on this machine, one after another."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from drive import Observation, watched
from judge import BROKEN, OUT, Verdict, judge, judge_answers
from outcome import Outcome
from scenario import Absent, Bench, Scenario

from iopstui.fio.inspect import find_fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots

MEMORY = "/dev/shm"


def warm_up() -> None:
    """Do what every session does first, once for all: their processes are copies of this one."""
    import psutil  # noqa: F401

    read_devices(Roots())
    find_fio()


def run(scenario: Scenario) -> Outcome:
    """Make the scenario's devices, run it, judge it, and remove them."""
    started_at = time.monotonic()
    try:
        observation = _observe(scenario)
    except Absent as absent:
        return outcome_of(scenario, Verdict(OUT, (str(absent),)))
    except Exception as error:
        return outcome_of(scenario, Verdict(BROKEN, (str(error) or repr(error),)))
    effect = observation.effect
    broken = observation.error or (scenario.proof(effect) if effect is not None else "")
    # faults that come from other load, or from the machine's host, are true as well
    allowed = set(scenario.allowed)
    if effect is not None:
        allowed |= {"steal"} if effect.stolen else set()
        allowed |= {"cpu-wait"} if effect.starved else set()
        allowed |= {rule for rule, is_true in scenario.truths.items() if is_true(effect)}
    allowed -= set(scenario.expected)
    verdict = judge(observation.said, scenario.expected, allowed, scenario.never, broken)
    figures = effect.summary() if effect is not None else ""
    outcome = outcome_of(scenario, verdict, observation, figures, time.monotonic() - started_at)
    if scenario.job is None or broken:
        return outcome
    word, answer = judge_answers(observation.answers, scenario.expected, allowed)
    text = f"{answer.text} (after {answer.after} s)" if answer is not None else "none"
    return replace(outcome, answer=text, answered=word)


def _observe(scenario: Scenario) -> Observation:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(
            prefix="iopstui-scoreboard-", dir=MEMORY)))  # fmt: skip
        bench = Bench(stack, directory)
        bench.path = scenario.device(bench)
        for begin in scenario.beside:
            begin(bench)
        return watched(scenario, bench)


def outcome_of(
    scenario: Scenario, verdict: Verdict, observation: Observation | None = None, figures: str = "",
    seconds: float = 0.0,
) -> Outcome:  # fmt: skip
    """The scenario's outcome."""
    findings = observation.said if observation is not None else ()
    return Outcome(scenario.name, scenario.place, scenario.what, tuple(scenario.expected), findings,
                   verdict, figures, round(seconds, 1))  # fmt: skip
