from __future__ import annotations

import pytest

from iopstui.model.experiment.point import Point
from iopstui.model.lesson.figures import run_figures
from iopstui.model.lesson.section import known_names


def test_the_share_that_the_jobs_own_cpus_complete() -> None:
    point = Point(8.0, 80, 10.0, 40960.0, completions={0: 0.25, 1: 0.5, 2: 0.25})
    assert run_figures(point, {}, frozenset({1, 2}))["on_own"] == pytest.approx(0.75)
    # a CPU that completed nothing has no share
    assert run_figures(point, {}, frozenset({2, 9}))["on_own"] == pytest.approx(0.25)
    assert "on_own" not in run_figures(point, {}, frozenset())


def test_a_name_that_is_nearly_right() -> None:
    assert known_names("iopss", ["iops", "await"]) == "Did you mean iops?"
    assert known_names("zzz", ["iops", "await"]) == "Known: await, iops"
    assert known_names("zzz", []) == ""
