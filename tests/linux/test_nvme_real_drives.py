"""Figures of real drives, as their owners published them, through the pages that hold them.

Facts only, without serial numbers. The pages are laid out here by nvme-cli's ``struct
nvme_smart_log`` and ``nvme_id_ctrl``, not by the parser's own table.
"""

from __future__ import annotations

import pytest

from iopstui.linux.nvme import admin
from iopstui.model.metrics.nvme import drive_figures, warnings_of
from iopstui.model.samples import DriveReading

# field of nvme_smart_log: offset, bytes
LAYOUT = {
    "critical_warning": (0, 1), "temperature": (1, 2), "avail_spare": (3, 1),
    "spare_thresh": (4, 1), "percent_used": (5, 1), "data_units_read": (32, 16),
    "data_units_written": (48, 16), "host_reads": (64, 16), "host_writes": (80, 16),
    "ctrl_busy_time": (96, 16),
    "power_cycles": (112, 16), "power_on_hours": (128, 16), "unsafe_shutdowns": (144, 16),
    "media_errors": (160, 16), "num_err_log_entries": (176, 16), "temp_sensor_1": (200, 2),
    "temp_sensor_2": (202, 2), "temp_sensor_3": (204, 2),
}  # fmt: skip
SAMSUNG_PM983 = {  # netdata/netdata#8594: SAMSUNG MZQLB1T9HAJR-00007, firmware EDA5502Q
    "temperature": 322, "avail_spare": 100, "spare_thresh": 10, "data_units_read": 23665821,
    "data_units_written": 7000791, "host_reads": 151746402, "host_writes": 184324030,
    "ctrl_busy_time": 136, "power_cycles": 8, "power_on_hours": 4221, "temp_sensor_1": 322,
    "temp_sensor_2": 326, "temp_sensor_3": 330,
}  # fmt: skip
BUSY = {  # linux-nvme/nvme-cli#48: more than 2^32 commands
    "temperature": 34 + 273, "avail_spare": 100, "spare_thresh": 10, "data_units_read": 203913228,
    "data_units_written": 64663716, "host_reads": 7207810975, "host_writes": 2931291530,
    "ctrl_busy_time": 399, "power_cycles": 9, "power_on_hours": 742, "unsafe_shutdowns": 5,
}  # fmt: skip
WORN = {  # Linuxfabrik/monitoring-plugins#222
    "temperature": 43 + 273, "avail_spare": 100, "spare_thresh": 10, "percent_used": 3,
    "data_units_read": 5716382, "data_units_written": 28604965, "host_reads": 77254184,
    "host_writes": 239905015, "ctrl_busy_time": 491, "power_cycles": 201, "power_on_hours": 9025,
    "unsafe_shutdowns": 81, "temp_sensor_1": 43 + 273,
}  # fmt: skip
NO_SENSORS = {  # vmware-samples/nvme#8: its sensors report 0
    "temperature": 33 + 273, "avail_spare": 100, "spare_thresh": 10, "data_units_read": 2689321,
    "data_units_written": 1875176, "host_reads": 41772961, "host_writes": 31652528,
    "ctrl_busy_time": 2, "power_cycles": 188, "power_on_hours": 6409, "unsafe_shutdowns": 102,
}  # fmt: skip


def smart(facts: dict[str, int]) -> dict[str, int]:
    page = bytearray(512)
    for name, value in facts.items():
        at, size = LAYOUT[name]
        page[at : at + size] = value.to_bytes(size, "little")
    return admin.parse_smart(bytes(page))


@pytest.mark.parametrize(
    ("facts", "degrees", "terabytes", "used"),
    # what the owners' tools showed: for example 43 °C and 14.6 TB written
    [(SAMSUNG_PM983, 49, 3.58, 0), (BUSY, 34, 33.1, 0), (WORN, 43, 14.6, 3),
     (NO_SENSORS, 33, 0.96, 0)],
)  # fmt: skip
def test_a_drive_is_as_its_owner_saw_it(
    facts: dict[str, int], degrees: int, terabytes: float, used: int
) -> None:
    found = smart(facts)
    figures = drive_figures(DriveReading(found, dict.fromkeys(found, 0)))
    assert (figures["temperature"], figures["used"], figures["spare"]) == (degrees, used, 100)
    assert figures["bytes_written"] == pytest.approx(terabytes * 1e12, rel=0.01)
    assert figures["read_commands"] == facts["host_reads"]
    assert figures["busy_min"] == facts["ctrl_busy_time"]
    assert [*warnings_of(DriveReading(found, found))] == []


def test_a_sensor_that_reports_0_kelvins_is_none() -> None:
    assert not [name for name in smart(NO_SENSORS) if name.startswith("sensor")]
    assert smart(SAMSUNG_PM983)["sensor_3_kelvin"] == 330


def test_power_states_and_limits() -> None:
    """Napsty/check_smart#32 (UCS-SDHPCIE 800GB): 25, 20, 15, 10 W, all 15 ms in and out;
    thomas-krenn/TKperf#25 (INTEL SSDPE2KE016T7): warns at 70 °C, critical at 80 °C."""
    data = bytearray(4096)
    data[263] = 3
    for state, watts in enumerate((25, 20, 15, 10)):
        at = 2048 + 32 * state
        data[at : at + 2] = (100 * watts).to_bytes(2, "little")
        data[at + 4 : at + 12] = (15000).to_bytes(4, "little") * 2
    data[266:270] = (343).to_bytes(2, "little") + (353).to_bytes(2, "little")
    found = admin.parse_controller(bytes(data))
    assert [one.watts for one in found.states] == [25, 20, 15, 10]
    assert {(one.entry_us, one.exit_us, one.operational) for one in found.states} == {
        (15000, 15000, True)
    }
    assert (found.warning, found.critical) == (70, 80)
