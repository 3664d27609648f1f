"""Choose the sink of an experiment."""

from __future__ import annotations

from typing import TextIO

from iopstui.model.block.target import Target
from iopstui.model.experiment.plan import Plan
from iopstui.output.experiment.compare import CompareSink
from iopstui.output.experiment.sweep import SweepSink


def experiment_sink(
    plan: Plan,
    kind: str,
    host: str,
    target: Target | None,
    out: TextIO,
    err: TextIO,
    started: bool = False,
) -> SweepSink | CompareSink:
    """The sink for the experiment's ``plan``; for the rest see ExperimentSink."""
    sink = CompareSink if plan.variants else SweepSink
    return sink(plan, kind, host, target, out, err, started)
