"""The probe: iopstui's own programs at the block layer's tracepoints, their counts and their
cost.

``ProbeCost`` has the run time of the programs (BPF_ENABLE_STATS, bpf(2)), and how often one was
skipped. Measuring the run time costs some time at every run of every BPF program of the machine, so
it is only switched on briefly from time to time. It is bound to a file descriptor, so it is off
when the process ends, however it ends.

It needs the kernel's BTF and programs with typed arguments (Linux 5.5), but no tracefs. The kernel
checks the programs against its types when they are loaded; their counts are compared with
/proc/diskstats until enough requests were seen. Everything is bound to file descriptors: nothing
stays in the kernel when the process ends, however it ends."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import NamedTuple

from iopstui.linux.counters.cgroup import CgroupPaths
from iopstui.linux.kernel_files import Roots, read_bytes, read_int, read_text
from iopstui.linux.machine.topology import possible_cpus
from iopstui.linux.own_threads import Clock
from iopstui.linux.probe import bios, bpf, counting, slowest, tasks
from iopstui.linux.probe.bins import DIRECTION_AT, REGION_AT, bucket_middle, counts_by_disk, size_of
from iopstui.linux.probe.counting import CountMap, Details, InFlightMap, MatrixMap
from iopstui.linux.probe.regions import Region
from iopstui.model.metrics.probe import KINDS, LATENCY, MATRIX, PROCESSES, SIZES, WAY
from iopstui.model.samples import ProbeSample
from iopstui.text import printable

# tags of a disk whose queues can't be read (a hidden path): as many as any driver has
MAX_TAGS = 1 << 10
MAX_SLOTS = 1 << 17


def tags_and_queues(dev: int, roots: Roots, with_scheduler: bool = False) -> tuple[int, int]:
    """Tags of each hardware queue of the disk, and the number of its queues. ``with_scheduler``:
    include the I/O scheduler's tags, which are separate."""
    disk = roots.sys / f"dev/block/{dev >> 20}:{dev & 0xFFFFF}"
    with contextlib.suppress(OSError):
        tags = [read_int(queue / "nr_tags") or 0 for queue in (disk / "mq").iterdir()]
        if any(tags):
            scheduler_tags = read_int(disk / "queue/nr_requests") or 0 if with_scheduler else 0
            return max(*tags, scheduler_tags), len(tags)
    return MAX_TAGS, MAX_SLOTS // MAX_TAGS


def new_in_flight_map(dev: int, tags: int, queues: int, bits: int, name: str) -> InFlightMap:
    """Make a map for requests in flight, with slots of 2 to the power of ``bits`` bytes. The caller
    closes its descriptor. OSError if the kernel refuses."""
    slots = min(1 << (tags * queues - 1).bit_length(), MAX_SLOTS)
    return InFlightMap(dev, bpf.new_value_map(slots << bits, name), tags, slots - 1, bits)


BPF_STATS_RUN_TIME = 0
# a program counts as one that runs per I/O if it runs at least this part as often as the one that
# runs most
RUNS_PER_IO = 0.3
# in one of this many readings, the kernel's measuring of their run time is on until the next one
COUNT_EVERY = 10


@dataclass(frozen=True, slots=True)
class BpfRunStats:
    """Statistics of a process's BPF programs: ``spent_ns`` is the time of the programs that run per
    I/O, in ``ios`` calls (0: not counted), and ``skipped`` the number of calls left out because
    another program ran on that CPU."""

    spent_ns: int
    ios: int
    skipped: int


class BpfPrograms:
    """The BPF programs of a process (from ``fdinfo`` of its descriptors; all of them, or only
    ``fds``)."""

    def __init__(self, pid: int, proc: Path = Path("/proc"), fds: Sequence[int] = ()) -> None:
        self._fdinfo = proc / str(pid) / "fdinfo"
        self._files = [self._fdinfo / str(fd) for fd in fds]

    def read(self) -> BpfRunStats | None:
        """The statistics so far; ``None`` if the kernel does not report them."""
        try:
            if not self._files:
                self._files = [f for f in self._fdinfo.iterdir() if "prog_id" in _read_fdinfo(f)]
            fdinfos = [_read_fdinfo(file) for file in self._files]
            runs = [(int(fdinfo["run_cnt"]), int(fdinfo["run_time_ns"])) for fdinfo in fdinfos]
            skipped = sum(int(fdinfo.get("recursion_misses", 0)) for fdinfo in fdinfos)
        except (OSError, ValueError, KeyError):
            return None
        if not runs:
            return None
        ios = max(count for count, _ in runs)
        return BpfRunStats(
            sum(ns for count, ns in runs if count >= RUNS_PER_IO * ios), ios, skipped
        )


