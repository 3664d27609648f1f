"""Sweep and comparison on the screen: the form, the panes, keys while one runs, stopping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import experiment_fakes as lab
import pytest
import ui_fakes as fakes
from rich.cells import cell_len
from rich.console import Group
from rich.text import Text
from test_app import screen_text, settle, shows
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from iopstui.errors import Refused, UsageError
from iopstui.events import ExperimentFinished
from iopstui.experiment.background import PreparedExperiment
from iopstui.model.experiment.plan import Plan, parse_axis
from iopstui.recording.reader import recording_path
from iopstui.recording.replay import ReplaySession
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Backend, FirstView
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.dialogs.questions import Choice
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.experiment import form as experiment_form
from iopstui.ui.experiment.form import ExperimentForm, Radio, fields, restore_values
from iopstui.ui.experiment.plan import options_text, parse_plan
from iopstui.ui.experiment.rows import HELP
from iopstui.ui.experiment.screen import ExperimentScreen
from iopstui.ui.help import KEYS, HelpScreen
from iopstui.ui.replay import ReplayApp

LARGE, SMALL = (120, 36), (80, 24)


async def settled(pilot: Pilot[int]) -> None:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def wait_until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    """Wait for the effects of a worker's result."""
    for _ in range(500):
        await settled(pilot)
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError(screen_text(pilot.app))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment_form, "PREVIEW_DELAY_S", 0.01)


async def form(pilot: Pilot[int], key: str = "w") -> ExperimentForm:
    """Open the form, and wait for its plan to be checked."""
    await pilot.pause()
    await pilot.press(key)
    await pilot.pause()
    screen = pilot.app.screen
    assert isinstance(screen, ExperimentForm)
    await wait_until(pilot, lambda: experiment_form.CHECKING not in form_text(screen))
    return screen


def form_text(screen: ExperimentForm) -> str:
    return " ".join(screen.plan_text.split())


def type_in(screen: ExperimentForm, **values: str) -> None:
    for name, value in values.items():
        screen.query_one(f"#form-{name}", Input).value = value


async def begin(
    pilot: Pilot[int], plan: Plan, points: int, running: bool = True
) -> lab.FakeRunningExperiment:
    """Start an experiment with some points completed."""
    app = pilot.app
    assert isinstance(app, IopstuiApp) and app.experiments.background is not None
    await pilot.pause()
    background = app.experiments.background(app.controller)  # type: ignore[arg-type]
    under = background.start(background.preview(plan), app.feed.put, 0.0)
    assert isinstance(under, lab.FakeRunningExperiment)
    app.experiments.running_experiment = under
    for event in lab.run_events(plan, points)[1:]:
        under.tell(event)
    if running:
        under.tell(lab.point_started(plan, points))
    await pilot.pause()
    return under


# -- the form


async def test_the_form_starts_with_the_changed_options_of_the_job() -> None:
    background = lab.FakeLaboratory()
    async with lab.make(background).run_test(size=LARGE) as pilot:
        screen = await form(pilot)
        typed = screen.values()
        assert screen.heading == "Sweep · nvme0n1"
        assert typed["job"] == pilot.app.jobs.job and typed["options"] == "bs=8k"  # type: ignore[attr-defined]
        assert typed["axis"] == "iodepth=1,2,4..64", "so iodepth is no option of all runs"
        assert "7 points, about" in form_text(screen) and "reads only" in form_text(screen)
        type_in(screen, axis="bs=4k,8k", options="iodepth=4", settle="0", measure="1.5")
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(pilot.app.screen, ExperimentScreen)
    plan, anew = background.begun[0]
    assert plan.options == {"iodepth": "4"} and plan.axes[0].values == ("4k", "8k")
    assert (plan.settle, plan.measure, anew) == (0.0, 1.5, False)


async def test_the_help_on_a_sweep_begins_with_its_keys() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        app = pilot.app
        await begin(pilot, lab.SWEEP, 7, running=False)
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen) and isinstance(app.screen._text, Group)
        titles = [one.plain for one in app.screen._text.renderables if isinstance(one, Text)]
        assert HELP in titles and titles.index(HELP) < titles.index(KEYS)


