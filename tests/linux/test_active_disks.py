"""Which disks are watched if the user names none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.load import active_disks
from iopstui.model.block.device import BlockDevice
from iopstui.preflight import doctor
from iopstui.preflight.doctor import LACKS


def disk(name: str, kind: str = "disk") -> BlockDevice:
    return BlockDevice(name, f"/dev/{name}", 8, 0, kind, 1 << 30)


DEVICES = {
    one.name: one
    for one in (
        disk("sda"),
        disk("sdb"),
        replace(disk("sda1", "partition"), disk="sda"),
        replace(disk("loop0", "loop"), backing_file="/srv/image"),
        disk("ram0", "ram"),
        disk("zram0", "zram"),
        replace(disk("dm-0", "dm"), slaves=("sda1",)),
        replace(disk("nvme0c0n1", "nvme"), hidden=True),
        replace(disk("nvme0n1", "nvme"), slaves=("nvme0c0n1",)),
        replace(disk("sr0"), size=0),
    )
}


def roots(tmp_path: Path, **reads: int) -> Roots:
    """A machine whose disks have done this many reads; disks that are not named have a row of
    zeros."""
    lines = [
        f"   8       0 {name} {reads.get(name.replace('-', '_'), 0)} 0 8 1 0 0 0 0 0 1 1"
        for name in DEVICES
    ]
    (tmp_path / "diskstats").write_text("\n".join(lines) + "\n")
    return Roots(proc=tmp_path)


def test_those_that_have_done_something_and_lie_on_no_other(tmp_path: Path) -> None:
    busy = dict.fromkeys((name.replace("-", "_") for name in DEVICES), 7)
    found = active_disks(DEVICES, roots(tmp_path, **busy))
    assert found.devices_below == found.opened == ("sda", "sdb", "ram0", "zram0", "nvme0n1")


def test_what_has_never_done_anything_is_left_out(tmp_path: Path) -> None:
    found = active_disks(DEVICES, roots(tmp_path, sdb=1, sda1=1))
    assert (found.devices_below, found.path, found.has_several) == (("sdb",), "/dev/sdb", False)


def test_where_none_has_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has done any I/O yet"):
        active_disks(DEVICES, roots(tmp_path))
    with pytest.raises(UsageError, match="no disk's counters"):
        active_disks({}, Roots(proc=tmp_path / "nowhere"))


@pytest.mark.parametrize("content", [b"", b"\n", b"garbage \x1b[31m\n\xff 1 2\n"])
def test_counters_that_cannot_be_read_are_told(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "diskstats").write_bytes(content)
    with pytest.raises(UsageError, match="no disk's counters"):
        active_disks(DEVICES, Roots(proc=tmp_path))
    check = doctor._diskstats(Roots(proc=tmp_path))
    expected = "no line has the kernel's form" if content.strip() else "it is empty"
    assert check.state == LACKS and expected in check.message
