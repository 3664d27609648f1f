"""The row of a drive's own figures, in the device panel and in the queue map."""

from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes
from test_queue_view import measured
from test_queue_view import render as queue_map

from iopstui.events import FrameReady
from iopstui.model.samples import DriveReading
from iopstui.ui.dashboard.panels import kernel_panel
from iopstui.ui.draw.style import ASCII, UTF8
from iopstui.ui.state.live import LiveState

BEGAN = {"units_written": 0, "units_read": 0, "media_errors": 7, "thermal_1": 0, "thermal_1_s": 0}
FINE = {**BEGAN, "kelvin": 320, "used": 3, "units_written": 2000, "critical_warning": 0}
NO_ROOT = "The drive's own figures need root: run with sudo."


def drive(counts: dict[str, int], problem: str = "") -> DriveReading:
    return DriveReading(counts, BEGAN, problem, ("nvme0n1",))


def render(*drives: DriveReading, width: int = 120, now: float = 5.0) -> str:
    readings = {f"nvme{number}": (4.0, reading) for number, reading in enumerate(drives)}
    row = kernel_panel.line(readings, now, width, UTF8)
    text = "".join(text for text, _ in row or ())
    assert row is None or len(text) == width
    return text.rstrip()


@pytest.mark.parametrize(
    ("drives", "start"),
    [
        ([], ""),
        ([drive(FINE)],
         "nvme0  47 °C · 3 % of endurance used · 977 MiB written · 0 B read · no warnings"),
        ([drive({})], "nvme0  – °C · – % of endurance used · – written · – read · no warnings"),
        ([drive({**FINE, "critical_warning": 0b1001, "media_errors": 9})],
         "nvme0  warns: few spare blocks · warns: read-only · media errors +2 · 47 °C · 3 % of "),
        ([drive({**FINE, "thermal_1": 2, "thermal_1_s": 31})], "nvme0  throttled 2 times, 31 s · "),
        ([drive({"kelvin": 300}, NO_ROOT)], f"nvme0  27 °C · {NO_ROOT}"),
        ([drive({}, NO_ROOT)], f"nvme0  {NO_ROOT}"),
        ([drive(FINE), drive({**FINE, "kelvin": 330, "media_errors": 8})],
         "2 drives  nvme1: media errors +1 · at most 57 °C · 3 % of endurance used · 1.91 GiB w"),
        ([drive(FINE), drive({}, NO_ROOT)], f"2 drives  {NO_ROOT}"),
    ],
)  # fmt: skip
def test_the_line_of_a_drive(drives: list[DriveReading], start: str) -> None:
    assert render(*drives).startswith(start)


def test_parts_that_do_not_fit_are_left_out_completely() -> None:
    assert render(drive(FINE), width=40) == "nvme0  47 °C · 3 % of endurance used"
    assert render(drive({}, NO_ROOT), width=20) == "nvme0"


def test_no_less_important_part_stands_in_the_place_of_a_warning() -> None:
    bad = drive({**FINE, "critical_warning": 5, "media_errors": 9})
    line = "2 drives  nvme0: warns: few spare blocks · warns: unreliable · media errors +2"
    assert render(bad, drive(FINE), width=118).startswith(f"{line} · at most 47 °C")
    assert render(bad, drive(FINE), width=len(line)) == line
    short = "2 drives  nvme0: warns: few spare blocks · warns: unreliable"
    assert render(bad, drive(FINE), width=len(line) - 1) == f"{short} …"


def test_an_old_reading_shows_its_age() -> None:
    assert render(drive(FINE), now=29.0).endswith("no warnings")
    assert render(drive(FINE), now=69.0).endswith("no warnings · read 1:05 ago")


def test_a_kernel_name_cannot_send_escape_sequences_to_the_terminal() -> None:
    row = kernel_panel.line({"nvme\x1b[2J": (0.0, drive({}, "a\x07b"))}, 0.0, 60, ASCII)
    assert row is not None and "".join(text for text, _ in row).isprintable()


def test_the_device_panel_and_the_queue_map_show_the_drive() -> None:
    state = LiveState(("nvme0n1",))
    state.apply(FrameReady(3.0, replace(measured(), nvme={"nvme0": drive(FINE)})))
    # a later second without a reading keeps the last reading
    state.apply(FrameReady(4.0, fakes.frame(4, fakes.interval(4))))
    rows = kernel_panel.rows(state, fakes.ON_DISK, 120, 5, UTF8)
    lines = ["".join(text for text, _ in row) for row in rows]
    assert len(lines) == 5 and lines[3].startswith("nvme0  47 °C")
    small_rows = kernel_panel.rows(state, fakes.ON_DISK, 120, 3, UTF8)
    assert not any("47 °C" in text for row in small_rows for text, _ in row)
    frame = replace(measured(), nvme={"nvme0": drive(FINE)})
    assert queue_map(frame=frame)[1].startswith("nvme0  47 °C")
    # another disk's drive is not shown there
    second_drive = replace(drive(FINE), devices=("nvme1n1",))
    assert "°C" not in queue_map(frame=replace(frame, nvme={"nvme1": second_drive}))[1]


def test_a_frozen_second_shows_the_reading_of_its_time() -> None:
    state = LiveState(("nvme0n1",))
    for t, kelvin in ((1.0, 300), (2.0, 310)):
        frame = fakes.frame(int(t), fakes.interval(int(t)))
        counts = {**FINE, "kelvin": kelvin}
        state.apply(FrameReady(t, replace(frame, nvme={"nvme0": drive(counts)})))
    first = next(iter(state.recent_seconds))
    assert state.at(first).drives["nvme0"][1].counts["kelvin"] == 300
    assert state.drives["nvme0"][1].counts["kelvin"] == 310
