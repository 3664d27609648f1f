"""Where the I/Os wait, in every kind of report, compared with sums of the frames' figures."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import recordings as made
from evidence_frames import frame as second
from hypothesis import given
from hypothesis import strategies as st
from test_report import page, rendered, text_of

from iopstui import events
from iopstui.features.reports.series import append, empty, values_of
from iopstui.model.metrics.frame import FINAL, PARTIAL, RAMP, Frame, FrameBuilder
from iopstui.model.metrics.run_figures import RunFigures
from iopstui.model.metrics.waits import Waits
from iopstui.model.samples import RawSample
from iopstui.output.page.svg import Curve, Times, linear, stacked

HEAD = ("run", "in flight", "waiting for a CPU", "above the device", "vda")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.iops"


def waiting_samples(name: str = made.RUN) -> list[RawSample]:
    """Samples of a run whose job waits for a CPU in a tenth of each second."""
    return [
        replace(raw, jobs=tuple(replace(job, cpu_wait_ns=raw.seq * 10**8) for job in raw.jobs))
        for raw in made.raws(name)
    ]


def measured_frames(frames: Sequence[Frame]) -> list[Frame]:
    return [
        frame for frame in frames
        if frame.waits is not None and frame.fio is not None and frame.seconds
        and RAMP not in frame.flags and not {FINAL, PARTIAL} <= frame.flags
    ]  # fmt: skip


def mean(frames: Sequence[Frame], part: str) -> float:
    total = sum((frame.seconds or 0.0) * getattr(frame.waits, part) for frame in frames)
    return total / sum(frame.seconds or 0.0 for frame in frames)


def test_a_table_of_the_means_is_in_the_page_and_in_markdown(path: Path) -> None:
    made.write(path, taken=waiting_samples())
    frames = measured_frames(made.frames(waiting_samples()))
    cells = [f"{mean(frames, part):.1f}" for part in ("ios", "cpu", "above")]
    root = page(path)
    tables = [
        [[text_of(cell) for cell in row] for row in table.iter("tr")]
        for table in root.iter("table")
    ]
    means_table = next(rows for rows in tables if rows[0][:2] == ["run", "in flight"])
    assert tuple(means_table[0]) == HEAD
    assert means_table[1][:4] == ["1", *cells]
    text = rendered([path], "md")
    assert "## Where the I/Os wait" in text
    assert f"| 1 | {' | '.join(cells)} |" in text


def test_json_has_the_means_of_a_run_and_the_waits_of_each_second(path: Path) -> None:
    made.write(path, taken=waiting_samples())
    frames = measured_frames(made.frames(waiting_samples()))
    (data,) = json.loads(rendered([path], "json"))["recordings"]
    waits = data["runs"][0]["wait"]
    assert waits["cpu"] == pytest.approx(mean(frames, "cpu")) != 0
    assert waits["ios"] == pytest.approx(mean(frames, "ios"))
    assert waits["ios"] == pytest.approx(
        waits["cpu"] + waits["above"] + sum(waits["layers"].values()) + waits["unknown"]
    )
    series = data["series"]
    third = made.frames(waiting_samples())[2].waits
    assert third is not None
    assert series["wait.cpu"][2] == pytest.approx(third.cpu)
    assert series["wait.layers.vda"][2] == pytest.approx(third.layers["vda"])
    assert data["wait_without_job"] is None


def test_csv_has_a_column_for_each_wait_place(path: Path) -> None:
    made.write(path, taken=waiting_samples())
    rows = list(csv.DictReader(io.StringIO(rendered([path], "csv"))))
    third = made.frames(waiting_samples())[2].waits
    assert third is not None and third.cpu
    for name, value in (
        ("ios", third.ios),
        ("cpu", third.cpu),
        ("layers.vda", third.layers["vda"]),
    ):
        assert float(rows[2][f"wait.{name}"]) == pytest.approx(value)
    assert rows[0]["wait.layers.vda"] == "" and rows[2]["wait.device"] == ""


def test_seconds_without_a_job_have_a_row(path: Path) -> None:
    samples = [replace(raw, fio=None, step=0, jobs=(), final=False) for raw in made.raws(made.RUN)]
    buffer = made.tape(path)
    made.tell(buffer, samples)
    buffer.close(events.SessionEnded(2.5, 0))
    frames = [frame for frame in made.frames(samples) if frame.waits is not None]
    ios = f"{mean(frames, 'ios'):.1f}"
    assert f"| no job | {ios} | – | – | {ios} |" in rendered([path], "md")


def test_without_kernel_data_there_is_no_wait_section(path: Path) -> None:
    samples = [replace(raw, kernel=None) for raw in made.raws(made.RUN)]
    made.write(path, taken=samples)
    assert "Where the I/Os wait" not in rendered([path], "md") + rendered([path], "html")


Cuts = st.lists(st.booleans(), min_size=12, max_size=12)


@given(Cuts)
def test_joined_parts_of_a_run_have_the_same_means(cuts: list[bool]) -> None:
    frames = made.frames(waiting_samples())
    single, joined, part = RunFigures(), RunFigures(), RunFigures()
    for frame, cut in zip(frames, (cuts * 9)[: len(frames)], strict=True):
        single.add(frame)
        if cut:
            joined.join(part)
            part = RunFigures()
        part.add(frame)
    joined.join(part)
    a, b = single.waits.value, joined.waits.value
    assert a is not None and b is not None
    for name in ("ios", "cpu", "above", "unknown"):
        assert getattr(b, name) == pytest.approx(getattr(a, name))
    assert b.layers == pytest.approx(a.layers)


def test_a_series_has_a_column_for_each_wait_place() -> None:
    series = empty(("dm-0", "vda"))
    waits = Waits(4.0, None, 1.0, {"dm-0": 1.0, "vda": 2.0}, None, None, 0.0)
    append(series, 1.0, values_of(replace(second(1.0), waits=waits)))
    append(series, 1.0, values_of(second(2.0)))
    places = {name: column[0] for name, column in series.items() if name.startswith("wait.")}
    del places["wait.cpu"]
    assert [*places.items()] == [
        ("wait.above", 1.0), ("wait.cache", 0.0), ("wait.unsent", 0.0), ("wait.layers.dm-0", 1.0),
        ("wait.layers.vda", 2.0), ("wait.unknown", 0.0),
    ]  # fmt: skip
    assert str(series["wait.cpu"][0]) == str(series["wait.unknown"][1]) == "nan"


def area_corners(svg: str) -> dict[str, list[tuple[float, float]]]:
    """The corners of each area by its style."""
    corners = {}
    for element in ET.fromstring(svg).iter("path"):
        kind = element.get("class", "")
        if kind.startswith("area "):
            points = element.get("d", "").strip("Mz").replace("zM", "L").split("L")
            corners[kind.removeprefix("area ")] = [
                (float(x), float(y)) for x, y in (point.split() for point in points)
            ]
    return corners


def test_areas_are_stacked_and_add_up() -> None:
    upper = Curve("above", "fio", [(0.0, 1.0), (1.0, 1.0), (2.0, None), (3.0, 2.0)])
    lower = Curve("vda", "device", [(0.0, 3.0), (1.0, 1.0), (2.0, None), (3.0, 2.0)])
    scale = linear([4.0])
    corners = area_corners(stacked("t", [upper, lower], scale, str, Times(0.0, 3.0)))
    below, above = corners["device"], corners["fio"]
    assert [y for _, y in below[:2]] == [round(scale.y(3.0), 1), round(scale.y(1.0), 1)]
    assert [y for _, y in above[:2]] == [round(scale.y(4.0), 1), round(scale.y(2.0), 1)]
    # the upper area's lower edge is the lower area's upper edge, backwards
    assert above[2:4] == below[1::-1]
    # the single second after the gap is visible
    assert len(below) == 8 and below[4][0] < below[5][0]


def test_a_wait_place_without_ios_has_no_area() -> None:
    empty_one = Curve("CPU", "p999", [(0.0, 0.0), (1.0, 0.0)])
    full = Curve("vda", "device", [(0.0, 1.0), (1.0, 1.0)])
    assert set(
        area_corners(stacked("t", [empty_one, full], linear([1.0]), str, Times(0.0, 1.0)))
    ) == {"device"}
    assert "area" not in stacked("t", [], linear([]), str, Times(0.0, 1.0))


def test_many_devices_are_drawn_as_the_busiest_and_others(path: Path) -> None:
    names = [f"sd{letter}" for letter in "abcdefgh"]
    target = replace(made.TARGET, tree=("vda", *names))
    made.write(path, taken=waiting_samples())
    from iopstui.features.reports.charts import _wait_curves
    from iopstui.features.reports.report_data import load_report_data

    data = load_report_data(path)
    series = empty(target.tree)
    for t in (1.0, 2.0):
        ios = {name: float(number) for number, name in enumerate(names, 1)}
        waits = Waits(36.0, None, None, ios, None, None, 0.0)
        append(series, 1.0, values_of(replace(second(t), waits=waits)))
    data.series = series
    curves = _wait_curves(data)
    assert [curve.label for curve in curves] == ["sdf", "sdg", "sdh", "5 others"]
    assert [curve.points[1][1] for curve in curves] == [6.0, 7.0, 8.0, 15.0]
    assert len({curve.style for curve in curves}) == 4


def test_the_same_builder_gives_the_same_waits_with_partial_samples(path: Path) -> None:
    """A report reads partial samples: latencies and jobs are enough."""
    from iopstui.recording.reader import Recording, SampleRecord

    made.write(path, taken=waiting_samples())
    builder = FrameBuilder(opened=made.TARGET.opened)
    with Recording(path) as recording:
        recording.skip_unneeded_fields()
        frames = [builder.feed(record.raw) for record in recording.records()
                if isinstance(record, SampleRecord)]  # fmt: skip
    assert [frame.waits for frame in frames] == [
        frame.waits for frame in made.frames(waiting_samples())
    ]
