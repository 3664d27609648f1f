from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import PCI, VIRTUAL, Tree, virtio_disk

from iopstui.linux.devices.sysfs import natural_key, parse_drivers, parse_scheduler, read_devices
from iopstui.linux.kernel_files import parse_cpu_list
from iopstui.model.block.device import BlockDevice, Hctx, QueueLimits


def test_a_virtio_disk_with_every_attribute(tree: Tree) -> None:
    virtio_disk(tree)
    vda = read_devices(tree.roots)["vda"]
    assert (vda.kind, vda.transport, vda.driver) == ("virtio-blk", "virtio", "virtio_blk")
    assert (vda.path, vda.major, vda.minor, vda.size) == ("/dev/vda", 254, 0, 1 << 30)
    assert (vda.serial, vda.diskseq, vda.model, vda.numa_node) == ("VBLK4Q", 1, None, None)
    assert vda.queue is not None
    assert (vda.queue.scheduler, vda.queue.schedulers[-1]) == ("none", "bfq")
    assert (vda.queue.rq_affinity, vda.queue.nr_requests) == (1, 256)
    assert (vda.queue.rotational, vda.queue.write_cache) == (False, "write back")
    assert (vda.queue.logical_block_size, vda.queue.physical_block_size) == (512, 4096)
    assert vda.queue.wbt_lat_usec == -1
    assert vda.hctxs == tuple(Hctx(i, (i,), 128, 0) for i in range(4))
    assert vda.queue.max_sectors_kb is None


QUEUE = {
    "scheduler": "none [bfq]", "rq_affinity": "2", "nr_requests": "3", "nomerges": "4",
    "rotational": "1", "write_cache": "write through", "logical_block_size": "6",
    "physical_block_size": "7", "max_sectors_kb": "8", "read_ahead_kb": "9", "wbt_lat_usec": "-10",
    "iostats": "0", "discard_max_bytes": "12", "zoned": "host-managed",
}  # fmt: skip
LIMITS = QueueLimits("bfq", ("none", "bfq"), 2, 3, 4, True, "write through", 6, 7, 8, 9, -10,
                     False, 12, "host-managed")  # fmt: skip


def test_every_attribute_of_a_disk_has_its_place(tree: Tree) -> None:
    disk = tree.disk(
        "sdq", "devices/pci1/ata3/block", "8:16", 4,
        ro="1", removable="1", diskseq="15", serial="S\x1b1", device__model="M  1 ",
        **{f"queue__{name}": text for name, text in QUEUE.items()},
    )  # fmt: skip
    tree.hctx(disk, 0, "0, 2", tags=17, reserved=18)
    tree.driver("devices/pci1", "ahci")
    tree.driver("devices/pci1/ata3", "sd")
    tree.sys("devices/pci1/numa_node", "3\n")
    tree.proc("devices", "Block devices:\n  8 sd\n")
    assert read_devices(tree.roots)["sdq"] == BlockDevice(
        name="sdq", path="/dev/sdq", major=8, minor=16, kind="scsi", size=2048, model="M 1",
        serial="S?1", transport="sata", read_only=True, removable=True, diskseq=15, queue=LIMITS,
        hctxs=(Hctx(0, (0, 2), 17, 18),), numa_node=3, driver="ahci",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "driver", "kind"),
    [
        ("x", "virtblk", "virtio-blk"), ("x", "sd", "scsi"), ("x", "sr", "scsi"),
        ("x", "nullb", "null_blk"), ("x", "zram", "zram"), ("x", "ramdisk", "ram"),
        ("x", "nbd", "nbd"), ("x", "xvd", "xen"), ("x", "mmc", "mmc"), ("x", "loop", "loop"),
        ("x", "md", "md"), ("x", "device-mapper", "dm"), ("x", "new", "disk"),
        ("nullb0", "blkext", "null_blk"), ("zram0", "blkext", "zram"), ("ram0", "blkext", "ram"),
        ("nbd0", "blkext", "nbd"), ("xvda", "blkext", "xen"), ("mmcblk0", "blkext", "mmc"),
        ("loop0", "blkext", "loop"), ("vda", "blkext", "virtio-blk"), ("sda", "blkext", "scsi"),
        ("sr0", "blkext", "scsi"), ("nvme0n1", "sd", "nvme"), ("avda", "blkext", "disk"),
    ],
)  # fmt: skip
def test_a_disk_s_kind_is_its_driver_s_else_its_name_s(
    tree: Tree, name: str, driver: str, kind: str
) -> None:
    tree.disk(name, VIRTUAL, "99:0")
    tree.proc("devices", f"Block devices:\n 99 {driver}\n")
    device = read_devices(tree.roots)[name]
    assert device.kind == kind
    assert device.transport == {"nvme": "nvme", "mmc": "mmc"}.get(kind)


