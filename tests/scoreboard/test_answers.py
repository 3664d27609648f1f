"""Tests of the verdicts on answers of `iopstui why`. The situations themselves need a virtual
machine."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from answers import ASKS, Answered, Situation, judged
from effect import Effect, Span, State, parse_disk
from judge import BROKEN, MISSED, RIGHT, WRONG
from scenario import Bench, no_proof
from situations import SITUATIONS, held, quick

BUSY = "▲ vdz is busy: I/Os take 64 ms on average with 32 in flight"
SLOW = Situation("slow", "a slow disk", lambda bench: "", (), "4", no_proof, r"\(PID\)")


def effect(looks: str = "9 D io_schedule\n1 R 0", **counts: int) -> Effect:
    watched = {"/proc/pressure/io": "some avg10=0 total=0", "looks": looks}
    before = State(10.0, parse_disk("", ""), watched=watched)
    return Effect([Span(before, replace(before, at=20.0, disk={**before.disk, **counts}))])


def verdict(ask: str, code: int, *sentences: str, situation: Situation = SLOW,
            seen: Effect | None = None) -> str:  # fmt: skip
    with ExitStack() as stack:
        bench = Bench(stack, Path("/"), pids=[os.getpid()])
        answered = Answered(code, {"sentences": sentences, "answers": [{"rule": "queue"}]})
        found = judged(situation, ask, answered, seen or effect(), bench, {"vdz"})
    return found.verdict.word


@pytest.mark.parametrize(
    ("ask", "code", "text", "word"),
    [
        ("root", 4, f"{BUSY} · fio (OWN) does all of its bytes", RIGHT),
        ("root", 4, BUSY, MISSED),
        ("root", 4, f"{BUSY} · init (1) does 60 % of its bytes", WRONG),
        ("root", 4, "▲ vdy is busy · fio (OWN) does all of its bytes", WRONG),
        ("root", 6, BUSY, MISSED),
        ("root", 0, BUSY, WRONG),
        ("user", 4, BUSY, RIGHT),
        ("root-pid", 6, "fio (OWN) sleeps", MISSED),
        ("user-pid", 6, "fio (OWN) sleeps", RIGHT),
        ("user-pid", 0, "fio (OWN) sleeps", WRONG),
    ],
)
def test_verdicts(ask: str, code: int, text: str, word: str) -> None:
    assert verdict(ask, code, text.replace("OWN", f"{os.getpid()}")) == word


def test_without_the_situation_an_answer_is_broken() -> None:
    proved = replace(SLOW, proof=held(20, 30))
    assert verdict("user", 0, BUSY, situation=proved) == BROKEN
    seen = effect(reads=5000, read_ms=320_000, weighted_ms=320_000)
    assert verdict("user", 4, BUSY, situation=proved, seen=seen) == RIGHT
    assert verdict("root-pid", 4, BUSY, seen=effect("9 S do_poll")) == BROKEN
    asleep = replace(SLOW, codes="0", asleep="lock")
    assert verdict("root-pid", 0, "", situation=asleep) == BROKEN
    assert verdict("root-pid", 0, "", situation=asleep, seen=effect("9 S locks_lock")) == RIGHT


def test_what_must_and_must_not_be_said() -> None:
    limited = replace(SLOW, hog="", says=r"io\.max", never="busy")
    assert verdict("root", 4, "Not the disk: io.max", situation=limited) == RIGHT
    assert verdict("root", 4, "Not the disk", situation=limited) == WRONG
    assert verdict("user", 4, "Not the disk", situation=limited) == RIGHT
    assert verdict("user", 4, BUSY, situation=limited) == WRONG


def test_proofs_reject() -> None:
    busy = effect(reads=5000, read_ms=320_000, weighted_ms=320_000)
    assert not held(20, 30)(busy) and held(40, 30)(busy) and held(20, 90)(busy)
    assert held(20, 30, 25)(busy) and quick(30)(busy) and quick(99, 10)(busy)
    assert not quick(99, 40, 400)(busy) and quick(99, 40, 600)(busy)


def test_the_situations_are_many_and_their_codes_are_complete() -> None:
    assert len(SITUATIONS) >= 48
    assert max(Counter(one.name for one in SITUATIONS).values()) == 1
    for one in SITUATIONS:
        assert len(one.codes.split()) in (1, len(ASKS)), one.name
        assert set(one.codes) <= set("046- "), one.name
        assert one.load or not one.hog, one.name
    assert sum(one.right("root") == "0" for one in SITUATIONS) >= 12
