"""Readings of the programs that use the disks, from the kernel's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iopstui.linux.activity.disk_use import (
    FIRST_S,
    INTERVAL_S,
    LATE_S,
    PAGE,
    DiskUseReader,
    OccasionalUse,
)
from iopstui.linux.kernel_files import Roots
from iopstui.model.answer.use import ALL_HIDDEN, DiskUse
from iopstui.model.block.device import BlockDevice


def read(tmp_path: Path, in_flight: int = 0) -> DiskUse:
    proc = tmp_path / "proc"
    for pid in (7, os.getpid()):
        task = proc / f"{pid}/task/{pid}"
        task.mkdir(parents=True, exist_ok=True)
        (task / "stat").write_text(f"{pid} (dd) D 1 " + "0 " * 40)
        (task / "wchan").write_text("io_schedule")
    (proc / "vmstat").write_text("nr_writeback 100\n")
    (proc / "diskstats").write_text(f"8 0 sda 9 0 9 9 9 0 9 9 {in_flight} 9 9\n"
                                    "8 16 sdb 9 0 9 9 9 0 9 9 0 9 9\n")  # fmt: skip
    reader = DiskUseReader(Roots.under(tmp_path))
    assert reader.read(1.0, {}, tasks=True) is None
    use = reader.read(2.0, {}, tasks=True)
    assert use is not None
    return use


def test_the_page_cache_s_writes_are_looked_at_while_a_disk_has_requests(tmp_path: Path) -> None:
    assert read(tmp_path).write_back == {}
    assert read(tmp_path, 3).write_back == {"sda": 100.0 * PAGE}


def test_a_process_that_only_maps_what_it_reads_is_on_its_disk(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    place = proc / "7"
    (place / "fd").mkdir(parents=True)
    (place / "stat").write_text("7 (git) S 1 " + "0 " * 40)
    (place / "mountinfo").write_text("26 25 65:0 / /data rw - ext4 /dev/sdx rw\n")
    (place / "maps").write_text("7f00-7f01 r--p 00000000 41:00 12 /data/a.pack\n")
    disk = BlockDevice("sdx", "/dev/sdx", 65, 0, "scsi", None)
    reader = DiskUseReader(Roots.under(tmp_path))
    for sectors in (0, 8):
        (place / "io").write_text(f"0 1 2 3 4 5 6 7 8 {512 * sectors} 10 0 12 13")
        (proc / "diskstats").write_text(f"65 0 sdx 9 0 {sectors} 9 9 0 9 9 0 9 9\n")
        use = reader.read(1.0, {"sdx": disk}, tasks=False)
    assert use is not None and [user.devices for user in use.users] == [{"sdx"}]
    assert use.users[0].only_read == {"sdx"}


def test_swapped_pages_are_counted_by_second(tmp_path: Path) -> None:
    reader = DiskUseReader(Roots.under(tmp_path))
    (tmp_path / "proc").mkdir()
    for swapped in ("pswpin 1000\npswpout 500\n", "pswpin 1300\npswpout 600\n"):
        (tmp_path / "proc/vmstat").write_text(swapped)
        use = reader.read(2.0, {}, tasks=False)
    assert use is not None and use.swap_s is not None
    assert use.swap_s * use.seconds == pytest.approx(400)


def test_who_uses_the_cpus_is_looked_for_while_tasks_wait_for_one(tmp_path: Path) -> None:
    proc, named = tmp_path / "proc", []
    (proc / "30").mkdir(parents=True)
    (proc / "pressure").mkdir()
    (proc / "vmstat").write_text("")
    reader, waited_us, ticks = DiskUseReader(Roots.under(tmp_path)), 0, 0
    for waits in (False, False, True, True, False):
        # far more than any second has, as the time between two readings is not known
        waited_us, ticks = waited_us + waits * 10**9, ticks + 10**6
        total = f"avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}"
        (proc / "pressure/cpu").write_text(f"some {total}\nfull {total}\n")
        (proc / "30/stat").write_text(f"30 (hog) R 1 {'0 ' * 9}{ticks} {'0 ' * 30}\n")
        use = reader.read(1.0, {}, tasks=False)
        named.append(use.cpu_user.partition(" with ")[0] if use is not None else None)
    assert named == [None, "", "", "hog (30)", ""]


def test_processes_that_proc_does_not_show_are_hidden(tmp_path: Path) -> None:
    """With hidepid=2 even the first process is missing, which otherwise always exists."""
    assert read(tmp_path).hidden == ALL_HIDDEN
    (tmp_path / "proc/1").mkdir()
    assert read(tmp_path).hidden == 0


def test_the_user_of_a_slow_disk_is_seen_beside_many_of_a_fast_one(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    reader = DiskUseReader(Roots.under(tmp_path))
    for second in range(2):
        for pid in range(100, 120):
            place, mib = proc / str(pid), 100 if pid < 118 else (2 if pid == 118 else 0.1)
            place.mkdir(parents=True, exist_ok=True)
            (place / "stat").write_text(f"{pid} (x) S 1 " + "0 " * 40)
            counts = f"0 1 2 3 4 5 6 7 8 {second * mib * 2**20:.0f} 10 0 12 13"
            (place / "io").write_text(counts)
        (proc / "diskstats").write_text(f"8 0 sda 9 0 {second * 2**22} 9 9 0 9 9 0 9 9\n"
                                        f"8 16 sdb 9 0 {second * 3 * 2**11} 9 9 0 9 9 0 9 9\n"
                                        "8 32 sdc 9 0 9 9 9 0 9 9 0 9 9\n")  # fmt: skip
        use = reader.read(1.0, {}, tasks=False)
    assert use is not None
    assert sorted(user.pid for user in use.users) == [*range(100, 119)]


def test_who_looks_is_not_blocked_for_long(tmp_path: Path) -> None:
    assert [task.pid for task in read(tmp_path).blocked] == [7]


def test_requests_that_do_not_complete_are_in_flight(tmp_path: Path) -> None:
    """The server of an nbd device was stopped. The kernel adds the time of requests only when they
    complete."""
    in_flight = {name: row[2] for name, row in read(tmp_path, 4).disks.items()}
    assert in_flight == {"sda": 4.0, "sdb": 0.0}


@pytest.mark.parametrize(
    ("number", "is_inside"), [("", False), ("4026531836", False), ("4026532201", True)]
)
def test_processes_outside_of_a_container_are_not_all(
    tmp_path: Path, number: str, is_inside: bool
) -> None:
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    if number:
        (tmp_path / "proc/self/ns/pid").symlink_to(f"pid:[{number}]")
    assert read(tmp_path).outer_processes is is_inside


def test_a_device_mapper_device_is_looked_at_each_time(tmp_path: Path) -> None:
    flag = tmp_path / "sys/class/block/dm-0/dm/suspended"
    flag.parent.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    devices = {name: BlockDevice(name, f"/dev/{name}", 253, 0, "dm", None)
               for name in ("dm-0", "sda")}  # fmt: skip
    reader = DiskUseReader(Roots.under(tmp_path))
    reader.read(1.0, devices, tasks=False)
    for state, seen in (("1", {"dm-0": 1.0}), ("0", {})):
        flag.write_text(f"{state}\n")
        use = reader.read(2.0, devices, tasks=False)
        assert use is not None and use.suspended == seen


@pytest.mark.parametrize(("cost_s", "every_s"), [(0.001, INTERVAL_S), (0.05, 100.0)])
def test_a_dear_reading_is_made_seldom(cost_s: float, every_s: float) -> None:
    now, used, uses = [100.0], [0.0], [None, DiskUse(101.0, 1.0), DiskUse(300.0, 199.0)]

    class Reader(DiskUseReader):
        def read(self, *arguments: object, **options: object) -> DiskUse | None:
            used[0] += cost_s
            return uses.pop(0)

    use = OccasionalUse(Reader(), lambda: now[0], lambda: used[0])
    assert use.is_due() and use(0.0, {}) is None, "the first one only counts"
    now[0] += FIRST_S
    assert use.is_due() and use(1.0, {}) == DiskUse(101.0, 1.0)
    seen_s = max(2.0, every_s / 10)
    now[0] += seen_s - 0.1
    assert not use.is_due(is_seen=True)
    now[0] += 0.2
    assert use.is_due(is_seen=True), "somebody looks at it"
    now[0] += every_s - seen_s - 0.2
    assert not use.is_due()
    now[0] += 0.2
    assert use.is_due()
    now[0] += LATE_S
    assert use(200.0, {}) is None, "nobody looked for so long"


def test_the_real_processes_are_read_from_time_to_time() -> None:
    use = OccasionalUse()
    use(0.0, {})
    assert not use.is_due()


def test_the_stack_is_read_with_the_kernel_s_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop device without I/O is left out, as its file's server may be gone, and an array that
    nobody uses."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    proc, file = tmp_path / "proc", tmp_path / "f"
    file.touch()
    number = file.stat().st_dev
    devices = {
        "sda1": BlockDevice("sda1", "/dev/sda1", os.major(number), os.minor(number), "scsi", 1,
                            disk="sda"),
        "sda": BlockDevice("sda", "/dev/sda", 8, 99, "scsi", 9),
        **{name: BlockDevice(name, f"/dev/{name}", 9, 0, "md", 1, slaves=("sda1",), layer="raid1")
           for name in ("md0", "md1")},
        **{name: BlockDevice(name, f"/dev/{name}", 7, 0, "loop", 1, backing_file=str(file))
           for name in ("loop0", "loop1")},
    }  # fmt: skip
    reader = DiskUseReader(Roots.under(tmp_path))
    for pid in (5, 7):
        (proc / f"{pid}/fd").mkdir(parents=True)
    (proc / "7/stat").write_text("7 (dd) S 1 " + "0 " * 40)
    (proc / "7/fd/3").symlink_to("/dev/md0")
    (proc / "5/stat").write_text(f"5 (kworker) S 2 0 0 0 0 {0x00200000} " + "0 " * 40)
    (proc / "6").mkdir()
    (proc / "6/stat").write_text(f"6 (nfsd) S 2 0 0 0 0 {0x00200000} " + "0 " * 40)
    for sectors in (0, 8):
        for pid in (5, 6, 7):
            (proc / f"{pid}/io").write_text(f"0 1 2 3 4 5 6 7 8 {512 * sectors} 10 0 12 13")
        (proc / "diskstats").write_text(f"7 0 loop0 9 0 {sectors} 9 9 0 9 9 0 9 9\n"
                                        "7 1 loop1 9 0 0 9 9 0 9 9 0 9 9\n")  # fmt: skip
        use = reader.read(1.0, devices, tasks=False)
    assert use is not None
    assert {link.name: (link.below, link.layer) for link in use.links} == {
        "md0": (("sda1", "sda"), "raid1"), "loop0": (("sda1", "sda"), None),
    }  # fmt: skip
    assert use.kernel_s is not None
    assert use.kernel_s[0] * use.seconds == pytest.approx(8 * 512, rel=0.01), "not what nfsd reads"
