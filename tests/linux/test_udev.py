"""Hotplug events, where there are any."""

from __future__ import annotations

from typing import Any

import pytest

from iopstui.linux.devices import udev
from iopstui.linux.devices.udev import HotplugMonitor


@pytest.mark.parametrize("error", [ImportError("no libudev"), PermissionError(1, "netlink")])
def test_without_netlink_or_libudev_it_says_so(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(roots: Any) -> Any:
        raise error

    monkeypatch.setattr(udev, "_open_monitor", refused)
    monitor = HotplugMonitor(lambda action, name: None)
    assert monitor.start() is False
    assert not monitor.running
    monitor.stop()