@pytest.mark.parametrize(
    ("where", "transport"),
    [
        ("usb2", "usb"), ("ata1", "sata"), ("session1", "iscsi"), ("end_device-4:0", "sas"),
        ("rport-1:0-2", "fc"), ("virtio5", "virtio"), ("xusb2", None), ("usb", None),
    ],
)  # fmt: skip
def test_a_disk_s_transport_is_on_its_way(tree: Tree, where: str, transport: str | None) -> None:
    tree.disk("sda", f"devices/pci1/{where}/block", "8:0")
    assert read_devices(tree.roots)["sda"].transport == transport


def test_the_first_serial_number_there_is_counts(tree: Tree) -> None:
    disk = tree.disk("sda", VIRTUAL, "8:0", wwid="w2", device__wwid="w1")

    def serial() -> str | None:
        return read_devices(tree.roots)["sda"].serial

    assert serial() == "w1"
    (disk / "device/wwid").unlink()
    assert serial() == "w2"
    (disk / "device/vpd_pg80").write_bytes(b"\0\x80\0\4page")
    assert serial() == "page"
    (disk / "device/serial").write_text("own\n")
    assert serial() == "own"
    (disk / "serial").write_text("first\n")
    assert serial() == "first"
    (disk / "serial").write_text("\n")
    assert serial() == "own"


def test_a_cpu_list_cut_off_at_a_page_is_completed_from_the_cpu_directories(tree: Tree) -> None:
    disk = virtio_disk(tree, queues=1)
    full = ", ".join(map(str, range(1000, 2000)))
    (disk / "mq/0/cpu_list").write_text(full[:4095])
    cut = read_devices(tree.roots)["vda"].hctxs[0].cpus
    # 4095 characters end inside "1682"
    assert cut[-1] == 1681 and len(cut) == 682
    for cpu in range(1000, 2000):
        (disk / f"mq/0/cpu{cpu}").mkdir()
    assert read_devices(tree.roots)["vda"].hctxs[0].cpus == tuple(range(1000, 2000))


@pytest.mark.parametrize("junk", [b"", b"\n", b"\xff\xfe\n", b"9" * 5000, b"0x10", b"-", b"1 2"])
def test_garbage_in_any_attribute_is_unknown_not_a_crash(tree: Tree, junk: bytes) -> None:
    disk = virtio_disk(tree)
    attributes = [p for p in tree.roots.sys.rglob("*") if p.is_file() and p.name != "dev"]
    for path in attributes:
        path.write_bytes(junk)
    vda = read_devices(tree.roots)[disk.name]
    assert vda.size is None and vda.diskseq is None
    assert vda.queue is not None and vda.queue.nr_requests is None
    assert vda.queue.rq_affinity is None and vda.queue.rotational is None


def test_attributes_that_are_directories_are_unknown(tree: Tree) -> None:
    disk = virtio_disk(tree)
    for name in ("size", "serial", "queue/nr_requests"):
        (disk / name).unlink()
        (disk / name).mkdir()
    vda = read_devices(tree.roots)["vda"]
    assert vda.size is None and vda.serial is None


def test_a_dangling_class_link_and_an_empty_machine(tree: Tree) -> None:
    assert read_devices(tree.roots) == {}
    (tree.roots.sys / "class/block/gone").symlink_to(tree.base / "nowhere")
    assert read_devices(tree.roots) == {}
    shutil.rmtree(tree.roots.sys)
    assert read_devices(tree.roots) == {}


def test_bio_based_devices_of_old_kernels_have_no_scheduler(tree: Tree) -> None:
    zram = {"queue__scheduler": "none", "queue__rq_affinity": "1", "queue__nr_requests": "128"}
    tree.disk("dm-0", VIRTUAL, "253:0", dm__name="vg-root", dm__uuid="LVM-abc", **zram)
    tree.disk("md127", VIRTUAL, "9:127", md__level="raid1", **zram)
    devices = read_devices(tree.roots)
    for name in ("dm-0", "md127"):
        queue = devices[name].queue
        assert queue is not None
        assert (queue.scheduler, queue.rq_affinity, queue.nr_requests) == (None, None, None)
    assert (devices["dm-0"].dm_name, devices["dm-0"].layer) == ("vg-root", "LVM")
    assert (devices["md127"].kind, devices["md127"].layer) == ("md", "raid1")


