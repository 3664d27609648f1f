from __future__ import annotations

from pathlib import Path

from disks import changed
from watch_frames import frame, rates

from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.findings.conditions import Array, Conditions, DeviceState
from iopstui.model.samples import DriveReading
from iopstui.session.examination import Examination


def test_a_check_that_ends_while_the_disk_is_looked_at_is_remembered(tmp_path: Path) -> None:
    devices = {"md0": BlockDevice("md0", "/dev/md0", 9, 0, "md", 1 << 30)}
    examination = Examination(
        Target(DEVICE, "/dev/md0", "md0", ("md0",)), devices, Roots.under(tmp_path)
    )
    for action, ended in (("idle", ""), ("check", ""), ("idle", "check"), ("idle", "check")):
        state = {"md0": DeviceState(array=Array(action, 0, 2))}
        examination.note_conditions(Conditions(1.0, state))
        array = examination.seen.conditions.devices["md0"].array
        assert array is not None and (array.action, array.ended) == (action, ended)


def test_errors_count_from_the_first_look_on(tmp_path: Path) -> None:
    devices = {"sda": BlockDevice("sda", "/dev/sda", 8, 0, "scsi", 1 << 30)}
    examination = Examination(
        Target(DEVICE, "/dev/sda", "sda", ("sda",)), devices, Roots.under(tmp_path)
    )
    for t, errors in ((1.0, 3), (2.0, None), (3.0, 5)):
        state = {"sda": DeviceState(errors=errors)}
        examination.note_conditions(Conditions(t, state) if errors else None)
    examination.frames.append(frame(4.0, {"sda": rates()}))
    found = examination.seen.findings
    assert [(one.rule, one.disk) for one in found] == [("scsi-errors", "sda")]
    assert found[0].text.startswith("sda: 2 commands failed (ioerr_cnt) since the start")


def test_what_a_drive_warns_of_is_found_and_one_that_hangs_is_not_asked(tmp_path: Path) -> None:
    names = ("nvme0n1", "nvme1n1", "nvme2n1")
    devices = {one: BlockDevice(one, f"/dev/{one}", 259, n, "nvme", 1 << 30)
               for n, one in enumerate(names)}  # fmt: skip
    examination = Examination(
        Target(DEVICE, "/dev/nvme0n1", "nvme0n1", names), devices, Roots.under(tmp_path)
    )
    examination._drives["nvme0"] = DriveReading({"critical_warning": 8}, {})
    hung, busy = changed(rates(), in_flight=3), changed(rates(4, 0, 1), in_flight=3)
    examination.frames.append(frame(1.0, dict(zip(names, (rates(), hung, busy), strict=True))))
    found = examination.seen.findings
    assert [(one.rule, one.disk) for one in found] == [("wear", "nvme0n1")]
    assert examination._answering(examination.frames[0]) == ["nvme0n1", "nvme2n1"]
