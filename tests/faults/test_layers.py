"""Whatever the layers: a device in use is refused under each of its names, a free one may be
written.

Most layerings need kernel modules and programs that a machine may lack, and run in the lab:
test_lab.py."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import layers
import pytest
from layers import ALL, Layering, built
from machine import digest
from program import iopstui

from iopstui.errors import Refused
from iopstui.fio.inspect import JobFacts, SectionFiles
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.safety.write_guard import CheckedJob, WriteGuard

JOB = ("--job", "randread-4k", "--set", "rw=write", "--set", "bs=64k", "--set", "runtime=1")
WHOLE: tuple[Layering, ...] = (
    layers.lvm_snapshot_mounted, layers.lvm_thin, layers.md_spare, layers.crypt_unused,
    layers.overlapping_partitions, layers.btrfs_image, layers.fuse_image, layers.bcache_unused,
    layers.nvmet_unused, layers.lio_fileio_on_a_device, layers.nbd_unused, layers.zram_writeback,
)  # fmt: skip
"""In these layerings, one used device and one free device are also tried with the whole program."""


def names_of(path: str, here: Path) -> Iterator[tuple[str, str]]:
    """Each kind of name, and the name: the path itself and, for a device, a second node in a
    directory."""
    yield "own name", path
    info = os.stat(path)
    if stat.S_ISBLK(info.st_mode):
        node = here / f"node-{os.major(info.st_rdev)}-{os.minor(info.st_rdev)}"
        if not node.exists():
            os.mknod(node, stat.S_IFBLK | 0o600, info.st_rdev)
        yield "mknod", str(node)


def refusal(path: str, here: Path, *words: str) -> str:
    """Why a job that writes to ``path`` is refused, decided by the program's own steps (examine,
    lock, hold, grant); "" if it is not. In a process of its own, which keeps nothing open."""
    end, begin = os.pipe()
    pid = os.fork()
    if pid == 0:
        told = "no answer"
        try:
            told = _decided(path, here, words)
        finally:
            os.write(begin, os.fsencode(told))
            os._exit(0)
    os.close(begin)
    with open(end, "rb") as answer:
        text = os.fsdecode(answer.read())
    os.waitpid(pid, 0)
    return text


def _decided(path: str, here: Path, words: tuple[str, ...]) -> str:
    facts = JobFacts((SectionFiles("a", (path,)),), writes=True)
    guard = WriteGuard(CheckedJob(facts, (path,), here), words, Roots())
    devices = read_devices(Roots())
    try:
        guard.check(devices)
        guard.engage(devices)
    except Refused as error:
        return error.message
    return "" if guard.writes and not guard.reads else "nothing is granted"


def decisions(made: layers.Layers, here: Path) -> Iterator[tuple[str, bool]]:
    """Each attempt as a row of a table, and whether it ended as it must."""
    for what, path in made.used.items():
        for how, name in names_of(path, here):
            said = refusal(name, here, name)
            yield f"{what}, {how} | in use | {said[:300]}", "in use" in said
    for what, path in made.free.items():
        for how, name in names_of(path, here):
            said = refusal(name, here)
            fine = bool(said) and "in use" not in said
            yield f"{what}, {how} | free, no word | {said[:300]}", fine
            said = refusal(name, here, name)
            yield f"{what}, {how} | free | {said[:300]}", said == ""


def runs(made: layers.Layers, here: Path) -> Iterator[tuple[str, bool]]:
    """The same with the whole program for the last used and the last free device, and whether their
    content changed."""
    for used, found in ((True, made.used), (False, made.free)):
        for what, path in [*found.items()][-1:]:
            # a mounted file system may write a little by itself for some seconds, but a job writes
            # in every attempt
            for _ in range(3 if used else 1):
                before = digest(path)
                done = iopstui("run", path, *JOB, "--destroy-data", path, cwd=here, timeout=240)
                same = digest(path) == before
                fine = (done.returncode, same) == ((3, True) if used else (0, False))
                if fine or done.returncode != 3:
                    break
            said = " ".join(done.stderr.split())[:300]
            kind = "in use" if used else "free"
            yield f"{what}, program | {kind} | {done.returncode} {same} {said}", fine


def show(layering: Layering, rows: Iterator[tuple[str, bool]]) -> None:
    """Print the table; fail with the rows that are wrong."""
    wrong = []
    for row, fine in rows:
        print(f"| {'ok' if fine else 'WRONG'} | {layering.__name__} | {row} |")
        if not fine:
            wrong.append(row)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layering", ALL, ids=lambda one: one.__name__)
def test_only_what_is_nobody_s_may_be_written(layering: Layering, here: Path) -> None:
    with built(layering, here) as made:
        show(layering, decisions(made, here))


@pytest.mark.parametrize("layering", WHOLE, ids=lambda one: one.__name__)
def test_only_what_is_nobody_s_is_written(layering: Layering, here: Path) -> None:
    with built(layering, here) as made:
        show(layering, runs(made, here))
