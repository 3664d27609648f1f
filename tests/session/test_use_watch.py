"""Who uses the disks, as a session reads it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from iopstui.linux.kernel_files import Roots
from iopstui.session.tick.readers import UseWatch


def test_a_closed_watch_keeps_no_file_of_a_process_open() -> None:
    """After eight sessions they were more than a select() takes."""

    def opened() -> set[str]:
        links = set()
        for link in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                links.add(f"{link.name} {os.readlink(link)}")
        return {link for link in links if link.endswith("/io")}

    before, watch = opened(), UseWatch(Roots(), eager=True)
    watch.ask(0.0, {}, False)
    assert watch._wait()
    kept = opened() - before
    assert kept, "they are read again each second"
    watch.close()
    assert not opened() & kept


def test_the_first_readings_are_made_each_second_and_later_ones_every_other() -> None:
    watch, made = UseWatch(Roots()), []

    class Reader:
        def read(self, t: float, devices: object, tasks: bool) -> None:
            made.append((t, tasks))

    watch._reader = Reader()  # type: ignore[assignment]
    for second in range(12):
        watch.ask(float(second), {}, True)
        assert watch._wait()
    assert made == [
        (0, True), (1, True), (2, True), (3, True), (4, False), (6, True), (8, False), (10, True),
    ]  # fmt: skip