@pytest.mark.parametrize("key", ["w", "c"])
async def test_a_plan_that_arrives_after_the_form_was_closed_is_dropped(key: str) -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=SMALL) as pilot:
        screen = await form(pilot, key)
        # the first field has the focus
        assert screen.focused is screen.query_one("#form-job", Input)
        plan, ready = screen._plan, screen._experiment
        assert plan is not None and ready is not None
        await screen.box.remove()
        screen.action_leave()
        assert screen.is_attached, "when its widgets are gone already"
        await ExperimentForm._check_plan.__wrapped__(screen, plan)  # type: ignore[attr-defined]
        await wait_until(pilot, lambda: not screen.is_attached)
        # the thread that queries fio ends at that moment
        await ExperimentForm._check_plan.__wrapped__(screen, plan)  # type: ignore[attr-defined]
        assert isinstance(pilot.app.screen, Dashboard)


@pytest.mark.parametrize("key", ["w", "c"])
async def test_focus_buttons_and_keys_of_the_form_are_visible_on_24_rows(key: str) -> None:
    async with lab.make(Talkative()).run_test(size=SMALL) as pilot:
        screen = await form(pilot, key)
        await wait_until(pilot, lambda: shows(pilot.app, "[ Start ]"))
        assert shows(pilot.app, "[ Start ]") and shows(pilot.app, "Enter Start Tab Next field")
        assert key == "c" or shows(pilot.app, "(*) sequential ( ) random"), screen.plan_text
        for pressed, marked in (("", "▸ Job"), ("shift+tab", "[▸Cancel ]"), ("tab", "▸ Job")):
            await pilot.press(*filter(None, [pressed]))
            await settled(pilot)
            assert shows(pilot.app, marked) and screen_text(pilot.app).count("▸") == 1
        await pilot.click("#form-cancel")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Dashboard)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_form_has_room_for_a_seed_and_its_hint(size: tuple[int, int]) -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=size) as pilot:
        screen = await form(pilot)
        screen.query(Radio).last().value = True
        await settled(pilot)
        seed = screen.query_one("#form-seed")
        assert seed.visible and seed.size.width >= 9
        hint = screen.query(".form-hint")[5]
        assert shows(pilot.app, str(hint.render())) and "seed" in str(hint.render())


async def test_a_warning_label_precedes_what_will_be_overwritten() -> None:
    background = Talkative()
    async with lab.make(background).run_test(size=SMALL) as pilot:
        screen = await form(pilot)
        screen._show_plan(["3 points", "OVERWRITES: /dev/x", "no label"])
        assert screen.plan_text.split("\n") == ["3 points", "OVERWRITES /dev/x", "no label"]


async def test_the_form_of_a_comparison() -> None:
    background = lab.FakeLaboratory()
    async with lab.make(background).run_test(size=SMALL) as pilot:
        screen = await form(pilot, "c")
        assert (screen.values()["a"], screen.values()["b"]) == ("rq_affinity=1", "rq_affinity=2")
        type_in(screen, b="as-is", repeats="3", options="")
        await pilot.press("enter")
        await settled(pilot)
        assert shows(pilot.app, "comparison") and shows(pilot.app, "2 variants × 3 repeats")
    assert [variant.label for variant in background.begun[0][0].variants] == [
        "rq_affinity=1",
        "as-is",
    ]


