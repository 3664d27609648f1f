"""Starting one fio run."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import Refused
from iopstui.session.fio_run import FioRun
from iopstui.session.prepare import Prepared
from iopstui.sources.fio_inspect import Fio, JobFacts
from iopstui.sources.private import private_directory

FACTS = JobFacts((), False)


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
    assert made == []
