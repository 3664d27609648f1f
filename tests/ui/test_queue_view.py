from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import ui_fakes as fakes
from test_app import make, running, screen_text, settle, shows

from iopstui.events import FrameReady
from iopstui.model.block.device import BlockDevice, Hctx, IrqVector
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Topology
from iopstui.model.metrics.frame import Frame, JobFrame
from iopstui.ui.dashboard.pages import queue_view
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.state.live import LiveState

DISK = replace(
    fakes.NVME,
    irqs=(
        IrqVector(39, "nvme0q0", None, effective_cpus=(0,)),
        IrqVector(40, "nvme0q1", 0, effective_cpus=(1,), node=0),
        IrqVector(41, "nvme0q2", 1, effective_cpus=(2,), node=1),
    ),
)


def measured() -> Frame:
    jobs = (JobFrame(0, 1, True, 9.0), JobFrame(1, 2, False, 9.0))
    irqs = {39: {0: 0.0}, 40: {1: 700.0}, 41: {2: 500.0, 3: 300.0}}
    return replace(fakes.frame(3, fakes.interval(3)), jobs=jobs, irqs=irqs)


def render(
    device: BlockDevice = DISK,
    target: Target = fakes.ON_DISK,
    width: int = 120,
    charset: Charset = UTF8,
    frame: Frame | None = None,
) -> list[str]:
    state = LiveState(("nvme0n1",))
    state.apply(FrameReady(3.0, frame or measured()))
    rows = queue_view.rows(
        state, target, {"nvme0n1": device, "nvme0n1p1": fakes.PART}, Topology(), width, charset
    )
    lines = ["".join(text for text, _ in row) for row in rows]
    assert {len(line) for line in lines} == {width}
    return lines


def test_a_row_shows_queue_cpus_and_interrupt() -> None:
    lines = render()
    assert "nvme0n1 nvme" in lines[0] and "30.9 I/Os each" in lines[0]
    assert lines[2].split() == ["0", "0-1", "1.02k", "40", "nvme0q1", "1", "1", "0", "700", "#0*"]
    assert lines[3].split() == ["1", "2-3", "1.02k", "41", "nvme0q2", "2", "2-3", "1", "800", "#1"]
    assert lines[4].split()[:4] == ["–", "–", "–", "39"]


@pytest.mark.parametrize(
    ("jobs", "pinned", "label"),
    [
        ((0,), (), "#0"),
        ((0, 1, 2, 3, 4), (), "#0 #1 #2 #3 #4"),
        ((0, 1, 2, 3, 4, 5), (), "#0 #1 #2 #3 +2"),
        ((10, 11, 12, 13), (10, 11, 12, 13), "#10* #11* +2"),
        (tuple(range(123456, 131072)), range(123456, 131072), "#123456* +7615"),
        (tuple(range(1234567, 1244567)), (1234567,), "10000 jobs"),
    ],
)
def test_as_many_jobs_are_named_as_fit(
    jobs: tuple[int, ...], pinned: Sequence[int], label: str
) -> None:
    frames = tuple(JobFrame(job, 1, job in pinned, 9.0) for job in jobs)
    line = render(frame=replace(measured(), jobs=frames))[2]
    assert line.rstrip().endswith(f" {label}")


def test_a_partition_shows_its_disk_once() -> None:
    assert sum("nvme0n1 nvme" in line for line in render(target=fakes.ON_PARTITION)) == 1


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_the_important_columns_are_always_shown(width: int) -> None:
    head = render(width=width)[1]
    for title in ("hctx", "CPUs", "IRQ", "goes to", "came on", "irq/s"):
        assert title in head


def test_a_queue_without_an_interrupt_is_explained() -> None:
    loop = replace(DISK, kind="loop", irqs=(), hctxs=(Hctx(0, (0, 1), 128, 0),))
    assert any("a loop device has no interrupt" in line for line in render(loop))
    stacked = replace(DISK, kind="dm", irqs=(), hctxs=(), slaves=("sda",), layer="LVM")
    lines = render(stacked)
    assert any("no hardware queue" in line for line in lines)
    assert any("LVM has no interrupt of its own; sda below it may" in line for line in lines)


def test_without_a_device_a_message_is_shown() -> None:
    assert "tmpfs has no block device" in render(target=fakes.ON_TMPFS)[0]


def test_many_cpus_are_counted_and_offline_ones_reported() -> None:
    wide = replace(DISK, hctxs=(Hctx(0, tuple(range(0, 256, 2)), 64, 0),), irqs=())
    assert "128 CPUs" in render(wide)[2]
    state = LiveState(("nvme0n1",))
    state.apply(FrameReady(3.0, measured()))
    online = Topology(online=(0, 1, 2), possible=(0, 1, 2, 3))
    rows = queue_view.rows(state, fakes.ON_DISK, {"nvme0n1": DISK}, online, 120, UTF8)
    assert "2 (1 off)" in "".join(text for text, _ in rows[3])


def test_ascii_is_ascii_and_names_have_no_control_characters() -> None:
    odd_disk = replace(DISK, irqs=(IrqVector(40, "x\x1b[2J", 0),))
    text = "\n".join(render(odd_disk, charset=ASCII))
    assert text.isascii() and "\x1b" not in text


async def test_o_opens_the_map_which_stays_live() -> None:
    fake = fakes.FakeController(devices={"nvme0n1": DISK})
    app = make(fake)
    async with app.run_test(size=(80, 24)) as pilot:
        await running(app, pilot)
        await pilot.press("o")
        await settle(pilot)
        await pilot.press("tab")
        await settle(pilot)
        assert shows(app, "[Queue map]")
        fake.push(replace(measured(), t=50.0))
        await settle(pilot)
        assert "700" in screen_text(app) and "800" in screen_text(app)
        await pilot.press("o")
        await settle(pilot)
        assert shows(app, "q Quit")
