"""Figures of drives' own counters: deltas of a run, of several drives, and of a whole run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import fio, frame

from iopstui.model.experiment.expectation import ExpectationChecker, parse_expectation
from iopstui.model.figures.figure import as_object
from iopstui.model.metrics.figures import Meter
from iopstui.model.metrics.frame import FINAL, NO_FIO, PARTIAL, Frame
from iopstui.model.metrics.nvme import DRIVE_ROWS, FIGURES, RunDrives, combined_figure
from iopstui.model.samples import DriveReading

BEGAN = {"kelvin": 300, "media_errors": 5, "units_written": 1000, "used": 3, "spare": 100,
         "media_bytes_written": 0}  # fmt: skip


def reading(**now: int) -> DriveReading:
    return DriveReading({**BEGAN, **now}, BEGAN)


def second(t: float, *, flags: frozenset[str] = frozenset(), **now: int) -> Frame:
    return replace(frame(t, interval=fio(100)), nvme={"nvme0": reading(**now)}, flags=flags)


def test_several_drives_add_up_and_the_worst_is_shown() -> None:
    drives = {"nvme0": reading(kelvin=310, media_errors=7, used=9),
              "nvme1": reading(kelvin=320, media_errors=6, spare=80)}  # fmt: skip
    found = as_object(DRIVE_ROWS, drives)
    assert (found["media_errors"], found["temperature"]) == (3, 47)
    assert (found["used"], found["spare"]) == (9, 80)
    # a sum without one of its parts would be too small
    drives["nvme2"] = DriveReading({"kelvin": 300}, {})
    assert combined_figure(drives, "media_errors") is None
    assert combined_figure({}, "media_errors") is None


def test_a_run_has_its_last_counters_and_its_worst_temperature() -> None:
    frames = [
        second(1, kelvin=310),
        frame(2, interval=fio(100)),
        second(3, kelvin=350, media_errors=6),
        # fio's last document: the drive was read once more
        second(4, kelvin=305, media_errors=8, flags=frozenset({FINAL, PARTIAL, NO_FIO})),
    ]
    values = {}
    for name in ("temperature", "media_errors", "spare", "thermal_1"):
        meter = Meter(("nvme", name))
        for one in frames:
            meter.add(one)
        values[name] = meter.value
    assert values == {"temperature": 77, "media_errors": 3, "spare": 100, "thermal_1": None}
    run, rest = RunDrives(), RunDrives()
    run.add(frames[0].nvme)
    for one in frames[2:]:
        rest.add(one.nvme)
    run.join(rest)
    ((name, figures),) = run.rows()
    assert name == "nvme0" and set(figures) == {one.name for one in FIGURES}
    assert (figures["temperature"], figures["media_errors"]) == (77, 3)


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("nvme.media_errors<=0", False),
        ("nvme.media_errors<=3", True),
        ("nvme.temperature<=60", True),
        ("nvme.temperature<=30", False),
        ("nvme.bytes_written>=1MB", True),
        ("nvme.thermal_1<=0", None),
    ],
)
def test_expectations(text: str, passed: bool | None) -> None:
    checker = ExpectationChecker([parse_expectation(text)])
    checker.add(second(1, kelvin=320))
    checker.add(second(2, media_errors=8, units_written=1010))
    (outcome,) = checker.outcomes()
    assert outcome.passed is passed
    assert ("root" in outcome.why) == (passed is None)
