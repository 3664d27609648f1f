from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iopstui.linux import kernel_files
from iopstui.linux.counters import sampler as kernel
from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.kernel_files import KernelFile, Roots
from iopstui.model.samples import KernelSample

PROC = Path(__file__).parent.parent / "fixtures" / "proc"
MACHINE = "4cpu-6.12-cpu3-offline"


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    """A machine with four possible CPUs, of which three are online, and two interrupts."""
    (tmp_path / "proc").mkdir()
    for name in ("diskstats", "stat", "softirqs", "interrupts"):
        (tmp_path / "proc" / name).write_bytes((PROC / f"{MACHINE}.{name}").read_bytes())
    for irq, text in ((35, "0,200,0,0\n"), (37, "0,0,0,2003\n")):
        directory = tmp_path / "sys" / "kernel" / "irq" / str(irq)
        directory.mkdir(parents=True)
        (directory / "per_cpu_count").write_text(text)
    return Roots.under(tmp_path)


class Clock:
    """A monotonic clock that a test moves: each reading advances it by the next of ``costs``
    (ns)."""

    def __init__(self, *costs: int) -> None:
        self.now = 1_000_000_000
        self.costs = list(costs)

    def __call__(self) -> int:
        self.now += self.costs.pop(0) if self.costs else 0
        return self.now


def test_a_sample_has_everything(roots: Roots) -> None:
    sampler = KernelSampler(roots, ["vda", "absent"], [35, 37])
    sample = sampler.sample()
    assert list(sample.disks) == ["vda"]
    assert sample.disks["vda"].reads == 2203
    assert list(sample.cpus) == [0, 1, 2]
    assert sample.softirq_block == {0: 22, 1: 0, 2: 0, 3: 0}
    assert sample.irqs == {35: {0: 0, 1: 200, 2: 0, 3: 0}, 37: {0: 0, 1: 0, 2: 0, 3: 2003}}
    assert sample.ipi == {0: 3182, 1: 2096, 2: 2931}
    assert sampler.unavailable == {}
    sampler.close()


def test_files_are_read_anew_each_time(roots: Roots) -> None:
    sampler = KernelSampler(roots, ["vda"], [35])
    sampler.sample()
    for path, old, new in (
        (roots.proc / "diskstats", b" 2203 ", b" 3303 "),
        (roots.sys / "kernel/irq/35/per_cpu_count", b"200", b"9999"),
    ):
        data = path.read_bytes()
        assert old in data
        # in place: the sampler keeps the file open
        with path.open("r+b") as file:
            file.write(data.replace(old, new))
    sample = sampler.sample()
    assert sample.disks["vda"].reads == 3303
    assert sample.irqs[35][1] == 9999
    sampler.close()


def test_the_clocks_are_of_the_middle_of_reading_diskstats(roots: Roots) -> None:
    clock = Clock(0, 400, 5000, 7000)
    start = clock.now
    sampler = KernelSampler(roots, ["vda"], [], clock)
    before = time.time_ns() / 1e6
    sample = sampler.sample()
    assert sample.monotonic_ns == start + 200
    assert sample.ipi_ns == start + 400 + 5000 + 3500
    assert sample.took_ns == 400 + 5000 + 7000
    assert before - 1 <= sample.wall_ms <= time.time_ns() / 1e6
    sampler.close()


def test_interrupts_come_from_the_table_where_there_is_nothing_else(roots: Roots) -> None:
    sampler = KernelSampler(roots, ["vda"], [35, 38])
    assert sampler.sample().irqs == {35: {0: 0, 1: 200, 2: 0, 3: 0}, 38: {0: 16, 1: 0, 2: 0}}
    sampler.close()


class SlowTable:
    """A clock that lets each reading of /proc/interrupts by its thread take ``cost_ns``, and all
    else no time: it advances at every second look of that thread."""

    def __init__(self, cost_ns: int) -> None:
        self.cost_ns = cost_ns
        self.lock = threading.Lock()
        self.now = 1_000_000_000
        self.looks = 0

    def __call__(self) -> int:
        with self.lock:
            if threading.current_thread().name == "interrupts":
                self.looks += 1
                self.now += self.cost_ns if self.looks % 2 == 0 else 0
            return self.now


