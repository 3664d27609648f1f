"""Who uses a disk through a device on it, told alike by the answer, home and the dashboard."""

from __future__ import annotations

from dataclasses import replace

import pytest
from watch_frames import frame
from watch_frames import rates as disk_rates

from iopstui.model.answer.judge import Seen, judge
from iopstui.model.answer.use import DiskUse, DiskUser, mean_use
from iopstui.model.answer.who import shares, who_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, DeviceLinks, Target
from iopstui.ui.dashboard.panels import who_panel
from iopstui.ui.draw.rows import rows_text
from iopstui.ui.draw.style import UTF8
from iopstui.ui.home.rows import users_text

MIB = 1 << 20
DISKS = {"loop4": (94.0 * MIB, 0.0, 1.0), "vda": (95.0 * MIB, 0.0, 1.0)}
HOG = DiskUser(9, "backupd", "backupd --all", "root", 94.0 * MIB, 0.0, frozenset({"loop4", "vda"}))
WORKER = DiskUser(5, "kworker/u8:3-loop4", "", "root", 95.0 * MIB, kernel=True)
LINKS = (DeviceLinks("loop4", ("vda1", "vda")),)
USE = DiskUse(9.0, 5.0, (WORKER, HOG), as_root=True, disks=DISKS, links=LINKS,
              kernel_s=(95.0 * MIB, 0.0))  # fmt: skip
VDA = Target(DEVICE, "/dev/vda", "vda", ("vda",), links=(DeviceLinks("vda"),))


def test_every_place_names_the_user_of_the_loop_device_on_a_disk() -> None:
    busy = disk_rates(reads=24000, wait_ms=0, kib=4)
    devices = {"vda": BlockDevice("vda", "/dev/vda", 254, 0, "virtio-blk", 1 << 30)}
    frames = [frame(n + 1.0, {"vda": replace(busy, weighted_ms=2000)}) for n in range(5)]
    answer = judge(Seen(VDA, frames, devices, use=USE))[0][1]
    assert answer.who == "backupd --all (9) through loop4 does 99 % of its bytes"
    assert who_panel.sentence(USE, VDA) == f"vda: {answer.who} (in 5 s)"
    assert users_text(VDA, USE) == "backupd (9, root) through loop4 99 % of its bytes"
    rows = [rows_text([row]) for row in who_panel.rows(USE, VDA, 100, 8, UTF8, "")]
    assert "99 %" in rows[2] and "backupd --all through loop4" in rows[2]


def told(use: DiskUse) -> str:
    return who_text(shares("vda", {"vda"}, use), None, "vda")


def test_a_loop_device_whose_file_is_in_the_page_cache_accuses_nobody() -> None:
    """Somebody else, who is not seen, reads as much from the disk."""
    assert told(replace(USE, kernel_s=(1.0 * MIB, 0.0))) == ""
    assert told(replace(USE, disks={**DISKS, "loop4": (900.0 * MIB, 0.0, 1.0)})) == ""


def test_users_of_a_loop_device_that_may_be_in_memory_are_named_as_a_guess_everywhere() -> None:
    partly = replace(USE, disks={**DISKS, "vda": (60.0 * MIB, 0.0, 1.0)})
    guess = "perhaps the users of loop4"
    frames = [frame(n + 1.0, {"vda": disk_rates(reads=15000)}) for n in range(5)]
    devices = {"vda": BlockDevice("vda", "/dev/vda", 254, 0, "virtio-blk", 1 << 30)}
    for hidden in (0, 1):
        use = replace(partly, hidden=hidden)
        assert judge(Seen(VDA, frames, devices, use=use))[0][1].who == guess
        assert users_text(VDA, use) == guess and who_panel.sentence(use, VDA) == ""
        text = rows_text(who_panel.rows(use, VDA, 100, 8, UTF8, ""))
        assert "did I/O in 5 s (last reading): perhaps the users of loop4." in " ".join(
            text.split()
        )
    little = replace(partly, disks={**DISKS, "loop4": (1.0 * MIB, 0.0, 0.1)}, users=())
    assert users_text(VDA, little) == "no process that can be seen"


def test_who_uses_disk_and_loop_device_is_not_said_to_go_through_it() -> None:
    direct = replace(HOG, read_s=190.0 * MIB)
    use = replace(USE, users=(direct,), disks={**DISKS, "vda": (190.0 * MIB, 0.0, 1.0)})
    assert told(use) == "backupd --all (9) does all of its bytes"
    other = replace(HOG, pid=10, devices=frozenset({"vda"}))
    both = replace(use, users=(HOG, other))
    ways = {one.pid: one.through for one in shares("vda", {"vda"}, both)}
    assert ways == {9: "loop4", 10: ""}


def test_the_way_is_the_uppermost_of_several_devices() -> None:
    on_both = replace(HOG, devices=frozenset({"loop5", "loop4", "vda"}))
    links = (*LINKS, DeviceLinks("loop5", ("loop4",)))
    disks = {**DISKS, "loop5": DISKS["loop4"]}
    use = replace(USE, users=(on_both,), links=links, disks=disks, kernel_s=(190.0 * MIB, 0.0))
    assert "(9) through loop5 does" in told(use)


@pytest.mark.parametrize("layer", ["raid1", "raid0"])
def test_the_writer_of_a_mirror_is_named_for_each_of_its_disks(layer: str) -> None:
    writer = DiskUser(7, "cp", "", "root", 0.0, 20.0 * MIB, frozenset({"md0", "sda", "sdb"}))
    moved = (0.0, 20.0 * MIB, 1.0)
    links = (DeviceLinks("md0", ("sda1", "sdb1", "sda", "sdb"), layer),)
    use = DiskUse(9.0, 1.0, (writer,), as_root=True, disks={"sda": moved, "sdb": moved},
                  links=links)  # fmt: skip
    sda = Target(DEVICE, "/dev/sda", "sda", ("sda",))
    said = "cp (7) does all of its bytes" if layer == "raid1" else ""
    assert who_text(shares("sda", {"sda"}, use), None, "sda") == said
    assert ("100 %" in users_text(sda, use)) == bool(said)


def test_a_device_made_of_others_names_its_users_once_its_rates_are_known() -> None:
    user = DiskUser(7, "cp", "", "root", 0.0, 20.0 * MIB, frozenset({"dm-0", "sda"}))
    use = DiskUse(9.0, 1.0, (user,), as_root=True, disks={"sda": (0.0, 20.0 * MIB, 1.0)})
    volume = Target(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "sda"))
    second = dict.fromkeys(("dm-0", "sda"), disk_rates(writes=5120))
    assert users_text(volume, use) == ""
    assert users_text(volume, use, [second]) == "cp (7, root) 100 % of its bytes"


def test_several_readings_keep_the_stack_and_the_kernel_s_part() -> None:
    use = mean_use([USE, replace(USE, links=(), kernel_s=(0.0, 0.0))])
    assert use is not None and use.links == LINKS
    assert use.kernel_s == (47.5 * MIB, 0.0)
    unknown = mean_use([USE, replace(USE, kernel_s=None)])
    assert unknown is not None and unknown.kernel_s is None
