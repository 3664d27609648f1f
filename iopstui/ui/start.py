"""Start the screen from the command line."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from iopstui.errors import EXIT_OK, EXIT_VERDICT, IopstuiError
from iopstui.format import cut, replace_unprintable
from iopstui.linux.kernel_files import Roots
from iopstui.safety.leftovers import clean_up
from iopstui.text import printable, wrapped
from iopstui.ui.core.preferences import is_first_use

if TYPE_CHECKING:
    from iopstui.experiment.background import BackgroundExperiments
    from iopstui.model.block.device import BlockDevice
    from iopstui.model.block.target import Target
    from iopstui.model.experiment.expectation import Expectation
    from iopstui.model.experiment.ramp import RampRange
    from iopstui.model.experiment.run_request import RunRequest
    from iopstui.model.metrics.run_figures import MarkInterval
    from iopstui.model.metrics.run_history import RunRow
    from iopstui.recording.recent import RecentRecording
    from iopstui.session.live import LiveSession
    from iopstui.ui.app import SessionRuns
    from iopstui.ui.core.key import Controller

MAX_RUNS = 20
REPORT_HISTORY_S = 600.0
"""How many seconds of an unrecorded session are kept for a report."""
MAX_RECENT = 8


def run_screen(
    request: RunRequest,
    refresh_s: float = 0.0,
    begin: object | None = None,
    theme: str = "",
    first_job: str | None = None,
    export: Callable[[LiveSession], object] | None = None,
    ramp: RampRange | None = None,
) -> int:
    """Open the screen. Returns the exit code. Without a target, a job and a feature to ``begin``
    with, it shows the home screen first. ``first_job`` is the job that the key r runs if
    ``request`` names none. ``export`` is called with each new session."""
    # imported objects stay, and searching them for garbage would take a tenth of the start; app.py
    # enables it again
    gc.disable()
    clean_up(Roots())
    pick = not request.targets and not request.job and begin is None
    sessions = _Sessions(request, export)
    if not pick:
        sessions.begin(request.targets)
    try:
        code = sessions.show(
            first_job, begin, pick=pick, refresh_s=refresh_s, theme=theme, ramp=ramp
        )
    finally:
        sessions.end()
    return EXIT_VERDICT if sessions.expectation_missed and code == EXIT_OK else code


def _discover() -> Mapping[str, BlockDevice]:
    from iopstui.linux.devices.sysfs import read_devices

    return read_devices(Roots())


def _recent() -> Sequence[RecentRecording]:
    from iopstui.recording.recent import recent_recordings

    return recent_recordings(Path.cwd(), MAX_RECENT)


class _Sessions:
    """The sessions of one screen, one after another, each with another target."""

    def __init__(
        self, request: RunRequest, export: Callable[[LiveSession], object] | None = None
    ) -> None:
        self._request = request
        self._export = export
        self._prepared: list[LiveSession] = []
        self._sessions: list[LiveSession] = []
        self._job_targets: dict[object, Target | None] = {}
        self._session_runs: list[SessionRuns] = []
        # the first file of each recording that continues in another file
        self._first_recordings: dict[Path, Path] = {}

    def show(
        self, first_job: str | None, begin: object | None, *, pick: bool, refresh_s: float,
        theme: str, ramp: RampRange | None = None,
    ) -> int:  # fmt: skip
        """Show the screen until the user quits. Returns the exit code. After a recording, the home
        screen comes again."""
        # imported only now, because importing Textual takes longer than the first interval
        from iopstui.fio.library import shipped_jobs
        from iopstui.linux.activity.disk_use import OccasionalUse
        from iopstui.linux.devices.udev import HotplugMonitor
        from iopstui.linux.machine.load import DiskLoads
        from iopstui.ui.app import run_app
        from iopstui.ui.core.backend import Appearance, Backend, FirstView

        request = self._request
        # the recording to play next, and whether the user left its screen for the home screen
        requested: list[str] = []
        went_home: list[bool] = []
        first = FirstView(
            request.targets, request.job or first_job, request.overrides, pick,
            run_at_once=bool(request.job), begin=begin, first_run=is_first_use(), ramp=ramp,
        )  # fmt: skip
        while True:
            backend = Backend(
                self.controller, _discover, shipped_jobs(), HotplugMonitor, DiskLoads(),
                self.background, self.conditions, requested.append, _recent, request.volume,
                OccasionalUse(),
            )  # fmt: skip
            code = run_app(backend, first, Appearance(None, theme, refresh_s), self.keep_runs)
            if code != EXIT_OK or not requested:
                return code
            from iopstui.ui.replay import run_replay

            went_home.clear()
            code = run_replay(requested.pop(), 1.0, theme, on_home=lambda: went_home.append(True))
            if code != EXIT_OK or not went_home:
                return code
            # do not start the command line's job again
            first = replace(first, targets=(), pick=True, run_at_once=False, begin=None, ramp=None)

    def begin(self, paths: Sequence[str]) -> None:
        """Start the first session before the screen is loaded."""
        self._prepared.append(self._new_session(paths))
        self._prepared[0].start()

    def controller(self, paths: Sequence[str]) -> Controller:
        """The session for these targets. Raises IopstuiError."""
        return self._prepared.pop() if self._prepared else self._new_session(paths)

    def _new_session(self, paths: Sequence[str]) -> LiveSession:
        from iopstui.preflight.targets import choose_targets
        from iopstui.session.live import LiveSession
        from iopstui.session.tick.context import Viewer

        request, devices = self._request, _discover()
        job = None if paths else request.job or None
        target, job_target = choose_targets(paths, job, devices, Roots())
        # checked first, so that impossible expectations leave no file of a recording behind
        expected = self._expectations(target)
        if self._sessions:
            request = replace(request, record=None)
        viewer = Viewer(keep_s=REPORT_HISTORY_S, on_screen=True)
        session = LiveSession(target, devices, job_target, request, viewer, expectations=expected)
        if self._sessions and self._sessions[-1].recorded is not None:
            _continue_recording(session, self._sessions[-1].recorded, self._first_recordings)
        if self._export is not None:
            self._export(session)
        self._sessions.append(session)
        self._job_targets[session] = job_target
        return session

    def _expectations(self, target: Target) -> tuple[Expectation, ...]:
        request = self._request
        if not request.expect and request.baseline is None:
            return ()
        from iopstui.experiment.baseline import job_sections, parse_expectations, with_baseline

        jobs = [job_sections(request.job, request.overrides)] if request.job else []
        expected = parse_expectations(request.expect, request.tolerance, target, jobs)
        return with_baseline(expected, request.baseline)

    def background(self, controller: Controller) -> BackgroundExperiments:
        from iopstui.experiment.background import BackgroundExperiments
        from iopstui.session.live import LiveSession

        assert isinstance(controller, LiveSession)
        knobs = tuple(knob for knob in self._request.knobs if knob.after_s is None)
        conditions = replace(self._request, knobs=knobs)
        return BackgroundExperiments(controller, self._job_targets[controller], conditions)

    def conditions(self, controller: Controller) -> tuple[Target | None, RunRequest]:
        """The target of a session's jobs, and the request of the command line."""
        return self._job_targets[controller], self._request

    def keep_runs(self, runs: Sequence[SessionRuns]) -> None:
        """Keep the runs of the sessions, because a recording may be played in between."""
        self._session_runs += runs

    def end(self) -> None:
        """Print the results. The screen is closed by now, and the terminal restored."""
        for session in self._prepared:
            session.close()
        sessions = self._session_runs
        runs = runs_text([(target, rows) for target, rows, _, _ in sessions])
        marks = mark_intervals_text([(target, intervals) for target, _, intervals, _ in sessions])
        results = [
            "\n".join(wrapped(line, 0, 2) for line in result.split("\n")) for *_, result in sessions
        ]
        if texts := [text for text in (runs, marks, *results) if text]:
            print_after_screen("\n\n".join(texts))
        for line in self._outcomes():
            print(f"iopstui: {printable(line)}", file=sys.stderr)
        for text in (s.left_behind for s in self._sessions if s.left_behind):
            print(f"iopstui: {text}", file=sys.stderr)

    def _outcomes(self) -> Iterator[str]:
        for outcome in (outcome for session in self._sessions for outcome in session.outcomes):
            from iopstui.session.tick.outcomes import outcome_text

            yield outcome_text(outcome)

    @property
    def expectation_missed(self) -> bool:
        """Whether the last run of a session did not meet an expectation."""
        return any(
            outcome.passed is False for session in self._sessions for outcome in session.outcomes
        )


