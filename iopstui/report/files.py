"""`iopstui report`: what a recording holds, to be handed on: HTML, Markdown, CSV or JSON."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from iopstui.errors import EXIT_OK, UsageError
from iopstui.recording.foreign import RECORDING, kind_of_file
from iopstui.recording.reader import Recording, recording_path
from iopstui.report.fleet import fleet_report
from iopstui.report.fleet_story import is_fleet
from iopstui.report.formats import DEFAULT, FORMATS, either
from iopstui.report.sources import credible, sources
from iopstui.text import printable

LONG = 10_000


def report(
    names: Sequence[str], out: str | None, kind: str | None = None, redact: bool = False
) -> int:
    """Write the report of recordings and results of fio to ``out``, or to standard output;
    ``redact``: without what says whose machine it is of (redact.py)."""
    kind = kind or kind_of(out)
    paths = [recording_path(name) for name in names]
    if out is not None and out != "-":
        _check_place(Path(out), paths)
    _announce(paths)
    content = rendered(paths, kind, redact)
    if out is None or out == "-":
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(content.encode(encoding, "replace").decode(encoding))
        return EXIT_OK
    write_whole(Path(out), content)
    print(f"iopstui: {printable(out)} written", file=sys.stderr)
    return EXIT_OK


def _check_place(out: Path, recordings: Sequence[Path]) -> None:
    """UsageError where no report can be written, before a long recording is read."""
    # os.path: a place that can't be examined gives its error when it is written
    if os.path.isdir(out):
        inside = printable(str(out / "report.html"))
        raise UsageError(f"{printable(str(out))} is a directory.", f"Name a file in it: {inside}")
    if not os.path.isdir(out.parent):
        raise UsageError(f"The report's directory {printable(str(out.parent))} does not exist.")
    if os.path.exists(out) and any(os.path.exists(r) and out.samefile(r) for r in recordings):
        raise UsageError(f"{printable(str(out))} is the recording or the result itself, which a "
                         "report never overwrites.", "Choose another name.")  # fmt: skip


def _announce(paths: Sequence[Path]) -> None:
    """A day of samples takes a minute or more to read."""
    for path in paths:
        if kind_of_file(path) != RECORDING:
            continue
        with Recording(path) as recording:
            samples = recording.index().samples
        if samples > LONG:
            print(f"iopstui: reading {samples} samples of {printable(str(path))}", file=sys.stderr)


def kind_of(out: str | None) -> str:
    """The format that a file's name asks for."""
    if out is None or out == "-":
        return DEFAULT
    suffix = Path(out).suffix.lower()
    for found in FORMATS.values():
        if suffix in found.suffixes:
            return found.name
    names = either(found.suffixes[0] for found in FORMATS.values())
    raise UsageError(
        f"The name {printable(out)} does not say what kind of report it should be.",
        f"Name it {names}, or add --format.",
    )


def rendered(paths: Sequence[Path], kind: str, redact: bool = False) -> str:
    """The report's text. Raises UsageError if a file is neither a recording nor a result of fio, or
    one that can't be."""
    if any(map(is_fleet, paths)):
        return fleet_report(paths, kind, redact)
    chosen = FORMATS[kind]
    found = sources(paths)
    if len(found) > chosen.most and chosen.most > 1:
        raise UsageError(f"A report covers {chosen.most} recordings at most, not {len(found)}.")
    if len(found) > chosen.most:
        others = either(found.name for found in FORMATS.values() if found.most > chosen.most)
        raise UsageError(
            f"{chosen.name.upper()} holds one recording's rows, not those of {len(found)}.",
            f"Make one for each, or choose {others}.",
        )
    with credible(found):
        return chosen.render(found, redact)


def write_whole(path: Path, content: str) -> None:
    """Replace the file atomically: it is the new one or still the old one."""
    directory = path.parent
    try:
        fd, name = tempfile.mkstemp(prefix=".report-", dir=directory)
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(content)
            os.chmod(name, 0o644 & ~_umask())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise UsageError(
            f"The report {printable(str(path))} can't be written: {error.strerror}.",
            "Name a file in a directory with room that you can write to: -o /tmp/report.html",
        ) from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
