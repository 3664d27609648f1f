"""Verdicts on the screen; and a recording that continues with another device."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from test_app import make, running, screen_text, settle, shows

from iopstui.errors import UsageError
from iopstui.events import ExpectationChecked, PointStarted, SteadyState, StepFinished, StepStarted
from iopstui.session.live import LiveSession
from iopstui.ui.dashboard import bars, finding_line
from iopstui.ui.dialogs.slow_list import LiveRows
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
    live_state = LiveState(("nvme0n1",))
    for event in events:
        live_state.apply(event)  # type: ignore[arg-type]
    return live_state


def line(live_state: LiveState, width: int, height: int = 2) -> str:
    rows = finding_line.rows(live_state, width, height, UTF8)
    lines = ["".join(part for part, _ in row) for row in rows]
    assert [len(line) for line in lines] == [width] * height
    return "\n".join(lines)


def test_after_a_run_the_verdict_replaces_the_findings_until_the_next() -> None:
    live_state = state(STARTED, DONE, MET, STEADY)
    verdict = line(live_state, 100)
    assert "outcome: PASS  iops >= 5000: measured 5432; met in 98 % of the seconds" in verdict
    assert "Steady state: NO" in verdict and "31.0 %" in verdict
    live_state.apply(StepStarted(20.0, 2, "j", "randread 4k", ("fio",), True))
    assert "PASS" not in line(live_state, 100) and not live_state.outcomes


def test_a_missed_expectation_is_shown_first() -> None:
    live_state = state(STARTED, DONE, MET, MISSED, STEADY)
    assert "outcome: FAIL  1 of 2: clat.p99 <= 1.00 ms: measured 3.90 ms" in line(live_state, 80, 1)
    assert live_state.log.notice is not None and live_state.log.notice.level == "FAIL"
    assert "FAIL" in "".join(t for t, _ in bars.message_line(live_state, None, None, 80, UTF8))
    assert [entry.level for entry in live_state.log.entries][-3:] == ["PASS", "FAIL", "info"]
    listed = "\n".join(
        "".join(t for t, _ in row) for row in finding_line.list_rows(live_state, 80, UTF8)
    )
    assert "outcomes of run 1" in listed and "PASS" in listed and "FAIL" in listed
    assert "Steady state (SNIA rule): NO" in listed


def test_the_verdict_stays_for_a_minute_but_does_not_hide_an_error() -> None:
    live_state = state(STARTED, DONE, MISSED)
    live_state.t = 9.0 + 59
    assert live_state.visible_notice() is not None
    failed = StepFinished(9.0, 1, 1, "fio failed", False, {"total": {}})
    assert state(STARTED, failed, MET).log.notice.text.startswith("fio failed")  # type: ignore[union-attr]


@pytest.mark.parametrize("charset", [UTF8, ASCII])
async def test_the_verdict_is_shown_at_any_size(charset: Charset) -> None:
    app = make(charset=charset)
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        fake.stop_job()
        for event in (MET, MISSED, STEADY):
            fake.sink(event)
        for size in ((80, 24), (120, 36), (200, 50)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert shows(app, "outcome: FAIL 1 of 2: clat.p99 <= 1.00 ms: measured 3.90 ms")
            await pilot.press("f")
            await settle(pilot)
            assert isinstance(app.screen, LiveRows)
            assert shows(app, "PASS iops >= 5000")
            assert "Steady state" in screen_text(app)
            await pilot.press("escape")


def test_every_point_of_an_experiment_has_a_verdict_mark() -> None:
    live_state = LiveState(("nvme0n1",))
    for index in range(3):
        live_state.apply(PointStarted(3.0 * index, index, 3, f"iodepth={index}", 9.0))
        live_state.apply(StepStarted(3.0 * index, index + 1, "j", "randread 4k", ("fio",), True))
    marks = [mark.text for mark in live_state.history.marks(0, 99)]
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


def test_recording_continues_in_a_new_file_for_each_device(tmp_path: Path) -> None:
    first, names = tmp_path / "run.1.iops", dict[Path, Path]()
    (tmp_path / "run.1-3.iops").touch()
    recorded = Session()
    before = first
    for _ in range(3):
        _continue_recording(cast(LiveSession, recorded), before, names)
        before = recorded.to[-1]
    assert [path.name for path in recorded.to] == ["run.1-2.iops", "run.1-4.iops", "run.1-5.iops"]
    full_disk = Session("No room.")
    _continue_recording(cast(LiveSession, full_disk), first, {})
    assert full_disk.said == ["error: No room."] and not full_disk.to
