"""Which devices a process has files on: whom a finding may accuse."""

from __future__ import annotations

import os
from pathlib import Path

from iopstui.linux.devices.open_devices import devices_of
from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice


def test_a_file_open_for_reading_puts_a_process_on_its_disk(tmp_path: Path) -> None:
    number = os.stat(tmp_path).st_dev
    disk = BlockDevice("sdx", "/dev/sdx", 7999, 0, "scsi", None)
    part = BlockDevice("sdx1", "/dev/sdx1", os.major(number), os.minor(number), "partition", None,
                       disk="sdx")  # fmt: skip
    other = BlockDevice("sdy", "/dev/sdy", 7999, 16, "scsi", None)
    devices = {device.name: device for device in (disk, part, other)}
    (tmp_path / "data").write_text("x")
    with open(tmp_path / "data"):
        assert devices_of(os.getpid(), devices, Roots()) == {"sdx1", "sdx"}
    del devices["sdx1"]
    assert devices_of(os.getpid(), devices, Roots()) == frozenset()


def test_a_process_whose_files_can_not_be_seen_is_on_no_known_disk(tmp_path: Path) -> None:
    assert devices_of(1, {}, Roots(proc=tmp_path)) is None
