"""How the capture reads its ring, and how it ends. Files play the kernel's part."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_probe_btf import Made
from trees import Tree

from iopstui.features.capture.kernel import kernel_types, programs, workload_capture
from iopstui.features.capture.kernel.bpf_capture import RING_BITS, BpfCapture, CaptureUnusable
from iopstui.features.capture.kernel.workload_capture import (
    ENDED,
    Processes,
    ProcessFilter,
    WorkloadCapture,
    cgroups_below,
)
from iopstui.features.capture.model import workload
from iopstui.features.capture.model.workload import METADATA, METADATA_PROCESS
from iopstui.linux.probe import bpf
from iopstui.linux.probe.regions import Region
from tests.helpers.packed_requests import pack_shape, pack_value

INT, PTR = 1, 2
VDA, DM = Region("vda", 254, 0), Region("dm-0", 253, 0, bios=True)
ROOM = 1 << RING_BITS


class Kernel:
    """The maps that the capture has made, as files in memory."""

    def __init__(self) -> None:
        self.maps: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.programs: list[str] = []
        self.attached = self.refuses = 0

    def values(self, size: int, name: str) -> int:
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
        os.truncate(fd, size)
        self.maps[name], self.sizes[name] = fd, size
        return fd

    def loaded(self, code: bytes, tracepoint: int, name: str) -> int:
        if self.refuses:
            raise OSError(self.refuses, os.strerror(self.refuses))
        assert code and tracepoint > 0 and len(name) < 16
        self.programs.append(name)
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    def attach(self, fd: int) -> int:
        self.attached += 1
        return os.dup(fd)

    def write(self, number: int, *record: int) -> None:
        at = (number % ROOM) << programs.RECORD_BITS
        os.pwrite(self.maps["iops_ring"], struct.pack(f"<{len(record)}Q", *record), at)

    def count(self, at: int, count: int) -> None:
        os.pwrite(self.maps["iops_counters"], count.to_bytes(8, "little"), at)


def types(cgroups: bool = True) -> bytes:
    """A kernel's types (BTF) with what the capture needs."""
    made = Made()
    u32 = made.add(INT, "unsigned int", 4, bytes(4))

    def pointer(of: int) -> int:
        return made.add(PTR, of=of)

    disk = made.struct("gendisk", ("major", u32, 0), ("first_minor", u32, 32))
    queue = made.struct("request_queue", ("disk", pointer(disk), 8 * 104))
    hctx = made.struct("blk_mq_hw_ctx", ("queue_num", u32, 64))
    device = made.struct("block_device", ("bd_disk", pointer(disk), 128))
    place = made.struct("bvec_iter", ("bi_sector", u32, 0), ("bi_size", u32, 64))
    node = made.struct("kernfs_node", ("id", u32, 768))
    group = made.struct("cgroup", ("kn", pointer(node), 2048))
    state = made.struct("cgroup_subsys_state", ("cgroup", pointer(group), 8))
    blkcg = made.struct("blkcg", ("css", state, 16))
    blkg = made.struct("blkcg_gq" if cgroups else "none", ("blkcg", pointer(blkcg), 320))
    bio = made.struct("bio", ("bi_bdev", pointer(device), 64), ("bi_opf", u32, 128),
                      ("bi_iter", place, 256), ("bi_blkg", pointer(blkg), 576))  # fmt: skip
    request = made.struct(
        "request", ("q", pointer(queue), 0), ("bio", pointer(bio), 448), ("mq_hctx", pointer(hctx),
        128), ("cmd_flags", u32, 192), ("tag", u32, 256), ("__data_len", u32, 352),
        ("__sector", u32, 384),
    )  # fmt: skip
    void = made.add(PTR)
    for event in kernel_types.OF_REQUESTS:
        made.tracepoint(f"btf_trace_{event}", void, pointer(request if "_rq_" in event else bio))
    made.tracepoint("btf_trace_block_bio_queue", void, pointer(bio))
    made.tracepoint("btf_trace_block_bio_complete", void, pointer(queue), pointer(bio))
    return made.data()


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    found = Kernel()
    for name, play in (("new_value_map", found.values), ("load_program", found.loaded),
                       ("attach_program", found.attach)):  # fmt: skip
        monkeypatch.setattr(bpf, name, play)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.sys("kernel/btf/vmlinux", types())
    for queue in range(3):
        made.sys(f"dev/block/254:0/mq/{queue}/nr_tags", "100\n")
    made.sys("class/block/vda/stat", "10 0 0 0 20 0 0 0 0 0 0 5 0 0 0 3 0\n")
    return made


@pytest.fixture
def begin(kernel: Kernel, tree: Tree) -> Iterator[Callable[..., BpfCapture]]:
    begun: list[BpfCapture] = []

    def make(*regions: Region) -> BpfCapture:
        begun.append(BpfCapture(regions or (VDA,), tree.roots))
        return begun[-1]

    yield make
    for one in begun:
        one.close()


