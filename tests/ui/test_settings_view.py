from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes
from rich.console import Group
from test_app import WIDE, do, make, running, settle, shows, words
from textual.widgets import Input, OptionList, Static

from iopstui.errors import UsageError
from iopstui.events import TunableChanged
from iopstui.model.block.tunable import TUNABLES
from iopstui.safety.tunables import TunableState
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.clipboard import render_pictures
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.dialogs import settings
from iopstui.ui.dialogs.questions import Choice, Prompt
from iopstui.ui.dialogs.settings import LEAST_ROWS, Settings, _meaning, checked_value
from iopstui.ui.help import HelpScreen
from iopstui.ui.parts import job

AFFINITY = TunableState(
    "rq_affinity", "where a completion runs", "1", ("0", "1", "2"), "0, 1, 2",
    idle="nvme0n1: every CPU has a hardware queue",
)  # fmt: skip
REQUESTS = TunableState("nr_requests", "requests a queue holds", "256", (), "a number from 4 up")
IRQ = TunableState(
    "irq/36", "the CPUs it may go to", "0-1", (), "a CPU list",
    refused="The kernel manages interrupt 36 itself.", hint="echo 1 | sudo tee /x",
)  # fmt: skip


def controller() -> fakes.FakeController:
    return fakes.FakeController(settings=(AFFINITY, REQUESTS, IRQ))


def explained(screen: Settings) -> str:
    return str(screen.query_one("#jobs-text", Static).content)


async def test_a_changes_rq_affinity_and_s_the_scheduler() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        await pilot.press("a", "y")
        assert fake.calls[-1] == ("tune", "rq_affinity", "2")
        await do(pilot, "scheduler")
        await settle(pilot)
        assert isinstance(app.screen, Choice)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert fake.calls[-1] == ("tune", "scheduler", "mq-deadline")


async def test_a_target_without_a_queue_has_a_message() -> None:
    app = make(fakes.FakeController(target=fakes.ON_TMPFS))
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        for action in ("rq_affinity", "scheduler", "bind_queues"):
            await do(pilot, action)
            await settle(pilot)
            assert shows(app, "has no request queue")
        assert not [call for call in fake.calls if call[0] == "tune"]


async def test_every_key_reports_that_the_disk_was_removed() -> None:
    app = make(fakes.FakeController())
    async with app.run_test(size=WIDE) as pilot:
        fake = app.controller
        assert isinstance(fake, fakes.FakeController)
        fake.tick(2)
        fake.push(fakes.frame(3, tree=("sda",)))
        await settle(pilot)
        for action in ("rq_affinity", "scheduler", "bind_queues"):
            app.state.log.forget_notice()
            await do(pilot, action)
            await settle(pilot)
            assert shows(app, "warning: nvme0n1 is gone"), action
        assert not [call for call in fake.calls if call[0] == "tune"]
        await pilot.press("k")
        await settle(pilot)
        assert isinstance(app.screen, Settings)
        assert explained(app.screen).startswith("nvme0n1 is gone: the kernel no longer lists it")


async def test_all_settings_are_explained_and_can_be_changed() -> None:
    app = make(controller())
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        await pilot.press("k")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, Settings)
        assert "nvme0n1: every CPU" in explained(screen)
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, Choice)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert fake.calls[-1] == ("tune", "rq_affinity", "2") and app.screen is screen
        await pilot.press("down", "enter")
        await settle(pilot)
        prompt = app.screen
        assert isinstance(prompt, Prompt)
        prompt.query_one(Input).value = "many"
        await pilot.press("enter")
        await settle(pilot)
        assert app.screen is prompt
        assert "takes a whole number" in str(prompt.query_one("#prompt-foot", Static).content)
        prompt.query_one(Input).value = "64"
        await pilot.press("enter")
        await settle(pilot)
        assert fake.calls[-1] == ("tune", "nr_requests", "64")
        await pilot.press("down")
        await settle(pilot)
        assert "Can't be changed: The kernel manages" in explained(screen)
        assert "sudo tee" in explained(screen)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_list_of_values_has_its_whole_title_and_hides_no_half_a_row(
    size: tuple[int, int],
) -> None:
    app = make(controller())
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("k", "enter")
        await settle(pilot)
        below, values = app.screen_stack[-2:]
        assert isinstance(below, Settings) and isinstance(values, Choice)
        assert str(values.box.border_title) == "Tunables of the disks › rq_affinity"
        assert values.box.region.width >= len(str(values.box.border_title)) + 6
        assert values.box.region.bottom <= below.box.region.bottom - 2, "its keys stay"


