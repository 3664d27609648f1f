"""What holds where the user says nothing; the guide's defaults."""

from __future__ import annotations

from typing import Any

from iopstui.model.experiment.options import ExperimentOptions, RunOptions


def test_nothing_asked_for_is_nothing_changed() -> None:
    plain = RunOptions()
    assert plain == RunOptions(
        targets=(), job=None, overrides={}, size=None, destroy_data=(), no_fence=False, bind=False,
        knobs=(), interval_s=1.0, own_cpus=None, nice=0, record=None, expect=(), tolerance=0.0,
    )  # fmt: skip
    plan: Any = object()
    assert ExperimentOptions(plain, plan) == ExperimentOptions(
        run=plain, plan=plan, format="table", dry_run=False, yes=False, state=None, fresh=False
    )
