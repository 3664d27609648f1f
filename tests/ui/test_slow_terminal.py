"""A terminal that accepts no output does not stop the measurement."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
import ui_fakes as fakes
from test_app import WIDE, make, shows

from iopstui.ui.core.terminal.driver import NonBlockingDriver

pytestmark = pytest.mark.paints


class SlowTerminal:
    """Accepts no output until the test lets it catch up."""

    def __init__(self) -> None:
        self.is_behind = False
        self.lag_s = 0.0
        self.paints = 0

    def note_paint(self) -> None:
        self.paints += 1


async def test_frames_are_kept_and_only_paints_are_dropped() -> None:
    fake, terminal = fakes.FakeController(), SlowTerminal()
    app = make(fake)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        app.feed.terminal = terminal
        fake.tick()
        await pilot.pause()
        assert terminal.paints == 1
        terminal.is_behind = True
        for _ in range(5):
            fake.tick()
            await pilot.pause()
        assert app.state.frame is not None
        assert app.state.frame.t == 6
        assert len(app.state.history) == 6
        assert terminal.paints == 1
        assert not shows(app, "skipped")
        terminal.is_behind, terminal.lag_s = False, 5.0
        app.feed.terminal_ready()
        await pilot.pause()
        assert terminal.paints == 2
        assert shows(app, "data 5 s old, slow terminal: 4 redraws skipped")


async def test_an_idle_terminal_that_caught_up_is_not_repainted() -> None:
    fake, terminal = fakes.FakeController(), SlowTerminal()
    app = make(fake)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        app.feed.terminal = terminal
        fake.tick()
        await pilot.pause()
        for _ in range(3):
            app.feed.terminal_ready()
            await pilot.pause()
        assert terminal.paints == 1


async def test_quitting_works_while_the_terminal_is_behind() -> None:
    fake, terminal = fakes.FakeController(), SlowTerminal()
    app = make(fake)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        app.feed.terminal, terminal.is_behind = terminal, True
        fake.tick(20)
        await pilot.press("q")
        await pilot.pause()
    assert ("close",) in fake.calls


@pytest.fixture
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("suspended", [False, True])
async def test_only_a_suspended_screen_is_resumed(
    suspended: bool, monkeypatch: pytest.MonkeyPatch, signals: None
) -> None:
    resumed: list[bool] = []
    app = make(fakes.FakeController())
    async with app.run_test(size=WIDE) as pilot:
        driver = NonBlockingDriver(app)
        monkeypatch.setattr(driver, "start_application_mode", lambda: resumed.append(True))
        driver._must_signal_resume = suspended
        os.kill(os.getpid(), signal.SIGCONT)
        await pilot.pause()
    assert resumed == ([True] if suspended else [])


async def test_a_started_write_ends_before_the_suspend(
    monkeypatch: pytest.MonkeyPatch, signals: None
) -> None:
    did: list[object] = []
    app = make(fakes.FakeController())
    async with app.run_test(size=WIDE) as pilot:
        driver = NonBlockingDriver(app)
        monkeypatch.setattr(driver, "stop_application_mode", lambda: did.append("given back"))
        monkeypatch.setattr(driver, "start_application_mode", lambda: did.append("taken"))
        monkeypatch.setattr(os, "kill", lambda pid, number: did.append(number))
        signal.raise_signal(signal.SIGTSTP)
        did.append("written")
        await pilot.pause()
    assert did == ["written", "given back", signal.SIGSTOP, "taken"]


@pytest.mark.parametrize(
    ("arrivals", "stops"),
    [
        ([signal.SIGTSTP, signal.SIGTSTP], 1),
        ([signal.SIGTSTP, signal.SIGCONT], 0),
        ([signal.SIGTSTP, signal.SIGCONT, signal.SIGTSTP], 1),
    ],
    ids=["twice", "taken back", "and again"],
)
async def test_the_process_stops_as_often_as_the_kernel_requires(
    arrivals: list[int], stops: int, monkeypatch: pytest.MonkeyPatch, signals: None
) -> None:
    """A process stopped once too often would wait for a SIGCONT that nobody sends."""
    did: list[int] = []
    app = make(fakes.FakeController())
    async with app.run_test(size=WIDE) as pilot:
        driver = NonBlockingDriver(app)
        monkeypatch.setattr(driver, "stop_application_mode", lambda: None)
        monkeypatch.setattr(driver, "start_application_mode", lambda: None)
        monkeypatch.setattr(os, "kill", lambda pid, number: did.append(number))
        for number in arrivals:
            signal.raise_signal(number)
        await pilot.pause()
    assert did == [signal.SIGSTOP] * stops


async def test_a_continue_signal_during_the_suspend_is_honoured(
    monkeypatch: pytest.MonkeyPatch, signals: None
) -> None:
    did: list[object] = []
    app = make(fakes.FakeController())
    async with app.run_test(size=WIDE) as pilot:
        driver = NonBlockingDriver(app)
        monkeypatch.setattr(
            driver, "stop_application_mode", lambda: signal.raise_signal(signal.SIGCONT)
        )

        def take() -> None:
            driver._must_signal_resume = False
            did.append("taken")

        monkeypatch.setattr(driver, "start_application_mode", take)
        monkeypatch.setattr(os, "kill", lambda pid, number: did.append(number))
        signal.raise_signal(signal.SIGTSTP)
        await pilot.pause()
    assert did == ["taken"]
