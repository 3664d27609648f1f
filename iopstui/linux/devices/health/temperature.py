"""Temperature of an NVMe or SATA disk.

Sources: Documentation/hwmon/sysfs-interface.rst, drivers/nvme/host/hwmon.c,
Documentation/hwmon/drivetemp.rst.

To read it sends a command to the disk, which a disk that hangs does not answer; and a SATA disk
finishes all it was given first, because the command can't be queued. So that the jobs are not
disturbed it is read seldom, and not at all while the disk is not in order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.sysattr import list_names, parse_int, read_text
from iopstui.model.findings.conditions import Temperature

# seconds from one reading to the next: an SMART log of NVMe has a queue of its own
NVME_INTERVAL_S, OTHER_INTERVAL_S = 10.0, 60.0
# the states of an NVMe controller and a SCSI device that take commands
USABLE = frozenset({"live", "running"})
_SENSOR = re.compile(r"hwmon[0-9]{1,5}")
# a threshold that was never set is 0 or 65535 kelvins; no disk works beyond these
_COLDEST, _HOTTEST = -60.0, 200.0


@dataclass(frozen=True, slots=True)
class Sensor:
    """``directory`` is the one with temp1_input; ``state`` says how the disk or its controller is
    (None: nothing does)."""

    directory: str
    state: str | None
    interval_s: float


def parse_degrees(text: str) -> float | None:
    """Degrees Celsius from thousandths; None if implausible for a disk."""
    value = parse_int(text.strip())
    degrees = None if value is None else value / 1000
    return degrees if degrees is not None and _COLDEST <= degrees <= _HOTTEST else None


def find_sensors(disk: Path) -> Iterator[Sensor]:
    """Temperature sensors of the whole disk whose sysfs directory is ``disk``: below its SCSI
    device or its NVMe controller, or (older kernels) the controller's PCI device."""
    return sensors_near(disk / "device")


def sensors_near(device: Path) -> Iterator[Sensor]:
    """The same of a SCSI device's or an NVMe controller's sysfs directory."""
    state = device / "state"
    for above in (device, device / "device"):
        for place in (above, above / "hwmon"):
            for name in list_names(place):
                sensor = place / name
                if _SENSOR.fullmatch(name) and os.path.isfile(sensor / "temp1_input"):
                    slow = read_text(sensor / "name") != "nvme"
                    interval = OTHER_INTERVAL_S if slow else NVME_INTERVAL_S
                    yield Sensor(
                        str(sensor), str(state) if os.path.isfile(state) else None, interval
                    )


def read_temperature(sensor: Sensor) -> Temperature | None:
    """Read the current temperature; ``None`` if the disk has a problem, or doesn't report it. May
    last as long as the disk hangs."""
    if sensor.state is not None and read_text(sensor.state) not in USABLE:
        return None
    now = _degrees(sensor, "temp1_input")
    if now is None:
        return None
    return Temperature(now, _limit(sensor, "temp1_max"), _limit(sensor, "temp1_crit"))


class Temperatures:
    """The last temperature of each sensor, reused until it must be read again."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[float, Temperature | None]] = {}

    def now(self, sensor: Sensor, t: float) -> Temperature | None:
        """At ``t``, in seconds of any clock that only grows."""
        last = self._read.get(sensor.directory)
        if last is None or t - last[0] >= sensor.interval_s:
            last = self._read[sensor.directory] = (t, read_temperature(sensor))
        return last[1]


def _degrees(sensor: Sensor, name: str) -> float | None:
    return parse_degrees(read_text(f"{sensor.directory}/{name}") or "")


def _limit(sensor: Sensor, name: str) -> float | None:
    degrees = _degrees(sensor, name)
    return degrees if degrees is not None and degrees > 0 else None
