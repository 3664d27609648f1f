"""`iopstui report`: write a recording as HTML, Markdown, CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from iopstui import __version__
from iopstui.discovery import feature_modules
from iopstui.errors import EXIT_OK, EXIT_VERDICT, JobFailed, UsageError
from iopstui.events import ExpectationChecked
from iopstui.features.reports.foreign import Source, credible, sources
from iopstui.features.reports.formats import (
    DEFAULT,
    DEFAULT_OPTIONS,
    FORMATS,
    Format,
    ReportOptions,
    display_name,
    or_list,
)
from iopstui.format import print_line
from iopstui.linux.process.programs import require_packages
from iopstui.output.csv_out import cell_text
from iopstui.output.page.source import Expected, ReportSource
from iopstui.recording.foreign import RECORDING, detect_file_kind
from iopstui.recording.reader import Recording, recording_path
from iopstui.recording.redact import REDACTED
from iopstui.safety.output_files import write_whole
from iopstui.session.tick.outcomes import outcome_event_text
from iopstui.text import printable, safe_text

LONG_SECONDS = 10_000
NO_AGAINST = "--against compares runs of one machine, and this is a fleet's recording."


def report(
    names: Sequence[str],
    out: str | None,
    kind: str | None = None,
    options: ReportOptions = DEFAULT_OPTIONS,
    expected: Expected | None = None,
) -> int:
    """Write the report of recordings and results of fio to ``out``, or to standard output. With
    ``expected``, the exit code is that of a run with the same expectations."""
    kind = kind or kind_of(out)
    paths = [recording_path(name) for name in names]
    if out is not None and out != "-":
        _check_place(out, paths)
    by_rows = FORMATS[kind].stream is not None
    if by_rows and (out is None or out == "-"):
        _check_no_terminal(kind)
    _announce(paths)
    failed = "" if expected is None else _judged(paths, expected, options)
    # if a feature makes its rows one by one, there may be too many to keep in memory
    by_rows = by_rows or (kind in TABLES and _own_source(paths) is not None)
    if out is None or out == "-":
        if not by_rows:
            encoding = sys.stdout.encoding or "utf-8"
            content = safe_text(rendered(paths, kind, options))
            sys.stdout.write(content.encode(encoding, "replace").decode(encoding))
        else:
            write_report(paths, kind, options, sys.stdout.buffer)
    else:
        if by_rows:
            write_report_file(Path(out), lambda file: write_report(paths, kind, options, file))
        else:
            encoded = safe_text(rendered(paths, kind, options)).encode()
            write_report_file(Path(out), lambda file: file.write(encoded))
        print(f"iopstui: {printable(out)} written", file=sys.stderr)
    return _exit_code(options.outcomes, failed)


def _judged(paths: Sequence[Path], expected: Expected, options: ReportOptions) -> str:
    """Judge the expectations, and put the outcomes into the report's options. Returns why a run
    failed, if one did."""
    from iopstui.features.reports.expectations import judge

    own = _own_source(paths)
    if own is not None:
        parts = [(own.only_file(paths), own.judged(own.only_file(paths), expected))]
    else:
        found_sources = sources(paths)
        with credible(found_sources):
            parts = [(source.path, judge(source, expected)) for source in found_sources]
    options.outcomes.update((path, part.outcomes) for path, part in parts)
    return next((part.failed for _, part in parts if part.failed), "")


def _exit_code(outcomes: Mapping[Path, Sequence[ExpectationChecked]], failed: str) -> int:
    """Print the outcomes of --expect. Raises JobFailed or UsageError, as a run with these outcomes
    does."""
    judged = [each for of_file in outcomes.values() for each in of_file]
    for path, of_file in outcomes.items():
        several = len({each.step for each in of_file}) > 1
        file = f"{printable(path.name)}: " if len(outcomes) > 1 else ""
        for each in of_file:
            run = f"run {each.step}: " if several else ""
            print_line(f"{file}{run}{outcome_event_text(each)}", sys.stderr)
    if failed:
        raise JobFailed(f"The recorded run failed: {printable(failed.rstrip('.'))}.")
    if judged:
        from iopstui.experiment.baseline import unchecked_error

        error = unchecked_error(judged, "To see what it has: --format json")
        if error is not None:
            raise error
    return EXIT_OK if all(each.passed for each in judged) else EXIT_VERDICT


def _check_place(name: str, recordings: Sequence[Path]) -> None:
    """Raise UsageError, before a long recording is read, if no report can be written there."""
    out = Path(name)
    # os.path does not raise if the path can't be examined; writing it then does
    if os.path.isdir(out):
        inside = printable(str(out / f"report{out.suffix or '.html'}"))
        raise UsageError(f"{printable(str(out))} is a directory.", f"Give a file name: {inside}")
    if name.endswith("/"):
        raise UsageError(f"{printable(name)} names a directory, by the / at its end.",
                         f"Name a file: {printable(str(out))}")  # fmt: skip
    if not os.path.isdir(out.parent):
        raise UsageError(f"The report's directory {printable(str(out.parent))} does not exist.")
    if _is_no_file(out):
        raise UsageError(f"{printable(str(out))} is not a file and cannot be overwritten by a "
                         "report.",
                         "For standard output: -o -")  # fmt: skip
    if os.path.exists(out) and any(os.path.exists(r) and out.samefile(r) for r in recordings):
        raise UsageError(f"{printable(str(out))} is the input. A report does not overwrite "
                         "it.", "Choose another name.")  # fmt: skip


def _is_no_file(out: Path) -> bool:
    """Whether ``out`` is a device, a pipe or one of the kernel's links (/dev/stdout). A report that
    is moved there would replace it for all programs."""
    folder = os.path.realpath(out.parent)
    kernel_s = folder == "/dev" or folder.startswith(("/proc/", "/dev/fd"))
    return kernel_s or (os.path.exists(out) and not os.path.isfile(out))


def _check_no_terminal(kind: str) -> None:
    """Raise UsageError if a binary report would go to a terminal."""
    if sys.stdout.isatty():
        name = f"report{FORMATS[kind].suffixes[0]}"
        raise UsageError(f"{display_name(kind)} is a binary format.",
                         f"Name a file: -o {name}")  # fmt: skip


def _announce(paths: Sequence[Path]) -> None:
    """Print that reading takes a while: a day of samples takes 10 to 30 s, depending on the number
    of CPUs."""
    for path in paths:
        if detect_file_kind(path) != RECORDING:
            continue
        with Recording(path) as recording:
            samples = recording.index().samples
        if samples > LONG_SECONDS:
            print(f"iopstui: reading {samples} samples of {printable(str(path))}", file=sys.stderr)


def kind_of(out: str | None) -> str:
    """The format that a file's name implies."""
    if out is None or out == "-":
        return DEFAULT
    suffix = Path(out).suffix.lower()
    for format_ in FORMATS.values():
        if suffix in format_.suffixes:
            return format_.name
    names = or_list(candidate.suffixes[0] for candidate in FORMATS.values())
    raise UsageError(
        f"The name {printable(out)} has no suffix for a report format.",
        f"Use {names}, or add --format.",
    )