@pytest.mark.parametrize(
    ("kind", "typed", "message"),
    [
        ("sweep", {"axis": "iodepth="}, "no values"),
        ("sweep", {"axis": "", "axis2": " "}, "something to vary"),
        ("sweep", {"axis": "iodepth=banana"}, "takes a whole number"),
        ("sweep", {"axis": "iodepth=1,2", "axis2": "iodepth=4,8"}, "two axes"),
        (
            "sweep",
            {"axis": "iodepth=1,2", "options": "iodepth=4"},
            "axis and an option of every run",
        ),
        ("sweep", {"axis": "runtime=1,2"}, "settle and measure set the time"),
        ("sweep", {"job": ""}, "no job"),
        ("sweep", {"options": "bs='4k"}, "quote"),
        ("sweep", {"options": "bs"}, "bs"),
        ("sweep", {"settle": "soon"}, "'soon' is not a number of seconds from 0 to 3600"),
        ("sweep", {"measure": "0"}, "from 1 to 86400"),
        ("sweep", {"measure": "nan"}, "from 1 to 86400"),
        ("compare", {"b": ""}, "two variants"),
        ("compare", {"b": "iodepth"}, "NAME=VALUE"),
        ("compare", {"a": "rq_affinity=7"}, "rq_affinity takes"),
        ("compare", {"repeats": "1"}, "from 2 to 1000"),
        ("compare", {"repeats": "many"}, "from 2 to 1000"),
        ("compare", {"repeats": "±0%"}, "a percentage above 0"),
        ("compare", {"repeats": "±x%"}, "a percentage above 0"),
        ("compare", {"repeats": "±2% 5"}, "'5' is not a number from 6 to 1000"),
        ("sweep", {"rounds": "0"}, "from 1 to 1000"),
        ("sweep", {"order": "backwards"}, "neither sequential nor random"),
        ("sweep", {"order": "random x"}, "neither sequential nor random"),
        ("sweep", {"order": "random 1234567890"}, "neither sequential nor random"),
    ],
)
def test_bad_plans_are_refused(kind: str, typed: dict[str, str], message: str) -> None:
    fields = {"job": "j", "options": "", "axis": "iodepth=1,2", "axis2": "", "a": "iodepth=1",
              "b": "iodepth=16", "c": "", "repeats": "5", "settle": "2", "measure": "8",
              "rounds": "1", "order": "sequential"}  # fmt: skip
    parse_plan(kind, fields)
    with pytest.raises(UsageError) as error:
        parse_plan(kind, fields | typed)
    assert message in error.value.message


def test_repeats_and_their_order() -> None:
    fields = {"job": "j", "options": "", "axis": "iodepth=1,2", "axis2": "", "a": "iodepth=1",
              "b": "iodepth=16", "c": "", "settle": "2", "measure": "8", "rounds": "3"}  # fmt: skip
    for order, expected in (("", (3, False, None)), (" Random ", (3, True, None)),
                            ("random 42", (3, True, 42))):  # fmt: skip
        plan = parse_plan("sweep", fields | {"order": order})
        assert (plan.repeats, plan.shuffle, plan.seed) == expected
    for repeats, repeat_plan in (("7", (7, None)), ("±2%", (30, 0.02)), ("1.5% 12", (12, 0.015))):
        plan = parse_plan("compare", fields | {"repeats": repeats})
        assert (plan.repeats, plan.until) == repeat_plan


def test_options_that_are_varied_or_timed_are_left_out() -> None:
    overrides = {"iodepth": "4", "blocksize": "8k", "runtime": "60", "time_based": "1", "rw": "a b"}
    assert options_text(overrides, "iodepth=1,2") == "blocksize=8k 'rw=a b'"
    assert options_text(overrides, "bs=4k iodepth=2") == "'rw=a b'"


async def test_mistakes_are_shown_in_the_form_and_start_nothing() -> None:
    background = lab.FakeLaboratory()
    async with lab.make(background).run_test(size=SMALL) as pilot:
        screen = await form(pilot)
        type_in(screen, axis="iodepth=1,two")
        await pilot.press("enter")
        await settled(pilot)
        assert "takes a whole number of 1 or more, not 'two'" in form_text(screen)
        for text in ("iodepth", "iodepth=", "runtime=1,2", "iodepth=1..7,4", "hosts=1,2"):
            type_in(screen, axis=text)
            await pilot.pause()
            assert (
                form_text(screen)
                and "--" not in form_text(screen).partition("For example: iopstui")[0]
            )
        background.refusal = Refused("/dev/x is mounted.", "Unmount it: umount /x")
        type_in(screen, axis="iodepth=1,2")
        await pilot.press("enter")
        await settled(pilot)
        assert form_text(screen) == "/dev/x is mounted. Unmount it: umount /x"
        assert pilot.app.screen is screen and background.begun == []
        background.refusal = None
        type_in(screen, axis="iodepth=1,4")
        await pilot.press("enter")
        await settled(pilot)
        assert len(background.begun) == 1


@dataclass
class Talkative(lab.FakeLaboratory):
    """An experiment whose preview needs more than 24 rows for more than two repeats."""

    def preview(self, plan: Plan) -> PreparedExperiment:
        ready = super().preview(plan)
        more = [f"word {n}" for n in range(12 if plan.repeats > 2 else 0)]
        return replace(ready, lines=(*ready.lines, *more, "last"))