def test_each_value_of_a_tunable_is_explained_on_its_own_line() -> None:
    explanations = _meaning(TUNABLES["rq_affinity"].meaning)
    assert [explanation[:2] for _, explanation in explanations] == ["CP", "0 ", "1 ", "2 "]
    assert _meaning(TUNABLES["nomerges"].meaning)[-1] == ("", "2 none")
    for name in ("iostats", "nr_requests"):
        assert _meaning(TUNABLES[name].meaning) == [("Meaning", TUNABLES[name].meaning)]


async def test_a_long_message_continues_below() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.port.show_message("warning", "word " * 30)
        await do(pilot, "log")
        await pilot.pause()
        lines = [line for line in render_pictures(app)[".txt"].split("\n") if "word word" in line]
        assert len(lines) > 1
        assert all(line[: lines[0].index("warning")].strip(" │") == "" for line in lines[1:]), lines


async def test_a_refusal_and_the_new_value_are_shown_in_the_dialog() -> None:
    app = make(controller())
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        await pilot.press("k")
        await settle(pilot)
        fake.notice("error", "The kernel refuses nr_requests=9999 for nvme0n1.")
        fake.settings = (TunableState("nr_requests", "x", "512", (), "a number"),)
        await settle(pilot)
        message = app.screen.query_one("#settings-said", Static).content
        assert "The kernel refuses nr_requests=9999" in str(message)
        label = app.screen.query_one(OptionList).get_option_at_index(0).prompt
        assert "512" in str(label)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard)


async def test_keys_without_an_effect_are_not_offered() -> None:
    app = make(controller())
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        await pilot.press("k")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, Settings)
        assert "Enter Change" in screen.keys.text, "one of them can be changed"
        fake.settings = tuple(replace(setting, refused="a recording") for setting in fake.settings)
        fake.notice("info", "x")
        await settle(pilot)
        assert "Change" not in screen.keys.text and screen.note == settings.NOTHING_TO_CHANGE


async def test_the_screen_explains_missing_settings() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await running(app, pilot)
        await pilot.press("k")
        await settle(pilot)
        assert isinstance(app.screen, Settings) and "no tunables" in explained(app.screen)
        await pilot.press("enter", "escape")


async def test_any_fio_option_restarts_the_job_with_a_mark() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        for typed, overrides in (
            ("rwmixread=50", {"rwmixread": "50"}),
            ("ioengine = sync", {"rwmixread": "50", "ioengine": "sync"}),
            ("rwmixread=", {"ioengine": "sync"}),
        ):
            await pilot.press("colon")
            await settle(pilot)
            assert isinstance(app.screen, Prompt)
            app.screen.query_one(Input).value = typed
            await pilot.press("enter")
            await settle(pilot)
            app.jobs.restart_with_changes()
            assert fake.calls[-1] == ("run", "mixed-4k", overrides)
        assert ("mark", "rwmixread=50") in fake.calls
        assert ("mark", "rwmixread: the job's own value") in fake.calls


async def test_a_bad_option_stays_in_the_field() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        await pilot.press("colon", "r", "w", "enter")
        await settle(pilot)
        text = str(app.screen.query_one("#prompt-foot", Static).content)
        assert "not of the form OPTION=VALUE" in text and "--set" not in text
        await pilot.press("escape")
        await settle(pilot)
        assert [call for call in fake.calls if call[0] == "run"] == [("run", "mixed-4k", {})]


async def test_an_option_changed_while_a_run_starts_applies_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job, "RESTART_DELAY_S", 3600.0)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        fake.finish()
        await settle(pilot)
        # a slow machine: the run was requested, but its first event has not arrived
        sink, fake.sink = fake.sink, lambda event: None
        await pilot.press("r")
        await pilot.press("right_square_bracket")
        fake.sink = sink
        await settle(pilot)
        assert shows(app, "iodepth 64: preparing the next run")
        app.jobs.restart_with_changes()
        assert fake.calls[-1] == ("run", "mixed-4k", {"iodepth": "64"})


async def test_binding_is_toggled_and_restarts_the_job() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        fake = await running(app, pilot)
        await do(pilot, "bind_queues")
        app.jobs.restart_with_changes()
        assert fake.bind and fake.calls[-2:] == [
            ("mark", "bound to queues"), ("run", "mixed-4k", {}),
        ]  # fmt: skip
        await do(pilot, "bind_queues")
        app.jobs.restart_with_changes()
        assert not fake.bind and ("mark", "not bound to queues") in fake.calls


@pytest.mark.parametrize("value", ["64@3", "x", "3"])
def test_values_that_no_device_accepts_are_refused_before_writing(value: str) -> None:
    with pytest.raises(UsageError):
        checked_value("nr_requests", value)
    assert checked_value("irq/36", "0-1") == "0-1"


