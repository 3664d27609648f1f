"""A namespace's paths, controllers and queues from sysfs, and what root can read from its drive."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hardware import multipath_head, nvme_disk
from json_schema import check
from trees import Tree

from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.nvme import admin
from iopstui.linux.nvme.admin import DriveUnreadable
from iopstui.linux.nvme.topology import (
    read_drive_facts,
    read_namespace_topology,
    read_path_counters,
)
from iopstui.model.figures.disk import disk_rates
from iopstui.output.pages.nvme import NamespaceReport

QEMU = json.loads((Path(__file__).parents[1] / "fixtures/nvme/qemu-7.2.json").read_text())


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.sys("module/nvme_core/parameters/multipath", "Y\n")
    tree.sys("module/nvme/parameters/poll_queues", "2\n")
    tree.sys("module/nvme/parameters/write_queues", "0\n")
    return tree


def classed(tree: Tree, policy: str = "numa") -> list[Path]:
    """Add the links to the controllers, which are in one subsystem."""
    controllers = sorted((tree.roots.sys / "devices").rglob("nvme/nvme[0-9]"))
    subsystem = tree.roots.sys / "class/nvme-subsystem/nvme-subsys0"
    (tree.roots.sys / "class/nvme").mkdir()
    tree.attributes(subsystem, subsysnqn="nqn.2019-08.org.qemu:lab", iopolicy=policy)
    for one in controllers:
        (tree.roots.sys / "class/nvme" / one.name).symlink_to(one)
        (subsystem / one.name).symlink_to(one)
        tree.attributes(one, queue_count="5", sqsize="1023", transport="pcie", numa_node="-1",
                        address="0000:00:07.0")  # fmt: skip
    return controllers


def test_one_path_with_its_queues(tree: Tree) -> None:
    disk = nvme_disk(tree, nsid="1")
    tree.hctx(disk, 0, "0-1", tags=1023)
    tree.hctx(disk, 1, "2-3", tags=1023)
    classed(tree)
    tree.sys("kernel/debug/block/nvme0n1/hctx0/type", "default\n")
    tree.sys("kernel/debug/block/nvme0n1/hctx1/type", "poll\n")
    devices = read_devices(tree.roots)
    found = read_namespace_topology(tree.roots, devices["nvme0n1"])
    assert (found.number, found.multipath, found.policy) == (1, True, "numa")
    assert found.subsystem == "nqn.2019-08.org.qemu:lab"
    assert (found.poll_queues, found.write_queues) == (2, 0)
    (path,) = found.paths
    # four queues besides the one for admin commands; sqsize starts at 0; -1 means no node
    assert (path.controller.queues, path.controller.depth, path.controller.node) == (4, 1024, None)
    assert path.queue_types == {0: "default", 1: "poll"} and path.ana is None
    text = NamespaceReport(found, read_drive_facts(tree.roots, devices["nvme0n1"], 1), {}).text(
        devices
    )
    assert "nvme0n1  1      poll     2-3   –    1023" in text
    assert "Native multipath: on, one path" in text and "poll_queues=2" in text


def test_several_paths_with_their_own_figures(tree: Tree) -> None:
    head = multipath_head(tree)
    tree.attributes(head, nsid="1")
    controllers = classed(tree, "round-robin")
    (controllers[1] / "state").write_text("connecting\n")
    tree.attributes(controllers[1], transport="tcp", address="traddr=10.0.0.2,trsvcid=4420",
                    kato="5", reconnect_delay="10", ctrl_loss_tmo="600")  # fmt: skip
    tree.attributes(tree.roots.sys / "class/block/nvme1c1n1", ana_state="optimized")
    tree.attributes(tree.roots.sys / "class/block/nvme1c2n1", ana_state="inaccessible")
    devices = read_devices(tree.roots)
    found = read_namespace_topology(tree.roots, devices["nvme1n1"])
    assert [(path.name, path.controller.name, path.ana) for path in found.paths] == [
        ("nvme1c1n1", "nvme1", "optimized"), ("nvme1c2n1", "nvme2", "inaccessible"),
    ]  # fmt: skip
    names = [path.name for path in found.paths]
    rows = " 259 3 nvme1c1n1 {0} 0 {1} {2} 0 0 0 0 3 1 1 0 0 0 0 0 0\n 259 0 nvme1n1" + " 0" * 17
    tree.proc("diskstats", rows.format(100, 800, 50))
    before = read_path_counters(tree.roots, names)
    tree.proc("diskstats", rows.format(600, 4800, 300))
    now = read_path_counters(tree.roots, names)
    assert set(now) == {"nvme1c1n1"}
    rates = {name: disk_rates(one, before[name], 1.0) for name, one in now.items()}
    known = {name: one for name, one in rates.items() if one is not None}
    report = NamespaceReport(found, read_drive_facts(tree.roots, devices["nvme1n1"], 1), known)
    text = report.text(devices)
    assert "2 paths, I/O policy round-robin" in text
    assert "nvme1c2n1  nvme2       connecting  inaccessible  tcp" in text
    assert "keep-alive 5 s, reconnects every 10 s, gives up after 600 s" in " ".join(text.split())
    # 500 reads of 4 KiB that waited for 250 ms in all
    assert "nvme1c1n1  500  0    1.95   500 µs   –        3" in text
    assert "nvme1c2n1  –    –    –      –        –        –" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    whole = {"schema": 1, "devices": [], "nvme": report.json()}
    check(json.loads(json.dumps(whole)), "document.devices")


def test_an_ordinary_user_has_sysfs_and_a_sentence(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvme_disk(tree, nsid="1")
    classed(tree)

    real = os.open

    def refused(path: str | Path, *flags: int) -> int:
        if Path(path).is_relative_to(tree.roots.dev):
            raise PermissionError(13, os.strerror(13))
        return real(path, *flags)

    monkeypatch.setattr(os, "open", refused)
    facts = read_drive_facts(tree.roots, read_devices(tree.roots)["nvme0n1"], 1)
    assert facts.problems == ("The drive's own figures need root: run with sudo.",)
    devices = read_devices(tree.roots)
    report = NamespaceReport(read_namespace_topology(tree.roots, devices["nvme0n1"]), facts, {})
    assert report.text(devices).endswith("need root: run with sudo.\n")


def page(name: str) -> bytes:
    return bytes.fromhex(QEMU[name]["page"]).ljust(QEMU[name]["size"], b"\0")


class Drive:
    """QEMU's pages; other requests are refused."""

    def __init__(self, controller: dict[int, int]) -> None:
        self.asked: list[tuple[str, int]] = []
        self.group = 0
        self._controller = controller

    def log_page(self, fd: int, number: int, size: int, *, specific: int = 0) -> bytes:
        self.asked.append(("log", number))
        if number == admin.ERRORS:
            return bytes([9]) + bytes(size - 1)
        if number == admin.SELF_TEST:
            raise DriveUnreadable("The drive refused admin command 0x02 0x06 (status 0x4002).")
        return page({admin.SMART: "smart", admin.FIRMWARE: "fw"}[number])

    def identify(self, fd: int, what: int, namespace: int = 0) -> bytes:
        if what == admin.NAMESPACE:
            # the endurance group, at byte 102
            return page("ns")[:102] + bytes([self.group]) + page("ns")[103:]
        data = bytearray(page("ctrl"))
        for at, value in self._controller.items():
            data[at] = value
        return bytes(data)

    def feature(
        self, fd: int, number: int, size: int = 0, *, specific: int = 0
    ) -> tuple[int, bytes]:
        self.asked.append(("feature", number))
        if number == admin.PLACEMENT:
            return specific, b""
        data = bytearray(size)
        if number == admin.AUTONOMOUS_POWER:
            data[0:4] = (3 << 3 | 100 << 8).to_bytes(4, "little")
        if number == admin.HOST_MEMORY:
            data[0:4] = (8192).to_bytes(4, "little")
        return 1 if size else 0, bytes(data)


