"""The ramp on the screen: one changed run for each depth, then one with the best depth."""

from __future__ import annotations

from collections.abc import Mapping

import ui_fakes as fakes
from test_app import WIDE, make, shows

from iopstui.events import Notice
from iopstui.ui.parts.ramp import RULE


class DeepController(fakes.FakeController):
    """A session whose runs have their iodepth in the title."""

    def run_job(self, job: str, overrides: Mapping[str, str], *, mark: str = "") -> None:
        self.title = f"randread 4k QD {overrides.get('iodepth', '32')} × 1 job"
        super().run_job(job, overrides, mark=mark)

    @property
    def depths(self) -> list[str]:
        return [call[2]["iodepth"] for call in self.calls if call[0] == "run"]  # type: ignore[index]


async def test_it_stops_where_more_gains_nothing_and_goes_back() -> None:
    fake = DeepController()
    app = make(fake)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        app.actions.perform(RULE)
        for _ in range(40):
            fake.tick()
            await pilot.pause()
        # the fakes' device is equally fast at every depth
        assert fake.depths == ["1", "2", "4", "1"]
        assert shows(app, "● iodepth 1 is enough: ")
        assert any(call[0] == "mark" and "is enough" in str(call[1]) for call in fake.calls)
        # the result of a ramp disappears with the next run
        await pilot.press("right_square_bracket")
        app.jobs.restart_with_changes()
        fake.tick()
        await pilot.pause()
        assert not shows(app, "● iodepth 1 is enough")


async def test_another_key_takes_over() -> None:
    fake = DeepController()
    app = make(fake)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        app.actions.perform(RULE)
        fake.tick(2)
        await pilot.pause()
        assert app.ramp.title == "Stop the ramp"
        await pilot.press("r")
        await pilot.pause()
        assert app.ramp.title == "Ramp iodepth=1..64"
        fake.tick(10)
        await pilot.pause()
        assert fake.depths == ["1"] and fake.calls[-1] == ("stop",)


async def test_an_engine_that_waits_is_told_so() -> None:
    fake = DeepController()
    app = make(fake, overrides={"ioengine": "psync"})
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        app.actions.perform(RULE)
        await pilot.pause()
        assert fake.depths == [] and shows(app, "psync has one I/O in flight")


async def test_why_the_run_failed_stays_on_the_screen() -> None:
    fake = DeepController()
    app = make(fake)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        app.actions.perform(RULE)
        fake.tick()
        fake.finish("The job needs permission to read /dev/vda.")
        await pilot.pause()
        assert shows(app, "The job needs permission to read /dev/vda.")
        assert app.ramp.title.startswith("Ramp")


async def test_a_refused_run_ends_it() -> None:
    fake = DeepController()
    app = make(fake)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        app.actions.perform(RULE)
        fake.tick(2)
        fake.sink(Notice(fake.second, "error", "no", refused=True))
        await pilot.pause()
        assert app.ramp.title == "Ramp iodepth=1..64"
