"""Power of a run and I/Os per joule, by numbers that can be added up by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from session_frames import whole_frames

from iopstui.model.experiment.comparison import compare, metric_named
from iopstui.model.experiment.point import Point, PointMeter, point_from_json, point_json
from iopstui.model.metrics.run_figures import RunEnergy
from iopstui.output.summary import energy_text

# session_frames.kernel: with each frame 40 J of the packages, 5 J of memory, 90 J of the machine
NAME = "3.42-a-randread-grp"


def test_without_counters_nothing_is_said_and_nothing_is_0() -> None:
    energy = RunEnergy()
    for frame in whole_frames(NAME):
        energy.add(replace(frame, more={"power": {"package": None}}))
        energy.add(replace(frame, fio=None))
    assert energy.joules == {} and energy.data() is None and energy_text(energy) == ""
    assert energy.watts("package") is None and energy.ios_per_joule is None


def test_memory_alone_gives_no_ios_per_joule() -> None:
    energy = RunEnergy()
    for frame in whole_frames(NAME):
        energy.add(replace(frame, more={"power": {"dram": 5.0}}))
    assert energy.ios_per_joule is None and energy.watts("package") is None
    assert energy_text(energy).startswith("energy (RAPL): memory 5.0 W (")


def test_a_point_has_the_mean_power_and_a_comparison_holds_ios_per_joule_up() -> None:
    meter = PointMeter(0.0)
    for frame in whole_frames(NAME):
        meter.add(frame)
    point = meter.point()
    assert point is not None and point.watts is not None
    assert point.ios_per_joule == pytest.approx(point.iops / point.watts)
    assert point_from_json(point_json(point)) == point
    one, two = replace(point, watts=40.0), replace(point, watts=20.0)
    (tested,) = compare([dict.fromkeys(range(5), one), dict.fromkeys(range(5), two)])
    found = next(each for each in tested if each.metric == metric_named("I/Os per joule"))
    assert found.second == pytest.approx(2 * found.first)
    unknown: Point = replace(point, watts=None)
    (tested,) = compare([dict.fromkeys(range(5), unknown), dict.fromkeys(range(5), two)])
    assert "I/Os per joule" not in [each.metric.name for each in tested]
