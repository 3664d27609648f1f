"""Choose the target of a command: the named one, or the one in its job."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.fio.inspect import find_fio
from iopstui.fio.job_text import (
    absolute_files,
    check_directories,
    check_variables,
    named_paths,
    read_job,
    sets_filename,
)
from iopstui.fio.library import find_job, is_shipped
from iopstui.linux.devices.target import MixedKinds, NoSuchFile, resolve_target, resolve_targets
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.private import private_directory, remove
from iopstui.linux.shares import require_answer
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target, combine_targets
from iopstui.preflight.inspection import inspect_text
from iopstui.text import printable

ChosenTargets = tuple[Target, "Target | None"]
"""The watched target, and the target of jobs (``None``: the job names its files)."""
HEAD_BYTES = 4096


def choose_targets(
    texts: Sequence[str], job: str | None, devices: Mapping[str, BlockDevice], roots: Roots
) -> ChosenTargets:
    """Choose the target from all TARGETs, or from the ``job`` if there are none. Raises UsageError
    for an invalid target."""
    # the job's name may be a file's name
    _require_answers((*texts, *(name for name in (job,) if name is not None)), roots)
    for text in texts:
        _refuse_result(Path(text))
    if not texts and job is not None:
        job_target = target_named_by_job(job, devices, roots)
        if job_target is not None:
            return job_target, None
    # watching needs no rights; a job that lacks rights says so when it starts
    target = resolve_targets(texts, Path.cwd(), roots, devices, to_read=False)
    return target, target


def _require_answers(texts: Sequence[str], roots: Roots) -> None:
    """Raises UsageError if one of the targets is on a file system that does not respond. Must be
    called before any access to them."""
    from iopstui.linux.shares import require_answer

    cwd = Path.cwd()
    for text in dict.fromkeys(texts or (".",)):
        if "\0" not in text:
            require_answer(cwd / text, roots)


def _refuse_result(path: Path) -> None:
    if not os.path.isfile(path) or not _may_be_result(path):
        return
    from iopstui.recording.foreign import OTHER, detect_file_kind, result_target_error

    kind = detect_file_kind(path)
    if kind != OTHER:
        raise result_target_error(path, kind)


def _may_be_result(path: Path) -> bool:
    """False for files that fio has laid out and for disk images, which can't be results. This is
    checked first, because results are text, except our own recordings."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
        return head.startswith(b"iopstui ") or b"\0" not in head
    return False


def choose_watch_target(
    texts: Sequence[str],
    devices: Mapping[str, BlockDevice],
    roots: Roots,
    needs_device: bool = True,
) -> Target:
    """The target from all TARGETs; if there are none, all disks that have done I/O. Raises
    UsageError, also for a path that is on no block device and no NFS mount, since there is nothing
    to watch, unless ``needs_device`` is False."""
    from iopstui.linux.machine.load import active_disks, disk_counters

    if not texts:
        return active_disks(devices, roots)
    _require_answers(texts, roots)
    try:
        target = resolve_targets(texts, Path.cwd(), roots, devices, to_read=False)
    except NoSuchFile as error:
        raise UsageError(
            error.message,
            f"Name a disk (iopstui devices), or {printable(str(error.directory))} to watch the "
            "disk it is on.",
        ) from error
    except MixedKinds as error:
        raise UsageError(
            f"{error.kinds}: targets watched together must be of one kind; a file or "
            "directory means the disk it is on.",
            _disks_hint(error.targets),
        ) from error
    if needs_device and not target.devices_below and not target.shares:
        raise UsageError(
            f"Nothing to watch at {printable(target.path)}: {target.no_device}.",
            "Choose a disk (iopstui devices), or give no TARGET to watch all disks.",
        )
    if target.devices_below:
        disk_counters(roots)
    return target


def _disks_hint(targets: Sequence[Target]) -> str:
    disks = dict.fromkeys(name for target in targets for name in target.devices_below)
    if not all(target.devices_below for target in targets):
        return "Give only disks. List: iopstui devices"
    return f"Give the disks: iopstui watch {printable(' '.join(disks))}"


def choose_common_targets(
    texts: Sequence[str], jobs: Sequence[str], devices: Mapping[str, BlockDevice], roots: Roots
) -> ChosenTargets:
    """Choose targets like ``choose_targets``, for several jobs that are measured in the same way.
    UsageError if they name different files."""
    chosen = [choose_targets(texts, job, devices, roots) for job in jobs]
    if any(pair != chosen[0] for pair in chosen):
        raise UsageError("The jobs use different files. They need a common target.",
                         "Give a TARGET: a device, a file or a directory.")  # fmt: skip
    return chosen[0]


# Find the devices to watch when a job file names its own files.


def target_named_by_job(
    job: str, devices: Mapping[str, BlockDevice], roots: Roots
) -> Target | None:
    """All places of the files that a job names; ``None`` if the job names none. Shipped jobs never
    name files: their ``filename=`` only says that all threads share one file. A file that does not
    exist yet is watched through its directory. The first of several files on one block device (or
    in one file system that has no device) stands for all."""
    path = find_job(job)
    text = read_job(path)
    if is_shipped(path) or not sets_filename(text):
        return None
    # fio would access the files when it parses the job
    for place in named_paths(text):
        require_answer(Path.cwd() / place, roots)
    check_variables(text, f"The job file {path}")
    check_directories(text, Path.cwd())
    private = private_directory()
    try:
        facts = inspect_text(find_fio(), private, text, f"the job file {path}", Path.cwd())
    finally:
        remove(private)
    names = dict.fromkeys(
        _watched_path(Path(name), roots) for name in absolute_files(facts, Path.cwd())
    )
    targets: dict[object, Target] = {}
    for name in names:
        target = resolve_target(name, Path.cwd(), roots, devices, to_read=False)
        key = target.path if target.kind == DEVICE else target.device or target.mountpoint
        targets.setdefault(key, target)
    return combine_targets(tuple(targets.values())) if targets else None


def _watched_path(place: Path, roots: Roots) -> str:
    """The path to watch: the file itself, or the directory in which it will be made. A name under
    /dev that does not exist is a mistake, except in a file system there (/dev/shm)."""
    parent = place.parent
    is_mistake = parent == roots.dev or (roots.dev in parent.parents and not os.path.isdir(parent))
    return str(place if os.path.exists(place) or is_mistake else _nearest_existing(parent))


def _nearest_existing(path: Path) -> Path:
    while not os.path.exists(path):
        path = path.parent
    return path
