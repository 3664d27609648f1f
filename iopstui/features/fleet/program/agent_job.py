"""The job that an agent receives: command-line arguments and perhaps a job file."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from iopstui.cli.options import run_request
from iopstui.cli.terminal import print_message
from iopstui.errors import UsageError
from iopstui.fio.inspect import find_fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.linux.roots import Roots
from iopstui.model.block.tunable import TunableRequest
from iopstui.model.experiment.run_request import RunRequest
from iopstui.preflight.targets import choose_targets, choose_watch_target
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.session.live import LiveSession
from iopstui.session.viewer import NOBODY, Viewer

Object = dict[str, Any]
ParseArguments = Callable[[Sequence[str]], argparse.Namespace]
"""A parser of command lines (CommandLine.parse)."""
COMMANDS = ("run", "watch")
DEADLINE_S = 4.0
"""A stopped agent (SIGSTOP) cannot notice that its controller is gone: after this time, and the
time fio has to write its last document, fio's guard ends fio."""


class AgentJob:
    """``order`` has ``arguments``, those of ``iopstui run`` or ``watch``, and ``job``: a shipped
    one's name, or ``{"name", "text"}`` of a file that is kept in a private directory until
    ``stack`` is closed; ``parse`` reads the arguments. UsageError for what the command itself would
    refuse.

    ``name`` is the job for the session; ``None`` for a watch. ``tunables`` were changed here
    before; a run sets them by itself, for a watch the agent does.
    """

    def __init__(self, order: Object, stack: contextlib.ExitStack, parse: ParseArguments) -> None:
        args = [str(arg) for arg in order.get("arguments") or ()]
        job = order.get("job")
        if isinstance(job, dict):
            job = str(_write_job_file(job, stack))
        self.name: str | None = job
        self.tunables = [TunableRequest(name, value) for name, value in order.get("tunables", ())]
        options = _parse_options(args, job, parse)
        # tunables changed on the screen after those of the command line
        knobs = (*options.knobs, *self.tunables)
        self.request: RunRequest = replace(options, hold=job is not None, knobs=knobs)

    def session(self) -> LiveSession:
        """Return a session that is not started. Raises what the command itself would raise."""
        roots = Roots()
        devices = read_devices(roots)
        if self.name is None:
            target = choose_watch_target(self.request.targets, devices, roots)
            viewer = Viewer(short_first_interval=False)
            return LiveSession(target, devices, target, self.request, viewer)
        find_fio()
        clean_up_and_report(print_message, roots)
        target, job_target = choose_targets(self.request.targets, self.name, devices, roots)
        return LiveSession(target, devices, job_target, self.request, NOBODY, deadline_s=DEADLINE_S)


def _write_job_file(job: Object, stack: contextlib.ExitStack) -> Path:
    private = private_directory()
    stack.callback(remove, private)
    name = Path(str(job.get("name") or "job")).name
    write_text(private, name, str(job.get("text")))
    return private / name


def _parse_options(args: list[str], job: str | None, parse: ParseArguments) -> RunRequest:
    command = "watch" if job is None else "run"
    line = [command, *args] if job is None else [command, "--job", job, *args]
    try:
        # --help and the like: standard output is reserved for JSON lines
        with contextlib.redirect_stdout(sys.stderr):
            arguments = parse(line)
    except SystemExit as error:
        raise UsageError(
            "The options are not from the same version: iopstui " + command + "."
        ) from error
    if job is None:
        return RunRequest(targets=tuple(arguments.target), interval_s=arguments.interval,
                          own_cpus=(), probe=arguments.probe)  # fmt: skip
    options = run_request(arguments, job)
    if options.precondition:
        raise UsageError("--precondition cannot be used with several machines at once.",
                         "Run the job `precondition` on each of them first.")  # fmt: skip
    return options
