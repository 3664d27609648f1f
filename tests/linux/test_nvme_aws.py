"""AWS's log page D0h: bytes at the published offsets, and which drives are asked for it."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hardware import nvme_disk
from hypothesis import given
from hypothesis import strategies as st
from trees import Tree

from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.nvme.admin import MalformedPage
from iopstui.linux.nvme.aws import Volume, VolumeReader, parse_statistics, volumes_of
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.session.tick.context import Viewer
from iopstui.session.tick.sampling import Sampling

# each offset as published, so that the page is not made by the structure that reads it
OFFSETS = {
    "reads": 8, "writes": 16, "read_bytes": 24, "write_bytes": 32, "read_us": 40, "write_us": 48,
    "volume_iops": 56, "volume_bytes": 64, "instance_iops": 72, "instance_bytes": 80, "queue": 88,
}  # fmt: skip
EBS_MAGIC, STORE_MAGIC = 0x3C23B510, 0xEC2C0D7E
EBS, STORE = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"


def page(magic: int = EBS_MAGIC, size: int = 4096, version: int = 0, **values: int) -> bytes:
    data = bytearray(os.urandom(size))
    # a random number of bins is no valid histogram; the tests of histograms write their own
    struct.pack_into("<Q", data, 512, 1 << 60)
    struct.pack_into("<Q", data, 2056, 0)
    struct.pack_into("<I", data, 0, magic)
    struct.pack_into("<I", data, 4, version)
    for name, offset in OFFSETS.items():
        struct.pack_into("<Q", data, offset, values.get(name, 1000 + offset))
    return bytes(data)


def test_every_counter_is_read_from_its_own_place() -> None:
    kind, counters = parse_statistics(page())
    assert kind == "ebs"
    assert counters == {name: 1000 + offset for name, offset in OFFSETS.items()}
    assert parse_statistics(page(STORE_MAGIC, 8192, 1), 8192)[0] == "instance-store"
    assert parse_statistics(page(reads=(1 << 64) - 1))[1]["reads"] == (1 << 64) - 1


def with_bins(data: bytes, at: int, bins: Sequence[tuple[int, int, int]], number: int) -> bytes:
    page = bytearray(data)
    struct.pack_into("<Q", page, at, number)
    for n, (lower, upper, count) in enumerate(bins):
        struct.pack_into("<Q", page, at + 8 + 24 * n, lower)
        struct.pack_into("<Q", page, at + 16 + 24 * n, upper)
        struct.pack_into("<I", page, at + 24 + 24 * n, count)
    return bytes(page)


def test_histograms_are_read_up_to_their_number_of_bins() -> None:
    bins = [(0, 1, 0), (1, 4, 7), (4, 99, 3), (99, 100, 8)]
    data = with_bins(page(), 512, bins, 3)
    data = with_bins(data, 2056, [(n, n + 1, n) for n in range(64)], 64)
    _, counters = parse_statistics(data)
    found = {name: value for name, value in counters.items() if name not in OFFSETS}
    writes = {f"write_bins:{n + 1}": n for n in range(1, 64)}
    assert found == {
        "read_bins": 3,
        "read_bins:4": 7,
        "read_bins:99": 3,
        "write_bins": 64,
        **writes,
    }


@pytest.mark.parametrize(
    ("bins", "number"),
    [([(0, 4, 1), (2, 9, 1)], 2), ([(4, 9, 1), (0, 4, 1)], 2), ([(9, 4, 1)], 1),
     ([(0, 0, 1), (0, 0, 1)], 2), ([(0, 1, 1)], 0), ([(0, 1, 1)], 65), ([(0, 1, 1)], 1 << 63)],
)  # fmt: skip
def test_impossible_histograms_are_left_out(
    bins: Sequence[tuple[int, int, int]], number: int
) -> None:
    assert set(parse_statistics(with_bins(page(), 512, bins, number))[1]) == set(OFFSETS)


@given(st.integers(0, (1 << 32) - 1).filter(lambda magic: magic not in (EBS_MAGIC, STORE_MAGIC)))
def test_another_magic_is_another_page(magic: int) -> None:
    with pytest.raises(MalformedPage, match="not AWS's page"):
        parse_statistics(page(magic))


@given(st.integers(0, 4095))
def test_a_short_page_is_refused(size: int) -> None:
    with pytest.raises(MalformedPage, match=f"{size} bytes instead of 4096"):
        parse_statistics(page()[:size])


class Controllers:
    """Replaces the ioctl: answers with ``page``, and waits while ``go`` is not set."""

    def __init__(self, page: bytes, error: int = 0) -> None:
        self.page, self.error, self.go = page, error, threading.Event()
        self.asked: list[tuple[int, int, int]] = []
        self.go.set()

    def __call__(self, fd: int, request: int, command: bytearray) -> int:
        sent = struct.unpack("=BBHIIIQQII6III", command)
        assert sent[0] == 0x02, "only Get Log Page is sent"
        assert (sent[10] >> 16) + 1 == sent[9] // 4, "the page's length in double words"
        self.asked.append((sent[10] & 0xFF, sent[3], sent[9]))
        assert self.go.wait(60)
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        ctypes.memmove(sent[7], self.page, min(sent[9], len(self.page)))
        return 0


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    (made.roots.sys / "class/nvme").mkdir(parents=True)
    for number, model in enumerate((EBS, STORE, "QEMU NVMe Ctrl")):
        disk = nvme_disk(made, number, nsid=str(number + 1))
        made.attributes(disk.parent, model=f"{model:40}")
        (made.roots.sys / f"class/nvme/nvme{number}").symlink_to(disk.parent)
        (made.roots.dev / f"nvme{number}").parent.mkdir(exist_ok=True)
        (made.roots.dev / f"nvme{number}").write_bytes(b"")
    return made


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Controllers]:
    def install(answer: bytes, error: int = 0) -> Controllers:
        controllers = Controllers(answer, error)
        monkeypatch.setattr("fcntl.ioctl", controllers)
        return controllers

    return install


def volumes(tree: Tree) -> Mapping[str, Volume]:
    devices = read_devices(tree.roots)
    return {each.disk: each for each in volumes_of(tree.roots, devices, (*devices, "gone"))}


def reader(tree: Tree, *disks: str) -> VolumeReader:
    clock = iter(range(7, 1000)).__next__
    return VolumeReader(tree.roots, [volumes(tree)[disk] for disk in disks], clock, timeout_s=60)


def test_only_amazon_s_models_are_asked(tree: Tree) -> None:
    assert volumes(tree) == {
        "nvme0n1": Volume("nvme0n1", "nvme0", 1, 4096),
        "nvme1n1": Volume("nvme1n1", "nvme1", 2, 8192),
    }


def test_a_volume_is_asked_for_its_page_alone(
    tree: Tree, double: Callable[..., Controllers]
) -> None:
    controllers = double(page(queue=3))
    counters = reader(tree, "nvme0n1", "nvme1n1").read()
    assert controllers.asked == [(0xD0, 1, 4096), (0xD0, 2, 8192)]
    assert counters is not None and counters["queue ebs nvme0n1"] == 3
    assert counters["at_ns ebs nvme0n1"] == 7
    assert {name.partition(" ")[0] for name in counters} == {"at_ns", *OFFSETS}


@pytest.mark.parametrize(("magic", "error"), [(1, 0), (EBS_MAGIC, errno.EACCES)])
def test_a_volume_that_refuses_is_not_asked_again(
    tree: Tree, double: Callable[..., Controllers], magic: int, error: int
) -> None:
    controllers = double(page(magic), error)
    each_second = reader(tree, "nvme0n1")
    assert [each_second.read() for _ in range(3)] == [None] * 3
    assert len(controllers.asked) == 1


def test_a_controller_that_is_not_live_is_a_gap(
    tree: Tree, double: Callable[..., Controllers]
) -> None:
    controllers = double(page())
    each_second = reader(tree, "nvme0n1")
    state = tree.roots.sys / "class/nvme/nvme0/state"
    state.write_text("resetting\n")
    assert each_second.read() is None and not controllers.asked
    state.write_text("live\n")
    assert each_second.read()


def test_a_hung_volume_stops_nobody(tree: Tree, double: Callable[..., Controllers]) -> None:
    controllers = double(page())
    controllers.go.clear()
    each_second = VolumeReader(tree.roots, [volumes(tree)["nvme0n1"]], timeout_s=0)
    assert each_second.read() is None and each_second.read() is None
    assert each_second._thread is not None and each_second._thread.is_alive()
    controllers.go.set()
    each_second._thread.join(60)
    assert len(controllers.asked) == 1, "it is not asked again while it has not answered"


def test_a_session_reads_them_with_every_sample(
    tree: Tree, double: Callable[..., Controllers]
) -> None:
    controllers = double(page())
    context: Any = SimpleNamespace(
        devices=read_devices(tree.roots), roots=tree.roots, disks=list,
        target=Target(DEVICE, "/dev/nvme0n1", "nvme0n1", ("nvme0n1", "nvme2n1")),
    )  # fmt: skip
    any_run: Any = SimpleNamespace()
    sampling = Sampling(context, any_run, RunRequest(), Viewer())
    sampling._sampler.sample()
    finish()
    sampling._sampler.sample()
    sampling.close()
    finish()
    assert set(controllers.asked) == {(0xD0, 1, 4096)}, "of the target's drives Amazon's alone"
    assert len(controllers.asked) == 2


def finish() -> None:
    for thread in threading.enumerate():
        if thread.name == "aws volumes":
            thread.join(60)
