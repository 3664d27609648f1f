"""Files of the kernel's own file systems, which hold no data."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.devices.usage import mounts
from iopstui.linux.devices.usage.mounts import kernel_file_system, removal_lock
from iopstui.linux.kernel_files import Roots
from iopstui.safety.scratch import make_scratch


def test_which_file_systems_are_the_kernel_s(tmp_path: Path) -> None:
    assert kernel_file_system(Path("/proc/self/mem")) == "proc"
    assert kernel_file_system(Path("/sys/kernel")) == "sysfs"
    assert kernel_file_system(tmp_path) == ""
    assert kernel_file_system(tmp_path / "none") == ""
    fd = os.open("/proc/self/comm", os.O_RDONLY)
    assert kernel_file_system(fd) == "proc"
    os.close(fd)


@pytest.mark.parametrize("name", ["/proc/self/mem", "/proc/self/comm", "/sys/kernel/uevent_seqnum"])
def test_none_is_a_target(name: str, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(name)
    for path in (name, str(link)):
        with pytest.raises(UsageError, match="not data"):
            resolve_target(path, tmp_path, Roots(), {})


@pytest.mark.parametrize("place", ["/proc/self", "/sys/kernel"])
def test_no_scratch_file_is_made_among_them(place: str) -> None:
    with pytest.raises(UsageError, match="it belongs to a kernel file system"):
        make_scratch(Path(place))


@pytest.mark.parametrize(("flags", "flag"), [(0x20, "a"), (0x10, "i"), (0x30, "i"), (0x80000, "")])
def test_directories_that_let_nothing_go(
    flags: int, flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts.fcntl, "ioctl", lambda *_: struct.pack("=II", flags, 0))
    assert removal_lock(tmp_path) == flag
    if flag:
        with pytest.raises(UsageError) as caught:
            make_scratch(tmp_path)
        assert caught.value.hint.endswith(f"chattr -{flag} {tmp_path}")
        assert os.listdir(tmp_path) == []


def test_a_file_system_without_such_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> bytes:
        raise OSError

    monkeypatch.setattr(mounts.fcntl, "ioctl", refused)
    assert removal_lock(tmp_path) == "" == removal_lock(tmp_path / "none")