def _read_fdinfo(file: Path) -> dict[str, str]:
    return dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)


class RunTimeStats:
    """Switches the kernel's measuring of BPF run time on and off."""

    def __init__(self) -> None:
        self._fd = -1

    @property
    def enabled(self) -> bool:
        return self._fd >= 0

    def enable(self) -> None:
        """Switch the measuring on. Without Linux 5.8 and CAP_SYS_ADMIN nothing happens."""
        if not self.enabled:
            self._fd = bpf.call(bpf.ENABLE_STATS, struct.pack("I", BPF_STATS_RUN_TIME))

    def end(self) -> None:
        """Switch the measuring off. Idempotent."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = -1


class ProbeCost:
    """Adds the probe's cost to readings. The kernel measures run time only during one of
    ``COUNT_EVERY`` readings."""

    def __init__(self, programs: BpfPrograms) -> None:
        self._programs = programs
        self._run_time = RunTimeStats()
        self._stats = BpfRunStats(0, 0, 0)
        self._readings = 0

    def with_cost(self, sample: ProbeSample, busy_s: float | None) -> ProbeSample:
        """``sample`` with these costs added. ``busy_s`` is the CPU time of the reader."""
        self._readings += 1
        stats = self._programs.read() or self._stats
        if self._run_time.enabled:
            self._run_time.end()
            self._stats = stats
        elif self._readings % COUNT_EVERY == 2:
            self._run_time.enable()
        return replace(
            sample, busy_s=busy_s, run_ns=self._stats.spent_ns, run_ios=self._stats.ios,
            counts={**sample.counts, "skipped": stats.skipped},
        )  # fmt: skip

    def close(self) -> None:
        """Switch the measuring of run time off. Idempotent."""
        self._run_time.end()


BTF = "kernel/btf/vmlinux"
MAX_BANKS = 8
MAX_BANK_BYTES = 4 << 20
MAX_MATRIX_BITS = 9
"""Bits of a CPU's number in the matrix: with 512 CPUs it takes 2 MiB."""
# so many requests are enough to prove that the programs count
ENOUGH_REQUESTS = 1000
MIN_SEEN_SHARE = 0.9
# positions of counts in a disk's stat file (Documentation/block/stat.rst)
_COMPLETED_AT = {"read": 0, "write": 4, "discard": 11}
_FLUSHES_AT = 15
_ZEROS = bytes(counting.KIND_BYTES)
_SIZE_KIND_BYTES = 1 << counting.SIZE_KIND_BITS


class ProbeUnusable(Exception):
    """Error: these programs cannot count here; the message gives the reason."""


def loadable_parts(roots: Roots) -> tuple[str, ...]:
    """The parts that the probe could count here: loads the programs without attaching them. Raises
    ProbeUnusable."""
    probe = BpfProbe((Region("", 0, 0),), 1, Clock(), roots, attach=False)
    parts = probe.parts
    probe.close()
    return parts


class _Completed(NamedTuple):
    """Counts of a disk's completions: requests by kind, and flushes (``None`` before Linux 5.5)."""

    ios: Mapping[str, int]
    flushes: int | None


