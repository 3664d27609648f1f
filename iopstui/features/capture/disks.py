"""The disks of a capture, and its start."""

from __future__ import annotations

import os
from collections.abc import Sequence

from iopstui.errors import Missing, UsageError
from iopstui.features.capture.kernel.bpf_capture import CaptureUnusable
from iopstui.features.capture.kernel.workload_capture import ProcessFilter, WorkloadCapture
from iopstui.features.capture.model.trace import TraceBuffer
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.probe.regions import Region, regions
from iopstui.linux.roots import Roots
from iopstui.model.block.target import Target


def disk_regions(target: Target) -> tuple[list[Region], str]:
    """The disks that a capture of this target follows, and a sentence about the layer. UsageError
    where there is none."""
    devices, roots = read_devices(Roots()), Roots()
    names = [name for name in target.devices_below if name in devices]
    disks = [region for region in regions(names, devices, roots) if region.name in names]
    if not disks:
        raise UsageError(f"No block device below {target.path} can be captured.",
                         "iopstui devices lists them.")  # fmt: skip
    layers = {disk.bios for disk in disks}
    if len(layers) > 1:
        raise UsageError("A stacked device and a disk cannot be captured together.",
                         "Capture one of them: iopstui devices")  # fmt: skip
    lower_devices = [name for name in target.tree if name not in names]
    disk_names = ", ".join(disk.name for disk in disks)
    if disks[0].bios:
        on = (
            f"; {', '.join(lower_devices)} below may see other sizes and another order"
            if lower_devices
            else ""
        )
        return (
            disks,
            f"{disk_names}: as they are sent to this layer, before it maps or splits them{on}",
        )
    return disks, f"{disk_names}: as they are sent to the disk, after merging and splitting"


def start_capture(
    name: str, disks: Sequence[Region], choice: ProcessFilter, trace: TraceBuffer | None = None
) -> WorkloadCapture:
    """A capture that runs. Raises Missing with the command that fixes it."""
    try:
        return WorkloadCapture(name, disks, choice, Roots(), trace)
    except CaptureUnusable as error:
        root = os.geteuid() != 0
        raise Missing(
            f"The capture cannot work here: {error}.",
            "sudo iopstui capture ..." if root else "iopstui doctor shows what this kernel has.",
        ) from error
