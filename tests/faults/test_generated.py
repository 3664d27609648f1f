"""Generated job files in a tree full of bait: past failures, and new files for three minutes behind
each fence."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from generator import Arena
from program import FENCES

from iopstui.fio import fence
from iopstui.fio.inspect import find_fio

# seeds of files that did harm in the past
PAST: tuple[int, ...] = ()
EACH_S = float(os.environ.get("IOPSTUI_FRESH_SECONDS", "90"))


@pytest.mark.parametrize("kind", FENCES)
def test_no_generated_job_does_harm(kind: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence, "fence_kind", lambda: kind)
    first = random.SystemRandom().randrange(1 << 31)
    print(f"fresh seeds from {first}")
    top = here / "arena"
    top.mkdir()
    arena = Arena(top, find_fio())
    try:
        until = time.monotonic() + EACH_S
        seeds = iter((*PAST, *range(first, first + 100_000)))
        for count, seed in enumerate(seeds):
            arena.run(seed)
            assert arena.harm() == [], f"seed {seed}:\n{arena.generator.text(seed)}"
            if count >= len(PAST) and time.monotonic() > until:
                break
    finally:
        arena.close()
    # if all its jobs were refused, the generator would show nothing
    assert arena.outcomes["done"] + arena.outcomes["failed"], arena.outcomes
    assert arena.outcomes["bare"], arena.outcomes
    arena.remove()
