"""On which devices a process has open files: findings blame only programs with files there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from iopstui.linux.devices import aliases
from iopstui.linux.devices.open_devices import OpenDevices
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice

DEVICES = {
    device.name: device
    for device in (
        BlockDevice("sdx", "/dev/sdx", 65, 0, "scsi", None),
        BlockDevice("sdx1", "/dev/sdx1", 65, 1, "partition", None, disk="sdx"),
        BlockDevice("sdx2", "/dev/sdx2", 65, 2, "partition", None, disk="sdx"),
        BlockDevice("sdy", "/dev/sdy", 65, 16, "scsi", None),
    )
}
MOUNTS = """\
25 1 65:1 / / rw - ext4 /dev/sdx1 rw
26 25 65:2 / /data rw - ext4 /dev/sdx2 rw
27 25 65:16 / /other rw - xfs /dev/sdy rw
28 25 0:30 / /tmp rw - tmpfs tmpfs rw
29 25 0:31 / /mnt rw - nfs4 nas:/export rw
"""
READ, WRITE, BOTH = "0100000", "0100001", "0100002"


def process(proc: Path, *files: tuple[str, int, str]) -> Roots:
    """A process with these open files: path, number of the mount, flags."""
    place = proc / "7"
    (place / "fd").mkdir(parents=True)
    (place / "fdinfo").mkdir()
    (place / "mountinfo").write_text(MOUNTS)
    for number, (path, mount, flags) in enumerate(files):
        (place / "fd" / f"{number}").symlink_to(path)
        (place / "fdinfo" / f"{number}").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t{mount}\n")
    return Roots(proc=proc)


def test_a_log_on_another_disk_leaves_no_doubt_about_what_is_read(tmp_path: Path) -> None:
    roots = process(tmp_path, ("/data/a", 26, READ), ("/other/log", 27, WRITE))
    assert OpenDevices(DEVICES, roots).sole(7) == ({"sdx2", "sdx"}, {"sdy"})
    assert OpenDevices(DEVICES, roots).of_process(f"{tmp_path}/7") == (
        {"sdx2", "sdx"}, {"sdy"}
    )  # fmt: skip


def test_files_on_two_disks_prove_nothing_of_either(tmp_path: Path) -> None:
    roots = process(tmp_path, ("/data/a", 26, BOTH), ("/other/b", 27, BOTH), ("/tmp/c", 28, BOTH))
    assert OpenDevices(DEVICES, roots).sole(7) == (frozenset(), frozenset())


def test_files_on_a_server_are_counted_with_those_on_disks(tmp_path: Path) -> None:
    roots = process(tmp_path, ("/data/a", 26, BOTH), ("/mnt/b", 29, WRITE))
    assert OpenDevices(DEVICES, roots).sole(7) == ({"sdx2", "sdx"}, frozenset())
    names = OpenDevices(DEVICES, roots).of_process(f"{tmp_path}/7")
    assert names == ({"sdx2", "sdx"}, {"sdx2", "sdx", "(writes elsewhere)"})


def test_a_file_on_a_disk_that_is_mounted_below_dev_is_on_that_disk(tmp_path: Path) -> None:
    roots = process(tmp_path, ("/dev/shm/data/a", 27, BOTH), ("/dev/null", 27, BOTH))
    seen = OpenDevices(DEVICES, roots)
    assert seen.sole(7) == ({"sdy"}, {"sdy"})
    assert [path for _, path in seen.seen] == ["/dev/shm/data/a"]


def test_two_partitions_have_their_disk_in_common(tmp_path: Path) -> None:
    roots = process(tmp_path, ("/data/a", 26, READ), ("/etc/b", 25, READ), ("pipe:[1]", 15, BOTH))
    assert OpenDevices(DEVICES, roots).sole(7) == ({"sdx"}, frozenset())


def test_of_a_file_that_is_still_open_not_all_is_read_again(tmp_path: Path) -> None:
    roots = process(tmp_path, ("/data/a", 26, BOTH), ("/other/b", 27, BOTH))
    first, place = OpenDevices(DEVICES, roots), tmp_path / "7"
    assert first.of_process(str(place)) == ({"sdx2", "sdx", "sdy"},) * 2
    (place / "fdinfo" / "0").unlink()
    # another file has the same descriptor number
    (place / "fd" / "1").unlink()
    (place / "fd" / "1").symlink_to("/etc/c")
    (place / "fdinfo" / "1").write_text(f"flags:\t{READ}\nmnt_id:\t25\n")
    second = OpenDevices(DEVICES, roots, first.seen)
    assert second.of_process(str(place)) == ({"sdx2", "sdx1", "sdx"}, {"sdx2", "sdx"})
    assert len(second.seen) == 2
    assert OpenDevices(DEVICES, roots).of_process(str(place)) == ({"sdx1", "sdx"}, set())


def test_in_a_directory_files_may_be_read_and_written(tmp_path: Path) -> None:
    roots = process(tmp_path, ("/data", 26, "0300000"), ("/other", 27, "010000000"))
    assert OpenDevices(DEVICES, roots).of_process(f"{tmp_path}/7") == (
        {"sdx2", "sdx", "sdy"},
    ) * 2  # fmt: skip


def test_a_process_whose_files_can_not_be_seen_is_on_no_known_disk(tmp_path: Path) -> None:
    assert OpenDevices({}, Roots(proc=tmp_path)).sole(1) is None


MAPS = """\
55d0-55d1 r--p 00000000 41:01 11 /opt/bin/tool
55d1-55d2 r-xp 00001000 41:01 11 /opt/bin/tool
7f00-7f01 r--p 00000000 {} 12 /data/a table
7f01-7f02 rw-p 00000000 00:00 0
7f02-7f03 rw-s 00000000 00:01 13 /memfd:a (deleted)
7f03-7f04 r--p 00000000 41:01 14 /usr/lib/locale/C.utf8/LC_TIME
7f04-7f05 r-xp 00000000 00:00 0 [vdso]
"""


def test_a_mapped_file_counts_as_open_and_programs_do_not(tmp_path: Path) -> None:
    roots = process(tmp_path, ("/other/log", 27, WRITE))
    maps = tmp_path / "7" / "maps"
    maps.write_text(MAPS.format("41:02"))
    assert OpenDevices(DEVICES, roots).sole(7) == ({"sdx2", "sdx"}, {"sdy"})
    maps.write_text(MAPS.format("00:1f"))
    names = OpenDevices(DEVICES, roots).of_process(f"{tmp_path}/7")
    assert names == ({"(reads elsewhere)"}, {"sdy"})
    maps.write_text("7f00-7f01 rw-s 00000000 00:06 12 /dev/sdx2\n")
    assert OpenDevices(DEVICES, roots).sole(7) == ({"sdx2", "sdx"}, frozenset())


def test_a_file_of_an_overlay_is_on_the_disks_of_all_its_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower, upper = tmp_path / "l" / "1", tmp_path / "upper"
    lower.mkdir(parents=True)
    upper.mkdir()
    numbers = {str(lower): os.makedev(65, 16), str(upper): os.makedev(65, 2)}
    fake = SimpleNamespace(path=os.path, stat=lambda name: SimpleNamespace(st_dev=numbers[name]))
    monkeypatch.setattr(aliases, "os", fake)
    roots = process(tmp_path, ("/data/a", 30, READ))
    options = f"rw,lowerdir={lower}:{tmp_path}/l/2,upperdir={upper},workdir=/w"
    with (tmp_path / "7" / "mountinfo").open("a") as file:
        file.write(f"30 1 0:40 / /run/c rw - overlay o {options}\n")
    reading, _ = OpenDevices(DEVICES, roots).of_process(f"{tmp_path}/7")
    assert reading == {"sdx2", "sdx", "sdy"}
