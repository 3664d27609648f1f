"""Where the I/Os wait, in every kind of report: the frames' own figures, added up by hand."""

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
from hypothesis import given
from hypothesis import strategies as st
from test_report import page, rendered, words

from iopstui import events
from iopstui.model.metrics.figures import RunWaits
from iopstui.model.metrics.frame import FINAL, PARTIAL, RAMP, Frame, FrameBuilder
from iopstui.model.metrics.waits import Waits
from iopstui.model.samples import RawSample
from iopstui.report.drawing.svg import Curve, linear, stacked
from iopstui.report.folding.series import append, empty, wait_names, wait_values

HEAD = ("run", "in flight", "waiting for a CPU", "above the device", "vda")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.iops"


def waiting(name: str = made.RUN) -> list[RawSample]:
    """A run whose job waits for a CPU in a tenth of each second."""
    return [
        replace(raw, jobs=tuple(replace(job, cpu_wait_ns=raw.seq * 10**8) for job in raw.jobs))
        for raw in made.raws(name)
    ]


def measured(frames: Sequence[Frame]) -> list[Frame]:
    return [
        one for one in frames
        if one.waits is not None and one.fio is not None and one.seconds
        and RAMP not in one.flags and not {FINAL, PARTIAL} <= one.flags
    ]  # fmt: skip


def mean(frames: Sequence[Frame], part: str) -> float:
    total = sum((one.seconds or 0.0) * getattr(one.waits, part) for one in frames)
    return total / sum(one.seconds or 0.0 for one in frames)


def test_a_table_of_the_means_is_in_the_page_and_in_markdown(path: Path) -> None:
    made.write(path, taken=waiting())
    frames = measured(made.frames(waiting()))
    cells = [f"{mean(frames, part):.1f}" for part in ("ios", "cpu", "above")]
    root = page(path)
    tables = [
        [[words(cell) for cell in row] for row in one.iter("tr")] for one in root.iter("table")
    ]
    found = next(one for one in tables if one[0][:2] == ["run", "in flight"])
    assert tuple(found[0]) == HEAD
    assert found[1][:4] == ["1", *cells]
    text = rendered([path], "md")
    assert "## Where the I/Os wait" in text
    assert f"| 1 | {' | '.join(cells)} |" in text


def test_json_has_the_means_of_a_run_and_the_places_of_each_second(path: Path) -> None:
    made.write(path, taken=waiting())
    frames = measured(made.frames(waiting()))
    (story,) = json.loads(rendered([path], "json"))["recordings"]
    found = story["runs"][0]["wait"]
    assert found["cpu"] == pytest.approx(mean(frames, "cpu")) != 0
    assert found["ios"] == pytest.approx(mean(frames, "ios"))
    assert found["ios"] == pytest.approx(
        found["cpu"] + found["above"] + sum(found["layers"].values()) + found["unknown"]
    )
    series = story["series"]
    third = made.frames(waiting())[2].waits
    assert third is not None
    assert series["wait.cpu"][2] == pytest.approx(third.cpu)
    assert series["wait.layers.vda"][2] == pytest.approx(third.layers["vda"])
    assert story["wait_without_job"] is None


def test_the_rows_of_csv_have_every_place(path: Path) -> None:
    made.write(path, taken=waiting())
    rows = list(csv.DictReader(io.StringIO(rendered([path], "csv"))))
    third = made.frames(waiting())[2].waits
    assert third is not None and third.cpu
    for name, value in (
        ("ios", third.ios),
        ("cpu", third.cpu),
        ("layers.vda", third.layers["vda"]),
    ):
        assert float(rows[2][f"wait.{name}"]) == pytest.approx(value)
    assert rows[0]["wait.layers.vda"] == "" and rows[2]["wait.device"] == ""


def test_what_was_watched_without_a_job_has_a_row_of_its_own(path: Path) -> None:
    taken = [replace(raw, fio=None, step=0, jobs=(), final=False) for raw in made.raws(made.RUN)]
    one = made.tape(path)
    made.tell(one, taken)
    one.close(events.SessionEnded(2.5, 0))
    frames = [frame for frame in made.frames(taken) if frame.waits is not None]
    held = f"{mean(frames, 'ios'):.1f}"
    assert f"| no job | {held} | – | – | {held} |" in rendered([path], "md")


def test_where_nothing_is_known_nothing_is_said(path: Path) -> None:
    taken = [replace(raw, kernel=None) for raw in made.raws(made.RUN)]
    made.write(path, taken=taken)
    assert "Where the I/Os wait" not in rendered([path], "md") + rendered([path], "html")


Cuts = st.lists(st.booleans(), min_size=12, max_size=12)


