"""Admin commands to an NVMe controller, only those that read, and the pages they return.

Sources: NVM Express Base Specification 2.0 (Get Log Page 5.16, Identify 5.17, Get Features 5.15),
2.1 (flexible data placement: log page 22h, feature 1Dh), include/uapi/linux/nvme_ioctl.h.

``ALLOWED`` lists every command that may be sent. No timeout is set: the kernel resets a controller
that does not answer in time, so a timeout below its own (60 s) would disturb a slow drive.

The pages: NVM Express Base Specification 2.0 (5.16.1, 5.17.2), NVM Command Set Specification 1.0
(4.1.5.1); OCP Datacenter NVMe SSD Specification 2.0 (SMART-2 ff., log page C0h).

All numbers are little-endian. A page that is too short raises MalformedPage. Impossible values are
left out."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iopstui.text import printable

ADMIN_COMMAND = 0xC0484E41
"""_IOWR('N', 0x41, struct nvme_passthru_cmd)"""
_COMMAND = struct.Struct("=BBHIIIQQII6III")
GET_LOG_PAGE, IDENTIFY, GET_FEATURES = 0x02, 0x06, 0x0A
# log pages
SUPPORTED_PAGES, ERRORS, SMART, FIRMWARE, SELF_TEST, ENDURANCE = 0x00, 0x01, 0x02, 0x03, 0x06, 0x09
PLACEMENT_STATISTICS, OCP_SMART, AMAZON_STATISTICS = 0x22, 0xC0, 0xD0
# structures that Identify returns
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
# leave events pending, so that programs waiting for them still get them
_RETAIN_EVENT = 1 << 15


class DriveUnreadable(Exception):
    """A drive's own data can't be read; the text is a sentence with the reason."""


@contextmanager
def open_controller(path: Path) -> Iterator[int]:
    """Open a controller's character device for reading. Raises DriveUnreadable."""
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
    """Read ``size`` bytes (a multiple of 4) of a log page of the whole drive, or of one
    ``namespace``; ``specific`` is the log specific identifier (an endurance group). Raises
    DriveUnreadable."""
    dwords = size // 4 - 1
    low = page | _RETAIN_EVENT | (dwords & 0xFFFF) << 16
    high = dwords >> 16 | specific << 16
    return _send(fd, GET_LOG_PAGE, page, size, (low, high), namespace)[0]


def identify(fd: int, structure: int, namespace: int = 0) -> bytes:
    """Read the 4096 bytes that describe the controller or a namespace. Raises DriveUnreadable."""
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


PAGE = 512
ERROR_ENTRY = 64
OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
# recordings have counts of 64 bits; the drive's counters have 128 bits, but no drive needs more
# than 64
_MAX_COUNT = 1 << 64
_KELVIN = 273
_COLDEST, _HOTTEST = 213, 473

Places = Mapping[str, tuple[int, int]]

_SMART: Places = {
    "critical_warning": (0, 1), "kelvin": (1, 2), "spare": (3, 1), "spare_threshold": (4, 1),
    "used": (5, 1), "units_read": (32, 16), "units_written": (48, 16), "read_commands": (64, 16),
    "write_commands": (80, 16), "busy_min": (96, 16), "power_cycles": (112, 16),
    "power_on_hours": (128, 16), "unsafe_shutdowns": (144, 16), "media_errors": (160, 16),
    "error_entries": (176, 16), "warning_min": (192, 4), "critical_min": (196, 4),
    "thermal_1": (216, 4), "thermal_2": (220, 4), "thermal_1_s": (224, 4), "thermal_2_s": (228, 4),
}  # fmt: skip
_OCP: Places = {
    "media_bytes_written": (0, 16), "media_bytes_read": (16, 16), "bad_user_blocks": (32, 6),
    "bad_system_blocks": (40, 6), "uncorrectable_reads": (56, 8), "erase_count_max": (88, 4),
    "erase_count_min": (92, 4), "throttling_events": (96, 1), "link_errors": (104, 8),
}  # fmt: skip
_ENDURANCE: Places = {
    "group_spare": (3, 1), "group_used": (5, 1), "group_media_gb_written": (80, 16),
    "group_media_errors": (128, 16),
}  # fmt: skip
_PLACEMENT: Places = {
    "fdp_host_bytes_written": (0, 16), "fdp_media_bytes_written": (16, 16),
    "fdp_media_bytes_erased": (32, 16),
}  # fmt: skip
_TESTS = {0x1: "short", 0x2: "extended", 0xE: "vendor"}
_RESULTS = {
    0x0: "passed", 0x1: "aborted by a command", 0x2: "aborted by a controller reset",
    0x3: "aborted: the namespace was removed", 0x4: "aborted by a format",
    0x5: "failed: fatal error", 0x6: "failed: unknown segment", 0x7: "failed", 0x8: "aborted",
    0x9: "aborted by a sanitize",
}  # fmt: skip


