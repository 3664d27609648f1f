"""Starting one fio run."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from iopstui.errors import Refused
from iopstui.session.fio_run import FioRun, PhaseOver
from iopstui.session.prepare import Prepared
from iopstui.sources.fio_inspect import Fio, JobFacts
from iopstui.sources.private import private_directory

FACTS = JobFacts(("a",), (), False)


def test_a_refusal_right_before_the_start_leaves_no_private_directory(tmp_path: Path) -> None:
    made: list[Path] = []

    def private() -> Path:
        made.append(private_directory())
        return made[-1]

    def refuse() -> None:
        raise Refused("It is mounted by now.")

    prepared = Prepared("a", "a", "[a]\n", FACTS, (), tmp_path)
    run = FioRun(Fio("/bin/false", (3, 33), "fio-3.33"), prepared, private, 1.0, refuse)
    with pytest.raises(Refused):
        run.start_phase()
    assert len(made) == 1
    assert not made[0].exists()


def test_a_full_place_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fstatvfs

    def full(fd: int) -> os.statvfs_result:
        words = list(real(fd))
        words[1:5] = [4096, 1000, 0, 0]
        return os.statvfs_result(words)

    monkeypatch.setattr(os, "fstatvfs", full)
    prepared = Prepared("a", "a", "[a]\n", FACTS, (), tmp_path)
    run = FioRun(Fio("/bin/true", (3, 33), "fio-3.33"), prepared, private_directory, 1.0,
                 lambda: None)  # fmt: skip
    run.start_phase()
    over: list[PhaseOver] = []
    while not over:
        over = [news for news in run.poll() if isinstance(news, PhaseOver)]
        select.select(run.fds, [], [], 1.0)
    assert over[0].error.startswith("fio's figures could not be written: there is no room left in")
    run.close()