async def test_the_form_scrolls_to_what_does_not_fit() -> None:
    async with lab.make(Talkative()).run_test(size=SMALL) as pilot:
        screen = await form(pilot, "c")
        pane = screen.query_one("#form-scroll", VerticalScroll)
        await wait_until(
            pilot, lambda: pane.max_scroll_y > 0 and "PgUp PgDn Scroll" in footer_text(screen)
        )
        await pilot.press("pagedown")
        await settled(pilot)
        assert pane.scroll_y == pane.max_scroll_y
        assert isinstance(screen.focused, Input), "what is typed goes on"
        await pilot.press("pageup")
        await settled(pilot)
        assert pane.scroll_y == 0
        type_in(screen, repeats="2")
        # the end of the new plan is shown, and the plan fits
        await wait_until(
            pilot, lambda: "last" in form_text(screen) and "word" not in form_text(screen)
        )
        await wait_until(
            pilot, lambda: pane.max_scroll_y == 0 and "Scroll" not in footer_text(screen)
        )


def footer_text(screen: ExperimentForm) -> str:
    return screen.keys.text


async def test_a_large_plan_is_confirmed_before_it_starts() -> None:
    background = lab.FakeLaboratory()
    async with lab.make(background).run_test(size=SMALL) as pilot:
        screen = await form(pilot)
        type_in(screen, axis="iodepth=1..100", axis2="numjobs=1..3")
        await pilot.press("enter")
        await settled(pilot)
        assert background.begun == [] and "300 points, about" in form_text(screen)
        assert "Enter again" in form_text(screen)
        await pilot.press("enter")
        await settled(pilot)
        assert background.begun[0][0].points == 300


async def test_points_of_an_interrupted_experiment_can_be_discarded() -> None:
    background = lab.FakeLaboratory(kept="continues an interrupted run: 3 of 7 points done")
    async with lab.make(background).run_test(size=SMALL) as pilot:
        screen = await form(pilot)
        assert "Enter continues an interrupted run" in form_text(screen)
        await pilot.press("ctrl+n")
        await settled(pilot)
    assert background.begun[0][1] is True


# -- while it runs


async def test_the_page_covers_the_dashboard_which_goes_on() -> None:
    background = lab.FakeLaboratory()
    async with lab.make(background).run_test(size=LARGE) as pilot:
        under = await begin(pilot, lab.SWEEP, 2)
        text = screen_text(pilot.app)  # type: ignore[arg-type]
        assert "sweep: point 3 of 7, 0:58 left" in text and ">  3       4" in text
        assert "20.0k" in text and "knee" not in text
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Dashboard)
        assert shows(pilot.app, "sweep: point 3 of 7") and shows(pilot.app, "w Show the sweep")
        under.tell(lab.point_finished(lab.SWEEP, 2))
        await pilot.press("w")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ExperimentScreen) and shows(pilot.app, "40.0k")


async def test_each_key_of_the_page_s_footer_does_something() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        under = await begin(pilot, lab.SWEEP, 2)
        assert unbound_keys(pilot.app.screen) == []
        under.end(2)
        await settled(pilot)
        assert unbound_keys(pilot.app.screen) == []


def unbound_keys(screen: Screen[object]) -> list[str]:
    """Keys that a page's footer names, and that do nothing there."""
    names = {"Esc": "escape", "Tab": "tab", "↑": "up", "↓": "down"}
    keys = [key for hint in screen._hints() for key in hint.key.split()]  # type: ignore[attr-defined]
    assert len(keys) >= 5
    return [key for key in keys if names.get(key, key) not in screen.active_bindings]


async def test_events_of_the_session_are_forwarded() -> None:
    background, fake = lab.FakeLaboratory(), fakes.FakeController()
    async with lab.make(background, fake).run_test(size=SMALL) as pilot:
        under = await begin(pilot, lab.SWEEP, 0)
        fake.tick(3)
        await pilot.pause()
        assert len(under.fed) == 3


