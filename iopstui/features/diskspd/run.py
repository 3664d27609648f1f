"""`iopstui run --diskspd`: translate a DISKSPD command, show the result and run it."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from iopstui.cli.runs.run_job import run_job
from iopstui.errors import UsageError
from iopstui.features.diskspd.output import translation_lines
from iopstui.features.diskspd.translation import Translation, translate
from iopstui.format import print_line
from iopstui.linux.process.private import private_directory, remove, write_text
from iopstui.model.experiment.run_request import RunRequest


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
