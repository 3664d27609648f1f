"""What the screens look like. Run `pytest --snapshot-update` after an intended change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
import ui_fakes as fakes
from textual.pilot import Pilot

from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Appearance, Backend, FirstView
from iopstui.ui.draw.style import ASCII, UTF8, Charset


@dataclass(frozen=True)
class Scene:
    size: tuple[int, int]
    keys: Sequence[str] = ()
    cpus: int = 4
    run: bool = True
    charset: Charset = UTF8
    target: str | None = "/dev/nvme0n1"
    theme: str = "dark"


SCENES = {
    "80x24-charts": Scene((80, 24)),
    "80x24-numbers": Scene((80, 24), ("3",)),
    "80x24-ascii": Scene((80, 24), ("2",), charset=ASCII),
    "80x24-job-chooser": Scene((80, 24), ("j",), run=False),
    "80x24-picker": Scene((80, 24), run=False, target=None),
    "120x36": Scene((120, 36)),
    "120x36-no-job": Scene((120, 36), run=False),
    "120x36-help": Scene((120, 36), ("question_mark",)),
    "120x36-queue-map": Scene((120, 36), ("o",)),
    "80x24-heat-map": Scene((80, 24), ("h",)),
    "80x24-grid": Scene((80, 24), ("4",), cpus=64),
    "160x45": Scene((160, 45)),
    "160x45-heat-map-with-lines": Scene((160, 45), ("h", "p")),
    "160x45-64-cpus": Scene((160, 45), cpus=64),
    "160x45-light": Scene((160, 45), ("h",), theme="light"),
    "160x45-colourblind": Scene((160, 45), ("h",), theme="colourblind"),
    "120x36-light-lines": Scene((120, 36), theme="light"),
    "120x36-colourblind-lines": Scene((120, 36), theme="colourblind"),
    "200x50": Scene((200, 50)),
    "40x10": Scene((40, 10)),
}


async def play(pilot: Pilot[int], fake: fakes.FakeController, scene: Scene) -> None:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    if scene.target is not None:
        fake.tick(4)
        await pilot.pause()
        if scene.run:
            await pilot.press("r")
            fake.tick(14)
            fake.mark("QD 64")
            fake.tick(16)
            # the chart is built up as in real use, one second after the other
            await pilot.pause()
    for key in scene.keys:
        await pilot.press(key)
    for _ in range(3):  # a dialog may open, fill and move in three steps
        await pilot.pause()


@pytest.mark.parametrize("name", SCENES)
def test_looks(name: str, snap_compare: Callable[..., bool]) -> None:
    scene = SCENES[name]
    fake = fakes.FakeController(cpus=scene.cpus)
    app = IopstuiApp(
        Backend(lambda path: fake, lambda: fakes.DEVICES, fakes.JOBS),
        FirstView([scene.target] if scene.target else [], fakes.FIRST_JOB, run_at_once=False),
        Appearance(scene.charset, scene.theme),
    )

    async def before(pilot: Pilot[int]) -> None:
        await play(pilot, fake, scene)

    assert snap_compare(app, terminal_size=scene.size, run_before=before)