async def test_only_r_and_x_stop_an_experiment() -> None:
    background, fake = lab.FakeLaboratory(), fakes.FakeController()
    async with lab.make(background, fake).run_test(size=LARGE) as pilot:
        under = await begin(pilot, lab.SWEEP, 1)
        await pilot.press("escape")
        await pilot.pause()
        before = list(fake.calls)
        for key in ("right_square_bracket", "b", "j", "a", "colon"):
            await pilot.press(key)
            await pilot.pause()
            assert isinstance(pilot.app.screen, Dashboard), key
        assert fake.calls == before and shows(pilot.app, "is running; x stops it")
        await pilot.press("r")
        assert under.stops == 1
        await pilot.press("w")
        await pilot.press("x")
        assert under.stops == 2, "a second time: at once"
        under.end(1, interrupted=True)
        await pilot.pause()
        assert shows(pilot.app, "stopped after 1 of 7 points")


async def test_quitting_stops_the_experiment_before_the_session() -> None:
    background, fake = lab.FakeLaboratory(), fakes.FakeController()
    app = lab.make(background, fake)
    async with app.run_test(size=SMALL) as pilot:
        under = await begin(pilot, lab.SWEEP, 1)
        await pilot.press("q")
        await pilot.pause()
        assert under.stops == 1 and under.waited and ("close",) in fake.calls


async def test_a_failed_point_is_reported_and_the_others_stay() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        under = await begin(pilot, lab.SWEEP, 2)
        under.end(2, error="fio was killed.", hint="Look into dmesg.")
        await pilot.pause()
        text = screen_text(pilot.app)  # type: ignore[arg-type]
        assert "failed after 2 of 7 points" in text and "fio was killed. Look into dmesg." in text
        assert "20.0k" in text


async def test_a_result_stays_until_the_next_experiment_starts() -> None:
    background = lab.FakeLaboratory()
    async with lab.make(background).run_test(size=LARGE) as pilot:
        under = await begin(pilot, lab.SWEEP, 7, running=False)
        under.end(7)
        await pilot.pause()
        assert shows(pilot.app, "sweep: done, 7 points") and shows(pilot.app, "knee 16")
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("c")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Choice)
        await pilot.press("enter")
        await pilot.pause()
        assert shows(pilot.app, "sweep: done, 7 points")
        await pilot.press("n")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ExperimentForm)
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("w")
        await pilot.pause()
        await pilot.press("down", "enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ExperimentForm)


async def test_a_result_outlives_its_disk() -> None:
    app = lab.make(lab.FakeLaboratory(), charset=UTF8)
    async with app.run_test(size=LARGE) as pilot:
        under = await begin(pilot, lab.SWEEP, 7, running=False)
        under.end(7)
        await pilot.pause()
        await pilot.press("escape", "escape")
        await settled(pilot)
        assert shows(app, "▸ nvme0n1 sweep result")
        assert shows(app, "sweep: done, 7 points")
        await pilot.press("down", "enter")
        await settled(pilot)
        assert isinstance(app.screen, Dashboard) and app.state.experiment is None
        assert shows(app, "w shows the last sweep on nvme0n1")
        await pilot.press("w")
        await pilot.pause()
        assert shows(app, "Show the last one (sweep on nvme0n1)")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ExperimentScreen) and shows(app, "Take iodepth=16")
        assert shows(app, "n New sweep") and not shows(app, "S Save"), "of the disk before"
        await pilot.press("y")
        await settled(pilot)
        where, head, first, *rest = app.clipboard.splitlines()
        assert where == "host db1, nvme0n1 (1 TiB, Sparrow SN 850)"
        assert head == "randread-4k on nvme0n1: sweep: done, 7 points"
        assert first.startswith("Take iodepth=16 (best ratio of IOPS to latency): 120k IOPS")
        assert first.endswith("3 repeats would show how sure this is."), "in one line"
        assert rest[-1].split()[:4] == ["7", "64", "120k", "469"]
        await pilot.press("n")
        await pilot.pause()
        assert isinstance(app.screen, ExperimentForm)
    ((_, _, _, printed),) = app.session_runs
    assert printed.splitlines()[:2] == [head, first]


