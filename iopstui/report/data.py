"""A report as JSON with all data of the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from iopstui import __version__
from iopstui.model.metrics.shares.share import SMB_PROTOCOL
from iopstui.model.metrics.slow.common_properties import common_properties
from iopstui.output.jsonl import (
    clean,
    exemplar_object,
    operation_data,
    smb_operation_data,
    wait_data,
)
from iopstui.report.experiment import as_data
from iopstui.report.folding.run import Run
from iopstui.report.folding.series import points
from iopstui.report.story import Story
from iopstui.report.wording.recording import reconciled
from iopstui.report.wording.repeat_command import command, repeat, repeat_experiment

SCHEMA = 1


def json_text(stories: Sequence[Story]) -> str:
    """Everything the page says, as data."""
    recordings = [_story(story) for story in stories]
    document = {"report": SCHEMA, "iopstui": __version__, "recordings": recordings}
    return json.dumps(clean(document), indent=1, allow_nan=False) + "\n"


def _story(story: Story) -> dict[str, Any]:
    series = {name: points(story.series, name) for name in story.series
              if name not in ("t", "seconds")}  # fmt: skip
    return {
        "file": story.path.name,
        "header": asdict(story.header),
        "duration_s": story.duration,
        "samples": story.samples,
        "incomplete": story.ending or None,
        "devices": [asdict(device) for device in story.devices],
        "foreign": story.foreign or None,
        "not_in_it": story.missing_facts,
        "experiments": [
            {**as_data(experiment), "repeat": repeat_experiment(story, experiment)}
            for experiment in story.experiments
        ],
        "runs": [_run(story, run) for run in story.runs],
        "side_by_side": [asdict(row) for row in story.rows],
        "wait_without_job": wait_data(story.idle_waits.value),
        "findings": [
            {"t": finding.t, **asdict(finding.finding), "ceased": _ends(story, place)}
            for place, finding in enumerate(story.findings)
        ],
        "slowest": [exemplar_object(request, t) for t, request in story.slowest.all()],
        "slowest_in_common": [
            asdict(claim) for claim in common_properties(story.slowest.selection())
        ],
        "stalls": [asdict(stall) for stall in story.stalls],
        "marks": [asdict(mark) for mark in story.marks],
        "between_marks": [asdict(interval) for interval in story.mark_intervals],
        "changes": [asdict(change) for change in story.changes],
        "notices": [asdict(notice) for notice in story.notices],
        "series": {
            "t": [t for t, _ in series["fio"]],
            **{name: [value for _, value in points] for name, points in series.items()},
        },
    }


def _run(story: Story, run: Run) -> dict[str, Any]:
    finished = run.finished
    return {
        "step": run.step,
        "point": run.point or None,
        "job": run.name,
        "title": run.title,
        "begin": run.begin,
        "end": run.end,
        "whole": not run.is_partial,
        "error": finished.error if finished else None,
        "interrupted": finished.interrupted if finished else None,
        "summary": finished.summary if finished else None,
        "frames": {"count": run.total.frames, "ios": run.total.ios, "bytes": run.total.bytes},
        "reconciled": reconciled(run),
        "latencies_ns": run.latencies(),
        "bins": run.bins,
        "wait": wait_data(run.waits.value),
        "nvme": dict(run.drives.rows()) or None,
        "energy": run.energy.data(),
        **_shares(run),
        "verdicts": [asdict(judged) for judged in run.outcomes],
        "steady": asdict(run.steady_state) if run.steady_state else None,
        "repeat": None if run.point else repeat(story, run) or None,
        "command": command(run) or None,
        "job_file": run.job_run.text if run.job_run else None,
        "overrides": run.job_run.overrides if run.job_run else None,
        "captured": [asdict(row) for row in run.captured] or None,
        "binding": asdict(run.job_run.binding) if run.job_run and run.job_run.binding else None,
    }


def _shares(run: Run) -> dict[str, Any]:
    """The run's operations on its NFS or SMB mount."""
    operations = run.share.operations.items()
    if run.share.protocol == SMB_PROTOCOL:
        objects = {name: smb_operation_data(rates, name != "other") for name, rates in operations}
        return {"nfs": None, "smb": objects}
    return {"nfs": {name: operation_data(rates) for name, rates in operations} or None, "smb": None}


def _ends(story: Story, place: int) -> dict[str, Any] | None:
    ends = story.finding_ends.get(place)
    return asdict(ends) if ends is not None else None
