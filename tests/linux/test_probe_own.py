"""The probe with its own programs: how it reads, how its counts are checked, how it ends. Files
play the kernel's part."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_probe_btf import kernel
from trees import Tree

from iopstui.linux.own_threads import Clock
from iopstui.linux.probe import bpf, bpf_probe, counting, slowest
from iopstui.linux.probe.bpf_probe import BpfProbe, ProbeUnusable
from iopstui.linux.probe.regions import Region
from iopstui.model.histogram import bucket_key
from iopstui.model.metrics.probe import LATENCY, MATRIX, PROCESSES, SIZES, WAY
from iopstui.model.samples import ProbeSample

VDA = Region("vda", 254, 0)
Begin = Callable[..., BpfProbe]


class Kernel:
    """What the probe has made: maps as files in memory, by name and size."""

    def __init__(self) -> None:
        self.maps: dict[str, list[tuple[int, int]]] = {}
        self.attached = 0
        self.refuses = 0

    def values(self, size: int, name: str) -> int:
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
        os.truncate(fd, size)
        self.maps.setdefault(name, []).append((fd, size))
        return fd

    def loaded(self, code: bytes, tracepoint: int, name: str) -> int:
        if self.refuses:
            raise OSError(self.refuses, os.strerror(self.refuses))
        assert code and tracepoint > 0 and len(name) < 16
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    def attach(self, fd: int) -> int:
        self.attached += 1
        return os.dup(fd)

    def count(self, at: int, count: int) -> None:
        ((fd, _),) = self.maps["iops_bins"]
        os.pwrite(fd, count.to_bytes(8, "little"), at)

    @property
    def bank(self) -> int:
        ((_, size),) = self.maps["iops_bins"]
        return (size - counting.COUNTERS_BYTES) // 2


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    found = Kernel()
    for name, play in (("new_value_map", found.values), ("load_program", found.loaded),
                       ("new_hash_map", lambda size, keys, name: found.values(size, name)),
                       ("attach_program", found.attach)):  # fmt: skip
        monkeypatch.setattr(bpf, name, play)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return found


@pytest.fixture
def begin(made: Kernel, tmp_path: Path) -> Iterator[Begin]:
    tree, begun = Tree(tmp_path), []
    tree.sys("kernel/btf/vmlinux", kernel())
    for queue in range(3):
        tree.sys(f"dev/block/254:0/mq/{queue}/nr_tags", "100\n")
    _does(tree, 500)

    def make(*regions: Region) -> BpfProbe:
        begun.append(BpfProbe(regions or (VDA,), 1, Clock(), tree.roots))
        return begun[-1]

    make.tree = tree  # type: ignore[attr-defined]
    yield make
    for one in begun:
        one.close()


def _does(tree: Tree, reads: int, writes: int = 0, flushes: int = 0) -> None:
    words = [reads, 0, 0, 0, writes, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, flushes, 0]
    tree.sys("dev/block/254:0/stat", " ".join(map(str, words)) + "\n")


def test_banks_and_regions_are_added_up(begin: Begin, made: Kernel) -> None:
    part = Region("vda1", 254, 0, 2048, 4095)
    probe = begin(VDA, part)
    write, second = counting.KIND_BYTES, counting.REGION_BYTES
    made.count(8 * 100, 3)
    made.count(made.bank + 8 * 100, 4)
    made.count(made.bank + second + write + 8 * 50, 5)
    made.count(2 * made.bank + counting.MISSED, 2)
    made.count(2 * made.bank + counting.REQUEUED, 6)
    found = probe.take()
    assert found is not None and found.parts == (LATENCY,)
    assert found.device["vda"] == {"read": {bucket_key(100): 7}, "write": {50: 5}, "discard": {}}
    assert found.device["vda1"] == {"read": {}, "write": {50: 5}, "discard": {}}
    assert (found.counts["missed"], found.counts["requeued"]) == (2, 6)
    assert found.busy_s is not None and found.busy_s > 0 and probe.problem() == ""


def test_each_disk_has_room_for_all_its_tags(begin: Begin, made: Kernel) -> None:
    begin(VDA, Region("nvme0n1", 259, 0))
    rooms = [size >> counting.SLOT_BITS for _, size in made.maps["iops_slots"]]
    # 3 queues of 100 tags; nothing is known of the second disk's queues
    assert (rooms, made.attached) == ([512, bpf_probe.MAX_SLOTS], 3)


def test_programs_that_count_what_diskstats_counts_are_believed(begin: Begin, made: Kernel) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    probe = begin()
    made.count(8 * 100, bpf_probe.ENOUGH_REQUESTS)
    # only diskstats counts a program's sync as a write, and the device gets many syncs as one flush
    _does(tree, 500 + bpf_probe.ENOUGH_REQUESTS, writes=900, flushes=300)
    assert probe.take() is not None and probe.problem() == ""
    # from then on they are not checked any more
    _does(tree, 500 + 100 * bpf_probe.ENOUGH_REQUESTS)
    assert probe.take() is not None and probe.problem() == ""


def test_requests_that_end_while_the_counts_are_read_are_no_proof(
    begin: Begin, made: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    probe = begin()
    read = probe._read

    def slowly(*of: Any) -> ProbeSample:
        found = read(*of)
        _does(tree, 500 + 2 * bpf_probe.ENOUGH_REQUESTS)
        return found

    monkeypatch.setattr(probe, "_read", slowly)
    made.count(8 * 100, 400)
    _does(tree, 500 + 400)
    assert probe.take() is not None and probe.problem() == ""


def test_requests_that_the_programs_did_not_see_are_missed(begin: Begin, made: Kernel) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    probe = begin()
    made.count(8 * 100, 9_958)
    made.count(2 * made.bank + counting.MISSED, 2)
    _does(tree, 500 + 10_000)
    first = probe.take()
    assert first is not None and first.counts["missed"] == 42
    # counts made just after the disk's counters were read don't make up for missed ones
    made.count(8 * 100, 10_000)
    second = probe.take()
    assert second is not None and second.counts["missed"] == 42


@pytest.mark.parametrize(("flushes", "missed"), [(0, 50), (1, 0)])
def test_writes_are_compared_where_no_sync_was_among_them(
    begin: Begin, made: Kernel, flushes: int, missed: int
) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    probe = begin()
    made.count(8 * 100, 2_000)
    made.count(counting.KIND_BYTES + 8 * 100, 1_950)
    _does(tree, 500 + 2_000, writes=2_000, flushes=flushes)
    sample = probe.take()
    assert sample is not None and sample.counts["missed"] == missed


def test_writes_that_were_missed_are_few_of_all_beside_reads(begin: Begin, made: Kernel) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    probe = begin()
    made.count(8 * 100, bpf_probe.ENOUGH_REQUESTS)
    made.count(counting.KIND_BYTES + 8 * 100, 100_000)
    made.count(2 * made.bank + counting.MISSED, 300)
    _does(tree, 500 + bpf_probe.ENOUGH_REQUESTS, writes=200_000, flushes=60_000)
    assert probe.take() is not None and probe.problem() == ""


@pytest.mark.parametrize(
    ("counted", "missed"), [(0, 0), (bpf_probe.ENOUGH_REQUESTS // 2, bpf_probe.ENOUGH_REQUESTS)]
)
def test_programs_that_count_something_else_are_not(
    begin: Begin, made: Kernel, counted: int, missed: int
) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    probe = begin()
    made.count(8 * 100, counted)
    made.count(2 * made.bank + counting.MISSED, missed)
    _does(tree, 500 + bpf_probe.ENOUGH_REQUESTS - 1)
    probe.take()
    assert probe.problem() == "", "of few requests many may be under way"
    _does(tree, 500 + bpf_probe.ENOUGH_REQUESTS)
    probe.take()
    said = f"the probe counted {counted} of {bpf_probe.ENOUGH_REQUESTS} requests of vda"
    assert said in probe.problem()


def test_where_it_can_t_count_nothing_is_left(begin: Begin, made: Kernel) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    before = os.listdir("/proc/self/fd")
    with pytest.raises(ProbeUnusable, match="BTF"):
        # this kernel's types have no bio
        begin(VDA, Region("dm-0", 253, 0, bios=True))
    made.refuses = errno.EPERM
    with pytest.raises(ProbeUnusable, match=r"refuses the programs \(Operation not permitted\)"):
        begin()
    made.refuses = 0
    tree.sys("kernel/btf/vmlinux", b"")
    with pytest.raises(ProbeUnusable, match="BTF"):
        begin()
    assert os.listdir("/proc/self/fd") == before
    with pytest.raises(ProbeUnusable, match="BTF"):
        bpf_probe.loadable_parts(tree.roots)


def test_the_slowest_requests_are_read_where_the_kernel_takes_their_programs(
    begin: Begin, made: Kernel
) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    tree.sys("kernel/btf/vmlinux", kernel(origin=True))
    tree.sys("devices/system/cpu/possible", "0-5\n")
    probe = begin()
    ((fd, size),) = made.maps["iops_slowest"]
    assert (made.attached, size) == (4, slowest.map_bytes(8))
    rooms = [size >> slowest.SLOT_BITS for _, size in made.maps["iops_slots"]]
    assert rooms == [512]
    # CPU 5 has kept a read, of whose 90 ns 40 were in the device
    at = slowest.HEAD_BYTES + 5 * slowest.CPU_BYTES
    entry = struct.pack("<6Q6IQ16sII", 1090, 1050, 0, 1000, 7 << 32 | 8, 16, 512, 0, 1, 5, 2, 0, 0,
                        b"fio", 0, 8)  # fmt: skip
    os.pwrite(fd, struct.pack("<3Q", 90, 0, 90), at)
    os.pwrite(fd, entry, at + 16 + 8 * slowest.SET_SIZE)
    # CPU 5 has completed 9 requests that CPU 3 allocated
    ((cpus, size),) = made.maps["iops_matrix"]
    assert size == 8 * 8 * 8
    os.pwrite(cpus, (9).to_bytes(8, "little"), 8 * (5 * 8 + 3))
    # and one request of 4 KiB has waited for 70 ns
    made.count(counting.REGION_BYTES + 8 * 70, 1)
    made.count(counting.SIZES_AT + 8 * (12 - 5), 1)
    found = probe.take()
    assert found is not None
    assert set(found.parts) == {LATENCY, WAY, MATRIX, PROCESSES, SIZES}
    assert found.matrix == {3: {5: 9}} and found.waiting["vda"]["read"] == {70: 1}
    assert found.sizes["vda"] == {"read": {4096: 1}, "write": {}, "discard": {}}
    [one] = found.exemplars
    assert (one.disk, one.total_ns, one.device_ns, one.comm) == ("vda", 90, 40, "fio")
    again = probe.take()
    assert again is not None and again.exemplars == ()


def test_disks_without_requests_are_followed_by_their_bios(begin: Begin, made: Kernel) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    tree.sys("kernel/btf/vmlinux", kernel(origin=True))
    probe = begin(VDA, Region("dm-0", 253, 0, bios=True))
    assert made.attached == 6
    made.count(counting.REGION_BYTES + 8 * 100, 3)
    # dm counts the parts of a bio that it splits, so its counters can't confirm the probe's
    tree.sys("dev/block/253:0/stat", "9000 0 0 0 0\n")
    found = probe.take()
    assert found is not None and found.device["dm-0"]["read"] == {bucket_key(100): 3}
    assert found.counts["missed"] == 0 and probe.problem() == ""
    alone = begin(Region("dm-0", 253, 0, bios=True))
    assert made.attached == 8 and alone.parts == (LATENCY,) and alone.take() is not None


def test_where_it_does_not_the_latencies_are_counted_all_the_same(
    begin: Begin, made: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    tree.sys("kernel/btf/vmlinux", kernel(origin=True))
    play, before = made.loaded, os.listdir("/proc/self/fd")

    def refused(code: bytes, tracepoint: int, name: str) -> int:
        if "insert" in name:
            raise OSError(errno.EACCES, "no")
        return play(code, tracepoint, name)

    monkeypatch.setattr(bpf, "load_program", refused)
    probe = begin()
    del made.maps["iops_bins"][:-1]
    made.count(8 * 100, 3)
    found = probe.take()
    assert found is not None and found.exemplars == () and made.attached == 3
    assert sum(found.device["vda"]["read"].values()) == 3
    probe.close()
    assert os.listdir("/proc/self/fd") == before


def test_nothing_is_open_when_it_is_closed(begin: Begin) -> None:
    before = os.listdir("/proc/self/fd")
    probe = begin()
    for _ in range(3):
        assert probe.take() is not None
    probe.close()
    probe.close()
    assert os.listdir("/proc/self/fd") == before and probe.take() is None


def test_doctor_only_loads_them(begin: Begin, made: Kernel) -> None:
    tree: Tree = begin.tree  # type: ignore[attr-defined]
    assert bpf_probe.loadable_parts(tree.roots) == (LATENCY,) and made.attached == 0