def wide(roots: Roots, monkeypatch: pytest.MonkeyPatch, cost_ns: int = 4_500_000) -> KernelSampler:
    """A machine with too many CPUs to read the table within the first sample."""
    monkeypatch.setattr(kernel, "MAX_CHEAP_CPUS", 3)
    return KernelSampler(roots, ["vda"], [35], SlowTable(cost_ns))


def settled(sampler: KernelSampler) -> KernelSample:
    """Take a sample, then wait for the table that it has begun to read."""
    sample = sampler.sample()
    thread = sampler._calls and sampler._calls._thread
    if thread:
        thread.join()
    return sample


def test_a_costly_table_is_read_beside_some_samples_only(
    roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = wide(roots, monkeypatch)
    samples = [settled(sampler) for _ in range(12)]
    # sample 0 starts the first reading, and the next one follows at once, so that there is a rate;
    # then one sample in five
    assert [n for n, sample in enumerate(samples) if sample.ipi is not None] == [1, 2, 7]
    assert all((sample.ipi is None) == (sample.ipi_ns is None) for sample in samples)
    assert all(35 in sample.irqs for sample in samples)
    assert samples[1].ipi == {0: 3182, 1: 2096, 2: 2931}
    assert samples[1].ipi_ns == 1_000_000_000 + 2_250_000
    assert sampler.unavailable == {}
    sampler.close()


def test_a_turned_knob_has_the_table_read_beside_each_sample(
    roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = wide(roots, monkeypatch, 400_000_000)
    for _ in range(4):
        settled(sampler)
    sampler.follow_interrupts(3)
    samples = [settled(sampler) for _ in range(6)]
    assert [sample.ipi is not None for sample in samples] == [False, *[True] * 3, False, False]
    sampler.close()


def test_a_sample_does_not_wait_for_the_table(
    roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = wide(roots, monkeypatch)
    go_on = threading.Event()
    real = KernelFile.chunks

    def pieces(file: KernelFile) -> Iterator[bytes]:
        if threading.current_thread().name == "interrupts":
            assert go_on.wait(60)
        return real(file)

    monkeypatch.setattr(KernelFile, "chunks", pieces)
    assert [sampler.sample().ipi for _ in range(5)] == [None] * 5
    assert threads() == 1
    go_on.set()
    settled(sampler)
    assert settled(sampler).ipi is not None
    sampler.close()
    assert threads() == 0


def threads() -> int:
    return sum(thread.name == "interrupts" for thread in threading.enumerate())


def test_a_table_that_was_costly_once_is_read_within_the_samples_again(roots: Roots) -> None:
    reads = (0, 0, 0, 4_500_000, 0)
    sampler = KernelSampler(roots, ["vda"], [35], Clock(*reads))
    assert settled(sampler).ipi is not None
    assert settled(sampler).ipi is None
    assert all(sampler.sample().ipi is not None for _ in range(5))
    sampler.close()


def test_a_table_that_can_not_be_read_any_more(
    roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = wide(roots, monkeypatch)
    real = KernelFile.chunks

    def pieces(file: KernelFile) -> Iterator[bytes]:
        if threading.current_thread().name == "interrupts":
            raise PermissionError(13, "Permission denied")
        return real(file)

    monkeypatch.setattr(KernelFile, "chunks", pieces)
    assert [settled(sampler).ipi for _ in range(3)] == [None] * 3
    assert sampler.unavailable == {"interrupts": "Permission denied"}
    sampler.close()


@pytest.mark.usefixtures("no_leak")
def test_closing_waits_for_a_reading(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = wide(roots, monkeypatch)
    sampler.sample()
    sampler.close()
    assert threads() == 0


def test_only_the_disks(roots: Roots) -> None:
    sampler = KernelSampler(roots, ["vda"], [35])
    assert sampler.disks() == sampler.sample().disks
    sampler.close()


def test_a_cheap_table_is_read_always(roots: Roots) -> None:
    sampler = KernelSampler(roots, ["vda"], [35], Clock(0, 0, 0, 1_900_000, 0))
    assert all(sampler.sample().ipi for _ in range(5))
    sampler.close()


def test_a_costly_table_is_read_always_if_it_is_the_only_source(roots: Roots) -> None:
    sampler = KernelSampler(roots, ["vda"], [38], Clock(*(0, 0, 0, 9_000_000, 0) * 9))
    assert all(sampler.sample().irqs[38] for _ in range(3))
    sampler.close()


@pytest.mark.parametrize("missing", ["diskstats", "stat", "softirqs", "interrupts"])
def test_what_is_not_there_is_named_and_left_out(roots: Roots, missing: str) -> None:
    (roots.proc / missing).unlink()
    sampler = KernelSampler(roots, ["vda"], [35])
    sample = sampler.sample()
    assert sampler.unavailable == {missing: "No such file or directory"}
    parts = {
        "diskstats": sample.disks,
        "stat": sample.cpus,
        "softirqs": sample.softirq_block,
        "interrupts": sample.ipi,
    }
    assert {name for name, part in parts.items() if not part} == {missing}
    assert sample.irqs[35][1] == 200
    assert (sample.ipi_ns is None) == (missing == "interrupts")
    sampler.close()


def test_nothing_at_all_is_an_empty_sample(tmp_path: Path) -> None:
    sampler = KernelSampler(Roots.under(tmp_path), ["vda"], [35])
    sample = sampler.sample()
    assert (sample.disks, sample.cpus, sample.softirq_block, sample.irqs) == ({}, {}, {}, {})
    assert sample.ipi is None
    assert set(sampler.unavailable) == {"diskstats", "stat", "softirqs", "interrupts"}
    sampler.close()


def test_an_interrupt_that_goes_away(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel does this when a device is unplugged: reading the open file gives ENODEV."""
    sampler = KernelSampler(roots, ["vda"], [35, 37])
    real = KernelFile.read_attribute
    gone = sampler._irqs[35]

    def read(file: KernelFile) -> bytes:
        if file is gone:
            raise OSError(19, "No such device")
        return real(file)

    monkeypatch.setattr(KernelFile, "read_attribute", read)
    assert list(sampler.sample().irqs) == [37]
    assert sampler.unavailable == {"irq 35": "No such device"}
    assert list(sampler.sample().irqs) == [37]
    sampler.close()


def test_retargeting_watches_others_and_tries_again(roots: Roots) -> None:
    hidden = roots.proc / "stat"
    data = hidden.read_bytes()
    hidden.unlink()
    sampler = KernelSampler(roots, ["vda"], [35])
    assert sampler.sample().cpus == {}
    hidden.write_bytes(data)
    sampler.retarget(["nvme0n1"], [37])
    sample = sampler.sample()
    assert list(sample.disks) == ["nvme0n1"]
    assert list(sample.irqs) == [37]
    assert list(sample.cpus) == [0, 1, 2]
    assert sampler.unavailable == {}
    sampler.close()


def test_a_large_file_is_read_to_its_end(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc gives one page at a time, however much is requested."""
    monkeypatch.setattr(kernel_files, "CHUNK", 100)
    sampler = KernelSampler(roots, ["vda", "nvme0n1", "loop7"], [])
    sample = sampler.sample()
    assert list(sample.disks) == ["vda", "nvme0n1", "loop7"]
    assert sample.ipi == {0: 3182, 1: 2096, 2: 2931}
    sampler.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def no_leak() -> Iterator[None]:
    before = open_files()
    yield
    assert open_files() == before


@pytest.mark.usefixtures("no_leak")
def test_all_files_are_closed(roots: Roots) -> None:
    sampler = KernelSampler(roots, ["vda"], [35, 37])
    sampler.retarget(["vda"], [37])
    sampler.retarget(["vda"], [35, 35])
    sampler.sample()
    sampler.close()
    sampler.close()


def test_this_machine() -> None:
    """Files that are hidden here (in a container) are named; all others are counted."""
    sampler = KernelSampler(Roots(), [], [])
    first, second = sampler.sample(), sampler.sample()
    for name, part in (("stat", second.cpus), ("softirqs", second.softirq_block)):
        assert bool(part) != (name in sampler.unavailable)
    assert second.monotonic_ns > first.monotonic_ns
    assert second.took_ns > 0
    assert all(second.cpus[cpu].user >= times.user for cpu, times in first.cpus.items())
    sampler.close()
