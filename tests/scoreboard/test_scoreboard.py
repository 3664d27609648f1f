"""`make scoreboard` itself: its verdicts, its proofs, and that its scenarios are consistent."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import proofs
import pytest
from drive import job_text
from effect import (
    Effect,
    Span,
    State,
    most_delayed,
    own_figures,
    own_load,
    parse_disk,
    parse_interrupts,
    parse_softirqs,
    parse_ticks,
    rates,
)
from judge import (
    BROKEN,
    MISSED,
    OUT,
    RIGHT,
    WRONG,
    ReportedAnswer,
    ReportedFinding,
    Verdict,
    judge,
    judge_answers,
    passes,
)
from outcome import Outcome, counted, from_json, left_out, lines, markdown, to_json
from quiet import scenarios
from scenario import PLACES, no_proof
from scenarios import ALL
from scenarios.advice import DONE

from iopstui.model.findings.advice import PROMISES
from iopstui.model.findings.finding import HEADLINES

ABOVE = ReportedFinding("above", "most wait above the device: io.max riops=1000")
CAP = ReportedFinding("cap", "IOPS stand at 500")


# -- verdicts


def test_exactly_the_expected_findings_are_right() -> None:
    assert judge([], {}) == Verdict(RIGHT)
    assert judge([ABOVE], {"above": ("io.max",)}) == Verdict(RIGHT)
    assert judge([ABOVE, CAP], {"above": ()}, allowed={"cap"}) == Verdict(RIGHT)


def test_a_missing_finding_is_missed() -> None:
    assert judge([], {"above": ("io.max",)}) == Verdict(MISSED, ("above is missing",))
    half = judge([ABOVE], {"above": (), "tags": ()}, allowed={"cap"})
    assert half == Verdict(MISSED, ("tags is missing",))
    assert judge([CAP], {"above": ()}, allowed={"cap"}).word == MISSED, "what may be said, too"


def test_an_additional_finding_is_wrong() -> None:
    assert judge([CAP], {}) == Verdict(WRONG, ("cap: IOPS stand at 500",))
    verdict = judge([CAP, CAP], {"above": ()})
    assert verdict == Verdict(WRONG, ("cap: IOPS stand at 500", "above is missing")), "once"


def test_a_finding_without_its_expected_text_is_wrong() -> None:
    finding = ReportedFinding("above", "most wait above the device")
    (why,) = judge([ABOVE, finding], {"above": ("io.max", "riops")}).why
    assert why == "above says nothing of io.max, riops: most wait above the device"
    (why,) = judge([ABOVE], {"above": ()}, never=("io.max",)).why
    assert why.startswith("above must not say io.max: ")
    assert judge([CAP], {}, allowed={"cap"}, never=("stand",)).word == WRONG


def test_without_the_situation_missing_findings_are_broken() -> None:
    assert judge([], {}, broken="no flush") == Verdict(BROKEN, ("no flush",))
    assert judge([ABOVE], {"above": ()}, broken="no flush").word == BROKEN
    assert judge([CAP], {}, broken="no flush").word == WRONG


@pytest.mark.parametrize(
    ("verdicts", "good"),
    [
        ([RIGHT], True),
        ([RIGHT] * 9 + [MISSED], True),
        ([RIGHT] * 9 + [BROKEN], True),
        ([RIGHT] * 8 + [MISSED], False),
        ([RIGHT] * 18 + [MISSED, BROKEN], True),
        ([RIGHT] * 8 + [MISSED, BROKEN], False),
        ([RIGHT] * 8 + [MISSED] + [OUT] * 20, False),
        ([RIGHT] * 99 + [WRONG], False),
        ([OUT], False),
        ([], False),
    ],
)
def test_a_tenth_missed_and_nothing_wrong_passes(verdicts: list[str], good: bool) -> None:
    assert passes(verdicts) is good


WELL = ReportedAnswer("job", True, "● fio does 500 IOPS")
LIMITED = ReportedAnswer("finding-above", False, "▲ I/Os wait above the device: io.max")
MEMBER = ReportedAnswer("member", False, "▲ The job waits for sda")


@pytest.mark.parametrize(
    ("answers", "expected", "allowed", "word"),
    [
        ((WELL,), (), (), RIGHT),
        ((), (), (), RIGHT),
        ((LIMITED, WELL), (), (), WRONG),
        ((LIMITED,), (), ("above",), RIGHT),
        ((LIMITED, WELL), ("above",), (), RIGHT),
        ((LIMITED, MEMBER), ("above",), (), WRONG),
        ((WELL,), ("above",), (), MISSED),
        ((), ("above",), (), MISSED),
        ((WELL,), ("saturated",), (), RIGHT),
        ((LIMITED,), ("tags",), ("above",), MISSED),
        ((MEMBER,), ("slow-member",), ("answer-member",), MISSED),
    ],
)
def test_the_sentence_beside_a_job_quotes_an_expected_finding_that_needs_attention(
    answers: tuple[ReportedAnswer, ...], expected: tuple[str, ...], allowed: tuple[str, ...],
    word: str,
) -> None:  # fmt: skip
    assert judge_answers(answers, expected, allowed)[0] == word


# -- the table


def outcome(name: str, verdict: Verdict, *findings: ReportedFinding) -> Outcome:
    return Outcome(name, "here", "a | disk", ("above",), findings, verdict, "fio 1 IOPS", 7.5)


def test_outcomes_of_a_virtual_machine_are_read_from_json() -> None:
    original = outcome("a", Verdict(WRONG, ("why",)), ABOVE, CAP, CAP)
    assert from_json(json.loads(json.dumps(to_json(original)))) == original


def test_the_table_lists_left_out_scenarios_with_reasons() -> None:
    some = [
        outcome("a", Verdict(RIGHT), ABOVE),
        outcome("b", Verdict(WRONG, ("cap: no",)), CAP, CAP),
        outcome("c", Verdict(OUT, ("no lab",))),
        outcome("d", Verdict(OUT, ("no lab",))),
    ]
    assert counted(some) == "4 scenarios: 1 right, 0 missed, 1 wrong, 2 left out"
    assert list(left_out(some)) == ["2 left out: no lab"]
    with_answer = [replace(some[0], answer="● none", answered=MISSED), *some[1:]]
    assert counted(with_answer).endswith("; the answer beside the job: 0 right, 1 missed, 0 wrong")
    assert list(lines(with_answer[0], verbose=False))[1].strip() == "answer missed: ● none"
    rows = list(markdown(some))
    assert rows[3] == "| a / disk | here | above | cap | wrong |"
    assert rows[-1] == "2 left out: no lab."
    assert len({row.count("|") for row in rows[:6]}) == 1
    assert any("cap: no" in line for line in lines(some[1], verbose=False))
    assert len(list(lines(some[0], verbose=False))) == 1
    assert any("riops=1000" in line for line in lines(some[0], verbose=True))


# -- what the kernel counted


def state(at: float, **counts: int) -> State:
    none = parse_disk("", "")
    return State(at, {**none, **counts}, [0, 0], {"57 ahci": [0, 0]}, {"errors": "0x1"})


def span(ran: float = 0.0, iops: float = 0.0, latency: float = 0.0, **counts: int) -> Span:
    return Span(state(10.0), state(20.0, **counts), ran, iops, latency)


def test_counters_are_parsed() -> None:
    line = " 253 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n 253 1 vda1 9 9 9 9 9 9 9\n"
    disk = parse_disk(line, "vda")
    assert (disk["reads"], disk["in_flight"], disk["flushes"], disk["flush_ms"]) == (1, 9, 16, 17)
    short = " 7 0 loop0 1 2 3 4 5 6 7 8 9 10 11\n"
    assert parse_disk(short, "loop0")["flushes"] == 0
    assert parse_softirqs("   CPU0 CPU1\n  NET_RX: 1 2\n   BLOCK:  33  4\n") == [33, 4]
    assert parse_ticks("cpu 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n") == [[1, 2, 3, 4, 5, 6, 7, 8]]
    text = "     CPU0  CPU1\n 57:  5  6  PCI-MSI  0-edge  ahci[0]\nNMI:  1  2  Non-maskable\n"
    assert parse_interrupts(text) == {"57 ahci[0]": [5, 6]}


def test_figures_are_over_the_time_that_fio_ran() -> None:
    run = span(5.0, reads=500, writes=500, weighted_ms=20_000, read_ms=3000, write_ms=2000)
    assert (run.seconds, run.done, run.wait, run.in_flight) == (5.0, 1000, 5.0, 4.0)
    assert span().seconds == 10.0
    assert rates([(1.0, 10), (2.0, 30), (2.0, 30), (2.5, 30)]) == (20.0, 0.0)
    direction = {"runtime": 2000, "iops": 30.0, "lat_ns": {"mean": 1e6}}
    write = {"runtime": 3000, "iops": 10.0, "lat_ns": {"mean": 5e6}}
    assert own_figures({"jobs": [{"read": direction}, {"write": write}]}) == (3.0, 40.0, 2.0)
    assert own_figures({}) == (0.0, 0.0, 0.0)


def test_proofs_accept_and_reject() -> None:
    full = span(10.0, 1000, 8.0, reads=10_000, weighted_ms=80_000)
    waiting = span(10.0, 1000, 32.0, reads=10_000, weighted_ms=10_000)
    assert not proofs.inside(Effect([full])) and proofs.inside(Effect([full, waiting]))
    assert not proofs.outside(Effect([full, waiting])) and proofs.outside(Effect([full]))
    assert not proofs.saturates(Effect([full, waiting])) and proofs.saturates(Effect([full, full]))
    falls = replace(full, each=(0.0, 900.0, *[2000.0] * 6, *[500.0] * 6))
    assert not proofs.steps_down(Effect([falls])) and proofs.steps_down(Effect([full]))
    assert proofs.steps_down(Effect([replace(full, each=(0.0, 9.0, *[2000.0] * 9))]))
    more = span(10.0, 4000, 8.0)
    assert not proofs.scales(Effect([full, more])) and proofs.scales(Effect([full, waiting]))
    assert not proofs.worked(900, 1100)(Effect([full])) and proofs.worked(900)(
        Effect([span(10.0, 800)]))  # fmt: skip
    assert not proofs.rate(900, "reads")(Effect([full]))
    assert proofs.rate(900, "writes")(Effect([full]))
    assert proofs.rate(0, "reads", most=10)(Effect([full]))
    proof = proofs.every(proofs.inside, proofs.rate(9, "flushes"))
    assert proof(Effect([full])) == "0 flushes/s in the disk"


def test_proofs_of_sizes_files_and_cpus() -> None:
    small_ios = Effect([span(10.0, reads=10, read_sectors=10)])
    assert not proofs.request_size(512)(small_ios) and proofs.request_size(511)(small_ios)
    assert proofs.request_size(512)(Effect([span()])), "no requests"
    assert not proofs.file_is("errors", "0x1")(small_ios) and proofs.file_is("errors", "0x2")(
        small_ios
    )
    assert proofs.counter_grew("errors")(small_ios)
    last = small_ios.last
    throttled_state = replace(last.after, watched={"cpu.stat": "nr_periods 99\nnr_throttled 40"})
    assert not proofs.throttled(Effect([replace(last, after=throttled_state)]))
    assert proofs.throttled(small_ios) == "throttled 0 times"
    after = replace(last.after, watched={"errors": "0x3"}, softirqs=[9000, 100],
                    irqs={"57 ahci": [90, 9000]})  # fmt: skip
    moved = Effect([replace(last, after=after)])
    assert not proofs.counter_grew("errors")(moved)
    assert not proofs.on_one_cpu()(moved) and not proofs.on_one_cpu(irq="ahci")(moved)
    assert proofs.on_one_cpu()(small_ios) and proofs.on_one_cpu(irq="nvme")(moved)
    ticks = [[0, 0, 10, 5, 5, 0, 80, 0], [0, 0, 0, 60, 30, 0, 10, 0]]
    served = Effect([replace(last, ticks=([[0] * 8, [0] * 8], ticks))])
    assert not proofs.serves(0.8)(served) and proofs.serves(0.81)(served)
    assert not proofs.busy(0.5)(served) and proofs.busy(0.51)(served)
    assert proofs.spread(small_ios) and proofs.spread(moved)
    even = replace(last, after=replace(last.after, softirqs=[5000, 2000]))
    assert not proofs.spread(Effect([even]))
    assert not proofs.on_cpus(2, "ahci")(moved) and proofs.on_cpus(2, "ahci")(small_ios)
    assert not proofs.softirqs(900)(moved) and proofs.softirqs(901)(moved)


# -- the scenarios

RULES = {
    "iostats", "throttled", "one-cpu", "depth", "disagree", "job-cpu", "more-jobs-than-cpus",
    "saturated", "background", "above", "tags", "cap", "burst", "flush", "softirq-cpu",
    "irq-outside", "irq-moved", "numa-remote", "scsi-errors", "array", "paths", "scheduler",
    "misaligned", "busy", "cpu-wait", "layer", "neighbour", "stalled", "io-errors", "memory",
    "parity", "first-write", "starved", "write-back", "slow-direction", "ring",
    "answer-suspended",
}  # fmt: skip
WITHOUT_SCENARIO = {
    "steal", "kernel-errors", "nvme-errors", "hot", "thermal", "media-errors", "wear",
    "amplification", "volume-limit", "slow-member", "siblings", "crossing", "link", "cpu-sleep",
    "moved", "answer", "nfs-retrans", "nfs-server", "nfs-queue", "nfs-rsize", "nfs-attributes",
    "nfs-stalled", "smb-stalled", "smb-reconnect", "smb-server", "smb-rsize", "net-loss",
    "net-window", "net-full", "cgroup", "cgroup-limit",
}  # fmt: skip
"""Rules about drives, servers and other things that no place has, and about changes by users."""


def test_every_rule_that_can_be_provoked_has_a_scenario() -> None:
    assert len(ALL) >= 120
    assert not [
        name for name, count in Counter(scenario.name for scenario in ALL).items() if count > 1
    ]
    rules = {rule for scenario in ALL for rule in (*scenario.expected, *scenario.allowed)}
    assert rules <= RULES | {"answer-queue", "answer-memory"}, "a name that no rule has"
    expected = {rule for scenario in ALL for rule in scenario.expected}
    assert expected == RULES - {"saturated", "irq-outside", "slow-direction"}
    assert (RULES - {"answer-suspended"}) | WITHOUT_SCENARIO == set(HEADLINES)
    assert not RULES & WITHOUT_SCENARIO
    silent = [scenario for scenario in ALL if not scenario.expected]
    assert len(silent) >= 20, "what is said though nothing is wrong"
    assert {scenario.place for scenario in ALL} == set(PLACES)


def test_every_scenario_has_a_proof_and_is_short() -> None:
    assert not [scenario.name for scenario in ALL if scenario.proof is no_proof]
    assert not [scenario.name for scenario in ALL if not 6 <= scenario.length <= 16]
    assert not [scenario.name for scenario in ALL if set(scenario.expected) & scenario.allowed]


def test_every_advice_that_promises_a_change_is_done() -> None:
    assert set(DONE) == set(PROMISES) and len(PROMISES) <= 25
    situations = {scenario.name: scenario for scenario in ALL}
    for kind, name in DONE.items():
        expected = [text for texts in situations[name].expected.values() for text in texts]
        sentence = PROMISES[kind].replace("{}", "1 job")
        # advice that only answers give is in no finding of the session
        assert kind == "resync" or any(text in sentence for text in expected), kind


def test_fio_accepts_every_job(fio: str, tmp_path: Path) -> None:
    files = []
    for scenario in ALL:
        if scenario.job is not None:
            files.append(tmp_path / f"{scenario.name}.fio")
            files[-1].write_text(job_text(scenario))
    process = subprocess.run([fio, "--parse-only", *map(str, files)], cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr


# -- ordinary jobs


def test_quiet_runs_depend_only_on_the_seed() -> None:
    first, repeated, other_seed = (list(scenarios(40, seed)) for seed in (1, 1, 2))
    assert [scenario.what for scenario in first] == [scenario.what for scenario in repeated]
    assert [scenario.what for scenario in first] != [scenario.what for scenario in other_seed]
    assert {scenario.seconds for scenario in first} == {20.0} and not any(
        scenario.expected for scenario in first
    )


def test_fio_s_own_load_is_read() -> None:
    job = {"usr_cpu": 30.0, "sys_cpu": 60.0, "job options": {"iodepth": "8"},
           "iodepth_level": {"1": 1.0, "2": 20.0, "4": 30.0, "8": 49.0, ">=64": 0.0}}  # fmt: skip
    assert own_load({"jobs": [job, {}]}) == (90.0, 51.0)
    assert own_load({}) == (0.0, 0.0)


def test_cpu_wait_of_jobs_is_measured() -> None:
    marks = [
        (1.0, {7: 0}),
        (2.0, {7: 400_000_000}),
        (3.0, {7: 500_000_000}),
        (3.1, {7: 600_000_000}),
    ]
    assert most_delayed(marks) == 0.4
    assert most_delayed([(1.0, {7: 0}), (2.0, {8: 9})]) == 0.0
    starved = Effect([replace(span(), delay=0.3)])
    assert starved.starved and not Effect([span()]).starved
    assert not proofs.delayed(0.2)(starved) and proofs.delayed(0.4)(starved)


def test_proofs_of_the_new_situations() -> None:
    rises = replace(span(), each=(0.0, 500.0, *[500.0] * 6, *[700.0] * 6))
    assert not proofs.steps_up(0.3)(Effect([rises])) and proofs.steps_up(0.5)(Effect([rises]))
    paused = replace(span(), each=(900.0, 900.0, 0.0, 0.0, 0.0, 900.0))
    assert not proofs.pauses(Effect([paused])) and proofs.pauses(Effect([rises]))
    row = " ".join(["100", *["0"] * 3, "50", *["0"] * 12])
    zero = " ".join(["0"] * 17)
    before = replace(state(10.0), watched={"slaves/*/stat": f"{zero} {zero}"})
    after = replace(state(20.0, writes=100), watched={"slaves/*/stat": f"{row} {row}"})
    copied = Effect([Span(before, after)])
    assert not proofs.below(2.0)(copied) and proofs.below(2.1)(copied)
    assert not proofs.below(3.0, "all")(copied)
    low, high = ("some avg10=0.00 total=0", "some avg10=9.00 total=4000000\nfull total=1")
    texts = (1.0, low), (11.0, high)
    states = (replace(state(at), watched={proofs.PSI: text}) for at, text in texts)
    pressing = Effect([Span(*states)])
    assert not proofs.memory_pressure(pressing) and proofs.memory_pressure(copied)


def test_the_table_has_the_delay_of_right_findings() -> None:
    some = [outcome("a", Verdict(RIGHT), replace(ABOVE, after=3.0)),
            outcome("b", Verdict(RIGHT), replace(ABOVE, after=8.0)),
            outcome("c", Verdict(WRONG), replace(ABOVE, after=99.0))]  # fmt: skip
    assert "the right finding after 5.5 s (median), 8.0 s (longest)" in counted(some)
