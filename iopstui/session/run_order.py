"""The order to start a run, until the run has begun."""

from __future__ import annotations

from dataclasses import dataclass

from iopstui import events
from iopstui.model.experiment.run_request import RunRequest
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.preflight.shared_scratch import LentScratch
from iopstui.session.tick.context import Context

# A prepared run that waits for the signal to start.


@dataclass(frozen=True, slots=True)
class StartSignal:
    """Start at ``at_ns`` (CLOCK_MONOTONIC). ``offset_ms`` is how far this machine's clock is ahead
    of the sender's, ``error_ms`` its maximum error (``None``: not compared)."""

    at_ns: int
    offset_ms: float | None = None
    error_ms: float | None = None


def planned_event(context: Context, step: int, prepared: PreparedJob) -> events.RunPlanned:
    """The event with the files to be laid out. Files that a job names itself are not in it: only
    fio knows how long it would make them."""
    paths = prepared.scratch.paths if prepared.scratch is not None else ()
    layout_bytes = prepared.layout_bytes or 0 if prepared.layout_text is not None else 0
    layout = {str(path): layout_bytes // len(paths) for path in paths}
    return events.RunPlanned(context.now(), step, layout)


def ready_event(context: Context, step: int, prepared: PreparedJob) -> events.RunReady:
    """The event that says so."""
    prefixes = tuple(f"{path}/" for path in map(str, prepared.directories))
    writes = () if prepared.read_only else tuple(
        name for name in prepared.files if not name.startswith(prefixes)
    )  # fmt: skip
    return events.RunReady(context.now(), step, writes if prepared.scratch is None else ())


def executed_event(
    context: Context, step: int, start_signal: StartSignal, monotonic_ns: int
) -> events.FioExecuted:
    """The event that says when fio was executed."""
    now_ns = context.clock.monotonic_ns()
    ago_ms = (now_ns - monotonic_ns) / 1e6
    return events.FioExecuted(
        context.now() - ago_ms / 1e3,
        step,
        context.clock.wall_ms() - ago_ms,
        monotonic_ns,
        (monotonic_ns - start_signal.at_ns) / 1e6,
        start_signal.offset_ms,
        start_signal.error_ms,
    )


@dataclass(frozen=True, slots=True)
class RunOrder:
    """``announce``: report first what would be laid out, and wait for permission. ``hand_over``: a
    running job continues until this one has done its first I/O, if that is safe. ``mark`` is put on
    all charts when the run begins."""

    request: RunRequest
    lent: LentScratch | None = None
    announce: bool = False
    hand_over: bool = False
    mark: str = ""
