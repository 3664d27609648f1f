"""Choose the target of a command: the named one, or the one in its job."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.linux.devices.target import MixedKinds, NoSuchFile, resolve_targets
from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.text import printable

ChosenTargets = tuple[Target, "Target | None"]
"""The watched target, and the target of jobs (``None``: the job names its files)."""
HEAD_BYTES = 4096


def choose_targets(
    texts: Sequence[str], job: str | None, devices: Mapping[str, BlockDevice], roots: Roots
) -> ChosenTargets:
    """Choose the target from all TARGETs, or from the ``job`` if there are none. Raises UsageError
    for an invalid target."""
    # a job's name may be a file's
    _require_answers((*texts, *(name for name in (job,) if name is not None)), roots)
    for text in texts:
        _refuse_result(Path(text))
    if not texts and job is not None:
        from iopstui.preflight.target_from_job import target_named_by_job

        job_target = target_named_by_job(job, devices, roots)
        if job_target is not None:
            return job_target, None
    # watching needs no rights; a job that lacks one says which when it starts
    target = resolve_targets(texts, Path.cwd(), roots, devices, to_read=False)
    return target, target


def _require_answers(texts: Sequence[str], roots: Roots) -> None:
    """Raises UsageError if one is on a file system that does not respond; must be called before any
    access."""
    from iopstui.linux.shares import require_answer

    cwd = Path.cwd()
    for text in dict.fromkeys(texts or (".",)):
        if "\0" not in text:
            require_answer(cwd / text, roots)


def _refuse_result(path: Path) -> None:
    if not os.path.isfile(path) or not _may_be_result(path):
        return
    from iopstui.recording.foreign import OTHER, detect_file_kind, refuse_result

    kind = detect_file_kind(path)
    if kind != OTHER:
        raise refuse_result(path, kind)


def _may_be_result(path: Path) -> bool:
    """False for files that fio has laid out and for disk images. It is checked before all forms of
    results are tried: those are text, except our own recordings."""
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
    """The target from all TARGETs; if there are none, all disks that do something. Raises
    UsageError, also for a path that is on no block device and no NFS mount, since there is nothing
    to watch, unless ``needs_device`` is False."""
    from iopstui.linux.machine.active_disks import active_disks, disk_counters

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
    """Choose targets like ``choose_targets``, for several jobs that are measured alike. UsageError
    if they name different files."""
    chosen = [choose_targets(texts, job, devices, roots) for job in jobs]
    if any(pair != chosen[0] for pair in chosen):
        raise UsageError("The jobs use different files. They need a common target.",
                         "Give a TARGET: a device, a file or a directory.")  # fmt: skip
    return chosen[0]