def turned(fake: fakes.FakeController, name: str, before: str, now: str, disk: str = "sda") -> None:
    fake.sink(TunableChanged(fake.second, disk, name, before, now))


def labels(app: IopstuiApp) -> list[str]:
    options = app.screen.query_one(OptionList)
    return [str(options.get_option_at_index(at).prompt) for at in range(options.option_count)]


async def test_a_changed_setting_shows_its_old_value_and_can_be_undone() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        fake.settings = (
            TunableState("nr_requests", "x", "64", (), "a number"),
            TunableState("rq_affinity", "x", "1", (), "", (("sda", "1"), ("sdb", "1"))),
        )
        turned(fake, "nr_requests", "256", "128")
        turned(fake, "nr_requests", "128", "64")
        turned(fake, "rq_affinity", "2", "1", "sdb")
        await settle(pilot)
        await pilot.press("k")
        await settle(pilot)
        assert labels(app)[0].split() == ["nr_requests", "256", "→", "64"]
        assert "Was: 256" in explained(app.screen)  # type: ignore[arg-type]
        await pilot.press("z")
        assert fake.calls[-1] == ("tune", "nr_requests", "256")
        # after the undo the value is the first one, and there is nothing more to undo
        fake.settings = (replace(fake.settings[0], now="256"), *fake.settings[1:])
        turned(fake, "nr_requests", "64", "256")
        await settle(pilot)
        assert labels(app)[0].split() == ["nr_requests", "256"]
        await pilot.press("z")
        message = app.screen.query_one("#settings-said", Static)
        assert "nr_requests is as it was" in str(message.content)
        # disks that had different values can't be restored to one value
        turned(fake, "rq_affinity", "0", "1", "sda")
        await settle(pilot)
        before = len(fake.calls)
        await pilot.press("down", "z")
        assert labels(app)[1].split()[1:] == ["2/0", "→", "1"]
        assert len(fake.calls) == before and "different values" in str(message.content)


async def test_help_opens_over_every_screen_and_names_it() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        await running(app, pilot)
        for key, title, text in (
            ("k", "question_mark", "Tunables of the disks"),
            ("b", "question_mark", "Choose a value"),
            ("j", "f1", "Choose a job"),
            ("colon", "f1", "Set a fio option"),
            ("m", "f1", "Type a text"),
            ("f", "question_mark", "A live list"),
            ("e", "question_mark", "Keys"),
        ):
            dashboard = app.screen
            await pilot.press(key)
            await settle(pilot)
            before = app.screen
            await pilot.press(title)
            await settle(pilot)
            assert isinstance(app.screen, HelpScreen) and isinstance(app.screen._text, Group), key
            first = "".join(str(part) for part in app.screen._text.renderables[:2])
            assert text in first and ("Here" in first) == (key != "e")
            await pilot.press("question_mark")
            await settle(pilot)
            assert app.screen is before
            if before is not dashboard:
                await pilot.press("escape")
                await settle(pilot)
            assert app.screen is dashboard


async def test_enter_in_the_help_shows_the_first_match_among_all_entries() -> None:
    app = make()
    async with app.run_test(size=(80, 24)) as pilot:
        fake = await running(app, pilot)
        before = len(fake.calls)
        await pilot.press("question_mark", *"knee")
        await settle(pilot)
        text = words(app)
        assert "numjobs: half, double" not in text and "Enter Show it in the whole help" in text
        for marked in ("> w", "> knee", "> w"):
            await pilot.press("enter")
            for _ in range(3):
                await settle(pilot)
            text = words(app)
            assert marked in text and "Enter Next match" in text and "Esc Clear" in text
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, HelpScreen) and not app.screen.filter_text
        text = words(app)
        assert "Enter Next match" not in text and "Enter Show it" not in text
        await pilot.press("a", "q", "ctrl+u")
        assert isinstance(app.screen, HelpScreen) and not app.screen.filter_text, "as in a shell"
        await pilot.press("r", "escape", "r", "w", "enter", "backspace")
        assert isinstance(app.screen, HelpScreen) and len(fake.calls) == before, "text"
        await pilot.press("escape", "escape")
        await settle(pilot)
        assert isinstance(app.screen, Dashboard)


@pytest.mark.parametrize(("size", "rows"), [((80, 24), 24), ((250, 70), LEAST_ROWS)])
async def test_a_high_terminal_has_no_empty_rows_below_the_tunables(
    size: tuple[int, int], rows: int
) -> None:
    app = make()
    async with app.run_test(size=size) as pilot:
        await running(app, pilot)
        await pilot.press("k")
        await settle(pilot)
        assert isinstance(app.screen, Settings) and app.screen.box.size.height <= rows
        assert app.screen.box.outer_size.height >= 20