async def test_at_the_end_each_experiment_s_answer_is_printed() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=SMALL) as pilot:
        app = pilot.app
        assert isinstance(app, IopstuiApp)
        for plan in (lab.SWEEP, lab.COMPARE, replace(lab.SWEEP, jobs=("other",))):
            under = await begin(pilot, plan, plan.points, running=False)
            under.end(plan.points)
            await pilot.pause()
            await pilot.press("escape")
    ((_, _, _, printed),) = app.session_runs
    first, second, *last = printed.splitlines()
    assert first.startswith("randread-4k on nvme0n1: sweep: done, 7 points: Take iodepth=16 ")
    assert second.startswith("randread-4k on nvme0n1: comparison: done, 8 runs: ")
    assert last[0] == "other on nvme0n1: sweep: done, 7 points" and len(last) > 1


async def test_the_form_reopens_with_its_last_values() -> None:
    background = lab.FakeLaboratory()
    async with lab.make(background).run_test(size=LARGE) as pilot:
        type_in(await form(pilot), axis="iodepth=1,2,4..16", measure="3")
        await pilot.press("enter")
        await settled(pilot)
        assert background.under is not None
        background.under.end(1)
        await pilot.pause()
        await pilot.press("n")
        await pilot.pause()
        reopened = pilot.app.screen
        assert isinstance(reopened, ExperimentForm)
        assert (
            reopened.values()["axis"] == "iodepth=1,2,4..16" and reopened.values()["measure"] == "3"
        )


@pytest.mark.parametrize(("axis", "next_axis", "more"), [
    ("iodepth=1,2,4..64", "iodepth=1,2,4..64", ""),
    ("iodepth=1,2,4,8", "iodepth=4,8,16,32", "iodepth=4,8,16,32 and "),
])  # fmt: skip
async def test_the_form_has_what_the_result_advises_to_measure_next(
    axis: str, next_axis: str, more: str
) -> None:
    """A newcomer read "n opens the form with Repeats 3", and it had 1; IOPS rose up to the last
    value, and larger ones had to be typed."""
    plan = replace(lab.SWEEP, axes=(parse_axis(axis),))
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        under = await begin(pilot, plan, plan.points, running=False)
        under.end(plan.points)
        await pilot.pause()
        advice = f"n opens the form to measure again, with {more}Repeats 3 for 95 % intervals"
        assert advice in " ".join(screen_text(pilot.app).replace("│", " ").split())  # type: ignore[arg-type]
        await pilot.press("n")
        await pilot.pause()
        assert isinstance(pilot.app.screen, ExperimentForm)
        values = pilot.app.screen.values()
        assert (values["axis"], values["rounds"]) == (next_axis, "3")


def test_options_changed_on_the_dashboard_replace_those_of_the_form() -> None:
    rows = fields("sweep", "a", "bs=4k", ("iodepth=1,2",))
    typed = {name: f"typed {name}" for name, *_ in rows}
    changed = fields("sweep", "b", "bs=4k", ("iodepth=1,2",))
    restored = {name: value for name, _, value, _ in restore_values(changed, rows, typed)}
    assert restored["job"] == "b" and restored["options"] == "typed options"
    assert restored["axis"] == "typed axis"
    assert restore_values(rows, (), {}) == rows


async def test_no_experiment_starts_in_an_ended_session() -> None:
    fake = fakes.FakeController()
    async with lab.make(lab.FakeLaboratory(), fake).run_test(size=SMALL) as pilot:
        await pilot.pause()
        fake.close()
        await pilot.pause()
        await pilot.press("w")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Dashboard)
        assert shows(pilot.app, "the session has ended")


async def test_a_missing_laboratory_is_reported() -> None:
    fake = fakes.FakeController()
    app = IopstuiApp(
        Backend(lambda path: fake, lambda: fakes.DEVICES, fakes.JOBS), FirstView(["/dev/nvme0n1"])
    )
    async with app.run_test(size=LARGE) as pilot:
        await pilot.pause()
        await pilot.press("w")
        await pilot.pause()
        assert shows(app, "cannot run experiments")


