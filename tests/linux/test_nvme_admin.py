"""Admin commands: only those on the list reach a drive, and a failure gives a message."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest

import iopstui
from iopstui.linux.nvme import admin
from iopstui.linux.nvme.admin import DriveUnreadable

# written out again, so that a command added to the list must be added here, too
READ_ONLY = {
    (0x02, 0x00), (0x02, 0x01), (0x02, 0x02), (0x02, 0x03), (0x02, 0x06), (0x02, 0x09),
    (0x02, 0x22), (0x02, 0xC0), (0x02, 0xD0), (0x06, 0x00), (0x06, 0x01), (0x0A, 0x02),
    (0x0A, 0x0C), (0x0A, 0x0D), (0x0A, 0x1D),
}  # fmt: skip


class Drive:
    """Replaces the ioctl, and keeps the commands sent."""

    def __init__(self, status: int = 0, error: int = 0) -> None:
        self.status, self.error = status, error
        self.sent: list[tuple[int, ...]] = []

    def __call__(self, fd: int, request: int, command: bytearray) -> int:
        assert request == 0xC0484E41 and len(command) == 72
        self.sent.append(struct.unpack("=BBHIIIQQII6III", command))
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        command[-4:] = struct.pack("=I", 7)
        return self.status


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Drive:
    drive = Drive()
    monkeypatch.setattr("fcntl.ioctl", drive)
    return drive


def test_nothing_but_the_listed_reads_reaches_the_drive(drive: Drive) -> None:
    passed = set()
    for opcode in range(256):
        for selector in range(256):
            try:
                admin._send(3, opcode, selector, 0, (selector, 0), 0)
            except ValueError:
                continue
            passed.add((opcode, selector))
    assert passed == READ_ONLY
    assert {(sent[0], sent[10]) for sent in drive.sent} == READ_ONLY


def test_no_other_module_sends_commands_to_drives() -> None:
    root = Path(iopstui.__file__).parent
    names = ("ADMIN_COMMAND", "0xC0484E4", "0xc0484e4", "admin._send")
    found = [path for path in root.rglob("*.py") if any(n in path.read_text() for n in names)]
    assert [path.name for path in found] == ["admin.py"]


def test_a_log_page_is_asked_for_without_clearing_events(drive: Drive) -> None:
    assert admin.log_page(3, admin.ENDURANCE, 512, specific=5) == bytes(512)
    (sent,) = drive.sent
    assert sent[0] == 0x02 and sent[3] == 0xFFFFFFFF and sent[9] == 512
    dwords = 512 // 4 - 1
    assert sent[10] == 0x09 | 1 << 15 | dwords << 16
    assert sent[11] == 5 << 16
    assert sent[-2] == 0, "with a timeout of its own the kernel would reset a slow controller"


def test_identify_and_features(drive: Drive) -> None:
    assert len(admin.identify(3, admin.NAMESPACE, 4)) == 4096
    assert admin.feature(3, admin.POWER_STATE) == (7, b"")
    namespace, state = drive.sent
    assert (namespace[0], namespace[3], namespace[10]) == (0x06, 4, 0)
    assert (state[0], state[10], state[7], state[9]) == (0x0A, 2, 0, 0)


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (0x4002, 0, "status 0x4002"),
        (0, errno.EACCES, "root"),
        (0, errno.EPERM, "root"),
        (0, errno.ENOTTY, "takes no NVMe admin commands"),
        (0, errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_what_fails_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, status: int, error: int, said: str
) -> None:
    monkeypatch.setattr("fcntl.ioctl", Drive(status, error))
    with pytest.raises(DriveUnreadable, match=said) as caught:
        admin.log_page(3, admin.SMART, 512)
    assert (str(caught.value)[0].isupper() and str(caught.value).endswith(".")) or error == 25


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DriveUnreadable, match="nvme7"), admin.open_controller(tmp_path / "nvme7"):
        pass


def test_a_plain_file_is_no_controller(tmp_path: Path) -> None:
    (tmp_path / "nvme0").write_bytes(b"")
    with admin.open_controller(tmp_path / "nvme0") as fd, pytest.raises(DriveUnreadable):
        admin.log_page(fd, admin.SMART, 512)
