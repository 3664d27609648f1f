"""An option that was changed between runs, as steps below the charts."""

from __future__ import annotations

import pytest
from test_app import make, running, screen_text, settle

from iopstui.events import StepStarted
from iopstui.ui.draw.charts.axis_rows import OptionStep, option_row
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.state.next_run import OptionSteps


def row(steps: list[OptionStep], now: float, charset: Charset = UTF8) -> str:
    return "".join(text for text, _ in option_row("QD", steps, 10.0, 1.0, 20, now, 8, charset))


def test_each_value_stands_where_it_began_with_its_height() -> None:
    steps = [
        OptionStep(8.0, 14.0, "4", 0.0), OptionStep(14.0, 20.0, "16", 0.5),
        OptionStep(22.0, None, "64", 1.0),
    ]  # fmt: skip
    assert row(steps, 25.5) == "     QD 4▁▁▁16▅▅▅▅  64██    "
    assert row(steps, 25.5, ASCII) == "     QD 4---16++++  64##    "
    assert row(steps[:2], 60.0) == "     QD 4▁▁▁16▅▅▅▅" + " " * 10


def test_a_value_without_room_has_its_height_alone() -> None:
    steps = [OptionStep(10.0, 12.0, "128", 1.0), OptionStep(12.0, 30.0, "128", 1.0)]
    assert row(steps, 30.0) == "     QD ██128███████████████"
    assert row([OptionStep(40.0, None, "1", 0.0)], 50.0).strip() == "QD"


@pytest.mark.parametrize(
    ("runs", "name", "values"),
    [
        ([("randread 4k  QD 4 × 1 job", {}), ("randread 4k  QD 8 × 1 job", {})], "QD", ["4", "8"]),
        ([("randread 4k  QD 4 × 1 job", {}), ("randread 16k  QD 4 × 1 job", {})],
         "bs", ["4k", "16k"]),
        ([("a", {"rwmixread": "70"}), ("b", {"rwmixread": "30"})], "rwmixread", ["70", "30"]),
        ([("a", {"rw": "read"}), ("b", {"rw": "read"})], "", []),
        ([("a", {"randseed": "1"}), ("b", {"randseed": "2"})], "", []),
    ],
)  # fmt: skip
def test_the_option_that_changed_last_is_shown(
    runs: list[tuple[str, dict[str, str]]], name: str, values: list[str]
) -> None:
    collected = OptionSteps()
    for index, (title, options) in enumerate(runs):
        collected.start_run(float(index), title, options)
        assert collected.option == "" or index
    collected.end_run(9.0)
    assert collected.name == name
    assert [step.value for step in collected.steps] == values
    assert [step.end for step in collected.steps] == ([1.0, 9.0] if values else [])


def test_heights_are_by_size_not_by_spelling() -> None:
    collected = OptionSteps()
    for index, size in enumerate(("512", "16k", "4k")):
        collected.start_run(float(index), f"read {size}  QD 1 × 1 job", {})
    assert [step.level for step in collected.steps] == [0.0, 1.0, 0.5]


async def test_the_row_comes_with_the_first_change() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 3)
        assert "  jobs " not in screen_text(app) and "     QD " not in screen_text(app)
        fake.finish(interrupted=True)
        fake.begin("randrw 4k QD 64 × 2 jobs")
        fake.tick(4)
        await settle(pilot)
        assert screen_text(app).count("     QD ") == 2, "below both charts"
        assert screen_text(app).count("64█") == 2


async def test_the_last_second_stays_until_the_next_run_reports() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 3)
        fake.finish(interrupted=True)
        fake.sink(StepStarted(fake.second, 2, "j", "randrw 4k QD 64 × 2 jobs", ("fio",), False,
                              overlap_s=0.02))  # fmt: skip
        await settle(pilot)
        assert "figures of run 1; run 2 reports within a second" in screen_text(app)
        fake.step, fake.running = 2, True
        fake.tick(1)
        await settle(pilot)
        assert "figures of run 1" not in screen_text(app)
