"""Hotplug events, where udev sends them."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from iopstui.linux.devices import udev
from iopstui.linux.devices.udev import LOST, HotplugMonitor
from iopstui.linux.kernel_files import Roots


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


class Monitor:
    """Replaces pyudev's monitor: gives events, then an error or nothing more."""

    def __init__(self, *events: object, error: OSError | None = None) -> None:
        self.events, self.error = list(events), error
        self.wake, self.arrived = os.pipe()

    def fileno(self) -> int:
        return self.wake

    def poll(self, timeout: float) -> object:
        assert timeout == 0
        if self.events:
            return self.events.pop(0)
        os.read(self.wake, 1)
        if self.error is not None:
            raise self.error
        return None


def event(action: str | None, name: str) -> object:
    return SimpleNamespace(action=action, sys_name=name)


def told(monitor: Monitor, monkeypatch: pytest.MonkeyPatch, count: int) -> list[tuple[str, str]]:
    """The first ``count`` callbacks for the monitor's events."""
    found: list[tuple[str, str]] = []
    enough = threading.Event()

    def callback(action: str, name: str) -> None:
        found.append((action, name))
        if len(found) == count:
            enough.set()

    monkeypatch.setattr(udev, "_open_monitor", lambda roots: monitor)
    listener = HotplugMonitor(callback)
    assert listener.start() is True and listener.running
    assert listener.start() is True, "it goes on"
    os.write(monitor.arrived, b"x")
    assert enough.wait(60)
    listener.stop()
    assert not listener.running
    listener.stop()
    return found


def test_events_are_told_with_the_kernel_s_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(event("add", "vdb"), event(None, "cciss!c0\x1b"))
    assert told(monitor, monkeypatch, 2) == [("add", "vdb"), ("change", "cciss/c0?")]


def test_events_that_were_lost_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(event("remove", "vdb"), error=OSError(105, "No buffer space available"))
    assert told(monitor, monkeypatch, 2) == [("remove", "vdb"), (LOST, "")]


def test_a_tree_of_files_has_no_events(tmp_path: Path) -> None:
    assert HotplugMonitor(lambda action, name: None, Roots.under(tmp_path)).start() is False


def test_each_thread_has_a_context_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setitem(sys.modules, "pyudev", SimpleNamespace(Context=object))
    monkeypatch.setattr(udev, "_THREAD_LOCAL", threading.local())
    thread = threading.Thread(target=lambda: made.append(udev._context()))
    thread.start()
    thread.join()
    first, again = udev._context(), udev._context()
    assert first is again and made and made[0] is not first