class MalformedPage(DriveUnreadable):
    """Error: a page is shorter than its format, or is another page."""


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One entry of the error log: ``count`` numbers errors since the drive was made, ``status`` is
    the NVMe status field without its phase bit, ``lba`` the first block that is affected."""

    count: int
    queue: int
    command: int
    status: int
    lba: int
    namespace: int


@dataclass(frozen=True, slots=True)
class SelfTest:
    """``running`` names the current self-test ("": none) and ``percent`` its progress; ``last`` is
    the newest result in words ("": none was run)."""

    running: str
    percent: int
    last: str


@dataclass(frozen=True, slots=True)
class Firmware:
    """The firmware slots: the one in use, the one after the next reset (0: the same), and the
    revisions by slot."""

    active: int
    next: int
    revisions: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class PowerState:
    """A power state: its maximum power in watts (``None``: not stated), its entry and exit
    latencies in µs, and whether I/O is possible in it."""

    watts: float | None
    entry_us: int
    exit_us: int
    operational: bool


@dataclass(frozen=True, slots=True)
class Controller:
    """The used fields of Identify Controller. ``warning`` and ``critical`` are the temperature
    limits in °C (``None``: not stated), ``host_memory`` the preferred host memory buffer in bytes
    (0: none), ``capacity`` bytes of NVM, ``error_entries`` the length of its error log."""

    model: str
    serial: str
    firmware: str
    warning: int | None
    critical: int | None
    lists_pages: bool
    self_test: bool
    endurance_groups: bool
    placement: bool
    autonomous_power: bool
    host_memory: int
    capacity: int | None
    error_entries: int
    states: tuple[PowerState, ...]


@dataclass(frozen=True, slots=True)
class Namespace:
    """Identify Namespace: bytes of a logical block and of its metadata in the format in use, the
    formats the drive offers (block, metadata, relative performance: 0 is best), and the number of
    the endurance group (0: none)."""

    block: int
    metadata: int
    formats: tuple[tuple[int, int, int], ...]
    group: int


def parse_smart(page: bytes) -> dict[str, int]:
    """Parse the page SMART / Health Information (02h). ``kelvin`` and sensors are in kelvins, units
    are of 512,000 bytes, ``_min`` minutes, ``_s`` seconds."""
    counters = _counts(page, _SMART, "SMART page")
    if not _COLDEST <= counters.get("kelvin", 0) <= _HOTTEST:
        counters.pop("kelvin", None)
    for number in range(8):
        kelvin = _number(page, 200 + 2 * number, 2)
        if _COLDEST <= kelvin <= _HOTTEST:
            counters[f"sensor_{number + 1}_kelvin"] = kelvin
    return counters


def parse_ocp(page: bytes) -> dict[str, int]:
    """OCP's extended SMART page (C0h); MalformedPage if it is another vendor-specific page."""
    counters = _counts(page, _OCP, "OCP SMART page")
    if page[496:512] != OCP_GUID:
        raise MalformedPage("The drive's log page C0h is not the one of the OCP specification.")
    return counters


def parse_endurance(page: bytes) -> dict[str, int]:
    """Parse the page Endurance Group Information (09h); ``group_media_gb_written`` is in 10^9
    bytes."""
    return _counts(page, _ENDURANCE, "endurance group page")


def parse_placement(page: bytes) -> dict[str, int]:
    """Parse the page FDP Statistics (22h) of an endurance group: bytes, including those for
    metadata."""
    _check_size(page, 64, "page of placement statistics")
    return _plausible_counts(page, _PLACEMENT)


def parse_supported(page: bytes) -> frozenset[int]:
    """The numbers of the supported log pages (00h)."""
    _check_size(page, 1024, "list of log pages")
    return frozenset(number for number in range(256) if page[4 * number] & 1)


def parse_errors(page: bytes) -> tuple[ErrorEntry, ...]:
    """The entries of the error log (01h), the newest first, without unused ones."""
    _check_size(page, ERROR_ENTRY, "error log")
    return tuple(_error_entries(page))


def _error_entries(page: bytes) -> Iterator[ErrorEntry]:
    for at in range(0, len(page) - ERROR_ENTRY + 1, ERROR_ENTRY):
        count = _number(page, at, 8)
        if count:
            yield ErrorEntry(
                count=count,
                queue=_number(page, at + 8, 2),
                command=_number(page, at + 10, 2),
                status=_number(page, at + 12, 2) >> 1,
                lba=_number(page, at + 16, 8),
                namespace=_number(page, at + 24, 4),
            )


