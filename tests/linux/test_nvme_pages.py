"""Log pages, compared with nvme-cli's JSON of the same second and with the specification's
offsets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.nvme import admin
from iopstui.linux.nvme.admin import DriveUnreadable, MalformedPage

# raw pages of QEMU 7.2's drive, and the JSON of nvme-cli 2.3 in the same second
QEMU = json.loads((Path(__file__).parents[1] / "fixtures/nvme/qemu-7.2.json").read_text())
NVME_CLI = {
    "critical_warning": "critical_warning", "kelvin": "temperature", "spare": "avail_spare",
    "spare_threshold": "spare_thresh", "used": "percent_used", "units_read": "data_units_read",
    "units_written": "data_units_written", "read_commands": "host_read_commands",
    "write_commands": "host_write_commands", "busy_min": "controller_busy_time",
    "power_cycles": "power_cycles", "power_on_hours": "power_on_hours",
    "unsafe_shutdowns": "unsafe_shutdowns", "media_errors": "media_errors",
    "error_entries": "num_err_log_entries", "warning_min": "warning_temp_time",
    "critical_min": "critical_comp_time", "thermal_1": "thm_temp1_trans_count",
    "thermal_2": "thm_temp2_trans_count", "thermal_1_s": "thm_temp1_total_time",
    "thermal_2_s": "thm_temp2_total_time",
}  # fmt: skip


def page(name: str) -> bytes:
    return bytes.fromhex(QEMU[name]["page"]).ljust(QEMU[name]["size"], b"\0")


def told(name: str) -> Any:
    return QEMU[name]["nvme_cli"]


def filled(size: int, **values: tuple[int, int, int]) -> bytes:
    """A page of zeros except for these (offset, bytes, value)."""
    data = bytearray(size)
    for at, width, value in values.values():
        data[at : at + width] = value.to_bytes(width, "little")
    return bytes(data)


def test_smart_agrees_with_nvme_cli() -> None:
    found = admin.parse_smart(page("smart"))
    assert found == {own: int(told("smart")[theirs]) for own, theirs in NVME_CLI.items()}
    assert found["write_commands"] == 13823, "the page has something to compare"


def test_every_counter_of_smart_has_its_own_place() -> None:
    # Base Specification 2.0, figure 207: a different value at every offset
    places = {"units_read": 32, "units_written": 48, "read_commands": 64, "write_commands": 80,
              "busy_min": 96, "power_cycles": 112, "power_on_hours": 128, "unsafe_shutdowns": 144,
              "media_errors": 160, "error_entries": 176, "warning_min": 192, "critical_min": 196,
              "thermal_1": 216, "thermal_2": 220, "thermal_1_s": 224,
              "thermal_2_s": 228}  # fmt: skip
    data = filled(512, **{name: (at, 4, 1000 + at) for name, at in places.items()})
    found = admin.parse_smart(data)
    assert {name: found[name] for name in places} == {n: 1000 + at for n, at in places.items()}


def test_sensors_and_what_no_drive_can_have() -> None:
    data = filled(512, kelvin=(1, 2, 0), one=(200, 2, 310), two=(202, 2, 0), three=(204, 2, 65535))
    found = admin.parse_smart(data)
    assert "kelvin" not in found and found["sensor_1_kelvin"] == 310
    assert not {"sensor_2_kelvin", "sensor_3_kelvin"} & set(found)
    assert "units_written" not in admin.parse_smart(b"\xff" * 512), "2^128 units are no count"


def test_identify_agrees_with_nvme_cli() -> None:
    found, other = admin.parse_controller(page("ctrl")), told("ctrl")
    assert (found.model, found.serial, found.firmware) == tuple(
        other[name].strip() for name in ("mn", "sn", "fr")
    )
    assert (found.warning, found.critical) == (other["wctemp"] - 273, other["cctemp"] - 273)
    assert found.self_test == bool(other["oacs"] & 16)
    assert found.lists_pages == bool(other["lpa"] & 32)
    assert found.endurance_groups == bool(other["ctratt"] & 16)
    assert len(found.states) == other["npss"] + 1
    (state,) = found.states
    power = other["psds"][0]
    assert state.watts == pytest.approx(power["max_power"] * 0.01)
    assert (state.entry_us, state.exit_us) == (power["entry_lat"], power["exit_lat"])


def test_a_namespace_agrees_with_nvme_cli() -> None:
    found, other = admin.parse_namespace(page("ns")), told("ns")
    theirs = [(1 << one["ds"], one["ms"], one["rp"]) for one in other["lbafs"]]
    assert list(found.formats) == theirs and len(theirs) > 1
    assert (found.block, found.metadata) == theirs[other["flbas"] & 15][:2]


def test_firmware_slots() -> None:
    found = admin.parse_firmware(page("fw"))
    assert (found.active, found.next) == (1, 0) and found.revisions == {1: "1.0"}
    data = filled(512, afi=(0, 1, 0x21))[:8] + b"FIRST   SECOND\x1b[" + bytes(488)
    found = admin.parse_firmware(data)
    assert (found.active, found.next) == (1, 2)
    assert found.revisions[1] == "FIRST" and "\x1b" not in found.revisions[2]


def test_errors_the_newest_first_without_unused_entries() -> None:
    used = filled(64, count=(0, 8, 12), queue=(8, 2, 3), command=(10, 2, 44),
                  status=(12, 2, 0x281 << 1 | 1), lba=(16, 8, 4096), nsid=(24, 4, 1))  # fmt: skip
    (entry,) = admin.parse_errors(used + bytes(64))
    assert entry == admin.ErrorEntry(12, 3, 44, 0x281, 4096, 1)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (bytes(32), admin.SelfTest("", 0, "")),
        (bytes([1, 40, 0, 0, 0x27]) + bytes(27), admin.SelfTest("short", 40,
                                                                "extended test failed")),
        (bytes([2, 127, 0, 0, 0x10]) + bytes(27), admin.SelfTest("extended", 100,
                                                                 "short test passed")),
        (bytes([0, 0, 0, 0, 0x1F]) + bytes(27), admin.SelfTest("", 0, "")),
    ],
)  # fmt: skip
def test_self_tests(head: bytes, expected: admin.SelfTest) -> None:
    assert admin.parse_self_test(head) == expected


def test_ocp_page_only_with_its_guid() -> None:
    data = filled(512, media=(0, 16, 3 << 40), read=(16, 16, 5), erase=(88, 4, 900),
                  least=(92, 4, 800), heat=(96, 1, 2))  # fmt: skip
    with pytest.raises(MalformedPage, match="C0h"):
        admin.parse_ocp(data)
    # OCP Datacenter NVMe SSD Specification: AFD514C97C6F4F9CA4F2BFEA2810AFC5h
    guid = 0xAFD514C97C6F4F9CA4F2BFEA2810AFC5.to_bytes(16, "little")
    found = admin.parse_ocp(data[:496] + guid)
    assert found["media_bytes_written"] == 3 << 40
    assert (found["erase_count_max"], found["erase_count_min"]) == (900, 800)


def test_endurance_group_and_supported_pages() -> None:
    data = filled(512, spare=(3, 1, 99), used=(5, 1, 3), media=(80, 16, 77), errors=(128, 16, 2))
    assert admin.parse_endurance(data) == {
        "group_spare": 99, "group_used": 3, "group_media_gb_written": 77, "group_media_errors": 2,
    }  # fmt: skip
    listed = filled(1024, smart=(4 * 2, 4, 1), ocp=(4 * 0xC0, 4, 3), other=(4 * 9, 4, 2))
    assert admin.parse_supported(listed) == {2, 0xC0}


def test_power_transitions() -> None:
    data = filled(256, one=(0, 8, 3 << 3 | 100 << 8), two=(24, 8, 4 << 3 | 2000 << 8))
    assert admin.parse_transitions(data) == ((0, 3, 100), (3, 4, 2000))


PARSERS: tuple[Callable[[bytes], object], ...] = (
    admin.parse_smart, admin.parse_ocp, admin.parse_endurance, admin.parse_supported,
    admin.parse_errors, admin.parse_self_test, admin.parse_firmware, admin.parse_controller,
    admin.parse_namespace, admin.parse_transitions,
)  # fmt: skip


@pytest.mark.parametrize("parse", PARSERS)
def test_a_truncated_page_ends_in_a_sentence(parse: Callable[[bytes], object]) -> None:
    with pytest.raises(MalformedPage, match=r"has 20 bytes instead of \d+\.$"):
        parse(bytes(20))


@given(st.sampled_from(PARSERS), st.binary(max_size=600), st.integers(0, 4096))
def test_no_page_does_harm(parse: Callable[[bytes], object], start: bytes, size: int) -> None:
    try:
        parse((start * 8)[:4096].ljust(size, b"\xff"))
    except DriveUnreadable as error:
        assert str(error).endswith(".")


def test_placement_statistics() -> None:
    """libnvme, struct nvme_fdp_stats_log: three counters of 16 bytes in 64."""
    page = b"".join(n.to_bytes(16, "little") for n in (5 << 40, 7 << 40, 3)) + bytes(16)
    assert admin.parse_placement(page) == {
        "fdp_host_bytes_written": 5 << 40, "fdp_media_bytes_written": 7 << 40,
        "fdp_media_bytes_erased": 3,
    }  # fmt: skip
    with pytest.raises(admin.MalformedPage):
        admin.parse_placement(page[:63])
    assert admin.parse_placement(b"\xff" * 64) == {}, "no drive counts so far"
