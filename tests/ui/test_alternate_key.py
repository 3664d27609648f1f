"""A/B: the last changed tunable back and forth; and how the CPUs panel shows the time before."""

from __future__ import annotations

from test_app import do, make, running, screen_text, settle, shows

from iopstui.events import TunableChanged


async def test_it_needs_a_change_and_a_running_job() -> None:
    app = make()
    async with app.run_test(size=(120, 36)) as pilot:
        fake = await running(app, pilot, 6)
        await do(pilot, "alternate")
        await settle(pilot)
        assert shows(app, "first") and not any(call[0] == "alternate" for call in fake.calls)
        fake.sink(TunableChanged(fake.second, "nvme0n1", "rq_affinity", "1", "2"))
        await settle(pilot)
        await do(pilot, "alternate")
        assert fake.calls[-1] == ("alternate", "rq_affinity", ("1", "2"))
        fake.finish(interrupted=True)
        await settle(pilot)
        await do(pilot, "alternate")
        await settle(pilot)
        assert shows(app, "while a job runs") and fake.calls[-1][0] == "alternate"


async def test_the_cpus_panel_says_where_completions_ran_before_a_change() -> None:
    app = make()
    async with app.run_test(size=(160, 45)) as pilot:
        fake = await running(app, pilot, 6)
        assert "before rq_affinity" not in screen_text(app)
        fake.sink(TunableChanged(fake.second, "nvme0n1", "rq_affinity", "1", "2"))
        fake.tick(1)
        await settle(pilot)
        assert "before rq_affinity 1 → 2: BLOCK/s " in screen_text(app)
        fake.second += 200
        fake.tick(1)
        await settle(pilot)
        assert "before rq_affinity" not in screen_text(app)
