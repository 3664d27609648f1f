"""smartctl's answers, complete and broken; a sleeping disk is not woken."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.devices import smart
from iopstui.linux.devices.smart import DiskHealth, parse_disk_health, read_disk_health
from iopstui.output.pages.devices import health_text

QEMU = (Path(__file__).parents[1] / "fixtures/smart/qemu-7.2-ahci.json").read_text()
"""The AHCI disk of QEMU 7.2, as smartctl 7.3 reports it."""
# AnalogJ/scrutiny#717 (a SEAGATE ST20000NM002D), and the list of smartctl_exporter#118
SAS = {
    "smartctl": {"version": [7, 4], "exit_status": 0},
    "device": {"name": "/dev/sdd", "type": "scsi", "protocol": "SCSI"},
    "smart_status": {"passed": True}, "temperature": {"current": 33},
    "power_on_time": {"hours": 4096}, "scsi_grown_defect_list": 240,
    "scsi_error_counter_log": {"read": {"total_uncorrected_errors": 0},
                               "write": {"total_uncorrected_errors": 3}},
}  # fmt: skip
# AnalogJ/scrutiny#436, truenas/py-SMART#82
ASLEEP = {"smartctl": {"version": [7, 3], "exit_status": 2, "messages": [
    {"string": "Device is in STANDBY mode, exit(2)", "severity": "information"}]}}  # fmt: skip


def test_a_sata_disk() -> None:
    found = parse_disk_health(QEMU)
    assert (found.passed, found.degrees, found.hours, found.problem) == (True, 31, 1, "")
    assert found.grown_defects is found.uncorrected is None
    by_number = {one.number: one for one in found.attributes}
    assert (by_number[5].name, by_number[5].limit) == ("Reallocated_Sector_Ct", 36)
    assert by_number[190].raw == "31 (Min/Max 31/31)"
    text = health_text(found)
    assert text.startswith("Health (SMART): passed, 31 °C, 1 h powered on\n")
    assert "  5 Reallocated_Sector_Ct        100   100    36  0\n" in text


def test_a_sas_disk() -> None:
    found = parse_disk_health(json.dumps(SAS))
    assert (found.grown_defects, found.uncorrected) == (240, {"read": 0, "write": 3})
    assert health_text(found) == (
        "Health (SMART): passed, 33 °C, 4,096 h powered on, grown defects 240,\n"
        "  uncorrected errors: read 0, write 3\n"
    )
    none = parse_disk_health(json.dumps({**SAS, "scsi_grown_defect_list": 0}))
    assert "grown defects none" in health_text(none)


def test_a_disk_that_fails() -> None:
    data = json.loads(QEMU)
    data["smart_status"]["passed"] = False
    data["ata_smart_attributes"]["table"][3]["when_failed"] = "now"
    text = health_text(parse_disk_health(json.dumps(data), 8))
    assert text.startswith("Health (SMART): FAILED: replace the disk, 31 °C")
    assert "1 of its attributes below their limit now" in " ".join(text.split())
    assert "36  0  failed: now" in text


def test_what_smartctl_does_not_tell_is_unknown_and_not_0() -> None:
    found = parse_disk_health(json.dumps({"temperature": {"current": 0}}))
    assert found == DiskHealth()
    assert health_text(found) == "Health (SMART): no verdict, – °C\n"


@pytest.mark.parametrize("data", [ASLEEP, {"power_mode": {"ata_value": 0}}])
def test_a_disk_that_sleeps_is_left_asleep(data: dict[str, Any]) -> None:
    found = parse_disk_health(json.dumps(data), 2)
    assert found.problem == "The disk sleeps (standby), and it is not woken for this."


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("", 0, "no JSON"), ("{", 0, "no JSON"), ("[" * 100_000, 0, "no JSON"), ("[]", 0, "object"),
        ("7", 0, "object"), ("{}", 2, "says no reason"), ("{}", 1, "says no reason"),
        ('{"smartctl": {"messages": [{"string": "Permission denied."}]}}', 2, "Permission denied."),
        ('{"smartctl": {"messages": [5, {"string": 7}, {}]}}', 2, "says no reason"),
        ('{"smartctl": {"messages": [{"string": "\\u001b[2J"}]}}', 2, "?[2J"),
        ('{"smartctl": []}', 2, "says no reason"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_a_sentence(text: str, code: int, says: str) -> None:
    found = parse_disk_health(text, code)
    assert says in found.problem and found.problem.endswith(".") and found.problem.isprintable()
    assert health_text(found).startswith("Health: ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(("id", "name", "value", "worst", "raw", "string", "table", "read",
                         "current", "passed", "hours", "total_uncorrected_errors")),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from((
    "smart_status", "temperature", "power_on_time", "ata_smart_attributes",
    "scsi_grown_defect_list", "scsi_error_counter_log", "smartctl",
)), JSON), st.sampled_from((0, 1, 2, 4, 64, 255)))  # fmt: skip
def test_no_answer_does_harm(data: dict[str, Any], code: int) -> None:
    text = health_text(parse_disk_health(json.dumps(data), code))
    assert all(line.isprintable() for line in text.splitlines())


class Smartctl:
    """Answers like smartctl 7.3, and keeps the requests."""

    def __init__(self, version: str = "smartctl 7.3 2022-02-28 r5338") -> None:
        self.asked: list[Sequence[str]] = []
        self._version = version

    def __call__(self, command: Sequence[str]) -> tuple[int, str]:
        self.asked.append(command)
        return (0, self._version) if command[1] == "--version" else (0, QEMU)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smart, "which", lambda name, path: f"/usr/sbin/{name}")
    monkeypatch.setattr(smart.os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("installed")
def test_it_is_told_to_let_the_disk_sleep() -> None:
    ask = Smartctl()
    assert read_disk_health("/dev/sda", ask).passed
    assert [list(one[1:]) for one in ask.asked] == [
        ["--version"],
        ["--json=c", "--nocheck=standby", "-i", "-H", "-A", "-l", "error", "/dev/sda"],
    ]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("version", ["smartctl 7.1 2019-12-30", "smartctl 6.6", "", "7.3"])
def test_an_old_one_that_may_wake_disks_is_not_used(version: str) -> None:
    ask = Smartctl(version)
    assert "7.2 or newer" in read_disk_health("/dev/sda", ask).problem
    assert len(ask.asked) == 1


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("error", "says"), [
    (subprocess.TimeoutExpired("smartctl", 30), "did not answer"),
    (PermissionError(13, "Permission denied"), "Permission denied"),
])  # fmt: skip
def test_what_fails_is_a_sentence(error: Exception, says: str) -> None:
    def fail(command: Sequence[str]) -> tuple[int, str]:
        raise error

    assert says in read_disk_health("/dev/sda", fail).problem


def test_without_smartctl_or_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smart, "which", lambda name, path: None)
    assert "install smartmontools" in read_disk_health("/dev/sda").problem
    monkeypatch.setattr(smart, "which", lambda name, path: "/usr/sbin/smartctl")
    monkeypatch.setattr(smart.os, "geteuid", lambda: 1000)
    assert "root" in read_disk_health("/dev/sda").problem
