from __future__ import annotations

import platform
from pathlib import Path

import pytest
from trees import Tree

from iopstui.linux.devices.sysfs import parse_threaded, read_kernel
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import Kernel

RT = "Linux version 6.1.0-rt (x@y) (gcc) #1 SMP PREEMPT_RT Debian 6.1.112-1 (2024-09-30)"
NOT_RT = RT.replace("PREEMPT_RT", "PREEMPT_DYNAMIC")


@pytest.mark.parametrize(
    ("cmdline", "version", "threaded"),
    [
        ("ro quiet", NOT_RT, False),
        ("ro threadirqs quiet", NOT_RT, True),
        ("threadirqs", "", True),
        ("ro quiet", RT, True),
        ("nothreadirqs threadirqs=0", NOT_RT, False),
        ("ro -- threadirqs", NOT_RT, False),  # after -- the words are for init
        ("", "", False),
    ],
)
def test_whether_interrupt_handlers_are_threads(cmdline: str, version: str, threaded: bool) -> None:
    assert parse_threaded(cmdline, version) is threaded


def test_a_kernel(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert read_kernel(tree.roots) == Kernel()
    tree.proc("sys/kernel/osrelease", "6.12.117-amd64\n")
    tree.proc("cmdline", "ro threadirqs\n")
    assert read_kernel(tree.roots) == Kernel((6, 12), True)
    tree.proc("sys/kernel/osrelease", b"\xff\x00garbage")
    tree.proc("cmdline", b"\xff\x00\n")
    tree.proc("version", RT)
    assert read_kernel(tree.roots) == Kernel(None, True)


def test_this_kernel() -> None:
    version = read_kernel(Roots()).version
    assert version is not None
    assert platform.release().startswith(".".join(map(str, version)))
