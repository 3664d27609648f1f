"""What to watch when a job file says itself where it works."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from iopstui.model.device import BlockDevice
from iopstui.model.target import Target
from iopstui.session.job_text import (
    absolute_files,
    check_options,
    check_variables,
    names_its_files,
    read_job,
)
from iopstui.sources.fio_inspect import END, find_fio, inspect
from iopstui.sources.jobs import find_job, is_shipped
from iopstui.sources.private import private_directory, remove, write
from iopstui.sources.roots import Roots
from iopstui.sources.target import resolve_target


def own_target(job: str, devices: Mapping[str, BlockDevice], roots: Roots) -> Target | None:
    """The device under the first file a job names; ``None`` if the job names none.

    Shipped jobs never do: their ``filename=`` only says that all threads share one file. A
    file that does not exist yet is watched through its directory.
    """
    path = find_job(job)
    text = read_job(path)
    if is_shipped(path) or not names_its_files(text):
        return None
    private = private_directory()
    try:
        check_variables(text, f"The job file {path}")
        check_options(text, f"The job file {path}")
        file = write(private, "job.fio", (text + END).encode("utf-8", "surrogateescape"))
        facts = inspect(find_fio(), file, f"the job file {path}", Path.cwd())
    finally:
        remove(private)
    for name in absolute_files(facts, Path.cwd()):
        place = Path(name)
        if not place.exists() and not str(place).startswith(str(roots.dev)):
            place = _nearest(place.parent)
        return resolve_target(str(place), Path.cwd(), roots, devices, to_read=False)
    return None


def _nearest(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