def test_offsets_are_those_of_the_kernel_s_types() -> None:
    found = kernel_types.capture_types(types(), kernel_types.OF_REQUESTS)
    assert found.at["request.bio"] == 56 and found.at["bio.bi_opf"] == 16
    assert found.cgroup == (72, 40, 2 + 1, 256, 96)
    assert set(found.argument.values()) == {0}
    bios = kernel_types.capture_types(types(), kernel_types.OF_BIOS)
    assert bios.argument == {"block_bio_queue": 0, "block_bio_complete": 1}
    # without cgroups everything else works
    assert kernel_types.capture_types(types(cgroups=False), kernel_types.OF_BIOS).cgroup == ()
    with pytest.raises(KeyError):
        kernel_types.capture_types(types().replace(b"block_getrq", b"block_getrx"),
                                   kernel_types.OF_REQUESTS)  # fmt: skip
    for none in (b"", b"\x7fELF", types()[:-300]):
        with pytest.raises((ValueError, KeyError)):
            kernel_types.capture_types(none, kernel_types.OF_REQUESTS)


def test_the_kernel_below_us_has_what_is_needed() -> None:
    place = Path("/sys/kernel/btf/vmlinux")
    try:
        data = place.read_bytes()
    except OSError:
        pytest.skip("this kernel does not describe its types")
    found = kernel_types.capture_types(data, (*kernel_types.OF_REQUESTS, *kernel_types.OF_BIOS))
    assert all(number > 0 for number in found.tracepoints.values())


def test_requests_are_read_when_they_are_complete(begin: Callable[..., BpfCapture],
                                                  kernel: Kernel) -> None:  # fmt: skip
    capture = begin()
    for number in range(3):
        kernel.write(number, *range(10 * number, 10 * number + 7))
    kernel.count(programs.HEAD, 3)
    # a record may be half written
    assert len(capture.take()) == 0
    kernel.count(programs.HEAD, 4)
    batch = capture.take()
    assert batch.columns[programs.TIME] == [0, 10, 20] and batch.columns[programs.TOTAL] == [
        6,
        16,
        26,
    ]
    assert batch.lost == 0 and len(capture.take(last=True)) == 1


def test_what_was_overwritten_is_lost_and_said(begin: Callable[..., BpfCapture],
                                               kernel: Kernel) -> None:  # fmt: skip
    capture = begin()
    upto = 3 * ROOM + 5
    for number in range(2 * ROOM, upto):
        kernel.write(number, number)
    kernel.count(programs.HEAD, upto)
    batch = capture.take(last=True)
    # three quarters of the ring are read; the kernel may meanwhile write to the rest
    first = upto - ROOM * 3 // 4
    assert batch.columns[programs.TIME] == list(range(first, upto)) and batch.lost == first
    assert len(capture.take(last=True)) == capture.take().lost == 0


def test_a_disk_of_bios_needs_other_programs(begin: Callable[..., BpfCapture],
                                             kernel: Kernel) -> None:  # fmt: skip
    begin(DM)
    assert kernel.programs == ["iops_bio_complete"[:15], "iops_bio_queue"]
    assert kernel.sizes["iops_in_flight"] == 16 << programs.BIO_SLOTS_BITS


def test_counts_are_read(begin: Callable[..., BpfCapture], kernel: Kernel) -> None:
    capture = begin()
    for at, count in ((programs.MISSED, 3), (programs.REQUEUED, 4), (programs.UNKNOWN, 5)):
        kernel.count(at, count)
    found = capture.counts()
    assert (found.missed, found.requeued, found.unknown) == (3, 4, 5)
    # 3 queues of 100 tags
    assert kernel.sizes["iops_in_flight"] == 512 << programs.SLOT_BITS and kernel.attached == 4


def test_where_it_can_t_work_nothing_is_left(
    begin: Callable[..., BpfCapture], kernel: Kernel, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.listdir("/proc/self/fd")
    kernel.refuses = errno.EPERM
    with pytest.raises(CaptureUnusable, match=r"refuses the programs \(Operation not permitted\)"):
        begin()
    kernel.refuses = 0
    tree.sys("kernel/btf/vmlinux", b"")
    with pytest.raises(CaptureUnusable, match="BTF"):
        begin()
    tree.sys("kernel/security/lockdown", "none integrity [confidentiality]")
    with pytest.raises(CaptureUnusable, match="locked down"):
        begin()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CaptureUnusable, match="only root"):
        begin()
    assert os.listdir("/proc/self/fd") == before


def test_nothing_is_open_when_it_is_closed(begin: Callable[..., BpfCapture]) -> None:
    before = os.listdir("/proc/self/fd")
    capture = begin()
    capture.close()
    capture.close()
    assert os.listdir("/proc/self/fd") == before


# -- with its counts


def shaped(kernel: Kernel, number: int, pid: int, sectors: int, cgroup: int) -> None:
    kernel.write(number, 10**6 * number, 8 * number, pack_shape(pid, workload.READ, sectors),
                 pack_value(pid, workload.READ, 1),
                 pack_value(pid, workload.READ, 0), cgroup, 1)  # fmt: skip


