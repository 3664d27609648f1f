"""The guard on real devices: loop devices on files of the tests. Needs root and
/dev/loop-control."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopstui.errors import Refused
from iopstui.linux.devices.aliases import read_backing
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.devices.udev import HotplugMonitor
from iopstui.linux.devices.usage.openers import writers
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.stack import Backing
from iopstui.model.block.target import DEVICE
from iopstui.safety.refusals import check_file_write, check_write, open_exclusively, write_reasons

ROOTS = Roots()


def attach(image: Path, *more: str) -> str | None:
    if os.geteuid() or not shutil.which("losetup"):
        return None
    command = ["losetup", "--show", "-f", *more, str(image)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def detach(node: str) -> None:
    subprocess.run(["losetup", "-d", node], check=False)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(8 << 20)
    return path


@pytest.fixture
def loop(image: Path) -> Iterator[str]:
    node = attach(image)
    if node is None:
        pytest.skip("no right to make a loop device here")
    yield node
    detach(node)


def test_found_resolved_checked_and_held(loop: str, image: Path) -> None:
    devices = read_devices(ROOTS)
    target = resolve_target(loop, image.parent, ROOTS, devices)
    assert (target.kind, target.path) == (DEVICE, loop)
    device = devices[target.device or ""]
    assert (device.kind, device.size, device.backing_file) == ("loop", 8 << 20, str(image))
    with pytest.raises(Refused, match="raw device"):
        check_write(target, devices, ROOTS, None)
    with open_exclusively(loop, device, ROOTS) as held:
        check_write(target, devices, ROOTS, loop, reserved=True)
        held.verify()
        os.close(os.open(loop, os.O_RDWR))  # what fio does
        with pytest.raises(Refused, match="held exclusively"):
            check_write(target, devices, ROOTS, loop)
    check_write(target, devices, ROOTS, loop)


def test_a_signature_is_seen(loop: str, image: Path) -> None:
    with image.open("r+b") as file:
        file.write(b"LUKS\xba\xbe\x00\x01" + b"\0" * 504)
    subprocess.run(["losetup", "-c", loop], check=True)
    with open(loop, "r+b") as file:
        file.write(b"LUKS\xba\xbe\x00\x01" + b"\0" * 504)
    devices = read_devices(ROOTS)
    target = resolve_target(loop, image.parent, ROOTS, devices)
    with pytest.raises(Refused, match="LUKS"):
        check_write(target, devices, ROOTS, None)


@pytest.mark.alone  # no other test may take the device number that is released and reused
def test_a_changed_medium_is_noticed(loop: str, image: Path) -> None:
    devices = read_devices(ROOTS)
    device = devices[loop.removeprefix("/dev/")]
    if device.diskseq is None:
        pytest.skip("this kernel numbers no media")
    detach(loop)
    assert subprocess.run(["losetup", loop, str(image)], check=False).returncode == 0
    with pytest.raises(Refused, match="another disk"), open_exclusively(loop, device, ROOTS):
        pytest.fail("held")


def test_read_only(image: Path) -> None:
    node = attach(image, "-r")
    if node is None:
        pytest.skip("no right to make a loop device here")
    try:
        devices = read_devices(ROOTS)
        target = resolve_target(node, image.parent, ROOTS, devices)
        with pytest.raises(Refused, match="read-only"):
            check_write(target, devices, ROOTS, node)
    finally:
        detach(node)


def test_the_hotplug_monitor_starts_and_stops_or_says_that_it_cannot() -> None:
    monitor = HotplugMonitor(lambda action, name: None)
    assert monitor.start() in (True, False)
    monitor.stop()
    assert not monitor.running
    monitor.stop()


def test_the_running_machine_is_read_by_anybody() -> None:
    for name, device in read_devices(ROOTS).items():
        assert device.name == name and device.path == f"/dev/{name}"
        assert device.disk is None or name != device.disk


def test_a_holder_whose_node_lies_elsewhere_is_found(loop: str, image: Path) -> None:
    """The node of a process in a chroot or a container is elsewhere."""
    info = os.stat(loop)
    node = image.parent / "node"
    os.mknod(node, info.st_mode, info.st_rdev)
    number = os.major(info.st_rdev), os.minor(info.st_rdev)
    script = f"import os, sys; os.open({str(node)!r}, os.O_RDWR); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as holder:  # fmt: skip
        assert holder.stdout is not None and holder.stdout.read(1) == b"1"
        found = writers([loop], ROOTS, [number])
        assert any(f"(pid {holder.pid})" in one for one in found)
        devices = read_devices(ROOTS)
        verdict = write_reasons(Path(loop).name, devices, ROOTS)
        assert any("open for writing" in why for why in verdict.in_use)
        holder.communicate(b"\n")
    assert not any("(pid" in why for why in write_reasons(Path(loop).name, devices, ROOTS).in_use)


def test_the_file_of_a_loop_device_is_known_by_its_inode(loop: str, image: Path) -> None:
    info = image.stat()
    made_of = read_backing(loop)
    assert made_of == Backing((os.major(info.st_dev), os.minor(info.st_dev)), info.st_ino)
    image.rename(image.with_name("moved.img"))
    image.write_bytes(b"another file of that name")
    devices = read_devices(ROOTS)
    with pytest.raises(Refused, match="uses it"):
        check_file_write(str(image.with_name("moved.img")), str(image), devices, ROOTS)
    assert check_file_write(str(image), str(image), devices, ROOTS).in_use == ()