def runs_text(sessions: Sequence[tuple[Target, Sequence[RunRow]]]) -> str:
    """A table of the newest runs of each session, in at most 80 columns; "" if there were no
    runs."""
    if not sessions:
        return ""
    from iopstui.session.run_rows import WIDTH, run_table_rows

    remaining, tables = MAX_RUNS, []
    for target, rows in reversed(sessions):
        newest = rows[-remaining:] if remaining else ()
        remaining -= len(newest)
        if newest:
            suffix = (
                f", the last {len(newest)} of {len(rows)} runs" if len(newest) < len(rows) else ""
            )
            title = cut(printable(target.name), WIDTH - len(suffix) - 9)
            tables.append("\n".join((f"runs on {title}{suffix}:", *run_table_rows(newest))))
    return "\n\n".join(reversed(tables))


def mark_intervals_text(sessions: Sequence[tuple[Target, Sequence[MarkInterval]]]) -> str:
    """A table of the newest intervals between marks of each session, in at most 80 columns; "" if
    there were no marks."""
    if not sessions:
        return ""
    from iopstui.session.run_rows import WIDTH, mark_interval_rows

    tables = []
    for target, intervals in sessions:
        if intervals:
            title = cut(printable(target.name), WIDTH - 10)
            tables.append(
                "\n".join((f"marks on {title}:", *mark_interval_rows(intervals[-MAX_RUNS:])))
            )
    return "\n\n".join(tables)


def print_after_screen(text: str) -> None:
    """Print on the terminal without waiting for one that is stopped or gone."""
    stream = sys.__stdout__
    if stream is None or not stream.isatty():
        return
    from iopstui.ui.core.terminal.driver import Output

    output = Output(stream.fileno(), lambda: None)
    output.start()
    output.write(replace_unprintable(text, stream.encoding) + "\n")
    output.stop()


def _continue_recording(
    session: LiveSession, previous: Path, first_files: dict[Path, Path]
) -> None:
    """Continue a recording with another target in a new file: FILE-2, FILE-3 ... ``first_files``
    maps each file to the recording's first one."""
    from iopstui.recording.writer import next_free_path

    first = first_files.get(previous, previous)
    path = next_free_path(first)
    first_files[path] = first
    try:
        session.record(path)
    except IopstuiError as error:
        session.notice("error", error.full_text)