def told(tree: Tree, monkeypatch: pytest.MonkeyPatch, drive: Drive) -> NamespaceReport:
    nvme_disk(tree, nsid="1")
    classed(tree)
    (tree.roots.dev / "nvme0").write_bytes(b"")
    for name in ("log_page", "identify", "feature"):
        monkeypatch.setattr(admin, name, getattr(drive, name))
    device = read_devices(tree.roots)["nvme0n1"]
    return NamespaceReport(
        read_namespace_topology(tree.roots, device), read_drive_facts(tree.roots, device, 1), {}
    )


def test_root_learns_what_the_drive_has_and_nothing_else_is_asked(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive({})
    report = told(tree, monkeypatch, drive)
    assert drive.asked == [("log", 2), ("feature", 2), ("log", 3), ("log", 1)]
    text = " ".join(report.text({}).split())
    assert "Logical blocks: 512 B, no metadata. The drive offers: 512, 512+8" in text
    assert "Health: 50 °C (warns at 70 °C), critical warning 0x04" in text
    assert "864 MiB written" in text and "Firmware: slot 1 is in use (slot 1 1.0)" in text
    assert "Error log: newest: #9 status 0x0" in text
    assert "changes its state only when told" in text and "Host memory" not in text


def test_power_saving_host_memory_and_a_refusal(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    # OACS bit 4: self-tests; APSTA; HMPRE of 16384 pages
    report = told(tree, monkeypatch, Drive({256: 16, 265: 1, 273: 64}))
    text = " ".join(report.text({}).split())
    assert "APST) are on" in text and "3 after 100 ms" in text
    assert "Host memory buffer: 32 MiB; the drive asks for 64 MiB" in text
    assert text.endswith("(status 0x4002).") and report.facts.self_test is None
    whole = {"schema": 1, "devices": [], "nvme": report.json()}
    check(json.loads(json.dumps(whole)), "document.devices")


@pytest.mark.parametrize(("group", "says"), [(1, "(FDP): on"), (2, "(FDP): off"), (0, "")])
def test_flexible_data_placement(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, group: int, says: str
) -> None:
    """CTRATT bit 19. The fake answers with the group's number, whose bit 0 means that placement is
    on."""
    drive = Drive({98: 8})
    drive.group = group
    text = told(tree, monkeypatch, drive).text({})
    assert says in text and ("FDP" in text) is bool(says)
    assert (("feature", admin.PLACEMENT) in drive.asked) is bool(group)


def test_a_hostile_description_does_no_harm(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = Drive(dict.fromkeys(range(24, 4096), 0xFF))
    report = told(tree, monkeypatch, drive)
    text = report.text({})
    assert all(len(line) <= 80 for line in text.splitlines())
    assert not {"\x1b", "\0"} & set(text)
    assert any("0x4002" in one for one in report.facts.problems)
