"""The screen of a recording, and the key that makes one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import recordings as made
import ui_fakes as fakes
from flight_day import START_S, Flight, Load
from rich.console import Group
from test_app import do, make, screen_text, settle, shows, wait_until

from iopstui.cli.options import parse_volume
from iopstui.errors import UsageError
from iopstui.features.flight.flight_replay import FlightReplay
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.recording.replay import ReplaySession
from iopstui.ui.dialogs.slow_list import LiveRows
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.help import KEYS, HelpScreen, help_sections
from iopstui.ui.parts.replay import HELP
from iopstui.ui.replay import ReplayApp

WIDE = (160, 45)


def replay(charset: Charset = UTF8, paused: bool = False) -> ReplayApp:
    session = ReplaySession(made.EARLIER_DEMO, 1000.0)
    session.paused = paused
    return ReplayApp(session, charset)


def seq(app: ReplayApp) -> int:
    return app.state.frame.seq if app.state.frame else -1


async def test_the_keys_of_a_replay_with_marks_name_the_next_mark() -> None:
    app = replay(paused=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: shows(app, "n Next mark"))


async def test_a_replay_plays_to_its_end_and_restarts() -> None:
    app = replay()
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: shows(app, "end of the recording"))
        last = seq(app)
        assert last > 30
        assert shows(app, "REPLAY 0:43 / 0:43") or shows(app, "again")
        assert app.state.history.end == pytest.approx(app.session.end, abs=1.0)
        await pilot.press("space")
        await wait_until(pilot, lambda: 0 <= seq(app) < last or shows(app, "end of the recording"))
        await pilot.press("q")
    assert app.return_code == 0


@pytest.mark.parametrize("size", [(80, 24), WIDE])
async def test_a_click_on_the_bar_goes_to_that_second(size: tuple[int, int]) -> None:
    app = replay(paused=True)
    async with app.run_test(size=size) as pilot:
        await wait_until(pilot, lambda: seq(app) == 0)
        dashboard = app.dashboard
        assert dashboard is not None
        bar = dashboard.panels["strip"].box
        # the strip shows the whole recording from the beginning, with its marks
        *labels, line = dashboard.panels["strip"].text().split("\n")
        assert line.rstrip().endswith("0:43") and line.count("│") >= 3
        assert bool(labels) == (size == WIDE) and ("iodepth" in "".join(labels)) == (size == WIDE)
        await pilot.click(offset=(line.rindex("│"), bar.y + bar.height - 1))
        last_mark = app.session.marks[-1][0]
        await wait_until(pilot, lambda: abs(app.session.at - last_mark) < 1.0)
        await wait_until(pilot, lambda: app.state.t > last_mark - 2.0)
        await pilot.click(offset=(2, bar.y + bar.height - 1))
        await wait_until(pilot, lambda: app.session.at < 1.0)


async def test_g_goes_to_a_time_that_is_typed() -> None:
    app = replay(paused=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_until(pilot, lambda: seq(app) == 0)
        await pilot.press("g", *"1:00", "enter")
        await settle(pilot)
        assert shows(app, "Nothing was recorded at 1:00. 0:00 to 0:43")
        await pilot.press(*["backspace"] * 4, *"0:20", "enter")
        await wait_until(pilot, lambda: app.session.at == 20 and app.state.t > 18)


@pytest.mark.parametrize(
    ("text", "second"), [("20", 20.0), ("0:20", 20.0), ("0:00:41.5", 41.5), ("42", 42.0)]
)
def test_times_of_a_recording(text: str, second: float) -> None:
    assert ReplaySession(made.EARLIER_DEMO).time_of(text) == second


@pytest.mark.parametrize("text", ["", "x", "1:2:3:4", "-5", "1e1", "nan", ":30", "9" * 400, "1:00"])
def test_what_is_no_time_of_a_recording(text: str) -> None:
    with pytest.raises(UsageError):
        ReplaySession(made.EARLIER_DEMO).time_of(text)


async def test_the_pages_on_who_have_the_users_of_a_flight_recording(tmp_path: Path) -> None:
    flight = Flight(tmp_path)
    load = Load(reads=100, ms=1.0, busy=10.0)
    flight.run(30, load)
    users = tuple(
        DiskUser(pid, name, f"{name} --data", "alice", 4e5 / pid, devices=frozenset({"vda"}))
        for pid, name in ((1, "postgres"), (2, "backup"))
    )
    disks = {"vda": (6e5, 0.0, 1.0)}
    flight.session.disk_use = DiskUse(flight.session.t, 5.0, users, disks=disks, as_root=True)
    flight.run(30, load)
    flight.end()
    session = FlightReplay(tmp_path, START_S + 5, 1000.0)
    session.paused = True
    app = ReplayApp(session, UTF8)
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: app.state.t > 4)
        day, end = session.time_text(session.end).rsplit(" ", 1)
        assert shows(app, f" / {end} ") and screen_text(app).count(day) == 1, "the day once"
        assert not shows(app, "n Next mark"), "it has none"
        await pilot.press("u")
        await settle(pilot)
        assert shows(app, "Who used the disks is not known for this second.")
        session.seek(38.0)
        await wait_until(pilot, lambda: session.disk_use is not None and app.state.t > 36)
        page = app.screen
        assert isinstance(page, LiveRows)
        assert "Who uses vda, in 5 s" in page.copied_text() and "67 %" in page.copied_text()
        await pilot.press("a")
        text = page.copied_text()
        assert "processes, all disks together, in 5 s" in text and "backup --data" in text
        assert "The recorder keeps the busiest ones." in text and "alice" in text
        await pilot.press("tab")
        await settle(pilot)
        page = app.screen
        assert isinstance(page, LiveRows)
        assert "the flight recorder noted no cgroup at this second" in page.copied_text()
        known = session._fold.use
        assert known is not None
        groups = {"/s.slice/db.service": (9.0, 0.0, 4e5, 0.0), "/a.slice": (1.0, 0.0, 5e6, 0.0)}
        session._fold.use = replace(known, groups=groups)
        text = page.copied_text()
        assert text.index("a.slice") < text.index("db.service"), "the busiest first"


async def test_a_recording_without_users_says_how_they_are_recorded() -> None:
    app = replay(paused=True)
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: seq(app) == 0)
        await pilot.press("u")
        await settle(pilot)
        assert shows(app, "This recording has no processes (watch --record DIR/ records")


async def test_a_recording_is_compared_with_the_volume() -> None:
    session = ReplaySession(made.EARLIER_DEMO, 1000.0)
    session.paused = True
    app = ReplayApp(session, UTF8, volume=parse_volume("aws/gp2,size=100g"))
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: seq(app) == 0)
        await pilot.press("right")
        await wait_until(pilot, lambda: app.state.t > 9)
        assert "gp2: burst " in screen_text(app).splitlines()[0]


async def test_a_paused_replay_is_stepped_second_by_second() -> None:
    app = replay(paused=True)
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: seq(app) == 0)
        assert shows(app, "paused")
        for count in (1, 2, 3):
            await pilot.press("full_stop")
            await wait_until(pilot, lambda count=count: seq(app) == count)
        await pilot.press("right", "right")
        await wait_until(pilot, lambda: app.session.at > 20 and app.state.t > 19)
        later, end = seq(app), app.state.history.end or 0
        assert app.state.fio is not None and "▾" in screen_text(app)
        await pilot.press("left")
        await wait_until(pilot, lambda: seq(app) < later)
        await wait_until(pilot, lambda: app.state.t > end - 12)
        # later seconds are unknown, in the history and on the charts
        assert (app.state.history.end or 0) <= end - 9
        await pilot.press("end")
        await wait_until(pilot, lambda: shows(app, "end of the recording"))
        await pilot.press("home")
        await wait_until(pilot, lambda: seq(app) == 0)
        assert app.state.step is None and not any(app.state.history.marks(0, 1e9))
        assert app.dashboard is not None and app.dashboard.state is app.state


async def test_the_picture_at_a_position_does_not_depend_on_the_way_there() -> None:
    pictures = []
    for keys in (("right", "right"), ("end", "home", "right", "right", "right", "left")):
        app = replay(paused=True)
        async with app.run_test(size=WIDE) as pilot:
            await wait_until(pilot, lambda app=app: seq(app) == 0)
            for key in keys:
                await pilot.press(key)
                # each key's position is reached before the next
                await wait_until(pilot, lambda app=app: app.session._goal is None)
            await wait_until(pilot, lambda app=app: app.session.at == 20 and seq(app) == 22)
            await settle(pilot)
            rows = screen_text(app).split("\n")
            pictures.append([row for row in rows if "% CPU" not in row])
    assert pictures[0] == pictures[1]


async def test_keys_that_measure_say_that_this_is_a_recording() -> None:
    app = replay(paused=True)
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: seq(app) == 0)
        for key in ("r", "j", "right_square_bracket", "b", "m", "colon", "a", "P"):
            app.port.show_message("info", f"before {key}")
            await wait_until(pilot, lambda key=key: shows(app, f"before {key}"))
            await pilot.press(key)
            await wait_until(pilot, lambda: shows(app, "this is a recording"))
            assert app.screen is app.dashboard


async def test_the_help_begins_with_the_keys_of_a_replay() -> None:
    app = replay(paused=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_until(pilot, lambda: seq(app) == 0)
        await pilot.press("question_mark")
        await wait_until(pilot, lambda: isinstance(app.screen, HelpScreen))
        assert isinstance(app.screen, HelpScreen) and isinstance(app.screen._text, Group)
        assert str(app.screen._text.renderables[0]) == HELP


async def test_a_replay_offers_no_probe_that_it_cannot_start() -> None:
    app = replay(paused=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: shows(app, "means from /proc/diskstats"))
        assert not shows(app, "P: percentiles")
        await pilot.press("h")
        await wait_until(pilot, lambda: shows(app, "begins at a second with a job or the probe"))


def test_the_help_of_a_replay_has_only_keys_that_work_there() -> None:
    live, here = (dict(dict(help_sections(HELP, of))[KEYS]) for of in (False, True))
    for key in ("r", "j", "[  ]", "b", "m", "space", "a", "P", "w", "x", "left right"):
        assert key in live and key not in here
    assert {"-  +", "0", "h", "u", "f", "y", "k", "q, ctrl+c"} <= here.keys()


async def test_speed_and_position_are_in_the_footer_in_any_charset() -> None:
    app = replay(ASCII, paused=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_until(pilot, lambda: seq(app) == 0)
        app.session.set_speed(1)
        await pilot.press("greater_than_sign")
        assert app.session.speed == 2
        await pilot.press("less_than_sign", "less_than_sign")
        assert app.session.speed == 0.5
        await settle(pilot)
        text = screen_text(app)
        assert text.isascii() and "REPLAY 0:0" in text and "paused" in text


# -- R


@dataclass
class RecordableFake(fakes.FakeController):
    recording: Path | None = None
    fails: str = ""

    def record(self, path: Path) -> None:
        if self.fails:
            raise UsageError(self.fails, "Do something.")
        self.recording = path
        self.notice("info", f"recording to {path}")

    def stop_recording(self) -> None:
        self.recording = None
        self.notice("info", "recorded")


async def test_r_starts_and_stops_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fake = RecordableFake()
    app = make(fake)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await do(pilot, "record")
        await settle(pilot)
        assert fake.recording is not None and fake.recording.parent == tmp_path
        assert fake.recording.name.startswith("iopstui-")
        assert shows(app, "End recording") and shows(app, "recording to")
        await do(pilot, "record")
        await settle(pilot)
        assert fake.recording is None and not shows(app, "End recording")


async def test_r_explains_why_it_cannot_record() -> None:
    app = make(RecordableFake(fails="There is no room."))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await do(pilot, "record")
        await settle(pilot)
        assert shows(app, "error: There is no room. Do something.")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 45), (250, 70)])
async def test_a_recording_without_a_job_has_no_box_for_fio(size: tuple[int, int]) -> None:
    """It would always be empty: its rows are used for the device and the charts."""
    app = ReplayApp(ReplaySession(made.EARLIER_DEMO.parent / "busy.iops", 1000.0), UTF8)
    async with app.run_test(size=size) as pilot:
        await wait_until(pilot, lambda: shows(app, "end of the recording"))
        assert not shows(app, "no job runs") and not shows(app, "no job was given")
        if size != (80, 24):
            assert shows(app, "3 Device (iostat)") and shows(app, "– = no such request")
        for _ in range(1 if size == (80, 24) else 2):
            await pilot.press("3")
        await settle(pilot)
        assert shows(app, "Device (iostat)") and not shows(app, "no job runs")
        await pilot.press("q")


async def test_the_newest_await_is_on_the_border_of_a_narrow_chart() -> None:
    app = ReplayApp(ReplaySession(made.EARLIER_DEMO.parent / "busy.iops", 1000.0), UTF8)
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: shows(app, "end of the recording"))
        await wait_until(pilot, lambda: shows(app, "r_await 756µs"))
        assert shows(app, "2 Await (means)")
        await pilot.press("q")


async def test_a_key_stands_on_one_box() -> None:
    app = replay()
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: shows(app, "end of the recording"))
        assert shows(app, "3 fio") and shows(app, "Device (iostat)")
        assert not shows(app, "3 Device (iostat)")
        await pilot.press("q")
