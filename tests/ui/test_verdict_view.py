"""What came of expectations, on the screen; and a recording that goes on with another device."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from test_app import make, running, screen_text, settle, shows

from iopstui.errors import UsageError
from iopstui.events import ExpectationChecked, PointStarted, SteadyState, StepFinished, StepStarted
from iopstui.session.live import LiveSession
from iopstui.ui.dashboard import bars, finding_line
from iopstui.ui.dialogs.live_rows import LiveRows
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.start import _continue_recording
from iopstui.ui.state.live import LiveState

STARTED = StepStarted(1.0, 1, "j", "randread 4k", ("fio",), True)
DONE = StepFinished(9.0, 1, 0, "", False)
MET = ExpectationChecked(
    9.0, 1, "iops>=5000", "fio.total.iops", "1/s", ">=", 5e3, 5e3, 5432.1, True, 0.98
)
MISSED = ExpectationChecked(
    9.0, 1, "clat.p99<=1ms", "fio.total.clat.p99", "ns", "<=", 1e6, 1e6, 3.9e6, False, 0.0
)
STEADY = SteadyState(9.0, 1, False, 0.31, 0.02, 1.6, "Steady state (SNIA rule): NO; IOPS ...")


def state(*events: object) -> LiveState:
    found = LiveState(("nvme0n1",))
    for event in events:
        found.apply(event)  # type: ignore[arg-type]
    return found


def line(found: LiveState, width: int, height: int = 2) -> str:
    rows = finding_line.rows(found, width, height, UTF8)
    lines = ["".join(piece for piece, _ in row) for row in rows]
    assert [len(one) for one in lines] == [width] * height
    return "\n".join(lines)


def test_after_a_run_the_verdict_stands_where_findings_do_until_the_next() -> None:
    found = state(STARTED, DONE, MET, STEADY)
    shown = line(found, 100)
    assert "outcome: PASS  iops >= 5000: measured 5432; met in 98 % of the seconds" in shown
    assert "Steady state: NO" in shown and "31.0 %" in shown
    found.apply(StepStarted(20.0, 2, "j", "randread 4k", ("fio",), True))
    assert "PASS" not in line(found, 100) and not found.outcomes


def test_of_several_the_one_that_was_missed_is_told() -> None:
    found = state(STARTED, DONE, MET, MISSED, STEADY)
    assert "outcome: FAIL  1 of 2: clat.p99 <= 1.00 ms: measured 3.90 ms" in line(found, 80, 1)
    assert found.log.notice is not None and found.log.notice.level == "FAIL"
    assert "FAIL" in "".join(t for t, _ in bars.message_line(found, None, None, 80, UTF8))
    assert [entry.level for entry in found.log.entries][-3:] == ["PASS", "FAIL", "info"]
    listed = "\n".join(
        "".join(t for t, _ in row) for row in finding_line.list_rows(found, 80, UTF8)
    )
    assert "outcomes of run 1" in listed and "PASS" in listed and "FAIL" in listed
    assert "Steady state (SNIA rule): NO" in listed


def test_the_verdict_stays_for_a_minute_but_does_not_hide_an_error() -> None:
    found = state(STARTED, DONE, MISSED)
    found.t = 9.0 + 59
    assert found.visible_notice() is not None
    failed = StepFinished(9.0, 1, 1, "fio failed", False, {"total": {}})
    assert state(STARTED, failed, MET).log.notice.text.startswith("fio failed")  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
@pytest.mark.parametrize("charset", [UTF8, ASCII])
async def test_on_the_screen_at_any_size(size: tuple[int, int], charset: Charset) -> None:
    app = make(charset=charset)
    async with app.run_test(size=size) as pilot:
        fake = await running(app, pilot)
        fake.stop_job()
        for event in (MET, MISSED, STEADY):
            fake.sink(event)
        await settle(pilot)
        assert shows(app, "outcome: FAIL 1 of 2: clat.p99 <= 1.00 ms: measured 3.90 ms")
        await pilot.press("f")
        await settle(pilot)
        assert isinstance(app.screen, LiveRows)
        assert shows(app, "PASS iops >= 5000")
        assert "Steady state" in screen_text(app)


def test_every_point_of_an_experiment_has_its_mark() -> None:
    found = LiveState(("nvme0n1",))
    for index in range(3):
        found.apply(PointStarted(3.0 * index, index, 3, f"iodepth={index}", 9.0))
        found.apply(StepStarted(3.0 * index, index + 1, "j", "randread 4k", ("fio",), True))
    marks = [mark.text for mark in found.history.marks(0, 99)]
    assert marks == ["iodepth=0", "iodepth=1", "iodepth=2"]


class Session:
    def __init__(self, fails: str = "") -> None:
        self.to: list[Path] = []
        self.said: list[str] = []
        self._fails = fails

    def record(self, path: Path) -> None:
        if self._fails:
            raise UsageError(self._fails)
        self.to.append(path)
        path.touch()

    def notice(self, level: str, text: str) -> None:
        self.said.append(f"{level}: {text}")


def test_a_recording_goes_on_in_a_file_of_its_own_with_each_device(tmp_path: Path) -> None:
    first, names = tmp_path / "run.1.iops", dict[Path, Path]()
    (tmp_path / "run.1-3.iops").touch()
    one = Session()
    before = first
    for _ in range(3):
        _continue_recording(cast(LiveSession, one), before, names)
        before = one.to[-1]
    assert [path.name for path in one.to] == ["run.1-2.iops", "run.1-4.iops", "run.1-5.iops"]
    other = Session("No room.")
    _continue_recording(cast(LiveSession, other), first, {})
    assert other.said == ["error: No room."] and not other.to