def test_encryption_without_a_uuid_has_a_kernel_thread(tree: Tree) -> None:
    tree.disk("dm-0", VIRTUAL, "253:0", dm__name="mine")
    tree.disk("dm-1", VIRTUAL, "253:1", dm__name="linear")
    tree.disk("dm-2", VIRTUAL, "253:2", dm__name="vg-lv", dm__uuid="LVM-abc")
    for pid, name in ((7, "dmcrypt_write/253:0"), (8, "dmcrypt_write/2"), (9, "253:1"),
                      (10, "dmcrypt_write/253:2")):  # fmt: skip
        tree.proc(f"{pid}/comm", f"{name}\n")
    layers = {name: device.layer for name, device in read_devices(tree.roots).items()}
    assert layers == {"dm-0": "dm-crypt", "dm-1": "device-mapper", "dm-2": "LVM"}


def test_scsi_serial_comes_from_the_vpd_page(tree: Tree) -> None:
    where = f"{PCI}b.0/ata1/host1/target1:0:0/1:0:0:0/block"
    disk = tree.disk("sda", where, "8:0")
    tree.driver(f"{PCI}b.0/ata1/host1/target1:0:0/1:0:0:0", "sd")
    tree.driver(f"{PCI}b.0", "ahci")
    (disk / "device").symlink_to(disk.parent.parent)
    tree.sys(f"{where}/../vpd_pg80", b"\0\x80\0\x14SATA1Q              ")
    tree.sys(f"{where}/../model", "QEMU HARDDISK   \n")
    sda = read_devices(tree.roots)["sda"]
    assert (sda.serial, sda.model) == ("SATA1Q", "QEMU HARDDISK")
    assert (sda.transport, sda.driver, sda.kind) == ("sata", "ahci", "scsi")


def test_control_characters_never_get_into_model_or_serial(tree: Tree) -> None:
    disk = virtio_disk(tree)
    (disk / "serial").write_bytes(b"A\x1b[2J\x07B\xc2\x9bC\n")
    tree.attributes(disk, device__model="x\x1b]0;owned\x07y")
    vda = read_devices(tree.roots)["vda"]
    assert vda.serial == "A?[2J?B?C"
    assert vda.model == "x?]0;owned?y"


def test_holders_and_slaves(tree: Tree) -> None:
    disk = virtio_disk(tree)
    above = tree.disk("dm-0", VIRTUAL, "253:0")
    tree.stacked(disk, above)
    devices = read_devices(tree.roots)
    assert devices["vda"].holders == ("dm-0",)
    assert devices["dm-0"].slaves == ("vda",)


def test_disks_on_one_adapter_say_that_they_share_interrupts(tree: Tree) -> None:
    for place in (0, 1):
        where = f"{PCI}b.0/ata{place + 1}/host{place}/target{place}:0:0/{place}:0:0:0/block"
        disk = tree.disk(f"sd{'ab'[place]}", where, f"8:{place * 16}")
        tree.hctx(disk, 0, "0, 1")
    tree.msi(f"{PCI}b.0", 58, ["ahci[0000:00:0b.0]"])
    devices = read_devices(tree.roots)
    assert devices["sda"].notes == ("its interrupts also serve sdb",)
    assert devices["sdb"].irqs[0].hctx == 0


def test_schedulers() -> None:
    assert parse_scheduler("none [mq-deadline] kyber") == (
        "mq-deadline",
        ("none", "mq-deadline", "kyber"),
    )
    assert parse_scheduler("none") == ("none", ("none",))
    assert parse_scheduler("") == (None, ())


def test_drivers_of_block_majors_only() -> None:
    text = "Character devices:\n  1 mem\n 10 misc\n\nBlock devices:\n  7 loop\n259 blkext\n"
    assert parse_drivers(text) == {7: "loop", 259: "blkext"}
    assert parse_drivers("") == {}


@given(st.lists(st.integers(0, 4095), max_size=60))
def test_both_spellings_of_a_cpu_list(cpus: list[int]) -> None:
    expected = tuple(sorted(set(cpus)))
    assert parse_cpu_list(", ".join(map(str, cpus))) == expected
    assert parse_cpu_list(",".join(f"{cpu}-{cpu}" for cpu in cpus)) == expected


@given(st.text())
def test_any_text_is_a_cpu_list_of_something(text: str) -> None:
    assert all(0 <= cpu <= 65535 for cpu in parse_cpu_list(text) if cpu <= 65535)


@given(st.lists(st.text()))
def test_natural_order_is_total(names: list[str]) -> None:
    assert len(sorted(names, key=natural_key)) == len(names)
