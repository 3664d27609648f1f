"""Disks that are not well: errors, arrays, paths."""

from __future__ import annotations

from pathlib import Path

from devices import (
    failing,
    linear,
    loop,
    mirror,
    null,
    parity,
    resume,
    scsi_debug,
    snapshot,
    suspend,
    two_paths,
)
from proofs import below, counter_grew, every, file_is, pauses, recovers, worked
from scenario import LAB, Bench, Scenario

MS = 1_000_000


def lose_path(bench: Bench) -> None:
    """The second path goes offline."""
    paths = sorted(path.name for path in Path("/sys/block", bench.disk, "slaves").iterdir())
    Path("/sys/block", paths[1], "device/state").write_text("offline\n")


SCENARIOS = (
    Scenario("scsi-errors", LAB, "a SCSI disk that recovers an error now and then",
             scsi_debug(errors=50, ndelay=3 * MS), {"iodepth": 4}, {"scsi-errors": ()},
             watch=("device/ioerr_cnt",), proof=counter_grew("device/ioerr_cnt")),
    Scenario("scsi-well", LAB, "a SCSI disk without errors", scsi_debug(ndelay=3 * MS),
             {"iodepth": 4}, watch=("device/ioerr_cnt",), proof=worked(100)),
    Scenario("degraded", LAB, "an md mirror that has lost a disk", mirror(degraded=True),
             {"rate_iops": 500}, {"array": ("degraded",)}, watch=("md/degraded",),
             proof=file_is("md/degraded", "1")),
    Scenario("resync", LAB, "an md mirror that is being copied", mirror(resync=True),
             {"rate_iops": 500}, {"array": ("resync",)}, watch=("md/sync_action",),
             proof=file_is("md/sync_action", "resync")),
    Scenario("mirror", LAB, "an md mirror that is whole", mirror(), {"rate_iops": 500},
             watch=("md/degraded", "md/sync_action"),
             proof=every(file_is("md/degraded", "0"),
                         file_is("md/sync_action", "idle"))),
    Scenario("raid5-writes", LAB, "4 KiB writes on RAID 5", parity(),
             {"rw": "randwrite", "iodepth": 4}, {"parity": ("raid5",)},
             watch=("slaves/*/stat",), proof=below(0.9)),
    Scenario("raid6-writes", LAB, "4 KiB writes on RAID 6", parity(6),
             {"rw": "randwrite", "iodepth": 4}, {"parity": ("raid6",)},
             watch=("slaves/*/stat",), proof=below(0.9)),
    Scenario("raid5-stripes", LAB, "writes of whole stripes on RAID 5, as advised", parity(),
             {"rw": "randwrite", "iodepth": 4, "bs": "128k"}, {},
             frozenset({"disagree", "layer", "job-cpu"}), proof=worked(5)),
    Scenario("raid5-reads", LAB, "reads on RAID 5", parity(), {"iodepth": 4, "rate_iops": 300},
             watch=("slaves/*/stat",), proof=below(0.9)),
    Scenario("snapshot", LAB, "first writes on a device-mapper snapshot",
             snapshot(loop(), loop()), {"rw": "randwrite", "iodepth": 4, "rate_iops": 150},
             {"first-write": ()}, watch=("slaves/*/stat",), proof=below(0.3)),
    Scenario("suspended", LAB, "a device that is suspended for 7 s",
             linear(null(completion_nsec=2 * MS)), {"iodepth": 8}, {"stalled": ("dmsetup resume",)},
             seconds=16, during=((4.0, suspend), (11.0, resume)),
             proof=every(pauses, recovers(0.5))),
    Scenario("errors", LAB, "a quarter of the device fails, and the job goes on",
             failing(null(completion_nsec=2 * MS)),
             {"iodepth": 4, "continue_on_error": "all"}, {"io-errors": ()},
             frozenset({"disagree", "above"}), proof=worked(50), fails=True),
    Scenario("lost-path", LAB, "multipath that loses one of two paths",
             two_paths(scsi_debug(max_luns=2, ndelay=3 * MS)), {"iodepth": 4}, {"paths": ()},
             during=((1.5, lose_path),), seconds=9, watch=("slaves/*/device/state",),
             proof=every(worked(100), file_is("slaves/*/device/state", "running offline"))),
    Scenario("both-paths", LAB, "multipath with both paths",
             two_paths(scsi_debug(max_luns=2, ndelay=3 * MS)), {"iodepth": 4}, proof=worked(100)),
)  # fmt: skip
