"""Which limits of cgroups are reported, compared with their effect in the kernel."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import loop, sh

from iopstui.linux.counters.cgroup import CgroupLoad
from iopstui.linux.kernel_files import Roots

VERSION_1, VERSION_2 = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")
IOPS, READS = 50, 100
TOLD = """
import sys
from iopstui.linux.counters.io_limits import IoLimits
from iopstui.linux.kernel_files import Roots
for limit in IoLimits(Roots()).read().limits.get(sys.argv[1], ()):
    print(limit.group, limit.file, limit.kind, limit.value)
"""


@contextlib.contextmanager
def groups() -> Iterator[tuple[Path, Path]]:
    """A new group, and one inside of it."""
    top = VERSION_1 if (VERSION_1 / "cgroup.procs").exists() else VERSION_2
    if top == VERSION_2:
        shared = VERSION_2 / "cgroup.subtree_control"
        if not shared.exists() or "io" not in shared.read_text().split():
            pytest.skip("no cgroup of this machine can limit I/O")
    above = top / "iopstui-test"
    below = above / "below"
    below.mkdir(parents=True)
    try:
        yield above, below
    finally:
        below.rmdir()
        above.rmdir()


def in_group(group: Path, *words: str) -> str:
    join = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    return sh("sh", "-c", join, "sh", *words)


def seconds(group: Path, node: str) -> float:
    """Seconds that reads of a device take in a group."""
    start = time.monotonic()
    in_group(group, "dd", f"if={node}", "of=/dev/null", "bs=4k", f"count={READS}", "iflag=direct")
    return time.monotonic() - start


def test_the_limits_that_are_told_are_those_that_hold(here: Path) -> None:
    with loop(here / "file") as node, groups() as (above, below):
        number = Path("/sys/block", Path(node).name, "dev").read_text().strip()
        old = above.parent == VERSION_1
        file, text = (
            ("blkio.throttle.read_iops_device", f"{number} {IOPS}")
            if old
            else ("io.max", f"{number} riops={IOPS}")
        )
        (above / file).write_text(text)
        told = {
            group: in_group(group, sys.executable, "-c", TOLD, number) for group in (above, below)
        }
        line = f"/iopstui-test {file} riops {IOPS}"
        assert told == {above: line, below: "" if old else line}
        took = {group: seconds(group, node) for group in (above, below)}
        for group in (above, below):
            held = took[group] >= 0.9 * (READS / IOPS - 1)
            assert held is bool(told[group]), (group, took)


def test_what_the_groups_do_on_one_disk_is_what_the_disk_counts(here: Path) -> None:
    with loop(here / "file") as node, loop(here / "other") as other, groups() as (above, below):
        if above.parent == VERSION_1:
            pytest.skip("io.stat by disk is version 2's")
        (above / "cgroup.subtree_control").write_text("+io")
        name = Path(node).name
        source = CgroupLoad((name,), Roots(), least_s=0.0)
        assert not source.why_not and source.rates() is None
        before, began = read_requests(name), time.monotonic()
        in_group(
            below, "dd", f"if={node}", "of=/dev/null", "bs=4k", f"count={READS}", "iflag=direct"
        )
        in_group(below, "dd", f"if={other}", "of=/dev/null", "bs=4k", "count=7", "iflag=direct")
        found = {one.path: one.total for one in source.rates() or ()}
        took = time.monotonic() - began
        mine = found["/iopstui-test/below"]
        assert round(mine.reads_s * took) == pytest.approx(READS, rel=0.05)
        assert mine.read_bytes_s == 4096 * mine.reads_s and mine.writes_s == 0
        assert read_requests(name) - before == READS and "/iopstui-test" not in found


def read_requests(name: str) -> int:
    """Reads completed so far, by the disk's own counter."""
    return int(Path("/sys/block", name, "stat").read_text().split()[0])
