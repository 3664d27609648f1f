"""One point of an experiment: settling, figures, Little's law, and keeping it on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import evidence_frames as made
import pytest
from fio_recordings import statuses
from hypothesis import given
from hypothesis import strategies as st
from session_frames import whole_frames

from iopstui.errors import UsageError
from iopstui.experiment.progress import ProgressFile
from iopstui.model.experiment.expectation import Outcome, parse_expectation
from iopstui.model.experiment.point import (
    INTERRUPTS,
    SOFTIRQS,
    LittlesLaw,
    Point,
    PointMeter,
    SettlingFilter,
    littles_law,
    point_from_json,
    point_json,
    run_length_s,
)
from iopstui.model.metrics.frame import PARTIAL

NAME = "3.42-a-randread-grp"


def measured(name: str = NAME, settle: float = 0.0) -> Point:
    meter = PointMeter(settle)
    for frame in whole_frames(name):
        meter.add(frame)
    point = meter.point()
    assert point is not None
    return point


def test_without_settling_a_point_is_fio_s_own_run() -> None:
    point, final = measured(), statuses(NAME)[-1].jobs[0].directions["read"]
    assert point.iops == pytest.approx(final.iops, rel=2e-3)
    assert point.ios == final.completed
    assert point.p99_ns == final.percentiles["p99"]
    assert point.latency_of == "lat" and final.lat is not None
    assert point.latency_ns == pytest.approx(final.lat.mean_ns, rel=1e-3)
    assert point.write_iops == 0


def test_settling_drops_the_first_seconds_alone() -> None:
    whole, rest = measured(), measured(settle=2.0)
    frames = [frame.fio for frame in whole_frames(NAME) if frame.fio]
    began, kept = 0.0, 0
    for fio in frames:
        kept += fio.total.ios if began >= 1.9 else 0
        began += fio.seconds or 0.0
    assert rest.ios == kept < whole.ios
    assert rest.seconds < whole.seconds - 1.5


lengths = st.floats(0.05, 3.0)


@given(lengths, st.lists(lengths, min_size=60, max_size=60), st.floats(0, 5), lengths)
def test_the_stated_seconds_are_measured(
    first: float, jitter: list[float], settle: float, measure: float
) -> None:
    """The interval in which settling ends is lost, and fio's first one may be 0.9 s. The run is one
    interval longer, so that the stated seconds are measured anyway."""
    interval = max(first, *jitter)
    left, seconds = run_length_s(settle, measure, interval), []
    for length in (first, *jitter * 10):
        if left <= 0:
            break
        seconds.append(min(length, left))
        left -= length
    settling = SettlingFilter(settle, measure)
    flat = whole_frames(NAME)[1]
    assert flat.fio is not None
    kept = [
        length
        for length in seconds
        if settling.counts(replace(flat, flags=frozenset(), fio=replace(flat.fio, seconds=length)))
    ]
    assert settling.measured == pytest.approx(sum(kept))
    assert measure - 0.1 <= sum(kept) < measure + interval


def test_one_and_three_seconds_at_one_a_second() -> None:
    flat = whole_frames(NAME)[1]
    assert flat.fio is not None
    settling = SettlingFilter(1.0, 3.0)
    frames = [replace(flat, fio=replace(flat.fio, seconds=s)) for s in (0.89, 1, 1, 1, 1, 0.11)]
    assert [settling.counts(frame) for frame in frames] == [False, False, True, True, True, False]
    assert run_length_s(1.0, 3.0, 1.0) == 5.0
    assert run_length_s(0.0, 3.0, 1.0) == 3.0


def test_nothing_is_left_of_a_run_that_only_settles() -> None:
    meter = PointMeter(3600)
    for frame in whole_frames(NAME):
        meter.add(frame)
    assert meter.point() is None


@pytest.mark.parametrize(
    ("softirqs", "interrupts", "of", "cpu"),
    [
        # ten or more I/Os per interrupt; completions are passed on to the submitter's CPU 0
        (750.0, 820.0, SOFTIRQS, 0),
        # completed where the interrupt came; the softirqs are another disk's
        (120.0, 820.0, INTERRUPTS, 1),
        # a loop device has no interrupts
        (120.0, None, SOFTIRQS, 0),
    ],
)
def test_softirqs_tell_unless_they_are_few_for_the_interrupts(
    softirqs: float, interrupts: float | None, of: str, cpu: int
) -> None:
    meter = PointMeter(0.0)
    for frame in whole_frames(NAME):
        told = {0: (softirqs, interrupts and 0.0), 1: (0.0, interrupts)}
        cpus = {
            number: replace(one, block_s=told[number][0], irq_s=told[number][1])
            for number, one in frame.cpus.items()
        }
        meter.add(replace(frame, cpus=cpus))
    point = meter.point()
    assert point is not None
    assert point.ios > 10 * 820 * point.seconds, "so many that softirqs are few for the I/Os"
    assert point.completions_of == of
    assert point.completions[cpu] == 1


def test_an_await_is_milliseconds_and_a_point_nanoseconds() -> None:
    meter = PointMeter(0.0)
    for at in range(1, 4):
        meter.add(made.frame(at, made.fio(100), disks={"vda": made.disk(100)}))
    point = meter.point()
    assert point is not None and point.latency_of == "await"
    assert (point.latency_ns, point.await_ns) == (1_000_000, 1_000_000)


def test_a_point_survives_json() -> None:
    point = measured()
    assert point_from_json(json.loads(json.dumps(point_json(point)))) == point
    with pytest.raises((KeyError, TypeError, ValueError)):
        point_from_json({"iops": "many"})


def at(iops: float, latency_us: float | None, of: str = "lat") -> Point:
    latency = None if latency_us is None else latency_us * 1000
    return Point(8.0, int(8 * iops), iops, iops * 4096, latency_ns=latency, latency_of=of)


@given(st.integers(1, 512), st.floats(20, 20_000))
def test_little_s_law_holds_for_a_full_queue(depth: int, latency_us: float) -> None:
    law = littles_law(at(depth / (latency_us / 1e6), latency_us), depth, paced=False)
    assert law.holds and law.seen == pytest.approx(depth)


@pytest.mark.parametrize(
    ("point", "asked", "paced", "words"),
    [
        (at(1000, 100), 32, True, "paces"),
        (at(1000, 100), 32, False, "queue full"),
        (at(1000, 100, "await"), 32, False, "above the device"),
        (at(100_000, 1000), 4, False, "began before them"),
    ],
)
def test_why_it_does_not_hold(point: Point, asked: int, paced: bool, words: str) -> None:
    law = littles_law(point, asked, paced)
    assert law.holds is False and words in law.why


def test_little_s_law_without_its_terms() -> None:
    assert littles_law(at(1000, None), 4, False).holds is None
    assert littles_law(at(1000, 100), None, False).holds is None


EXPECTED = parse_expectation("iops>=5")


def test_progress_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state"
    first = ProgressFile(path, "key")
    assert not path.exists(), "nothing is written before the first point"
    first.add(0, at(1, 1), [Outcome(EXPECTED, 1.0, 0.5)])
    first.add(7, at(2, None), [Outcome(EXPECTED, None, None)])
    again = ProgressFile(path, "key")
    assert again.points == {0: at(1, 1), 7: at(2, None)}
    assert again.judged == {0: [(1.0, 0.5)], 7: [(None, None)]}
    assert again.started_at == first.started_at
    again.remove()
    assert not path.exists() and ProgressFile(path, "key").points == {}


def test_nothing_is_taken_from_a_run_on_other_things(tmp_path: Path) -> None:
    path = tmp_path / "state"
    now = {"fio": "fio-3.33", "the kernel": "6.1"}
    ProgressFile(path, "key", now, seed=7).add(0, at(1, 1))
    again = ProgressFile(path, "key", now, seed=99)
    assert (again.seed, again.changed, list(again.points)) == (7, "", [0])
    other = ProgressFile(path, "key", {"fio": "fio-3.36", "the kernel": "6.1"}, seed=99)
    assert other.changed == "fio was fio-3.33, is fio-3.36" and other.points == {}
    assert other.seed == 99
    other.remove()
    other.add(0, at(2, 2))
    assert ProgressFile(path, "key", {"fio": "fio-3.36", "the kernel": "6.1"}).points == {
        0: at(2, 2)
    }


@given(st.integers(0, 2000))
def test_a_file_cut_off_anywhere_loses_only_its_last_point(keep: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "state"
        state = ProgressFile(path, "key")
        for index in range(3):
            state.add(index, at(index + 1.0, 5))
        lines = path.read_bytes().splitlines(keepends=True)
        keep = max(keep, len(lines[0]))
        path.write_bytes(path.read_bytes()[:keep])
        found = ProgressFile(path, "key")
        whole = len([1 for n in range(1, 4) if sum(map(len, lines[: n + 1])) <= keep + 1])
        assert sorted(found.points) == list(range(whole))
        found.add(2, at(3.0, 5))
        assert ProgressFile(path, "key").points[2] == at(3.0, 5)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"root:x:0:0\n", "not a state file"),
        (b"\x00\xff\n", "not a state file"),
        (b"[1]\n", "not a state file"),
        (b'{"iopstui": "experiment", "version": 2, "key": "other"}\n', "another experiment"),
        (b'{"iopstui": "experiment", "version": 99, "key": "key"}\n', "another experiment"),
    ],
)
def test_files_of_something_else_are_left_alone(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        ProgressFile(path, "key")
    assert path.read_bytes() == content


def test_a_place_that_can_t_be_written(tmp_path: Path) -> None:
    state = ProgressFile(tmp_path / "no" / "such" / "state", "key")
    with pytest.raises(UsageError, match="Can't write"):
        state.add(0, at(1, 1))


def test_every_figure_of_a_point_is_made_of_its_seconds() -> None:
    """Two whole seconds and a part of one, whose extremes do not count."""
    meter = PointMeter(0.0)
    seconds = ((1, 100, 1.0, ()), (2, 300, 1.0, ()), (3, 20, 0.5, (PARTIAL,)))
    for at_s, ios, length, flags in seconds:
        whole = made.fio(ios / length, seconds=length, lat_ns=4000.0, clat_ns=3000.0,
                         slat_ns=1000.0)  # fmt: skip
        bins = {2000: ios // 2, 5000: ios - ios // 2}
        total = replace(whole.total, bins=bins, max_ns=5000 + ios,
                        samples={"lat": ios, "clat": ios, "slat": ios})  # fmt: skip
        fio = replace(whole, total=total, directions={"read": total}, usr_cpu=10.0, sys_cpu=20.0,
                      ctx_s=30.0)  # fmt: skip
        meter.add(
            made.frame(at_s, fio, disks={"vda": made.disk(ios, size=8192, merges=7.0)},
                       block={1: 60.0, 2: 40.0}, busy={0: 20.0, 1: 30.0, 2: 0.0, 3: 0.0},
                       flags=frozenset(flags))
        )  # fmt: skip
    found = meter.point()
    assert found is not None
    assert found.ios == 420 and found.seconds == 2.5 and found.iops == pytest.approx(168.0)
    assert found.bw == pytest.approx(168.0 * 4096) and found.read_iops == pytest.approx(168.0)
    assert (found.latency_ns, found.latency_of, found.bins_of) == (4000.0, "lat", "clat")
    assert (found.slat_ns, found.clat_ns, found.max_ns) == (1000.0, 3000.0, 5300)
    assert (found.iops_low, found.iops_high) == (100.0, 300.0)
    assert found.slower == pytest.approx(0.5)
    assert (found.p50_ns, found.p99_ns, found.p999_ns) == (2000, 5000, 5000)
    assert found.device_iops == pytest.approx(140.0) and found.merges == pytest.approx(7.0)
    assert found.request_bytes == pytest.approx(8192.0)
    assert found.device_bw == pytest.approx(140.0 * 8192) and found.await_ns == 1_000_000
    assert (found.aqu_sz, found.util) == (pytest.approx(1.0), pytest.approx(50.0))
    assert found.fio_cpu == pytest.approx(30.0) and found.ctx_s == pytest.approx(30.0)
    assert found.completions == pytest.approx({0: 0.0, 1: 0.6, 2: 0.4, 3: 0.0})
    assert found.busy == pytest.approx({0: 20.0, 1: 30.0, 2: 0.0, 3: 0.0})
    assert found.cpu_us == pytest.approx(1e4 * 50 / 168)
    assert found.in_flight == pytest.approx(168.0 * 4000 / 1e9)


FEWER = {
    "the job paces itself (rate or thinktime), so its queue is not full": ("lat", True, False),
    "the rest waits in fio or above the device, where the kernel does not measure":
        ("await", False, True),
    "fio's jobs spend the rest of the time outside I/O": ("clat", False, True),
    "fio's jobs do not keep their queue full: they wait for a CPU or block between I/Os":
        ("lat", False, False),
}  # fmt: skip


@pytest.mark.parametrize(("why", "case"), FEWER.items())
def test_why_fewer_were_under_way(why: str, case: tuple[str, bool, bool]) -> None:
    of, paced, synchronous = case
    assert littles_law(at(1000, 8999, of), 10, paced, synchronous) == LittlesLaw(
        10, pytest.approx(8.999), False, why
    )


def test_more_under_way_than_were_asked_for() -> None:
    kernel = "kernel latency (fio measured none) includes other I/Os"
    for of, why in (
        ("lat", "I/Os that ended in these seconds began before them"),
        ("await", kernel),
    ):
        law = littles_law(at(1000, 11_001, of), 10, True)
        assert law.why == f"more than requested: {why}"
    for us in (9001, 10_999):
        assert littles_law(at(1000, us), 10, False) == LittlesLaw(
            10, pytest.approx(us / 1000), True
        )
    assert littles_law(at(1000, None), 4, False) == LittlesLaw(4, None, None, "no latency measured")
    unknown = "the job's queue depth is unknown"
    assert littles_law(at(1000, 100), None, False) == LittlesLaw(
        None, pytest.approx(0.1), None, unknown
    )


def test_an_older_point_has_no_figures_that_came_later() -> None:
    old = {"seconds": 1, "ios": 2, "iops": 3.0, "bw": 4.0, "busy": {"0": 5}, "gone": 1}
    assert point_from_json(old) == Point(1, 2, 3.0, 4.0, busy={0: 5.0})
    assert Point(1, 2, 3.0, 4.0) == Point(
        1, 2, 3.0, 4.0, None, None, None, "", None, None, None, "clat", None, None, None, None,
        {}, {}, "", None, None, None, None, None, None, None, None, None, None, None, None, None,
    )  # fmt: skip
