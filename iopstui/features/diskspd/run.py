"""Translate a DISKSPD command, show the result and run it."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from iopstui.cli.runs.run_job import run_job
from iopstui.errors import UsageError
from iopstui.features.diskspd.translation import Translation, translate
from iopstui.format import print_line, size
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.model.experiment.run_request import RunRequest
from iopstui.safety.scratch import DEFAULT_BYTES
from iopstui.text import printable


def translation_lines(
    translation: Translation, is_given: bool, size_option: str | None
) -> list[str]:
    """The job, what was left out, and what replaces the files named: a TARGET if one is
    given, else a scratch file of ``size_option`` (--size)."""
    lines = ["iopstui: as a fio job:", ""]
    lines += [f"    {printable(line)}".rstrip() for line in translation.text.splitlines()]
    lines.append("")
    lines += [f"iopstui: {printable(note)}" for note in translation.notes]
    names = printable(", ".join(translation.targets))
    file_size = translation.file_size
    if is_given:
        lines.append(f"iopstui: TARGET replaces {names}")
    elif file_size is not None:
        of = f" of {printable(size_option)} (--size)" if size_option is not None else ""
        lines.append(f"iopstui: a scratch file{of} replaces {names}; removed at the end")
    if file_size is not None and size_option is None and file_size > DEFAULT_BYTES:
        lines.append(
            f"iopstui: -c asks for {size(file_size)}; a scratch file has "
            f"{size(DEFAULT_BYTES)} at most, unless --size {file_size >> 20}m is given"
        )
    return lines


def run_diskspd(request: RunRequest, arguments: argparse.Namespace) -> int:
    """Translate the command and run it; the exit code."""
    translation = translate(arguments.diskspd)
    has_target = bool(request.targets)
    if not has_target:
        request = replace(request, targets=_default_target(translation))
    for line in translation_lines(translation, has_target, request.size):
        print_line(line, sys.stderr)
    private = private_directory()
    try:
        job = write_text(private, "diskspd.fio", translation.text)
        return run_job(replace(request, job=str(job)), arguments.format, arguments)
    finally:
        remove(private)


def _default_target(translation: Translation) -> tuple[str, ...]:
    """Default target: a scratch file beside the one that -c would create, the existing file itself,
    or none (the job names several files)."""
    if translation.file_size is not None:
        directories = {os.path.dirname(target) or "." for target in translation.targets}
        if len(directories) > 1:
            raise UsageError("The DISKSPD command creates files in several directories.",
                             "Choose one as TARGET: iopstui run DIRECTORY --diskspd ...",
                             )  # fmt: skip
        return (directories.pop(),)
    return translation.targets if len(translation.targets) == 1 else ()