async def test_a_recording_shows_its_experiment_and_starts_none() -> None:
    session = ReplaySession(recording_path("demo"), 1.0)
    app = ReplayApp(session)
    try:
        async with app.run_test(size=LARGE) as pilot:
            await pilot.pause()
            await pilot.press("space", "w")
            await pilot.pause()
            assert isinstance(app.screen, Dashboard) and shows(app, "this is a recording")
            for event in lab.run_events(lab.SWEEP, 3):
                app.state.apply(event)
            await pilot.press("c")
            await pilot.pause()
            assert isinstance(app.screen, ExperimentScreen)
            assert shows(app, "REPLAY") and not shows(app, "x stop")
            app.state.experiment = None
            app.screen.paint()
            await pilot.pause()
            assert isinstance(app.screen, Dashboard), "another place, without an experiment"
    finally:
        session.close()


# -- layout


async def test_one_pane_at_a_time_on_a_small_terminal() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=SMALL) as pilot:
        await begin(pilot, lab.SWEEP, 3)
        assert shows(pilot.app, "[ 1 Points ]") and not shows(pilot.app, "IOPS against")
        await pilot.press("tab")
        assert shows(pilot.app, "IOPS against iodepth")
        await pilot.press("3")
        assert shows(pilot.app, "Latency against IOPS") and shows(pilot.app, "o mean ^ p99")
        await pilot.press("tab")
        assert shows(pilot.app, "Little's law")
        await pilot.press("tab")
        assert shows(pilot.app, "[ 1 Points ]")


DISTURBED = ("CPU 0, 1 were full: other programs used at least 160 % of a CPU there; the busiest "
             "was hog (965) with 98 %")  # fmt: skip


async def disturbed_sweep(pilot: Pilot[int], plan: Plan) -> None:
    """A sweep whose points are all disturbed and unsteady."""
    under = await begin(pilot, plan, 0, running=False)
    for index in range(plan.points):
        event = lab.point_finished(plan, index)
        point = replace(event.point, disturbed=(DISTURBED,), steady=False)
        under.tell(replace(event, point=point))
    under.end(plan.points)
    await pilot.pause()


@pytest.mark.parametrize("size", [SMALL, (118, 32), LARGE])
async def test_all_that_matters_of_a_result_is_visible(size: tuple[int, int]) -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=size) as pilot:
        await disturbed_sweep(pilot, lab.SWEEP)
        for text in ("Can't tell for sure; as measured", "the busiest was hog (965)",
                     "measure longer", "n opens the form to measure again",
                     "~ disturbed"):  # fmt: skip
            assert shows(pilot.app, text), screen_text(pilot.app)  # type: ignore[arg-type]
        assert not shows(pilot.app, "m Mark"), "the charts of this screen have no marks"


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("plan", [lab.SWEEP, lab.COMPARE])
async def test_the_result_s_own_page_has_figures_that_no_other_page_has(
    size: tuple[int, int], plan: Plan
) -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=size) as pilot:
        under = await begin(pilot, plan, 0, running=False)
        for index in range(plan.points):
            event = lab.point_finished(plan, index)
            further = replace(event.point, iops_low=4321.0, max_ns=7.65e6, others=0.07)
            under.tell(replace(event, point=further))
        under.end(plan.points)
        await pilot.pause()
        assert not shows(pilot.app, "4.32k")
        await pilot.press("4")
        for text in ("Result", "Further figures", "IOPS from", "4.32k", "slowest", "7.65ms",
                     "util %", "99", "others", "7 %"):  # fmt: skip
            assert shows(pilot.app, text), (text, screen_text(pilot.app))  # type: ignore[arg-type]
        assert not shows(pilot.app, "waits most in"), "no column without a value"


async def test_the_keys_in_a_box_show_its_rest() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=(80, 16)) as pilot:
        await disturbed_sweep(pilot, Plan(("randread-4k",), {}, (parse_axis("iodepth=1,4"),)))
        assert shows(pilot.app, "↑ ↓ 1-6 of") and not shows(pilot.app, "Little's law")
        await pilot.press("end")
        assert shows(pilot.app, "Little's law") and not shows(pilot.app, "Can't tell")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert shows(pilot.app, "Can't tell") and not shows(pilot.app, "↑ ↓")


async def test_a_box_beside_a_long_table_names_its_own_key() -> None:
    plan = Plan(("randread-4k",), {}, (parse_axis("iodepth=1..40"),))
    async with lab.make(lab.FakeLaboratory()).run_test(size=SMALL) as pilot:
        await disturbed_sweep(pilot, plan)
        assert shows(pilot.app, "~ disturbed ↑ ↓")
        await pilot.press("home")
        assert shows(pilot.app, "~ 1 1 10.0k")
        await pilot.press("4")
        assert shows(pilot.app, "Little's law")