def rendered(paths: Sequence[Path], kind: str, options: ReportOptions = DEFAULT_OPTIONS) -> str:
    """The report's text. Raises UsageError if a file is neither a recording nor a result of fio, or
    can't be reported in this format."""
    own = _own_source(paths)
    if own is not None and kind in TABLES:
        out = io.BytesIO()
        write_report(paths, kind, options, out)
        return out.getvalue().decode()
    if own is not None:
        if options.against is not None:
            raise UsageError(NO_AGAINST, "Leave out --against.")
        path = own.only_file(paths)
        return own.rendered(path, kind, options.redact, options.outcomes.get(path, ()))
    found_sources, chosen = _sources_and_format(paths, kind)
    assert chosen.render is not None, kind
    with credible(found_sources):
        return chosen.render(found_sources, options)


def write_report(paths: Sequence[Path], kind: str, options: ReportOptions, out: BinaryIO) -> None:
    """Write a report piece by piece. Raises the same errors as ``rendered``."""
    own = _own_source(paths)
    if own is not None:
        TABLES[kind](own, own.only_file(paths), options.redact, out)
        return
    found_sources, chosen = _sources_and_format(paths, kind)
    assert chosen.stream is not None, kind
    with credible(found_sources):
        chosen.stream(found_sources, options, out)


def _own_source(paths: Sequence[Path]) -> ReportSource | None:
    """The feature that makes its own kind of report from these files, if there is one."""
    modules = feature_modules("report_source")
    return next((module for module in modules if any(map(module.takes, paths))), None)


def _sources_and_format(paths: Sequence[Path], kind: str) -> tuple[list[Source], Format]:
    """The sources of the report, and its format. Raises UsageError for more sources than the format
    allows."""
    chosen = FORMATS[kind]
    found_sources = sources(paths)
    if len(found_sources) > chosen.most and chosen.most > 1:
        raise UsageError(
            f"A report covers at most {chosen.most} recordings, not {len(found_sources)}."
        )
    if len(found_sources) > chosen.most:
        names = or_list(format_.name for format_ in FORMATS.values() if format_.most > chosen.most)
        raise UsageError(
            f"{display_name(kind)} holds the rows of one recording, not of {len(found_sources)}.",
            f"Make one for each, or choose {names}.",
        )
    return found_sources, chosen


def write_report_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace the file by what ``write`` writes, after that is complete. Raises UsageError on
    failure."""
    try:
        write_whole(path, write, overwrite=True)
    except OSError as error:
        raise UsageError(
            f"Cannot write the report {printable(str(path))}: {error.strerror}.",
            "Choose a directory with free space that you can write to: "
            f"-o /tmp/report{printable(path.suffix)}",
        ) from error


# The rows of other features' files as CSV or Parquet, written while they are being made.


class _Encoded:
    """Writes text to a binary file. (The standard library's wrapper would close that file.)"""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, text: str) -> None:
        self._out.write(text.encode())


def _csv(source: ReportSource, path: Path, redact: bool, out: BinaryIO) -> None:
    rows = source.rows(path, redact)
    writer = csv.writer(_Encoded(out), lineterminator="\n")
    writer.writerow(column.id for column in rows.columns)
    for cells in rows:
        writer.writerow(map(cell_text, cells))
    rows.print_omissions()


def _parquet(source: ReportSource, path: Path, redact: bool, out: BinaryIO) -> None:
    """Write the rows as Parquet. Raises Missing (exit 5) without pyarrow."""
    from iopstui.features.reports.rows import PACKAGE, ParquetTable, instant

    require_packages(PACKAGE)
    about = {"version": __version__, "file": REDACTED if redact else printable(path.name)}
    rows = source.rows(path, redact)
    when = [column.id for column in rows.columns].index("wall_ms")
    with ParquetTable(out, rows.columns, about) as table:
        for cells in rows:
            # the column with the time as text gets the time itself
            cells[when + 1] = instant(cells[when]) if cells[when + 1] else None
            table.row(cells)
    rows.print_omissions()


TABLES: Mapping[str, Callable[[ReportSource, Path, bool, BinaryIO], None]] = {
    "csv": _csv, "parquet": _parquet
}  # fmt: skip
"""The functions that write tables, by format."""
