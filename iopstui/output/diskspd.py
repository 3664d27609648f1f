"""`iopstui run --diskspd`: a DISKSPD command, translated, shown and run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping

from iopstui.errors import UsageError
from iopstui.model.diskspd import Translation, translate
from iopstui.output.headless import run_headless
from iopstui.session.asked import Choose
from iopstui.session.scratch import DEFAULT_BYTES
from iopstui.sources.private import private_directory, remove, write
from iopstui.text import printable
from iopstui.units import put, size


def run_diskspd(arguments: argparse.Namespace, overrides: Mapping[str, str], choose: Choose) -> int:
    """The exit code of the run."""
    found = translate(arguments.diskspd)
    given = bool(arguments.target)
    if not given:
        arguments.target = _place(found)
    for line in _told(found, given, arguments.size):
        put(line, sys.stderr)
    private = private_directory()
    try:
        job = write(private, "diskspd.fio", found.text.encode("utf-8", "surrogateescape"))
        arguments.job = str(job)
        return run_headless(arguments, overrides, choose)
    finally:
        remove(private)


def _place(found: Translation) -> list[str]:
    """Where to work without a TARGET: a scratch file beside the one that -c would make, the
    existing file itself, or (none) the several files that the job names."""
    if found.creates is not None:
        places = {os.path.dirname(target) or "." for target in found.targets}
        if len(places) > 1:
            raise UsageError("The DISKSPD command makes files in several directories.",
                             "Name one as TARGET: iopstui run DIRECTORY --diskspd ...",
                             )  # fmt: skip
        return [places.pop()]
    return list(found.targets) if len(found.targets) == 1 else []


def _told(found: Translation, given: bool, wanted: str | None) -> list[str]:
    lines = ["iopstui: as a fio job:", ""]
    lines += [f"    {printable(line)}".rstrip() for line in found.text.splitlines()]
    lines.append("")
    lines += [f"iopstui: {printable(note)}" for note in found.notes]
    names = printable(", ".join(found.targets))
    if given:
        lines.append(f"iopstui: TARGET takes the place of {names}")
    elif found.creates is not None:
        of = f" of {printable(wanted)} (--size)" if wanted is not None else ""
        lines.append(f"iopstui: a scratch file{of} takes the place of {names}; removed at the end")
    if found.creates is not None and wanted is None and found.creates > DEFAULT_BYTES:
        lines.append(
            f"iopstui: -c asks for {size(found.creates)}; a scratch file has {size(DEFAULT_BYTES)}"
            f" at most, unless --size {found.creates >> 20}m is given"
        )
    return lines
