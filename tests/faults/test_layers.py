"""Whatever lies on what: what is in use is refused by every name, what is nobody's may be written.

Most of it needs kernel modules and programs that a machine may lack, and runs in the lab:
test_lab.py.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from layers import ALL, Layering, built
from machine import MIB
from program import iopstui

JOB = ("--job", "randread-4k", "--set", "rw=write", "--set", "bs=64k", "--set", "runtime=1")
HEAD, TAIL = 16 * MIB, MIB


def other_node(path: str, here: Path) -> str:
    """Of a device a second node, in a directory; a file's own name."""
    info = os.stat(path)
    if not stat.S_ISBLK(info.st_mode):
        return path
    node = here / "node"
    node.unlink(missing_ok=True)
    os.mknod(node, stat.S_IFBLK | 0o600, info.st_rdev)
    return str(node)


def content(path: str) -> str:
    """Where the job would write, and the end; "" of what has no read(2) (hugetlbfs)."""
    os.sync()
    try:
        with open(path, "rb") as file:
            found = hashlib.sha256(file.read(HEAD))
            file.seek(-min(TAIL, file.seek(0, os.SEEK_END)), os.SEEK_END)
            found.update(file.read(TAIL))
    except OSError:
        return ""
    return found.hexdigest()


def run(path: str, here: Path, *words: str) -> tuple[int, bool, str]:
    """Its exit code, whether a byte changed, and what it said."""
    before = content(path)
    done = iopstui("run", path, *JOB, *words, cwd=here, timeout=120)
    return done.returncode, content(path) != before, " ".join(done.stderr.split())


def attempts(layering: Layering, here: Path) -> Iterator[tuple[str, bool]]:
    """Each try as a row of a table, and whether it ended as it must."""
    with built(layering, here) as layers:
        for number, (what, path) in enumerate(layers.used.items()):
            # one by another node, the others by their own
            name = path if number else other_node(path, here)
            code, changed, said = run(name, here, "--destroy-data", name)
            fine = code == 3 and not changed and "in use" in said
            yield f"{what} | in use | {code} | {changed} | {said[:300]}", fine
        for what, path in layers.free.items():
            code, changed, said = run(path, here)
            fine = code == 3 and not changed
            yield f"{what} | free, no word | {code} | {changed} | {said[:300]}", fine
            code, changed, said = run(path, here, "--destroy-data", path)
            yield f"{what} | free | {code} | {changed} | {said[:300]}", (code, changed) == (0, True)


@pytest.mark.parametrize("layering", ALL, ids=lambda one: one.__name__)
def test_only_what_is_nobody_s_is_written(layering: Layering, here: Path) -> None:
    wrong = []
    for row, fine in attempts(layering, here):
        print(f"| {'ok' if fine else 'WRONG'} | {layering.__name__} | {row} |")
        if not fine:
            wrong.append(row)
    assert not wrong, "\n".join(wrong)
