"""The statistics that AWS volumes (EBS and EC2 instance store) keep: NVMe log page D0h.

Sources: AWS's documents on EBS detailed performance statistics and the structures that nvme-cli's
plugin amzn publishes. All numbers are little-endian. Not tested on real hardware."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.kernel_files import Roots, read_count
from iopstui.linux.nvme import admin
from iopstui.linux.nvme.admin import DriveUnreadable, MalformedPage
from iopstui.linux.nvme.health import LIVE, controller_state, controllers_of
from iopstui.linux.own_threads import BackgroundReader
from iopstui.model.block.device import BlockDevice
from iopstui.model.metrics.aws import (
    AT_NS,
    EBS,
    GROWING,
    INSTANCE_STORE,
    QUEUE,
    READ_BINS,
    WRITE_BINS,
    bin_name,
    counter_name,
)

EBS_MODEL, INSTANCE_STORE_MODEL = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"
PAGE_SIZES: Mapping[str, int] = {EBS_MODEL: 4096, INSTANCE_STORE_MODEL: 8192}
"""Size of the page (bytes) by model. Other models are never asked, because the page number is
vendor-specific."""
TIMEOUT_S = 0.05
"""How long a sample waits for the page; a volume that takes longer has no figures in that
sample."""
_KINDS = {0x3C23B510: EBS, 0xEC2C0D7E: INSTANCE_STORE}
_HEAD = struct.Struct("<II11Q")
_COUNTERS = (*GROWING, QUEUE)
_HISTOGRAMS: Mapping[str, int] = {READ_BINS: 512, WRITE_BINS: 2056}
_BIN = struct.Struct("<QQII")
_MAX_BINS = 64


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume to read: its disk, its controller, the namespace and the size of its page
    (bytes)."""

    disk: str
    controller: str
    namespace: int
    size: int


def parse_statistics(page: bytes, size: int = 4096) -> tuple[str, dict[str, int]]:
    """The kind of volume (EBS, INSTANCE_STORE) and its counters; times are in µs. Raises
    MalformedPage."""
    if len(page) < size:
        raise MalformedPage(f"The volume's log page D0h has {len(page)} bytes instead of {size}.")
    magic, _, *values = _HEAD.unpack_from(page)
    if magic not in _KINDS:
        raise MalformedPage("The volume's log page D0h is not AWS's page of statistics.")
    counters = dict(zip(_COUNTERS, values, strict=True))
    for name, offset in _HISTOGRAMS.items():
        counters |= _histogram(name, page, offset)
    return _KINDS[magic], counters


def _histogram(name: str, page: bytes, offset: int) -> dict[str, int]:
    """The number of bins, and the counts of non-empty ones by upper bound (µs); empty if the bins
    are not in order."""
    number = int.from_bytes(page[offset : offset + 8], "little")
    if not 0 < number <= _MAX_BINS:
        return {}
    begin = offset + 8
    bins = [*_BIN.iter_unpack(page[begin : begin + number * _BIN.size])]
    bounds = [bound for lower, upper, _, _ in bins for bound in (lower, upper)]
    if bounds != sorted(bounds) or len({upper for _, upper, _, _ in bins}) < number:
        return {}
    return {name: number} | {bin_name(name, upper): count for _, upper, count, _ in bins if count}


def volumes_of(
    roots: Roots, devices: Mapping[str, BlockDevice], names: Sequence[str]
) -> tuple[Volume, ...]:
    """The AWS volumes among these devices and the disks of these partitions, by their models."""
    volumes: dict[str, Volume] = {}
    for name in names:
        device = devices.get(name)
        device = devices.get(device.disk or "", device) if device else None
        model = ((device.model if device else None) or "").strip()
        if device is None or device.hidden or model not in PAGE_SIZES:
            continue
        number = read_count(f"{roots.sys}/class/block/{device.name}/nsid") or admin.WHOLE_DRIVE
        namespace = 1 if model == EBS_MODEL else number
        for controller in controllers_of(roots, device)[:1]:
            volumes[device.name] = Volume(device.name, controller, namespace, PAGE_SIZES[model])
    return tuple(volumes.values())


class VolumeReader(BackgroundReader):
    """Reads the statistics of some volumes repeatedly. A volume that refuses, or answers with
    another page, is not read again."""

    name = "aws volumes"

    def __init__(
        self,
        roots: Roots,
        volumes: Sequence[Volume],
        clock: Callable[[], int] = time.monotonic_ns,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__()
        self._roots = roots
        self._volumes = list(volumes)
        self._clock = clock
        self._timeout_s = timeout_s

    def read(self) -> dict[str, int] | None:
        """All counters, by the names of model/metrics/aws.py; ``None`` if none arrived in time."""
        counters: dict[str, int] = {}
        if not self._volumes or not self._begin(self._read, counters):
            return None
        # an answer that comes later belongs to no sample: the next sample reads again
        return (counters or None) if self._wait(self._timeout_s) else None

    def _read(self, counters: dict[str, int]) -> None:
        for volume in tuple(self._volumes):
            if controller_state(self._roots, volume.controller) != LIVE:
                continue
            try:
                kind, values = self._statistics(volume)
            except DriveUnreadable:
                self._volumes.remove(volume)
                continue
            values = {AT_NS: self._clock(), **values}
            for name, value in values.items():
                counters[counter_name(name, kind, volume.disk)] = value

    def _statistics(self, volume: Volume) -> tuple[str, dict[str, int]]:
        with admin.open_controller(Path(self._roots.dev) / volume.controller) as fd:
            page = admin.log_page(
                fd, admin.AMAZON_STATISTICS, volume.size, namespace=volume.namespace
            )
        return parse_statistics(page, volume.size)
