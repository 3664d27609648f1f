"""How `iopstui limit` uses the results of its runs, with made-up runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from iopstui.features.limit import runner as limit_runner
from iopstui.features.limit.model import OpenLoop, Search, Second, Step, conclude
from iopstui.features.limit.run import limit_json, limit_text
from iopstui.features.limit.runner import LimitRunner, Row
from iopstui.features.limit.setup import LimitSetup
from iopstui.model.block.target import Target
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.experiment.point import Point
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.findings.evidence import JobShape

SETUP = LimitSetup(
    RunRequest(job="some-job"), parse_expectation("read.clat.p99<=10ms"), OpenLoop(1, None, 4096),
    JobShape(), 180.0, Target("device", "/dev/vdb", "vdb", ("vdb",)), None, {},
    "randread 4k", False,
)  # fmt: skip


def row(rate: float, slow: int, done: float | None = None, **more: object) -> Row:
    done = rate if done is None else done
    point = Point(10.0, round(10 * done), done, done * 4096, latency_ns=1e6)
    seconds = (Second(round(done), slow),) * 10
    found = Row(rate, point, 5e6, slow / done, seconds, SETUP.load.depth(rate, 0.01))
    return replace(found, **more)  # type: ignore[arg-type]


class MadeRuns(LimitRunner):
    """Takes its runs from a list, and keeps the requested rates."""

    def __init__(self, runs: Sequence[Row]) -> None:
        super().__init__(SETUP, lambda event: None, lambda text: None)
        self.left = list(runs)
        self.asked: list[RunRequest] = []
        self.search = Search(1000, 20, 2000)

    def _measure(self, request: RunRequest, *rest: object) -> Row:
        self.asked.append(request)
        self.rows.append(self.left.pop(0))
        return self.rows[-1]

    def take_all(self) -> MadeRuns:
        while self.left:
            self._take(Step(self.left[0].asked or 0.0, 10.0), None)
        return self


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_runner, "LiveSession", lambda *parts: None)


def test_a_queue_that_may_have_been_full_is_repeated_deeper() -> None:
    made = MadeRuns([row(1000, 0, full_s=3), row(1000, 0, depth=640)]).take_all()
    depths = [int(request.overrides["iodepth"]) for request in made.asked]
    assert depths == [160, 640]
    assert made.asked[0].overrides["randseed"] != made.asked[1].overrides["randseed"]
    again = MadeRuns([row(1000, 0)]).take_all()
    assert again.asked[0].overrides["randseed"] != made.asked[0].overrides["randseed"]
    assert [one.left_out for one in made.rows] == ["repeated with a deeper queue", ""]
    assert made.search is not None and len(made.search.runs) == 1


def test_a_full_queue_of_slow_ios_fails_as_it_is() -> None:
    # fio times from the issue on, so I/Os that waited before that took even longer
    made = MadeRuns([row(1000, 400, full_s=10)]).take_all()
    assert len(made.asked) == 1 and made.search is not None and len(made.search.runs) == 1


def test_disturbed_runs_count_only_where_hardly_an_io_was_slow() -> None:
    why = "CPU 1 was full"
    made = MadeRuns([row(1000, 30, spoiled=why), row(1000, 0, spoiled=why)]).take_all()
    assert made.search is not None and [run.slow for run in made.search.runs] == [0]
    assert [one.left_out for one in made.rows] == ["disturbed", ""]
    often = MadeRuns([row(1000, 30, spoiled=why)] * 3).take_all()
    assert list(often._spoiled.values()) == ["1,000/s does not count (3 times): CPU 1 was full."]
    # the run lacked CPU time; the disk was not the reason
    starved = MadeRuns([row(1000, 0, done=700.0, spoiled=why, depth=2)]).take_all()
    assert starved.search is not None and not starved.search.runs and not starved._ended


class NeighbourAbove(MadeRuns):
    """At most ``times`` runs at ``rate`` or above have slow I/Os and are disturbed."""

    def __init__(self, rate: float, times: int = 100) -> None:
        super().__init__(())
        self.rate, self.times = rate, times

    def _measure(self, request: RunRequest, *rest: object) -> Row:
        asked = float(request.overrides["rate_iops"])
        spoils = asked >= self.rate and self.times > 0
        self.times -= spoils
        self.left = [row(asked, 0 if asked < 1500 else 900, spoiled="a neighbour")]
        if spoils:
            self.left = [row(asked, 300, spoiled="a neighbour")]
        return super()._measure(request)

    def look(self) -> list[float]:
        """The rates of the runs until the search ends by itself."""
        assert self.search is not None
        while len(self.rows) < 50 and self._in_a_row < limit_runner.MAX_SPOILED:
            step = self.search.next()
            if step is None:
                break
            self._take(step, None)
        return [one.asked or 0.0 for one in self.rows]


def test_a_lower_rate_is_tried_where_runs_are_disturbed_again_and_again() -> None:
    made = NeighbourAbove(600)
    rates = made.look()
    assert rates[:3] == [1000, 1000, 500] and len(rates) < 8 and max(rates[2:]) < 1000
    kept = [one.asked or 0.0 for one in made.rows if not one.left_out]
    assert kept and 600 / 1.25 < max(kept) < 600
    assert made.search is not None
    answer = conclude(made.search, "b", made._spoiled.values(), "", len(rates) - len(kept))  # type: ignore[arg-type]
    assert answer.text.startswith(f"can't tell: {max(kept):,.0f}/s keeps it even so; too many runs")


def test_a_neighbour_at_every_rate_ends_the_search_soon() -> None:
    made = NeighbourAbove(0)
    assert made.look() == [1000, 1000, 500, 250]
    assert made.search is not None
    answer = conclude(made.search, "b", made._spoiled.values(), "", 4)  # type: ignore[arg-type]
    assert answer.kind == "unsure" and "too many runs were disturbed" in answer.text


def test_a_disturbance_that_passes_lowers_no_rate() -> None:
    rates = NeighbourAbove(0, times=1).look()
    assert rates[:2] == [1000, 1000] and min(rates) == 1000


def test_a_fio_that_sends_no_more_ends_the_search() -> None:
    made = MadeRuns([row(1000, 0), row(1900, 0, done=1500.0)]).take_all()
    answer = conclude(made.search, "b", (), made._ended)  # type: ignore[arg-type]
    assert (
        answer.text == "no limit found up to 1,000/s: fio itself sends no more (1,500 of 1,900/s)"
    )


def test_a_run_that_stalled_once_is_left_out() -> None:
    stalled = replace(row(1000, 0), share=0.1, seconds=(*[Second(1000, 0)] * 9, Second(1000, 990)))
    made = MadeRuns([stalled, row(1000, 0)]).take_all()
    assert [one.left_out for one in made.rows] == ["stalled", ""]


def test_the_table_says_which_runs_are_of_the_disk_before_it_changed() -> None:
    runs = [row(1500, 0), row(1000, 900, done=500.0), row(400, 0), row(480, 200), row(440, 2)]
    made = MadeRuns(runs).take_all()
    answer = conclude(made.search, SETUP.keep.text, ())  # type: ignore[arg-type]
    closed = replace(row(2000, 300), asked=None)
    text = limit_text(SETUP, answer, made.rows, closed, made.saturated(), 100)
    lines = text.splitlines()
    assert lines[0] == "some-job on vdb, random arrivals (open loop): read.clat.p99<=10ms"
    assert [line.split()[0] for line in lines[3:9]] == [
        "400",
        "440",
        "480",
        "1,000",
        "1,500",
        "2,000",
    ]
    assert lines[7].endswith("before the change") and lines[8].endswith("(closed loop)")
    assert "The disk changed: 2,000/s were completed, and later only 500 of 1,000/s" in text
    data = limit_json(SETUP, answer, made.rows, closed, "")
    assert [run["left_out"] for run in data["runs"]] == ["before the change", *[None] * 4]
    assert data["allowed_share"] == 0.01 and data["bound_ns"] == 1e7