class BpfProbe:
    """Counts the requests of the disks in the kernel, from its construction on. Raises
    ProbeUnusable if that is not possible here."""

    def __init__(
        self, regions: Sequence[Region], probe_number: int, clock: Clock, roots: Roots,
        attach: bool = True,
    ) -> None:  # fmt: skip
        self._regions = tuple(regions)
        self._probe_number = probe_number
        self._clock = clock
        self._roots = roots
        self._busy_s = 0.0
        self._problem = ""
        self._fds: list[int] = []
        self._memory: mmap.mmap | None = None
        self._slowest_memory: mmap.mmap | None = None
        self._slowest: slowest.SlowestReader | None = None
        self._tasks_memory: mmap.mmap | None = None
        self._tasks: tasks.TaskReader | None = None
        self._matrix_memory: mmap.mmap | None = None
        self._matrix: MatrixMap | None = None
        self._groups = CgroupPaths(roots)
        self._costs: ProbeCost | None = None
        try:
            types = read_bytes(roots.sys / BTF) or b""
            programs = self._load_all(counting.kernel_types(types))
            if any(region.bios for region in regions):
                programs += self._load_bios(bios.bio_types(types))
            self._fds += [bpf.attach_program(fd) for fd in programs if attach]
        except (ValueError, KeyError) as error:
            self.close()
            raise ProbeUnusable(
                f"this kernel's type information (BTF) lacks what is needed ({error})"
            ) from None
        except OSError as error:
            self.close()
            raise ProbeUnusable(f"the kernel refuses the programs ({error.strerror})") from None
        self._costs = ProbeCost(BpfPrograms(os.getpid(), fds=programs))
        # leave out disks counted by bios: dm counts the parts of a bio that it splits
        self._completed_at_start = {
            r: self._completed(r) for r in regions if r.last is None and not r.bios
        }
        self._unverified = dict(self._completed_at_start)
        self._uncounted = 0

    def take(self) -> ProbeSample | None:
        """Read the counts so far; ``None`` once closed."""
        if self._memory is None or self._costs is None:
            return None
        began = time.thread_time()
        # read before the bins: a request that completes in between must not count as missing
        completed = {region: self._completed(region) for region in self._completed_at_start}
        now = self._clock.monotonic_ns()
        if self._slowest is not None:
            self._slowest.swap_buffers()
        sample = self._read(self._memory, now)
        if self._slowest is not None:
            # writes that programs had begun before the swap are complete by now
            sample = replace(sample, exemplars=self._slowest.read())
        self._busy_s += time.thread_time() - began
        sample = self._with_uncounted(self._costs.with_cost(sample, self._busy_s), completed)
        if self._unverified:
            self._verify(sample, completed)
        return sample

    @property
    def parts(self) -> tuple[str, ...]:
        """The things that the probe counts."""
        more = {WAY: self._slowest, SIZES: self._slowest, MATRIX: self._matrix,
                PROCESSES: self._tasks}  # fmt: skip
        return (LATENCY, *(part for part, reader in more.items() if reader is not None))

    def problem(self) -> str:
        """Why the probe's figures must not be used; "" if there is no known reason."""
        return self._problem

    def close(self) -> None:
        """Close all descriptors, so that the kernel removes the programs. Idempotent."""
        memory, self._memory = self._memory, None
        slowest_memory, self._slowest_memory, self._slowest = self._slowest_memory, None, None
        tasks_memory, self._tasks_memory, self._tasks = self._tasks_memory, None, None
        matrix_memory, self._matrix_memory, self._matrix = self._matrix_memory, None, None
        for memory_map in (memory, slowest_memory, tasks_memory, matrix_memory):
            if memory_map is not None:
                memory_map.close()
        self._groups.close()
        if self._costs is not None:
            self._costs.close()
        bpf.close_all(self._fds)

    def _load_all(self, kernel: counting.KernelTypes) -> list[int]:
        """Load the programs, with as many details as this kernel accepts."""
        for by_task in (True, False) if kernel.origin is not None else ():
            with contextlib.suppress(OSError):
                return self._load(kernel, True, by_task)
            bpf.close_all(self._fds)
        return self._load(kernel, False, False)

    def _load(self, kernel: counting.KernelTypes, detailed: bool, by_task: bool) -> list[int]:
        bits = slowest.SLOT_BITS if detailed else counting.SLOT_BITS
        devs = sorted({dev for region in self._regions if not region.bios for dev in region.devs})
        slots = [self._new_in_flight_map(dev, bits) for dev in devs]
        self._bins, size = self._new_bins_map()
        self._fds.append(self._bins.fd)
        details = self._new_details(by_task) if detailed and slots else None
        programs = []
        if slots:
            complete = counting.completion_program(
                kernel, slots, self._bins, self._regions, details
            )
            texts = {
                counting.ISSUE: counting.issue_program(kernel, slots, detailed),
                counting.COMPLETE: complete,
                counting.REQUEUE: counting.requeue_program(kernel, slots, self._bins),
            }
            if detailed:
                texts[counting.INSERT] = counting.insertion_program(kernel, slots)
            programs = [
                self._load_program(text, event, kernel.tracepoints[event])
                for event, text in texts.items()
            ]
        self._memory = mmap.mmap(self._bins.fd, size, mmap.MAP_SHARED, mmap.PROT_READ)
        if details is not None:
            self._map_details(details)
        return programs

    def _load_bios(self, kernel: bios.BioTypes) -> list[int]:
        in_flight = bpf.new_hash_map(bios.VALUE_BYTES, bios.MAX_IN_FLIGHT, "iops_bios")
        self._fds.append(in_flight)
        texts = {
            bios.QUEUE: bios.queue_program(kernel, in_flight, self._bins, self._regions),
            bios.COMPLETE: bios.completion_program(kernel, in_flight, self._bins),
        }
        return [
            self._load_program(text, event, kernel.tracepoints[event])
            for event, text in texts.items()
        ]

    def _load_program(self, text: bytes, event: str, tracepoint: int) -> int:
        # the kernel accepts names of at most 15 letters
        name = f"iops_{event.removeprefix('block_').removeprefix('rq_')}"[:15]
        fd = bpf.load_program(text, tracepoint, name)
        self._fds.append(fd)
        return fd

    def _new_details(self, by_task: bool) -> Details:
        bits = (max(possible_cpus(self._roots), default=0)).bit_length()
        matrix = None
        if bits <= MAX_MATRIX_BITS:
            self._fds.append(bpf.new_value_map(8 << 2 * bits, "iops_matrix"))
            matrix = MatrixMap(self._fds[-1], bits)
        return Details(self._new_slowest_map(), matrix, self._new_task_map() if by_task else None)

    def _map_details(self, details: Details) -> None:
        kept, matrix, by_task = details.slowest, details.matrix, details.tasks
        self._slowest_memory = mmap.mmap(kept.fd, kept.size, mmap.MAP_SHARED)
        self._slowest = slowest.SlowestReader(
            self._slowest_memory, kept.cpus, self._regions, self._groups.path
        )
        if matrix is not None:
            size = 8 << 2 * matrix.bits
            self._matrix_memory = mmap.mmap(matrix.fd, size, mmap.MAP_SHARED, mmap.PROT_READ)
            self._matrix = matrix
        if by_task is not None:
            self._tasks_memory = mmap.mmap(by_task.fd, by_task.size, mmap.MAP_SHARED)
            self._tasks = tasks.TaskReader(
                self._tasks_memory, by_task, self._regions, self._groups.path, self._name
            )

    def _name(self, pid: int) -> str:
        return printable(read_text(self._roots.proc / f"{pid}/comm") or "")

    def _new_task_map(self) -> tasks.TaskMap:
        rows, banks = tasks.size_for(os.cpu_count() or 1)
        size = tasks.map_bytes(rows)
        self._fds.append(bpf.new_value_map(size, "iops_tasks"))
        return tasks.TaskMap(self._fds[-1], rows, banks)

    def _new_slowest_map(self) -> slowest.SlowestMap:
        # a CPU's number may be as high as the last possible CPU's
        cpus = 1 << (max(possible_cpus(self._roots), default=0)).bit_length()
        fd = bpf.new_value_map(slowest.map_bytes(cpus), "iops_slowest")
        self._fds.append(fd)
        return slowest.SlowestMap(fd, cpus)

    def _new_in_flight_map(self, dev: int, bits: int) -> InFlightMap:
        tags, queues = tags_and_queues(dev, self._roots, with_scheduler=True)
        in_flight_map = new_in_flight_map(dev, tags, queues, bits, "iops_slots")
        self._fds.append(in_flight_map.fd)
        return in_flight_map

    def _new_bins_map(self) -> tuple[CountMap, int]:
        """Make the map of bins; return it and the number of bytes to map into memory."""
        cpus = os.cpu_count() or 1
        waiting_at = 1 << (len(self._regions) - 1).bit_length() << counting.REGION_BITS
        bank = 2 * waiting_at
        banks = min(1 << (cpus - 1).bit_length(), MAX_BANKS)
        while banks > 1 and banks * bank > MAX_BANK_BYTES:
            banks >>= 1
        size = banks * bank + counting.COUNTERS_BYTES
        fd = bpf.new_value_map(size, "iops_bins")
        return CountMap(fd, banks, bank.bit_length() - 1, waiting_at), size

    def _read(self, memory: mmap.mmap, now: int) -> ProbeSample:
        device = self._counts(memory, 0, counting.KIND_BYTES)
        waiting = self._counts(memory, self._bins.waiting_at, counting.KIND_BYTES)
        sizes = self._counts(memory, counting.SIZES_AT, _SIZE_KIND_BYTES)
        counters = memoryview(memory[self._bins.banks << self._bins.bank_bits :]).cast("Q")
        by_task = self._tasks.read() if self._tasks is not None else ()
        left_out = {} if self._tasks is None else {"left_out": self._tasks.left_out}
        return ProbeSample(
            time_ns=now, arrived_ns=now, parts=self.parts, begun=self._probe_number,
            device=counts_by_disk(self._regions, device, bucket_middle),
            waiting=counts_by_disk(self._regions, waiting, bucket_middle), matrix=self._by_cpu(),
            sizes=counts_by_disk(self._regions, sizes, size_of), tasks=by_task,
            counts={"missed": counters[counting.MISSED >> 3],
                    "requeued": counters[counting.REQUEUED >> 3],
                    "lost": 0, "full": 0, "skipped": 0, **left_out},
        )  # fmt: skip

    def _counts(self, memory: mmap.mmap, offset: int, kind_bytes: int) -> dict[int, int]:
        """The counts from ``offset`` on in each region, summed over all banks, by the key of
        bins.py."""
        counts: dict[int, int] = {}
        zeros = _ZEROS[:kind_bytes]
        for bank in range(self._bins.banks):
            for region in range(len(self._regions)):
                at = offset + (bank << self._bins.bank_bits | region << counting.REGION_BITS)
                for kind in range(len(KINDS)):
                    part = memory[at : at + kind_bytes]
                    at += kind_bytes
                    if part != zeros:
                        _add(counts, region << REGION_AT | kind << DIRECTION_AT, part)
        return counts

    def _by_cpu(self) -> dict[int, dict[int, int]]:
        """Requests by the CPU that allocated them and the CPU that completed them."""
        matrix: dict[int, dict[int, int]] = {}
        if self._matrix is None or self._matrix_memory is None:
            return matrix
        with memoryview(self._matrix_memory) as memory, memory.cast("Q") as words:
            cpus = 1 << self._matrix.bits
            counts = words.tolist()
        for index in compress(range(len(counts)), counts):
            done, allocated = divmod(index, cpus)
            matrix.setdefault(allocated, {})[done] = counts[index]
        return matrix

    def _completed(self, region: Region) -> _Completed:
        """The completions of the disk by the kernel's own count, without the probe."""
        place = self._roots.sys / f"dev/block/{region.major}:{region.minor}/stat"
        fields = [int(field) for field in (read_text(place) or "").split() if field.isdigit()]
        ios = {kind: fields[at] for kind, at in _COMPLETED_AT.items() if at < len(fields)}
        return _Completed(ios, fields[_FLUSHES_AT] if len(fields) > _FLUSHES_AT else None)

    def _with_uncounted(
        self, sample: ProbeSample, completed: Mapping[Region, _Completed]
    ) -> ProbeSample:
        """Count completions at which the kernel did not run the programs as missed. Under load
        these are up to 1 in 100, and the kernel's own count of such misses may stay at 0; the
        disk's counters show how many there are."""
        known_missed = sample.counts["missed"] + sample.counts["skipped"]
        short = 0
        for region, now in completed.items():
            requests, counted = _compared(now, self._completed_at_start[region], sample, region)
            short += max(0, requests - counted)
        self._uncounted = max(self._uncounted, short - known_missed)
        missed = sample.counts["missed"] + self._uncounted
        return replace(sample, counts={**sample.counts, "missed": missed})

    def _verify(self, sample: ProbeSample, completed: Mapping[Region, _Completed]) -> None:
        """Check that requests are counted: some or all would be missed if a later kernel changed
        the meaning of the tracepoints. ``completed`` was read before the bins: a thousand requests
        may end while they are read."""
        missed = sample.counts["missed"] + sample.counts["skipped"]
        for region, before in list(self._unverified.items()):
            requests, counted = _compared(completed[region], before, sample, region)
            if requests < ENOUGH_REQUESTS:
                continue
            del self._unverified[region]
            # requests that the probe saw; writes are left out if there was a flush
            seen = missed + sum(sum(bins.values()) for bins in sample.device[region.name].values())
            too_few = counted + missed < MIN_SEEN_SHARE * requests
            if too_few or missed > (1 - MIN_SEEN_SHARE) * seen:
                self._problem = (
                    f"the probe counted {counted} of {requests} requests of {region.name}"
                )


def _compared(
    now: _Completed, before: _Completed, sample: ProbeSample, region: Region
) -> tuple[int, int]:
    """How many requests completed since ``before``, and how many of them were counted. Writes are
    left out if there was a flush: diskstats counts each sync of a program as a write, but several
    syncs may reach the device as one flush."""
    kinds = set(now.ios) & set(before.ios)
    if now.flushes is None or now.flushes != before.flushes:
        kinds.discard("write")
    device = sample.device[region.name]
    return (
        sum(now.ios[kind] - before.ios[kind] for kind in kinds),
        sum(sum(device[kind].values()) for kind in kinds),
    )


def _add(counts: dict[int, int], key: int, part: bytes) -> None:
    bins = memoryview(part).cast("Q").tolist()
    for index in compress(range(len(bins)), bins):
        counts[key | index] = counts.get(key | index, 0) + bins[index]
