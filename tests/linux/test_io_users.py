"""Which program did most of others' I/O, on made-up readings."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.linux.activity.io_users import IoUsers
from iopstui.linux.devices.open_devices import OpenDevices
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.process_io import ProcessIo, ProcessRates
from iopstui.model.experiment.disturbance import OtherIo
from iopstui.model.findings.accounts import Flow

MIB = 1 << 20
OF_BYTES = OtherIo("vda", Flow(600, 40 * MIB), Flow(2600, 48 * MIB))
OF_IOS = OtherIo("vda", Flow(2000, 40 * MIB), Flow(2100, 400 * MIB))


@pytest.mark.parametrize(
    ("process", "places", "other", "name"),
    [
        (ProcessRates(965, "backupd", 40.0, 0.0), ("vda loop0", ""), OF_BYTES, "backupd 965"),
        (ProcessRates(965, "backupd", 0.0, 25.0), ("", "vda"), OF_BYTES, "backupd 965"),
        (ProcessRates(965, "backupd", 25.0, 0.0), ("", "vda"), OF_BYTES, ""),
        (ProcessRates(965, "backupd", 19.0, 0.0), ("vda", ""), OF_BYTES, ""),
        (ProcessRates(965, "backupd", 25.0, 0.0), ("vda", ""), OF_IOS, ""),
        (ProcessRates(965, "backupd", 39.0, 0.0), ("vda", ""), OF_IOS, "backupd 965"),
        (ProcessRates(965, "backupd", 40.0, 0.0), ("sdb", ""), OF_BYTES, ""),
        (ProcessRates(965, "backupd", 90.0, 0.0), ("vda", ""), OF_BYTES, ""),
        (ProcessRates(965, "kworker", 40.0, 0.0, kernel=True), ("vda", ""), OF_BYTES, ""),
        (ProcessRates(966, "fio", 40.0, 0.0), ("vda", ""), OF_BYTES, ""),
    ],
)
def test_only_a_program_that_surely_did_most_of_it_is_named(
    process: ProcessRates, places: tuple[str, str], other: OtherIo, name: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Its files are all on that disk, and it moved neither too little nor more than the disk. 966
    is a process of iopstui itself."""
    scaled = ProcessRates(process.pid, process.comm, process.read_s * MIB, process.write_s * MIB,
                          kernel=process.kernel)  # fmt: skip
    monkeypatch.setattr(ProcessIo, "rates", lambda self: [scaled])
    reads, writes = (frozenset(place.split()) for place in places)
    monkeypatch.setattr(OpenDevices, "sole", lambda self, pid, mapped: (reads, writes))
    for pid, parent in ((965, 1), (966, 10)):
        (tmp_path / "proc" / str(pid)).mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "stat").write_text(f"{pid} (x) R {parent} 0 0\n")
    assert IoUsers({}, Roots.under(tmp_path), own_pid=10).most_of(other) == name
