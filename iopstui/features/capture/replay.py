"""`iopstui run --replay`: replay a captured trace on a scratch file."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from iopstui.cli.runs.run_job import run_job
from iopstui.cli.terminal import print_message
from iopstui.errors import NoFile, UsageError
from iopstui.features.capture.model.trace import (
    FIO_SUFFIX,
    InvalidTrace,
    Trace,
    parse_trace,
    replay_job,
    trace_lines,
)
from iopstui.format import duration, size
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.sizes import size_bytes
from iopstui.text import printable

LONGEST_LINE = 1 << 12


def run_replay(request: RunRequest, arguments: argparse.Namespace) -> int:
    """Read the trace, rewrite it for a scratch file, and run it. Returns the exit code."""
    path = Path(arguments.replay)
    if request.until_steady or request.precondition:
        raise UsageError("A replay ends with its trace: it takes no --until-steady and no "
                         "--precondition.", "Use the job instead: --job app.fio")  # fmt: skip
    trace = _read(path)
    request = replace(request, size=_file_size(request.size, trace))
    print_message(
        f"replaying {trace.reads:,} reads and {trace.writes:,} writes of {duration(trace.seconds)} "
        f"on a scratch file of {size(trace.file_bytes)}. fio's latencies may include pauses "
        "between requests; those of the disk (r_await, w_await) do not."
    )
    private = private_directory()
    try:
        job = write_text(private, f"{path.stem or 'replay'}{FIO_SUFFIX}", replay_job(trace))
        lines = "\n".join((*trace_lines(trace), ""))
        return run_job(replace(request, job=str(job), trace=lines), arguments.format, arguments)
    finally:
        remove(private)


def _file_size(requested: str | None, trace: Trace) -> str:
    """The size of the scratch file. It must be large enough for all requests of the trace, because
    fio counts a request beyond the end as done. Raises UsageError if a smaller one is requested."""
    if requested is None:
        return f"{trace.file_bytes >> 20}m"
    if (size_bytes(requested) or 0) < trace.file_bytes:
        raise UsageError(f"The trace needs a file of {size(trace.file_bytes)}, and --size is "
                         f"{printable(requested)}.", "Leave out --size.")  # fmt: skip
    return requested


def _read(path: Path) -> Trace:
    try:
        # a pipe or a device may have no end
        if path.exists() and not path.is_file():
            raise InvalidTrace("it is not a file")
        with open(path, encoding="utf-8", errors="replace") as file:
            return parse_trace(iter(partial(file.readline, LONGEST_LINE), ""))
    except FileNotFoundError as error:
        raise NoFile(str(path), "Make one: iopstui capture DEVICE --trace FILE") from error
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror}.",
                         "Make one: iopstui capture DEVICE --trace FILE") from error  # fmt: skip
    except InvalidTrace as error:
        raise UsageError(f"{path} cannot be replayed: {error}.",
                         "Make one: iopstui capture DEVICE --trace FILE") from error  # fmt: skip