def parse_self_test(page: bytes) -> SelfTest:
    """Parse the page Device Self-test (06h)."""
    _check_size(page, 32, "self-test page")
    running = _TESTS.get(page[0] & 0xF, "")
    result, kind = page[4] & 0xF, _TESTS.get(page[4] >> 4, "")
    last = f"{kind} test {_RESULTS.get(result, 'ended')}".strip() if result != 0xF else ""
    # a drive that never ran a self-test may leave its entries empty
    return SelfTest(running, min(page[1] & 0x7F, 100), last if kind else "")


def parse_firmware(page: bytes) -> Firmware:
    """Parse the page Firmware Slot Information (03h)."""
    _check_size(page, 64, "firmware page")
    revisions = {slot: _text(page[8 * slot : 8 * slot + 8]) for slot in range(1, 8)}
    revision_by_slot = {slot: text for slot, text in revisions.items() if text}
    return Firmware(page[0] & 7, page[0] >> 4 & 7, revision_by_slot)


def parse_controller(data: bytes) -> Controller:
    """Parse the structure Identify Controller (CNS 01h)."""
    _check_size(data, 4096, "description of the controller")
    states = min(data[263], 31) + 1
    return Controller(
        model=_text(data[24:64]),
        serial=_text(data[4:24]),
        firmware=_text(data[64:72]),
        warning=_degrees(_number(data, 266, 2)),
        critical=_degrees(_number(data, 268, 2)),
        lists_pages=bool(data[261] & 1 << 5),
        self_test=bool(_number(data, 256, 2) & 1 << 4),
        endurance_groups=bool(_number(data, 96, 4) & 1 << 4),
        placement=bool(_number(data, 96, 4) & 1 << 19),
        autonomous_power=bool(data[265] & 1),
        host_memory=_number(data, 272, 4) * 4096,
        capacity=_number(data, 280, 16) or None,
        error_entries=data[262] + 1,
        states=tuple(_power_state(data[2048 + 32 * n : 2080 + 32 * n]) for n in range(states)),
    )


def parse_namespace(data: bytes) -> Namespace:
    """Parse the structure Identify Namespace (CNS 00h)."""
    _check_size(data, 4096, "description of the namespace")
    formats = tuple(
        (1 << _number(data, at + 2, 1), _number(data, at, 2), data[at + 3] & 3)
        for at in range(128, 128 + 4 * (min(data[25], 63) + 1), 4)
        if 9 <= data[at + 2] <= 20
    )
    format_index = data[26] & 0xF | (data[26] >> 5 & 3) << 4
    at = 128 + 4 * min(format_index, 63)
    if not 9 <= data[at + 2] <= 20:
        raise MalformedPage("The drive describes a namespace with impossible blocks.")
    return Namespace(1 << data[at + 2], _number(data, at, 2), formats, _number(data, 102, 2))


def parse_transitions(data: bytes) -> tuple[tuple[int, int, int], ...]:
    """Autonomous power state transitions (feature 0Ch): from state, to state, and the idle
    milliseconds before it; states without a transition are left out."""
    _check_size(data, 256, "table of power transitions")
    entries = ((state, _number(data, 8 * state, 4)) for state in range(32))
    return tuple((state, entry >> 3 & 31, entry >> 8) for state, entry in entries if entry >> 8)


def _power_state(data: bytes) -> PowerState:
    flags = data[3]
    most = _number(data, 0, 2) * (0.0001 if flags & 1 else 0.01)
    return PowerState(most or None, _number(data, 4, 4), _number(data, 8, 4), not flags & 2)


def _counts(page: bytes, places: Places, title: str) -> dict[str, int]:
    _check_size(page, PAGE, title)
    return _plausible_counts(page, places)


def _plausible_counts(page: bytes, places: Places) -> dict[str, int]:
    values = {name: _number(page, at, size) for name, (at, size) in places.items()}
    return {name: value for name, value in values.items() if value < _MAX_COUNT}


def _check_size(page: bytes, size: int, title: str) -> None:
    if len(page) < size:
        raise MalformedPage(f"The drive's {title} has {len(page)} bytes instead of {size}.")


def _number(page: bytes, at: int, size: int) -> int:
    return int.from_bytes(page[at : at + size], "little")


def _degrees(kelvin: int) -> int | None:
    return kelvin - _KELVIN if _COLDEST <= kelvin <= _HOTTEST else None


def _text(data: bytes) -> str:
    return printable(data.split(b"\0")[0].decode("ascii", "replace")).strip()