@given(Cuts)
def test_runs_joined_from_pieces_have_the_same_means(cuts: list[bool]) -> None:
    frames = made.frames(waiting())
    whole, joined, part = RunWaits(), RunWaits(), RunWaits()
    for frame, cut in zip(frames, (cuts * 9)[: len(frames)], strict=True):
        whole.add(frame)
        if cut:
            joined.join(part)
            part = RunWaits()
        part.add(frame)
    joined.join(part)
    a, b = whole.value, joined.value
    assert a is not None and b is not None
    for name in ("ios", "cpu", "above", "unknown"):
        assert getattr(b, name) == pytest.approx(getattr(a, name))
    assert b.layers == pytest.approx(a.layers)


def test_a_series_has_a_column_for_each_place_and_may_be_without() -> None:
    series = empty(("dm-0", "vda"))
    waits = Waits(4.0, None, 1.0, {"dm-0": 1.0, "vda": 2.0}, None, None, 0.0)
    figures = [None] * 11
    append(series, 1.0, 1.0, 1.0, *figures, *wait_values(waits, ("dm-0", "vda")))
    append(series, 1.0, 2.0, 1.0, *figures)
    assert [series[name][0] for name in wait_names(("dm-0", "vda"))[1:]] == [1.0, 1.0, 2.0, 0.0]
    assert str(series["wait.cpu"][0]) == str(series["wait.unknown"][1]) == "nan"


def areas(svg: str) -> dict[str, list[tuple[float, float]]]:
    """The corners of each area by its style."""
    found = {}
    for one in ET.fromstring(svg).iter("path"):
        kind = one.get("class", "")
        if kind.startswith("area "):
            words = one.get("d", "").strip("Mz").replace("zM", "L").split("L")
            found[kind.removeprefix("area ")] = [
                (float(x), float(y)) for x, y in (word.split() for word in words)
            ]
    return found


def test_areas_lie_on_each_other_and_add_up() -> None:
    upper = Curve("above", "fio", [(0.0, 1.0), (1.0, 1.0), (2.0, None), (3.0, 2.0)])
    lower = Curve("vda", "device", [(0.0, 3.0), (1.0, 1.0), (2.0, None), (3.0, 2.0)])
    scale = linear([4.0])
    found = areas(stacked("t", [upper, lower], scale, str, 3.0))
    below, above = found["device"], found["fio"]
    assert [y for _, y in below[:2]] == [round(scale.y(3.0), 1), round(scale.y(1.0), 1)]
    assert [y for _, y in above[:2]] == [round(scale.y(4.0), 1), round(scale.y(2.0), 1)]
    # the upper one's floor is the lower one's top, backwards
    assert above[2:4] == below[1::-1]
    # the lonely second behind the gap can be seen
    assert len(below) == 8 and below[4][0] < below[5][0]


def test_a_place_that_never_held_an_io_has_no_area() -> None:
    empty_one = Curve("CPU", "p999", [(0.0, 0.0), (1.0, 0.0)])
    full = Curve("vda", "device", [(0.0, 1.0), (1.0, 1.0)])
    assert set(areas(stacked("t", [empty_one, full], linear([1.0]), str, 1.0))) == {"device"}
    assert "area" not in stacked("t", [], linear([]), str, 1.0)


def test_many_devices_are_drawn_as_the_fullest_and_the_others(path: Path) -> None:
    names = [f"sd{letter}" for letter in "abcdefgh"]
    target = replace(made.TARGET, tree=("vda", *names))
    made.write(path, taken=waiting())
    from iopstui.report.drawing.charts import _wait_curves
    from iopstui.report.story import gather

    story = gather(path)
    series = empty(target.tree)
    for t in (1.0, 2.0):
        held = {name: float(number) for number, name in enumerate(names, 1)}
        waits = Waits(36.0, None, None, held, None, None, 0.0)
        append(series, 1.0, t, 1.0, *[None] * 11, *wait_values(waits, target.tree))
    story.series = series
    curves = _wait_curves(story)
    assert [one.label for one in curves] == ["sdf", "sdg", "sdh", "5 others"]
    assert [one.points[1][1] for one in curves] == [6.0, 7.0, 8.0, 15.0]
    assert len({one.style for one in curves}) == 4


def test_the_same_builder_gives_the_same_waits_with_partial_samples(path: Path) -> None:
    """A report leaves out what it does not need; latencies and jobs it does."""
    from iopstui.recording.reader import Recording, SampleRecord

    made.write(path, taken=waiting())
    builder = FrameBuilder(opened=made.TARGET.opened)
    with Recording(path) as recording:
        recording.only_needed()
        read = [builder.feed(one.raw) for one in recording.records()
                if isinstance(one, SampleRecord)]  # fmt: skip
    assert [one.waits for one in read] == [one.waits for one in made.frames(waiting())]
