"""Find the devices to watch when a job file names its own targets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from iopstui.fio.inspect import find_fio
from iopstui.fio.job_text import absolute_files, named_paths, read_job, sets_filename
from iopstui.fio.library import find_job, is_shipped
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.process.private import private_directory, remove
from iopstui.linux.roots import Roots
from iopstui.linux.shares import require_answer
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target, combine_targets
from iopstui.preflight.inspection import inspect_text


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
    # fio accesses them when it parses the job
    for place in named_paths(text):
        require_answer(Path.cwd() / place, roots)
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
    """The file itself, or the directory in which it will be made; a name under /dev that does
    not exist is a mistake, except in a file system there (/dev/shm)."""
    parent = place.parent
    is_mistake = parent == roots.dev or (roots.dev in parent.parents and not os.path.isdir(parent))
    return str(place if os.path.exists(place) or is_mistake else _nearest_existing(parent))


def _nearest_existing(path: Path) -> Path:
    while not os.path.exists(path):
        path = path.parent
    return path
