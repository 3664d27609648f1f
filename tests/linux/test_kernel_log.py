from __future__ import annotations

import os
from pathlib import Path

import pytest

from iopstui.linux.machine.conditions import KernelLog, disk_of_error

LINES = {
    # as kernels 5.10 to 6.18 print them
    "blk_update_request: I/O error, dev sdb, sector 4660 op 0x0:(READ) flags 0x0 phys_seg 1": "sdb",
    "critical medium error, dev sda, sector 4660 op 0x0:(READ) flags 0x80700 phys_seg 4": "sda",
    "critical space allocation error, dev loop0, sector 49672 op 0x1:(WRITE) flags 0x3000": "loop0",
    "device offline error, dev nvme0n1, sector 8 op 0x1:(WRITE) flags 0x0": "nvme0n1",
    "timeout error, dev nullb0, sector 8 op 0x0:(READ) flags 0x0": "nullb0",
    "Buffer I/O error on dev dm-0, logical block 24836, lost async page write": "dm-0",
    "EXT4-fs error (device dm-0): ext4_journal_check_start:83: comm dd: Detected aborted": "dm-0",
    "EXT4-fs (sda1): Remounting filesystem read-only": "sda1",
    'XFS (dm-3): metadata I/O error in "xlog_iodone" at daddr 0x8 len 8 error 5': "dm-3",
    "XFS (vdb): Log I/O Error (0x2) detected at xlog_ioend_work. Shutting down filesystem.": "vdb",
    "BTRFS error (device sdc): bdev /dev/sdc errs: wr 1, rd 0, flush 0, corrupt 0, gen 0": "sdc",
    # nothing has failed
    "operation not supported error, dev loop0, sector 0 op 0x9:(WRITE_ZEROES) flags 0x800": "",
    "critical target error, dev sda, sector 0 op 0x3:(DISCARD) flags 0x800 phys_seg 1": "",
    "EXT4-fs (dm-0): mounted filesystem with ordered data mode": "",
    "XFS (dm-3): Unmounting Filesystem": "",
    "BTRFS error (device sdc): unrecognized mount option": "",
    "blk_print_req_error: 289 callbacks suppressed": "",
    "usb 1-1: device descriptor read/64, error -71": "",
}


@pytest.mark.parametrize(("message", "disk"), LINES.items())
def test_lines_that_report_an_error_of_a_disk(message: str, disk: str) -> None:
    assert disk_of_error(message) == disk


def test_errors_are_counted_from_now_on_and_only_the_kernel_s_own(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    # a device gives one record for each read, a file gives all; so each record is written before
    # its read
    path.write_text("3,1,5,-;I/O error, dev sda, sector 8\n")
    log = KernelLog(path)
    assert log.errors(1.0) == {}
    records = (
        "3,2,6,-;I/O error, dev sda, sector 16 op 0x0:(READ)\n SUBSYSTEM=block\n",
        "12,3,7,-;I/O error, dev sdb, sector 16\n",
        "3,4,8,-;I/O error, dev sda, sector 24\x1b[2J op 0x0:(READ)\n",
        "nonsense",
    )
    for number, record in enumerate(records):
        with path.open("a") as file:
            file.write(record)
        errors = log.errors(2.0 + number)
    assert errors is not None and list(errors) == ["sda"]
    assert errors["sda"].count == 2 and errors["sda"].t == 4.0
    assert errors["sda"].last == "I/O error, dev sda, sector 24?[2J op 0x0:(READ)"
    log.close()
    assert log.errors(9.0) is None


def test_a_log_that_may_not_be_read(tmp_path: Path) -> None:
    assert KernelLog(tmp_path / "kmsg").errors(1.0) is None


def test_nothing_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text("")
    before = set(os.listdir("/proc/self/fd"))
    KernelLog(tmp_path / "kmsg").close()
    assert set(os.listdir("/proc/self/fd")) == before