def process(tree: Tree, pid: int, name: str, parent: int) -> None:
    tree.proc(f"{pid}/comm", f"{name}\n")
    tree.proc(f"{pid}/stat", f"{pid} ({name}) a) S {parent} 0 0\n")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [(ProcessFilter(), {"db": 1, "sh": 1, "kworker": 1}),
     (ProcessFilter((20,)), {"db": 1, "sh": 1}),
     (ProcessFilter((30,)), {"db": 1}), (ProcessFilter(cgroup="cg"), {"sh": 1, "kworker": 1})],
)  # fmt: skip
def test_whose_requests_are_counted(
    kernel: Kernel, tree: Tree, choice: ProcessFilter, expected: dict[str, int],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    for pid, name, parent in ((20, "sh", 1), (30, "db", 20), (40, "kworker/3:1", 2)):
        process(tree, pid, name, parent)
    monkeypatch.chdir(tmp_path)
    inner = tmp_path / "cg/inner"
    inner.mkdir(parents=True)
    groups = [(tmp_path / "cg").stat().st_ino & 0xFFFFFFFF, inner.stat().st_ino & 0xFFFFFFFF]
    running = WorkloadCapture("vda", (VDA,), choice, tree.roots)
    try:
        shaped(kernel, 0, 20, 8, groups[0])
        shaped(kernel, 1, 30, 16, 5)
        shaped(kernel, 2, 40, 32, groups[1])
        kernel.count(programs.HEAD, 3)
        tree.sys("class/block/vda/stat", "12 0 0 0 21 0 0 0 0 0 0 5 0 0 0 3 0\n")
        found = running.result()
        assert {one.process: one.ios for one in found.streams} == expected
        # from the first request to the last there are at most 2 ms
        assert running.result(active=True).seconds <= 0.002 < found.seconds
        assert found.filtered == (not choice.everything) and running.disk_counted() == 3
        assert not running.gone() and running.seen == 3
        # what happened before the beginning is not counted
        running.begin()
        assert running.result().ios == 0 and running.disk_counted() == 0
    finally:
        running.close()


def test_a_screen_s_capture_runs_in_a_thread(
    kernel: Kernel, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_capture, "POLL_S", 0.001)
    monkeypatch.setattr(workload_capture, "RESULT_EVERY", 2)
    monkeypatch.setattr(workload_capture, "read_devices", lambda roots: {})
    monkeypatch.setattr(workload_capture, "regions", lambda *asked: [VDA, Region("other", 1, 2)])
    running = workload_capture.LiveCapture(["vda"], tree.roots)
    try:
        process(tree, 20, "db", 1)
        while running.workload is None:
            assert running.problem == ""
        shaped(kernel, 0, 20, 8, 1)
        kernel.count(programs.HEAD, 1)
        while running.workload.ios == 0:
            assert running.problem == ""
        assert running.workload.processes == ("db",) and running.workload.device == "vda"
        (tree.roots.sys / "dev/block/254:0").rename(tree.roots.sys / "elsewhere")
        while not running.problem:
            pass
        assert "vanished" in running.problem
    finally:
        running.close()
    for found, why in (([], "no disk"), ([VDA, DM], "together")):
        monkeypatch.setattr(workload_capture, "regions", lambda *asked, of=found: of)
        other = workload_capture.LiveCapture(["vda", "dm-0"], tree.roots)
        other.close()
        assert why in other.problem and other.workload is None
    kernel.refuses = errno.EPERM
    monkeypatch.setattr(workload_capture, "regions", lambda *asked: [VDA])
    other = workload_capture.LiveCapture(["vda"], tree.roots)
    other.close()
    assert "refuses the programs" in other.problem


def test_a_disk_that_vanishes(kernel: Kernel, tree: Tree) -> None:
    running = WorkloadCapture("vda", (VDA,), ProcessFilter(), tree.roots)
    place = tree.roots.sys / "dev/block/254:0"
    assert not running.gone()
    place.rename(tree.roots.sys / "elsewhere")
    assert running.gone() and running.disk_counted() == 0
    (tree.roots.sys / "class/block/vda/stat").unlink()
    assert running.disk_counted() is None
    running.close()


def test_processes_that_are_gone_have_a_name_too(tree: Tree) -> None:
    process(tree, 7, "kworker/u8:2-flush-254:0", 2)
    found = Processes(tree.roots)
    assert found.name(7) == "kworker (writeback)" and found.name(8) == ENDED
    assert found.name(7 | METADATA) == METADATA_PROCESS
    below = Processes(tree.roots, [2])
    assert below.is_chosen(7) and below.is_chosen(7 | METADATA) and not below.is_chosen(8)
    process(tree, 7, "other", 2)
    assert found.name(7) == "kworker (writeback)", "looked up once"
    assert cgroups_below(Path("/nowhere")) == frozenset()
