"""The verdicts of a self-test: true evidence passes; wrong evidence fails exactly where it is
wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iopstui.features.selftest import judge as judge_fio
from iopstui.features.selftest.evidence import (
    FAIL,
    MISSING,
    Evidence,
    read_bundle,
    selftest_json,
    selftest_text,
)
from iopstui.features.selftest.judge import judge
from iopstui.model import histogram

BUNDLES = Path(__file__).parents[1] / "fixtures" / "selftest"
NAMES = sorted(path.stem for path in BUNDLES.glob("*.gz"))
NVME = read_bundle(BUNDLES / "nvme-4-queues.gz")


def failing(found: Evidence) -> set[str]:
    return {one.name for one in judge(found) if one.verdict == FAIL}


@pytest.mark.parametrize("name", NAMES)
def test_bundles_of_real_machines_pass(name: str) -> None:
    checks = judge(read_bundle(BUNDLES / f"{name}.gz"))
    assert [one for one in checks if one.verdict == FAIL] == []
    assert len(checks) > 25 and sum(one.verdict == MISSING for one in checks) <= 4


def each_disk(change: Callable[[dict[str, Any]], None]) -> Callable[[Evidence], None]:
    def wrong(found: Evidence) -> None:
        for frame in found.frames:
            change(frame["disk"])

    return wrong


def shift_queues(found: Evidence) -> None:
    for one in found.vectors:
        one["hctx"] = None if one["hctx"] is None else (one["hctx"] + 1) % 4


def move_interrupts(found: Evidence) -> None:
    for frame in found.frames:
        frame["irqs"] = {irq: {"0": sum(cpus.values())} for irq, cpus in frame["irqs"].items()}


def lose_a_second(found: Evidence) -> None:
    first, second = found.stream.split('\n{\n  "fio version"', 2)[:2]
    assert second
    found.stream = found.stream[len(first) :].lstrip().rsplit('\n{\n  "fio version"', 1)[0]


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (each_disk(lambda d: d.update(r_await=(d["r_await"] or 0) * 2)), "device: ms of r_await"),
        (each_disk(lambda d: d.update(reads=d["reads"] // 2)), "device: reads"),
        (each_disk(lambda d: d.update({"wMB/s": d["wMB/s"] * 1.048576})),
         "device: sectors of wMB/s"),
        (each_disk(lambda d: d.update(util=d["util"] / 2)), "device: busy ms (util)"),
        (each_disk(lambda d: d.update({"aqu-sz": d["aqu-sz"] + 1})), "device: ms of aqu-sz"),
        (shift_queues, "queue map: queue of each interrupt"),
        (lambda e: e.queues.update({"0": [1]}), "queue map: CPUs of each queue"),
        (lambda e: e.vectors[1].update(cpus=[3]), "queue map: CPU of each interrupt"),
        (move_interrupts, "interrupts of the disk on CPU 0"),
        (lose_a_second, "fio: I/Os"),
        (lambda e: e.log.pop(), "fio: I/Os"),
        (lambda e: e.fence.update(outside=True), "fence: write outside"),
        (lambda e: e.fence.update(inside=False), "fence: write where it is allowed"),
        (lambda e: e.restore.update(after="64"), "tunables: restored after it"),
        (lambda e: e.restore.update(during=e.restore["before"]), "tunables: changed for a run"),
        (lambda e: e.frames[-1].update(wall_ms=e.frames[-1]["wall_ms"] + 3_600_000),
         "clock: wall against monotonic, ms"),
        (lambda e: e.known_latency.update(expected_ns=10**6, clat_ns=5e5, await_ns=1.1e6),
         "known latency: fio, ns"),
    ],
)  # fmt: skip
def test_wrong_evidence_fails(wrong: Callable[[Evidence], None], check: str) -> None:
    found = copy.deepcopy(NVME)
    wrong(found)
    assert check in failing(found)


@pytest.mark.parametrize(("kind", "check"), [
    ("diskstats", "device"), ("interrupts", "interrupts by CPU"),
])  # fmt: skip
def test_counters_that_begin_again_are_a_gap(kind: str, check: str) -> None:
    found = copy.deepcopy(NVME)
    for row in found.counters[len(found.counters) // 2 :]:
        if row[1] == kind:
            row[2] = " ".join("0" if word.isdecimal() and n > 2 else word
                              for n, word in enumerate(row[2].split()))  # fmt: skip
    checks = judge(found)
    assert {one.name for one in checks if "began again" in one.meaning} == {check}
    assert not [one for one in checks if one.verdict == FAIL]


def test_one_wrong_second_fails_though_the_sum_is_right() -> None:
    found = copy.deepcopy(NVME)
    found.frames[1]["disk"]["reads"] += 900
    found.frames[2]["disk"]["reads"] -= 900
    assert "device: seconds with wrong counts" in failing(found)


def test_a_parser_that_loses_a_bucket_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    real = histogram.percentiles
    monkeypatch.setattr(
        judge_fio.histogram,
        "percentiles",
        lambda bins, *of: real({k: n for k, n in bins.items() if k < 10**6}, *of),
    )
    assert "fio: p99, ns" in failing(NVME)


def test_what_cannot_be_checked_is_said_and_fails_nothing() -> None:
    found = Evidence(missing={"device": "no disk", "queues": "no queues", "latency": "needs root",
                              "fence": "none", "restore": "needs root"})  # fmt: skip
    checks = judge(found)
    assert {one.verdict for one in checks} == {MISSING}
    text = selftest_text(checks, found, 80)
    assert "known latency: needs root." in text and text.splitlines()[-1].startswith("OK: 0 passed")


def test_a_failure_is_explained_in_the_text_and_in_json() -> None:
    found = copy.deepcopy(NVME)
    found.restore["after"] = "7"
    checks = judge(found)
    text = selftest_text(checks, found, 80)
    assert "tunables: restored after it: a setting stays changed (expected 128, measured" in (
        " ".join(text.split()))  # fmt: skip
    assert text.splitlines()[-1].startswith("FAIL: ")
    data = selftest_json(checks, found)
    assert data["result"] == FAIL and data["machine"]["fio"] == "fio-3.33"
    rows = {one["check"]: one for one in data["checks"]}
    assert rows["tunables: restored after it"]["result"] == FAIL
    assert rows["known latency"]["result"] is None
