"""The probe against other counters of the kernel: diskstats, raw trace events, its loaded programs.

Tests that need a disk with one queue for several CPUs run in the lab."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import program
import pytest
from machine import loop, mapped, needs, scsi_debug, sectors, sh

from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.own_threads import Clock
from iopstui.linux.probe.bpf import NUMBERS
from iopstui.linux.probe.bpf_probe import BpfProbe
from iopstui.linux.probe.regions import Region, regions
from iopstui.model.histogram import bucket_key, percentiles
from iopstui.model.metrics.probe import ProbeInterval, ProbeIntervals
from iopstui.model.samples import ProbeSample

ROOTS = Roots()
# an emulated CPU takes much longer for all it computes
EMULATED = "TCG" in Path("/proc/cpuinfo").read_text()
FIELDS = {"read": (0, 3), "write": (4, 7), "discard": (11, 14)}


TRACEFS = Path("/sys/kernel/tracing")


@pytest.fixture
def disk(here: Path) -> Iterator[str]:
    with loop(here / "file") as node:
        yield node


def name_of(node: str) -> str:
    number = os.stat(node).st_rdev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    return place.resolve().name


class Probed:
    """Counts of the probe and of diskstats between two moments without I/O."""

    def __init__(self, names: list[str]) -> None:
        self._probe = BpfProbe(regions(names, read_devices(ROOTS), ROOTS), 1, Clock(), ROOTS)
        self._names = names
        self.diskstats: dict[str, list[int]] = {}
        self.interval: ProbeInterval | None = None

    def __enter__(self) -> Probed:
        self._before = self._reading()
        self._then = counters(self._names)
        return self

    def __exit__(self, *_: object) -> None:
        after, now = self._reading(), counters(self._names)
        assert self._probe.problem() == ""
        self._probe.close()
        fold = ProbeIntervals()
        fold.feed(self._before, 0)
        self.interval = fold.feed(after, 0)
        self.diskstats = {
            name: [b - a for a, b in zip(self._then[name], now[name], strict=True)]
            for name in self._names
        }

    def _reading(self) -> ProbeSample:
        """A reading at a moment without I/O, when all requests have been counted."""
        deadline, quiet = time.monotonic() + 5.0, 0
        last: ProbeSample | None = None
        while quiet < 5:
            one = self._probe.take()
            assert time.monotonic() < deadline, self._probe.problem() or "it says nothing"
            if one is not None:
                quiet = quiet + 1 if last is not None and one.device == last.device else 0
                last = one
            time.sleep(0.1)
        assert last is not None
        return last


def counters(names: list[str]) -> dict[str, list[int]]:
    rows = (line.split() for line in Path("/proc/diskstats").read_text().splitlines())
    return {row[2]: [int(word) for word in row[3:]] for row in rows if row[2] in names}


def fio(node: str, *options: str) -> None:
    sh("fio", "--name=x", f"--filename={node}", "--ioengine=libaio", "--direct=1", "--time_based",
       "--runtime=3", "--output=/dev/null", *options)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "own_us", "untold"),
    [
        (("--rw=randread", "--bs=4k", "--iodepth=8"), 4, 0.001),
        (("--rw=randrw", "--bs=16k", "--iodepth=4"), 12, 0.001),
        # a few buffered writes of a loop device end without the tracepoint
        (("--rw=write", "--bs=1m", "--iodepth=2"), 300, 0.005),
        (("--rw=randtrim", "--bs=64k", "--iodepth=1", "--rate_iops=200"), 0, 0.001),
    ],
)
def test_counts_and_times_are_those_of_diskstats(
    disk: str, options: tuple[str, ...], own_us: int, untold: float
) -> None:
    """The kernel reads its clock before and after the probe's programs. In between it takes
    ``own_us`` to tell the program of the completion, for each page of the request."""
    name = name_of(disk)
    with Probed([name]) as probed:
        fio(disk, *options)
    found = probed.interval
    assert found is not None and not found.doubtful
    for kind, (count, ms) in FIELDS.items():
        part, ios = found.disks[name][kind], probed.diskstats[name][count]
        lost = 0.01 * (found.missed or 0) * ios
        assert part.device.ios == pytest.approx(ios, abs=2 + lost + untold * ios), kind
        if ios > 1000:
            assert part.waiting is not None and part.waiting.ios == part.device.ios, kind
            sizes = sum(size * n for size, n in part.sizes.items())
            assert sizes == pytest.approx(512 * probed.diskstats[name][count + 2], rel=0.02), kind
        if ios > 1000 and part.waiting is not None:
            mine = ((part.waiting.mean_ns or 0) + (part.device.mean_ns or 0)) / 1e6 * ios
            theirs = probed.diskstats[name][ms]
            least = 0.8 * theirs if EMULATED else 0.99 * theirs - own_us * 1e-3 * ios
            assert least <= mine <= theirs * 1.01, kind


def trace_events(name: str, do: Callable[[], None]) -> list[tuple[float, str, int]]:
    """(seconds, "issue" or "complete", sector) of this disk, from a trace buffer of our own."""
    if not (TRACEFS / "events").is_dir():
        sh("mount", "-t", "tracefs", "tracefs", str(TRACEFS))
    own = TRACEFS / "instances" / "iopstui-test"
    own.mkdir()
    try:
        major, minor = Path("/sys/block", name, "dev").read_text().split(":")
        (own / "buffer_size_kb").write_text("32768")
        (own / "trace_clock").write_text("mono")
        for event in ("block_rq_issue", "block_rq_complete"):
            (own / "events/block" / event / "filter").write_text(
                f"dev == {int(major) << 20 | int(minor)}"
            )
            (own / "events/block" / event / "enable").write_text("1")
        do()
        rows = (own / "trace").read_text().splitlines()
    finally:
        (own / "events/enable").write_text("0")
        own.rmdir()
    form = re.compile(r"([\d.]+): block_rq_(issue|complete): \S+ R\S* .*?(\d+) \+ \d+ ")
    return [(float(m[1]), m[2], int(m[3])) for row in rows if (m := form.search(row))]


def test_percentiles_are_those_of_the_raw_events_of_the_same_requests(disk: str) -> None:
    name = name_of(disk)
    with Probed([name]) as probed:
        rows = trace_events(
            name, lambda: fio(disk, "--rw=randread", "--bs=4k", "--iodepth=2", "--rate_iops=3000")
        )
    begun: dict[int, float] = {}
    bins: dict[int, int] = {}
    for at, event, sector in rows:
        if event == "issue":
            begun[sector] = at
        elif sector in begun:
            # trace events have whole microseconds
            key = bucket_key(round((at - begun.pop(sector)) * 1e9))
            bins[key] = bins.get(key, 0) + 1
    assert probed.interval is not None
    ours = probed.interval.disks[name]["read"].device.bins
    assert sum(bins.values()) == pytest.approx(sum(ours.values()), rel=0.001)
    for p in (50.0, 90.0, 99.0, 99.9):
        # one in five hundred may be interrupted between the two clock readings
        near = percentiles(bins, (p - 0.2, min(p + 0.2, 100.0)))
        mine = percentiles(ours, (p,))[p]
        assert min(near.values()) * (1 - 1 / 64) - 1500 <= mine, p
        assert mine <= max(near.values()) * (1 + 1 / 64) + 1500, p


def test_bios_of_a_device_without_requests(disk: str) -> None:
    needs("dmsetup", modules=("dm-mod",))
    with mapped("iopstui-probe", f"0 {sectors(disk)} linear {disk} 0") as node:
        above, below = name_of(node), name_of(disk)
        with Probed([above, below]) as probed:
            fio(node, "--rw=randrw", "--bs=4k", "--iodepth=4", "--rate_iops=2000")
        found = probed.interval
        assert found is not None
        for kind in ("read", "write"):
            upper, lower = (found.disks[one][kind].device for one in (above, below))
            assert upper.ios == lower.ios == probed.diskstats[above][FIELDS[kind][0]]
            assert (upper.mean_ns or 0) > (lower.mean_ns or 0) > 0


@contextmanager
def mirror(*nodes: str) -> Iterator[str]:
    sh("mdadm", "--create", "/dev/md126", "--run", "--assume-clean", "--level=1",
       f"--raid-devices={len(nodes)}", *nodes)  # fmt: skip
    try:
        yield "/dev/md126"
    finally:
        sh("mdadm", "--stop", "/dev/md126", check=False)


def test_a_mirror_and_the_disks_below_it(disk: str, here: Path) -> None:
    needs("mdadm", modules=("raid1",))
    with loop(here / "second") as second, mirror(disk, second) as node:
        above, *below = (name_of(one) for one in (node, disk, second))
        with Probed([above, *below]) as probed:
            fio(node, "--rw=randrw", "--bs=4k", "--iodepth=4", "--rate_iops=300")
        found = probed.interval
        assert found is not None
        for kind in ("read", "write"):
            count = FIELDS[kind][0]
            upper = found.disks[above][kind].device.ios
            assert upper == pytest.approx(probed.diskstats[above][count], abs=2) and upper > 300
            # the mirror also writes its bitmap of regions in use
            for one in below:
                lower = found.disks[one][kind].device.ios
                assert lower == pytest.approx(probed.diskstats[one][count], abs=2), (one, kind)


def with_serial(serial: str) -> str:
    for file in (*Path("/sys/block").glob("*/serial"), *Path("/sys/block").glob("*/device/serial")):
        if file.read_text().strip() == serial:
            return f"/dev/{file.parts[3]}"
    pytest.skip(f"no disk {serial}: run this in the lab")


def test_a_disk_of_two_paths() -> None:
    name = with_serial("MPATHNS").removeprefix("/dev/").replace("c1n", "n").replace("c2n", "n")
    with Probed([name]) as probed:
        fio(f"/dev/{name}", "--rw=randread", "--bs=4k", "--iodepth=4", "--rate_iops=300")
    found = probed.interval
    assert found is not None
    counted = probed.diskstats[name][0]
    assert found.disks[name]["read"].device.ios == pytest.approx(counted, abs=2) and counted > 300
    assert found.matrix, "submitters and completers, too"


def test_a_flush_is_no_write(disk: str) -> None:
    name = name_of(disk)
    with Probed([name]) as probed:
        fio(disk, "--rw=randwrite", "--bs=4k", "--fsync=1", "--rate_iops=200")
    found, counted = probed.interval, probed.diskstats[name]
    assert found is not None
    assert counted[15] > 100, "the loop device was told to flush"
    # diskstats counts an empty flush as a write, too
    assert found.disks[name]["write"].device.ios == pytest.approx(counted[4] - counted[15], abs=2)


def test_what_is_sent_again_is_counted_once() -> None:
    # scsi_debug(4): opts=0x8000, every 20th command finds the host busy
    with scsi_debug(opts=0x8000, every_nth=20, ndelay=100_000, dev_size_mb=64) as node:
        name = name_of(node)
        with Probed([name]) as probed:
            fio(node, "--rw=randread", "--bs=4k", "--iodepth=8", "--rate_iops=500")
    found, counted = probed.interval, probed.diskstats[name][0]
    assert found is not None and not found.missed
    assert found.requeued_s, "the kernel has sent some again"
    # a program that another one interrupts, as on a slow emulated CPU, does not count its request
    least = counted - 2 - (found.skipped or 0)
    assert least <= found.disks[name]["read"].device.ios <= counted + 2 and counted > 300


def one_queue() -> str:
    """A virtio disk of one queue that several CPUs share."""
    if (os.cpu_count() or 1) == 1:
        pytest.skip("one CPU: run this in the lab")
    return with_serial("VBLK1Q")


@pytest.mark.parametrize("affinity", [0, 2])
def test_rq_affinity_is_seen_as_it_is(affinity: int) -> None:
    node = one_queue()
    tunable = Path("/sys/block", name_of(node), "queue/rq_affinity")
    before = tunable.read_text()
    tunable.write_text(str(affinity))
    try:
        with Probed([name_of(node)]) as probed:
            fio(node, "--rw=randread", "--bs=4k", "--iodepth=2", "--numjobs=4", "--rate_iops=500",
                "--cpus_allowed=0-3", "--cpus_allowed_policy=split")  # fmt: skip
    finally:
        tunable.write_text(before)
    assert probed.interval is not None
    matrix = probed.interval.matrix
    total = sum(sum(row.values()) for row in matrix.values())
    columns = {cpu for row in matrix.values() for cpu in row}
    assert len(matrix) == 4
    if affinity == 2:
        assert sum(matrix[cpu].get(cpu, 0.0) for cpu in matrix) >= 0.99 * total
    else:
        assert len(columns) == 1, "where the interrupt goes"


# -- what is left


def bpf_programs() -> int:
    """The number of BPF programs in the kernel (BPF_PROG_GET_NEXT_ID)."""
    attr = (ctypes.c_uint32 * 32)()
    call, number, count = ctypes.CDLL(None).syscall, NUMBERS[platform.machine()], 0
    while call(number, 11, ctypes.byref(attr), ctypes.sizeof(attr)) == 0:
        attr[0], count = attr[1], count + 1
    return count


def until(what: Callable[[], object], within: float = 15.0) -> None:
    deadline = time.monotonic() + within
    while not what():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_however_it_ends_nothing_is_left_in_the_kernel(number: int, here: Path) -> None:
    programs = bpf_programs()
    us = program.start("run", ".", "--job", "randread-4k", "--size", "16m", "--set", "runtime=60",
                       "--probe", cwd=here)  # fmt: skip
    try:
        program.wait_for_fio(us.pid, within=90.0)
        assert bpf_programs() > programs
        us.send_signal(number)
        us.wait(20)
    finally:
        us.kill()
    until(lambda: bpf_programs() == programs)
    if number == signal.SIGKILL:
        sh("sh", "-c", "sleep 2")
        program.iopstui("doctor", cwd=here)


def test_a_run_has_all_the_details(here: Path) -> None:
    if not os.major(os.stat(here).st_dev):
        pytest.skip("no block device is under these files")
    done = program.iopstui(
        "run", ".", "--job", "randread-4k", "--size", "16m", "--set", "runtime=2", "--probe",
        "--format", "jsonl", cwd=here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "probe on: about" in done.stderr
    frames = [row for row in program.events(done.stdout) if row["event"] == "frame"]
    reads = [frame["device"]["read"] for frame in frames if frame["device"] is not None]
    assert any(read and read["waiting"] and "4096" in read["sizes"] for read in reads)


@pytest.mark.parametrize("both", [True, False])
def test_partitions_are_counted_by_their_sectors(disk: str, both: bool) -> None:
    name = name_of(disk)
    size = sectors(disk)
    major, minor = (int(word) for word in Path("/sys/block", name, "dev").read_text().split(":"))
    whole, half = Region("whole", major, minor), size // 2
    lower = Region("lower", major, minor, 0, half - 1)
    upper = Region("upper", major, minor, half, size - 1)
    one = BpfProbe((whole, lower, upper) if both else (whole, upper), 1, Clock(), ROOTS)
    done = [counters([name])[name][0]]
    try:
        for part in (f"--offset={half * 512}", f"--size={half * 512}"):
            fio(disk, "--rw=randread", "--bs=4k", "--rate_iops=300", part)
            done.append(counters([name])[name][0])
        found = one.take()
    finally:
        one.close()
    assert found is not None and done[2] - done[1] > 300
    assert sum(ios(found, "whole")) == pytest.approx(done[2] - done[0], abs=2)
    assert sum(ios(found, "upper")) == pytest.approx(done[1] - done[0], abs=2)
    if both:
        assert sum(ios(found, "whole")) == sum(ios(found, "upper")) + sum(ios(found, "lower"))


def ios(sample: ProbeSample, name: str) -> list[int]:
    return [sum(bins.values()) for bins in sample.device[name].values()]
