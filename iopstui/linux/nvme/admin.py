"""Admin commands to an NVMe controller, only those that read.

Sources: NVM Express Base Specification 2.0 (Get Log Page 5.16, Identify 5.17, Get Features 5.15),
2.1 (flexible data placement: log page 22h, feature 1Dh), include/uapi/linux/nvme_ioctl.h.

``ALLOWED`` lists every command that may be sent. No timeout is set: the kernel resets a controller
that does not answer in time, so a timeout below its own (60 s) would disturb a slow drive."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ADMIN_COMMAND = 0xC0484E41
"""_IOWR('N', 0x41, struct nvme_passthru_cmd)"""
_COMMAND = struct.Struct("=BBHIIIQQII6III")
GET_LOG_PAGE, IDENTIFY, GET_FEATURES = 0x02, 0x06, 0x0A
# log pages
SUPPORTED_PAGES, ERRORS, SMART, FIRMWARE, SELF_TEST, ENDURANCE = 0x00, 0x01, 0x02, 0x03, 0x06, 0x09
PLACEMENT_STATISTICS, OCP_SMART, AMAZON_STATISTICS = 0x22, 0xC0, 0xD0
# what Identify describes
NAMESPACE, CONTROLLER = 0x00, 0x01
# features
POWER_STATE, AUTONOMOUS_POWER, HOST_MEMORY, PLACEMENT = 0x02, 0x0C, 0x0D, 0x1D
ALLOWED = frozenset(
    {(GET_LOG_PAGE, page) for page in (SUPPORTED_PAGES, ERRORS, SMART, FIRMWARE, SELF_TEST,
                                       ENDURANCE, PLACEMENT_STATISTICS, OCP_SMART,
                                       AMAZON_STATISTICS)}
    | {(IDENTIFY, what) for what in (NAMESPACE, CONTROLLER)}
    | {(GET_FEATURES, feature) for feature in (POWER_STATE, AUTONOMOUS_POWER, HOST_MEMORY,
                                             PLACEMENT)}
)  # fmt: skip
"""Pairs of an opcode and its log page, structure or feature; no other command is sent to a
drive."""
WHOLE_DRIVE = 0xFFFFFFFF
# leave pending events, so that programs waiting for them still get them
_RETAIN_EVENT = 1 << 15


class DriveUnreadable(Exception):
    """A drive's own data can't be read; the text is a sentence with the reason."""


@contextmanager
def open_controller(path: Path) -> Iterator[int]:
    """A controller's character device, open for reading. Raises DriveUnreadable."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DriveUnreadable(_error_text(path.name, error)) from error
    try:
        yield fd
    finally:
        os.close(fd)


def log_page(
    fd: int, page: int, size: int, *, specific: int = 0, namespace: int = WHOLE_DRIVE
) -> bytes:
    """``size`` bytes (a multiple of 4) of a log page of the whole drive, or of one ``namespace``;
    ``specific`` is the log specific identifier (an endurance group). Raises DriveUnreadable."""
    dwords = size // 4 - 1
    low = page | _RETAIN_EVENT | (dwords & 0xFFFF) << 16
    high = dwords >> 16 | specific << 16
    return _send(fd, GET_LOG_PAGE, page, size, (low, high), namespace)[0]


def identify(fd: int, structure: int, namespace: int = 0) -> bytes:
    """The 4096 bytes that describe the controller or a namespace. Raises DriveUnreadable."""
    return _send(fd, IDENTIFY, structure, 4096, (structure, 0), namespace)[0]


def feature(fd: int, number: int, size: int = 0, *, specific: int = 0) -> tuple[int, bytes]:
    """A feature's current value, and the ``size`` bytes of its data; ``specific`` selects the
    object (an endurance group). Raises DriveUnreadable."""
    data, value = _send(fd, GET_FEATURES, number, size, (number, specific), 0)
    return value, data


def _send(
    fd: int, opcode: int, selector: int, size: int, parameters: tuple[int, int], namespace: int
) -> tuple[bytes, int]:
    if (opcode, selector) not in ALLOWED:
        raise ValueError(f"admin command {opcode:#04x} {selector:#04x} is not on the list")
    data = ctypes.create_string_buffer(max(size, 1))
    address = ctypes.addressof(data) if size else 0
    command = bytearray(
        _COMMAND.pack(
            opcode, 0, 0, namespace, 0, 0, 0, address, 0, size, *parameters, 0, 0, 0, 0, 0, 0
        )
    )
    try:
        status = fcntl.ioctl(fd, ADMIN_COMMAND, command)
    except OSError as error:
        raise DriveUnreadable(_error_text("the drive", error)) from error
    if status:
        raise DriveUnreadable(
            f"The drive refused admin command {opcode:#04x} {selector:#04x} (status {status:#x})."
        )
    result = _COMMAND.unpack(command)[-1]
    return data.raw[:size], result


def _error_text(name: str, error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "The drive's own figures need root: run with sudo."
    if error.errno == errno.ENOTTY:
        return f"{name} takes no NVMe admin commands."
    return f"Cannot read the drive's own figures: {name}: {os.strerror(error.errno or 0)}."
