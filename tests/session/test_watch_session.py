"""A watch's folds in the session's thread, and the files with the seconds around a firing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from slow_requests import exemplar
from watch_frames import frame, rates, watched

from iopstui.errors import UsageError
from iopstui.events import Event, FindingReported, FrameReady, Mark, Notice
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.probe import ProbeInterval
from iopstui.model.watch.trigger import parse_trigger
from iopstui.session import watch as module
from iopstui.session.watch import TriggeredRecordings, Watch

TARGET = Target(DEVICE, "/dev/vda", "vda", ("vda",))
BUSY = parse_trigger("r/s>5 for 2s", ("vda",), ("vda",))


class Session:
    """A fake session that records its requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, object]] = []

    def start(self, sink: object) -> None:
        self.asked.append(("start", sink))

    def mark(self, text: str) -> None:
        self.asked.append(("mark", text))

    def notice(self, level: str, text: str) -> None:
        self.asked.append((level, text))

    def begin_recording(self, path: Path) -> None:
        self.asked.append(("begin", path.name))
        if path.name == "full.iops":
            raise UsageError("no room")
        path.write_text("")

    def end_recording(self) -> None:
        self.asked.append(("end", ""))

    def close(self) -> None:
        self.asked.append(("close", ""))


def fed(one: Watch, reads: list[int], session: Any = None) -> None:
    if session is not None:
        one.begin(session)
    for each in watched([rates(count) for count in reads]):
        one.handle(FrameReady(each.t, each))


def waiting(one: Watch) -> list[Event | None]:
    return [one.events.get() for _ in range(one.events.qsize())]


def test_events_are_counted_and_passed_on_as_they_come() -> None:
    one = Watch(TARGET, 1.0)
    fed(one, [10, 30])
    one.handle(found := FindingReported(2.0, Finding("a", "text")))
    assert one.totals.watched_s == 2.0 and one.totals.disks["vda"].mean(DiskRates.r_s) == 20
    assert list(one.totals.findings) == ["a"]
    assert [type(event) for event in waiting(one)] == [FrameReady] * 3 + [type(found)]


def test_a_firing_is_a_mark_in_the_session() -> None:
    one, session = Watch(TARGET, 1.0, [BUSY]), Session()
    assert one.totals.fired == {BUSY.text: 0}
    fed(one, [10, 10, 10, 0, 10, 10], session)
    told = ("mark", "trigger r/s>5 for 2s: 10")
    assert session.asked == [("start", one.handle), told, told]
    assert one.totals.fired == {BUSY.text: 2}


def test_a_firing_names_the_slowest_requests_if_the_probe_keeps_them() -> None:
    one, session = Watch(TARGET, 1.0, [BUSY]), Session()
    one.begin(session)  # type: ignore[arg-type]
    kept = (
        *(exemplar(30_000_000 + n, 10**9 + n * 10**8, comm="backup\x1b", pid=9) for n in range(10)),
        *(exemplar(200_000 + n, n * 10**8, slow=False, sampled=True, pid=n) for n in range(10)),
    )
    probe = ProbeInterval(1.0, 0.0, (), {}, {}, (), None, None, 0, 0, 0, None, None, kept)
    for each in watched([rates(9), rates(9), rates(9)]):
        one.handle(FrameReady(each.t, replace(each, probe=probe)))
    mark, *told = session.asked[1:]
    assert mark[0] == "mark" and {level for level, _ in told} == {"info"}
    words = [str(text) for _, text in told]
    assert words[0].startswith("slowest read 30.0 ms: 1.00 µs plugged, 10.0 µs queued, 30.0 ms")
    assert any(text.startswith("10 of the 10 slowest reads were sent by backup") for text in words)
    assert not any("\x1b" in text for text in words)


def test_a_reader_that_has_stopped_costs_neither_memory_nor_a_firing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 5)
    one, session = Watch(TARGET, 1.0, [BUSY]), Session()
    fed(one, [0] * 20 + [9, 9], session)
    assert one.events.qsize() == 5 and session.asked[-1][0] == "mark"
    assert one.totals.watched_s == 22
    one.handle(Mark(22.5, "what is said is never lost"))
    assert len(waiting(one)) == 6
    one.handle(FrameReady(23.0, frame(23.0, {})))
    lost, last = waiting(one)
    words = "18 frames were not read in time and are skipped here"
    assert lost == Notice(23.0, "warning", words) and isinstance(last, FrameReady)


def test_a_file_holds_the_time_around_each_firing(tmp_path: Path) -> None:
    parts = TriggeredRecordings(tmp_path / "a.iops", 3.0)
    one, session = Watch(TARGET, 1.0, [BUSY], parts), Session()
    assert list(tmp_path.iterdir()) == []
    # the trigger fires at 2, 8 and 15
    fed(one, [9, 9, 0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 0, 9, 9, 0], session)
    one.close()
    work = [asked for asked in session.asked if asked[0] in ("begin", "end", "close")]
    assert work == [
        ("begin", "a.iops"), ("end", ""), ("begin", "a-2.iops"), ("end", ""),
        ("begin", "a-3.iops"), ("close", ""),
    ]  # fmt: skip


def test_a_firing_while_it_is_recorded_makes_the_file_longer(tmp_path: Path) -> None:
    parts = TriggeredRecordings(tmp_path / "a.iops", 3.0)
    session: Any = Session()
    parts.begin(session)
    for t in range(1, 12):
        parts.frame(float(t))
        if t in (2, 4):
            parts.fired(float(t))
        if t == 6:
            assert parts._ends_at == 7.0
    parts.close()
    assert session.asked == [("begin", "a.iops"), ("end", "")]


def test_a_file_that_can_t_be_made_is_told_and_the_watch_goes_on(tmp_path: Path) -> None:
    parts = TriggeredRecordings(tmp_path / "full.iops", 3.0)
    session: Any = Session()
    parts.begin(session)
    parts.fired(1.0)
    parts.close()
    assert session.asked == [("begin", "full.iops"), ("error", "no room")]


@pytest.mark.parametrize("name", ["there", "no/where"])
def test_a_place_where_nothing_can_be_recorded_is_told_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(UsageError):
        TriggeredRecordings(tmp_path / name, 3.0)
    assert (tmp_path / "there").read_text() == "mine"
