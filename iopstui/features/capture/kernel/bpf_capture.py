"""Loads iopstui's own BPF programs for the capture, reads the ring buffer that they fill, and
removes them.

It needs the kernel's BTF (Linux 5.12). Everything is bound to file descriptors, so nothing stays in
the kernel after the process has ended, even if it was killed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.features.capture.kernel import kernel_types as points
from iopstui.features.capture.kernel import programs
from iopstui.features.capture.kernel.kernel_types import CaptureTypes, capture_types
from iopstui.features.capture.kernel.programs import CapturedDisk, Maps
from iopstui.linux.kernel_files import Roots, read_bytes
from iopstui.linux.probe import bpf
from iopstui.linux.probe.bpf import ONLY_ROOT, locked_down
from iopstui.linux.probe.bpf_probe import new_in_flight_map, tags_and_queues
from iopstui.linux.probe.counting import InFlightMap
from iopstui.linux.probe.regions import Region

BTF = "kernel/btf/vmlinux"
RING_BITS = 15
"""The ring's size: 32,768 records of 64 bytes, enough for a third of a second at 100,000 requests a
second."""
# limit for a program's name (BPF_OBJ_NAME_LEN without the final 0)
_NAME_BYTES = 15


class CaptureUnusable(Exception):
    """The capture cannot work here; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The records of one poll, in the order of the ring: a list for each word of a record (TIME,
    SECTOR, ... TOTAL). ``lost`` is the number of records that were overwritten before they were
    read."""

    columns: tuple[list[int], ...]
    lost: int

    def __len__(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True, slots=True)
class CaptureCounts:
    """Counts besides the records: completions of requests whose start was not seen, requests that
    were requeued, and requests whose process is not certain."""

    missed: int
    requeued: int
    unknown: int


class BpfCapture:
    """Records the requests to these disks, from its construction on. Raises CaptureUnusable if that
    is not possible."""

    def __init__(self, regions: Sequence[Region], roots: Roots) -> None:
        self._roots = roots
        self._fds: list[int] = []
        self.programs: list[int] = []
        self._ring: mmap.mmap | None = None
        self._counters: mmap.mmap | None = None
        self._read_to = self._last_head = 0
        if os.geteuid() != 0:
            raise CaptureUnusable(ONLY_ROOT)
        if locked_down(roots):
            raise CaptureUnusable("the kernel is locked down (lockdown=confidentiality)")
        try:
            self._load(regions)
        except (ValueError, KeyError) as error:
            self.close()
            raise CaptureUnusable(
                f"this kernel's type information (BTF) lacks what is needed ({error})"
            ) from None
        except OSError as error:
            self.close()
            raise CaptureUnusable(f"the kernel refuses the programs ({error.strerror})") from None

    def take(self, last: bool = False) -> Batch:
        """The new records that already existed at the previous call, and so are complete by now;
        with ``last``, all new records."""
        assert self._ring is not None and self._counters is not None
        head = self._counter(programs.HEAD)
        upto = head if last else self._last_head
        self._last_head = head
        ring_bytes = 1 << RING_BITS
        # leave a quarter of the ring free for records that arrive meanwhile
        begin = max(self._read_to, head - ring_bytes * 3 // 4)
        lost, upto = begin - self._read_to, max(upto, begin)
        self._read_to = upto
        data = self._records(begin, upto)
        words = memoryview(data).cast("Q")
        return Batch(tuple(words[n :: programs.RECORD_WORDS].tolist()
                           for n in range(programs.TOTAL + 1)), lost)  # fmt: skip

    def counts(self) -> CaptureCounts:
        return CaptureCounts(*(self._counter(at) for at in (
            programs.MISSED, programs.REQUEUED, programs.UNKNOWN)))  # fmt: skip

    def close(self) -> None:
        """Have the kernel remove the programs. Idempotent."""
        for memory in (self._ring, self._counters):
            if memory is not None:
                memory.close()
        self._ring = self._counters = None
        bpf.close_all(self._fds)

    def _records(self, begin: int, upto: int) -> bytes:
        assert self._ring is not None
        mask, size = (1 << RING_BITS) - 1, 1 << programs.RECORD_BITS
        first, count = begin & mask, upto - begin
        data = self._ring[first * size : (first + count) * size]
        return data + self._ring[: count * size - len(data)]

    def _counter(self, at: int) -> int:
        assert self._counters is not None
        return int.from_bytes(self._counters[at : at + 8], "little")

    def _load(self, regions: Sequence[Region]) -> None:
        bios = any(region.bios for region in regions)
        kernel = capture_types(
            read_bytes(self._roots.sys / BTF) or b"", points.OF_BIOS if bios else points.OF_REQUESTS
        )
        maps = Maps(self._map((1 << RING_BITS) << programs.RECORD_BITS, "iops_ring"), RING_BITS,
                    self._map(programs.TABLES_BYTES, "iops_tables"),
                    self._map(programs.COUNTERS_BYTES, "iops_counters"))  # fmt: skip
        disks = [disk for region in regions for disk in self._disks(region)]
        for event, code in _codes(kernel, disks, maps, bios).items():
            name = f"iops_{event[6:]}"[:_NAME_BYTES]
            self.programs.append(bpf.load_program(code, kernel.tracepoints[event], name))
            self._fds.append(self.programs[-1])
        self._ring = _map_memory(maps.ring, (1 << RING_BITS) << programs.RECORD_BITS)
        self._counters = _map_memory(maps.counters, programs.COUNTERS_BYTES)
        self._fds += [bpf.attach_program(fd) for fd in self.programs]

    def _map(self, size: int, name: str) -> int:
        self._fds.append(bpf.new_value_map(size, name))
        return self._fds[-1]

    def _disks(self, region: Region) -> list[CapturedDisk]:
        return [CapturedDisk(self._in_flight(dev, region.bios), region.first, region.last)
                for dev in region.devs]  # fmt: skip

    def _in_flight(self, dev: int, bios: bool) -> InFlightMap:
        tags, queues = (
            (1 << programs.BIO_SLOTS_BITS, 1) if bios else tags_and_queues(dev, self._roots)
        )
        in_flight_map = new_in_flight_map(dev, tags, queues, programs.SLOT_BITS, "iops_in_flight")
        self._fds.append(in_flight_map.fd)
        return in_flight_map


def _codes(
    kernel: CaptureTypes, disks: Sequence[CapturedDisk], maps: Maps, bios: bool
) -> dict[str, bytes]:
    """The programs by their tracepoints, in the order in which to attach them."""
    if bios:
        return {
            points.BIO_COMPLETE: programs.bio_completion_program(kernel, disks, maps),
            points.BIO_QUEUE: programs.bio_queue_program(kernel, disks, maps),
        }
    return {
        points.COMPLETE: programs.completion_program(kernel, disks, maps),
        points.REQUEUE: programs.requeue_program(kernel, disks, maps),
        points.GETRQ: programs.allocation_program(kernel, disks, maps),
        points.ISSUE: programs.issue_program(kernel, disks, maps),
    }


def _map_memory(fd: int, size: int) -> mmap.mmap:
    return mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ)