async def test_a_long_table_follows_the_running_point_until_it_is_scrolled() -> None:
    plan = Plan(("randread-4k",), {}, (parse_axis("iodepth=1..40"),))
    async with lab.make(lab.FakeLaboratory()).run_test(size=SMALL) as pilot:
        under = await begin(pilot, plan, 25)
        assert shows(pilot.app, "> 26 26") and not shows(pilot.app, " 1 1 10.0k")
        await pilot.press("home")
        assert shows(pilot.app, " 1 1 10.0k") and not shows(pilot.app, "> 26")
        under.tell(lab.point_finished(plan, 25))
        under.tell(lab.point_started(plan, 26))
        await pilot.pause()
        assert shows(pilot.app, " 1 1 10.0k"), "it stays where it was put"
        await pilot.press("end")
        assert shows(pilot.app, "40 40")


async def test_curves_are_marked_by_letters() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        under = await begin(pilot, lab.CURVES, 9, running=False)
        under.end(9)
        await pilot.pause()
        assert shows(pilot.app, "a numjobs=1 b numjobs=2 c numjobs=4")
        assert shows(pilot.app, "capitals: p99") and shows(pilot.app, "c: knee 4")
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        await begin(pilot, lab.CURVES, 2)
        await pilot.pause()
        assert shows(pilot.app, "capitals: p99") and not shows(pilot.app, "b numjobs=2")


async def test_a_comparison_shows_seconds_runs_figures_and_the_verdict() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=LARGE) as pilot:
        under = await begin(pilot, lab.COMPARE, 0, running=False)
        for index in range(8):
            under.tell(lab.point_started(lab.COMPARE, index))
            for n in range(5):
                high = 50_000.0 if index in (1, 2, 5, 6) else 9_000.0
                under.tell(lab.frame_event(10.0 * index + n, high))
            under.tell(lab.point_finished(lab.COMPARE, index))
        await pilot.pause()
        assert shows(pilot.app, "4 of 4 repeats are complete")
        under.end(8)
        await pilot.pause()
        text = screen_text(pilot.app)  # type: ignore[arg-type]
        assert "A: iodepth=1" in text and "│ measurement begins" in text
        chart = text.split("── Runs")[0].split("measurement begins")[1]
        assert chart.count("A") >= 5 and chart.count("B") >= 5
        assert "B against A (95 %)" in text and "against A (iodepth=1): at least 5 repeats" in text
        assert "does more with" not in text, "4 repeats claim nothing"


@pytest.mark.parametrize("charset", [UTF8, ASCII])
@pytest.mark.parametrize("plan", [lab.SWEEP, lab.CURVES, lab.COMPARE])
async def test_every_row_fits(plan: Plan, charset: Charset) -> None:
    async with lab.make(lab.FakeLaboratory(), charset=charset).run_test(size=SMALL) as pilot:
        under = await begin(pilot, plan, plan.points - 1)
        for _ in range(3):
            under.tell(lab.frame_event(3.0, 20_000.0))
        for size in ((60, 15), (80, 24), (100, 40), (120, 36), (200, 50)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            for key in "01234":
                pilot.app.screen.action_pane(int(key))  # type: ignore[attr-defined]
                lines = screen_text(pilot.app).split("\n")  # type: ignore[arg-type]
                assert len(lines) == size[1] and {cell_len(line) for line in lines} == {size[0]}
                assert charset is UTF8 or all(line.isascii() for line in lines)
                assert not any("…" in line for line in lines[:3]), lines[:3]
            assert not pilot.app.screen.max_scroll_x


async def test_a_terminal_that_is_too_small_says_so() -> None:
    async with lab.make(lab.FakeLaboratory()).run_test(size=SMALL) as pilot:
        under = await begin(pilot, lab.SWEEP, 1)
        await pilot.resize_terminal(40, 10)
        await settle(pilot)
        assert shows(pilot.app, "too small")
        under.tell(ExperimentFinished(9.0, 7, 7))
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert shows(pilot.app, "sweep: done")
