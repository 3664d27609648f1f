from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from trees import PCI, Tree, virtio_disk

from iopstui.linux.devices.irqmap import IrqTable, parse_names
from iopstui.linux.devices.sysfs import read_devices


def served(tree: Tree, name: str) -> list[tuple[int, int | None, bool]]:
    return [(v.irq, v.hctx, v.shared) for v in read_devices(tree.roots)[name].irqs]


def disk_of(tree: Tree, name: str, where: str, dev: str, queues: int) -> None:
    disk = tree.disk(name, where, dev)
    for index in range(queues):
        tree.hctx(disk, index, str(index))


def test_virtio_blk_one_vector_a_queue(tree: Tree) -> None:
    virtio_disk(tree)
    assert served(tree, "vda") == [
        (33, None, False),
        (34, 0, False),
        (35, 1, False),
        (36, 2, False),
        (37, 3, False),
    ]
    vector = read_devices(tree.roots)["vda"].irqs[3]
    assert (vector.name, vector.effective_cpus, vector.node) == ("virtio5-req.2", (3,), 0)


def test_virtio_blk_with_too_few_vectors_shares_one(tree: Tree) -> None:
    disk_of(tree, "vda", f"{PCI}7.0/virtio5/block", "254:0", 4)
    tree.msi(f"{PCI}7.0", 33, ["virtio5-config", "virtio5-virtqueues"])
    assert served(tree, "vda") == [(33, None, False), (34, None, True)]


def test_virtio_mmio_is_found_by_name(tree: Tree) -> None:
    disk_of(tree, "vda", "devices/platform/a000000.virtio_mmio/virtio0/block", "254:0", 1)
    tree.irq(20, "virtio1", 5)
    tree.irq(21, "virtio0", 6)
    assert served(tree, "vda") == [(21, 0, True)]


def test_nvme_with_one_vector_for_admin_and_io(tree: Tree) -> None:
    disk_of(tree, "nvme0n1", f"{PCI}9.0/nvme/nvme0", "259:2", 1)
    tree.sys(f"{PCI}9.0/msi_irqs/42", "msi\n")
    tree.irq(42, "nvme0q0,nvme0q1", 0)
    assert served(tree, "nvme0n1") == [(42, 0, False)]


def test_nvme_with_one_vector_for_two_queues_shares_it(tree: Tree) -> None:
    disk_of(tree, "nvme0n1", f"{PCI}9.0/nvme/nvme0", "259:2", 2)
    tree.sys(f"{PCI}9.0/msi_irqs/42", "msi\n")
    tree.irq(42, "nvme0q1,nvme0q2", 0)
    assert served(tree, "nvme0n1") == [(42, None, True)]


def test_virtio_scsi_goes_by_vector_order_not_by_irq_number(tree: Tree) -> None:
    where = f"{PCI}a.0/virtio7/host0/target0:0:0/0:0:0:0/block"
    disk_of(tree, "sda", where, "8:0", 2)
    names = ["virtio7-config", "virtio7-control", "virtio7-event"]
    tree.msi(f"{PCI}a.0", 51, [*names, "virtio7-request", "virtio7-request"])
    # Linux 6.1 puts the PCI address into the bits above the vector's index
    tree.irq(54, "virtio7-request", 147456 + 4)
    tree.irq(55, "virtio7-request", 147456 + 3)
    assert [row[:2] for row in served(tree, "sda")] == [
        (51, None),
        (52, None),
        (53, None),
        (54, 1),
        (55, 0),
    ]


def test_an_adapter_of_unknown_naming_leaves_the_queue_open(tree: Tree) -> None:
    where = f"{PCI}a.0/host0/target0:0:0/0:0:0:0/block"
    disk_of(tree, "sda", where, "8:0", 2)
    tree.msi(f"{PCI}a.0", 51, ["megasas0-msix0", "megasas0-msix1"])
    assert served(tree, "sda") == [(51, None, False), (52, None, False)]


def test_legacy_interrupt_of_the_nearest_device_not_of_the_bridge(tree: Tree) -> None:
    bridge = f"{PCI}1.0"
    tree.msi(bridge, 24, ["pcieport"])
    where = f"{bridge}/0000:01:00.0"
    disk_of(tree, "nvme0n1", f"{where}/nvme/nvme0", "259:0", 1)
    tree.sys(f"{where}/irq", "16\n")
    tree.irq(16, "nvme0q0,nvme0q1,uhci_hcd:usb3", 16)
    assert served(tree, "nvme0n1") == [(16, 0, False)]
    tree.sys(f"{where}/irq", "0\n")
    assert served(tree, "nvme0n1") == []


def test_xen_names_tell_a_lone_disk_only(tree: Tree) -> None:
    disk_of(tree, "xvda", "devices/vbd-51712/block", "202:0", 2)
    tree.irq(30, "blkif", 0)
    tree.irq(31, "blkif", 0)
    assert served(tree, "xvda") == [(30, 0, False), (31, 1, False)]
    tree.irq(32, "blkif", 0)
    assert served(tree, "xvda") == []


def test_names_come_from_proc_interrupts_where_sysfs_has_none(tree: Tree) -> None:
    virtio_disk(tree, queues=1)
    for irq in (33, 34):
        (tree.roots.sys / f"kernel/irq/{irq}/actions").unlink()
    tree.proc(
        "interrupts",
        "            CPU0       CPU1\n"
        "  1:          0          9   IO-APIC   1-edge      i8042\n"
        " 33:          0          0  PCI-MSIX-0000:00:07.0   0-edge      virtio5-config\n"
        " 34:         12          0  PCI-MSIX-0000:00:07.0   1-edge      virtio5-req.0\n"
        "NMI:          0          0   Non-maskable interrupts\n",
    )
    assert served(tree, "vda") == [(33, None, False), (34, 0, False)]


def test_shared_lines_and_lines_without_an_action() -> None:
    text = (
        " 16:  1  2  IO-APIC  16-fasteoi   uhci_hcd:usb3, ahci[0000:00:1f.2], eth0\n"
        "  2:  0  0    XT-PIC  cascade\n"
        "CAL:  5  5   Function call interrupts\n"
    )
    names = parse_names(text)
    assert names[16] == ("uhci_hcd:usb3", "ahci[0000:00:1f.2]", "eth0")
    assert set(names) <= {16, 2}


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    assert isinstance(parse_names(text), dict)


def test_a_name_is_looked_for_exactly(tree: Tree) -> None:
    tree.irq(20, "virtio1", 5)
    tree.irq(21, "virtio10", 6)
    assert IrqTable(tree.roots).named("virtio1") == [20]
