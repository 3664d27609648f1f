"""Enumerate block devices, read their udev properties and follow hot-plug events.

Without a running udevd ID_* properties are missing, and events come from the kernel itself."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iopstui.linux.kernel_files import Roots
from iopstui.text import printable

Callback = Callable[[str, str], None]

LOST = "lost"


@dataclass(frozen=True, slots=True)
class UdevDevice:
    """A block device in sysfs. ``directory`` is its real sysfs directory."""

    name: str
    directory: Path


def enumerate_block(roots: Roots) -> list[UdevDevice]:
    """Every block device, partitions and hidden multipath paths included, as libudev finds them:
    from their class directory."""
    top = roots.sys / "class/block"
    try:
        names = sorted(os.listdir(top))
    except OSError:
        return []
    return [UdevDevice(name, Path(os.path.realpath(top / name))) for name in names]


def udev_properties(directory: Path, roots: Roots) -> Mapping[str, str]:
    """Properties that udev's rules found for the device (ID_MODEL ...). Empty without a udevd, for
    devices without hardware, and in a fixture tree. It loads libudev, which takes longer than
    reading ten devices."""
    database = roots.run / "udev/data"
    if not roots.real or "/devices/virtual/" in f"{directory}/" or not database.is_dir():
        return {}
    try:
        import pyudev

        context = _context()
    except (ImportError, OSError):
        return {}  # libudev is missing
    try:
        return dict(pyudev.Devices.from_path(context, str(directory)).properties)
    except (pyudev.DeviceNotFoundError, KeyError, OSError, ValueError):
        return {}  # the device vanished while libudev looked at it


_THREAD_LOCAL = threading.local()


def _context() -> Any:
    """One libudev context per thread: libudev counts references without a lock, and ctypes lets
    other threads run meanwhile."""
    context = getattr(_THREAD_LOCAL, "context", None)
    if context is None:
        import pyudev

        context = _THREAD_LOCAL.context = pyudev.Context()
    return context


class HotplugMonitor:
    """Calls ``callback(action, name)`` from its own thread on block device events.

    ``action`` is the kernel's ("add", "remove", "change", ...), or ``LOST`` with an empty name if
    events came faster than they were read; then the listener must read everything again. ``name``
    is the kernel's name. An exception in the callback ends the monitor."""

    def __init__(self, callback: Callback, roots: Roots | None = None) -> None:
        self._callback = callback
        self._roots = roots or Roots()
        self._thread: threading.Thread | None = None
        self._wake: tuple[int, int] | None = None

    @property
    def running(self) -> bool:
        """True while the monitor listens to events."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> bool:
        """Start listening; return False (and raise nothing) if netlink or libudev is refused or
        missing."""
        if self._thread is not None or not self._roots.real:
            return self.running
        try:
            monitor = _open_monitor(self._roots)
            self._wake = os.pipe2(os.O_CLOEXEC)
        except (ImportError, OSError):
            return False
        self._thread = threading.Thread(
            target=self._listen, args=(monitor, self._wake[0]), name="hotplug", daemon=True
        )
        self._thread.start()
        return True

    def stop(self) -> None:
        """Stop. After this returns, the callback isn't called again (unless this was called from
        the callback)."""
        thread, wake = self._thread, self._wake
        self._thread = self._wake = None
        if thread is None or wake is None:
            return
        os.close(wake[1])
        if thread is not threading.current_thread():
            thread.join()
        os.close(wake[0])

    def _listen(self, monitor: Any, wake: int) -> None:
        poll = select.poll()
        poll.register(monitor.fileno(), select.POLLIN)
        poll.register(wake, select.POLLIN)
        try:
            while True:
                ready = [fd for fd, _ in poll.poll()]
                if wake in ready:
                    return
                self._forward(monitor)
        except Exception:
            # a screen that closes refuses calls; a traceback on it would help nobody
            return

    def _forward(self, monitor: Any) -> None:
        while True:
            try:
                device = monitor.poll(timeout=0)
            except OSError:  # ENOBUFS: the socket's buffer overflowed
                self._callback(LOST, "")
                return
            if device is None:
                return
            name = printable(str(device.sys_name)).replace("!", "/")
            self._callback(str(device.action or "change"), name)


def _open_monitor(roots: Roots) -> Any:
    import pyudev

    # without udevd its multicast group is silent; with udevd, the kernel's own events come before
    # the properties exist
    source = "udev" if (roots.run / "udev/control").exists() else "kernel"
    # the starting thread's context can't be used (see ``_context``): the monitor runs in its own
    # thread
    monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source=source)
    monitor.filter_by(subsystem="block")
    monitor.start()
    return monitor
