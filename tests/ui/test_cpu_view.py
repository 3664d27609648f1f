from __future__ import annotations

from dataclasses import replace

import pytest
import ui_fakes as fakes

from iopstui.events import FrameReady
from iopstui.model.block.device import BlockDevice, Hctx, IrqVector
from iopstui.model.block.topology import Topology
from iopstui.model.metrics.frame import Frame, JobFrame
from iopstui.model.metrics.queue_map import DeviceMap
from iopstui.ui.dashboard.panels import cpu_panel
from iopstui.ui.draw.style import ASCII, UTF8, Charset
from iopstui.ui.state.live import LiveState

VECTORS = (IrqVector(40, "nvme0q1", 0, node=0), IrqVector(41, "nvme0q2", 1, node=0))
DISK = replace(fakes.NVME, irqs=VECTORS)


def machine(cpus: int, nodes: int = 1, share: int = 8, irq_time: bool | None = True) -> Topology:
    numbers = tuple(range(cpus))
    return Topology(
        online=numbers,
        possible=numbers,
        nodes={cpu: cpu * nodes // cpus for cpu in numbers},
        caches={cpu: cpu // share * share for cpu in numbers},
        irq_time=irq_time,
    )


def busy(cpus: int = 4, jobs: tuple[JobFrame, ...] = (), block: float | None = None) -> Frame:
    frame = fakes.frame(3, fakes.interval(3), cpus=cpus)
    irqs = {40: {0: 700.0}, 41: {2: 800.0}}
    loads = {
        n: replace(cpu, block_s=cpu.block_s if block is None else block)
        for n, cpu in frame.cpus.items()
    }
    return replace(frame, jobs=jobs, irqs=irqs, cpus=loads)


def render(
    frame: Frame,
    width: int,
    height: int,
    topology: Topology | None = None,
    device: BlockDevice = DISK,
    charset: Charset = UTF8,
) -> str:
    state = LiveState(("nvme0n1",))
    state.apply(FrameReady(frame.t, frame))
    rows = cpu_panel.rows(
        state, fakes.ON_DISK, {"nvme0n1": device}, topology or machine(len(frame.cpus)), width,
        height, charset,
    )  # fmt: skip
    lines = ["".join(text for text, _ in row) for row in rows]
    assert [len(line) for line in lines] == [width] * height
    return "\n".join(lines)


def test_a_row_has_queue_job_and_rates() -> None:
    jobs = (JobFrame(0, 1, True, 50.0), JobFrame(1, 2, False, 50.0), JobFrame(2, 2, False, 9.0))
    lines = render(busy(jobs=jobs), 120, 9).splitlines()
    assert lines[1].split()[:6] == ["cpu", "hctx", "job", "irq/s", "BLOCK/s", "IPI/s"]
    assert lines[2].split()[:3] == ["0", "0", "–"]
    assert lines[3].split()[:3] == ["1", "0", "0*"]
    assert lines[4].split()[:4] == ["2", "1", "1", "+1"]


def test_ios_per_interrupt_are_shown_beside_the_title() -> None:
    assert "nvme0n1: 30.9 I/Os per interrupt" in render(busy(), 120, 8)


def test_unaccounted_irq_time_has_no_column() -> None:
    with_it, without = render(busy(), 120, 8), render(busy(), 120, 8, machine(4, irq_time=False))
    assert " irq " in with_it.splitlines()[1] and " irq " not in without.splitlines()[1]


def test_completions_inside_the_interrupt_are_not_shown_as_idle() -> None:
    assert "completes inside the hard interrupt" in render(busy(block=0.0), 120, 8)
    assert "hard interrupt" not in render(busy(), 120, 8)


def test_a_device_without_interrupts_is_explained() -> None:
    loop = replace(DISK, kind="loop", irqs=(), backing_file="/x.img")
    assert "a loop device has no interrupt: a kernel worker" in render(busy(), 120, 8, None, loop)


def test_the_note_says_whose_interrupts_are_shown() -> None:
    why = "a loop device has no interrupt"
    loop = DeviceMap("loop0", "loop", (), 9.0, None, None, None, "", why)
    disk = DeviceMap("vda", "virtio-blk", (), 9.0, 3.0, 3.0, None, "", "")
    assert cpu_panel.note([loop]) == f"irq/s: {why}"
    assert cpu_panel.note([loop, disk]) == f"irq/s: of vda; {why}"


@pytest.mark.parametrize(
    ("cpus", "width", "height"),
    [(64, 160, 12), (64, 80, 17), (256, 160, 13), (256, 80, 17), (64, 120, 6), (20, 80, 9),
     (300, 60, 5)],
)  # fmt: skip
def test_every_cpu_has_a_cell_and_the_busiest_are_named(cpus: int, width: int, height: int) -> None:
    text = render(busy(cpus), width, height, machine(cpus, 2))
    lines = text.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("busy"))
    cells = ""
    for line in lines[first:]:
        if line[:9].strip() not in ("", "busy"):
            break
        cells += "".join(char for char in line[9:] if char in "·▁▂▃▄▅▆▇█")
    assert len(cells) == min(cpus, len(cells)) and (height < 6 or len(cells) == cpus)
    top = max(range(cpus), key=lambda cpu: ((cpu * 37) % 90, -cpu))
    assert height < 6 or f"CPU {top} 89 %" in text


def test_the_grid_is_grouped_by_node_and_cache() -> None:
    lines = render(busy(64), 160, 12, machine(64, 2)).splitlines()
    assert lines[1].split() == ["node", *"00001111"]
    assert lines[2].split()[:3] == ["cpu", "0-7", "8-15"]
    assert len(lines[3][9:].split("  ")[0].split()) == 8


def test_a_small_share_is_never_drawn_as_nothing() -> None:
    frame = busy(64)
    cpus = {n: replace(cpu, irq_s=0.0) for n, cpu in frame.cpus.items()}
    cpus[7] = replace(cpus[7], irq_s=0.1)
    cpus[9] = replace(cpus[9], irq_s=90_000.0)
    lines = render(replace(frame, cpus=cpus), 160, 12).splitlines()
    row = next(line for line in lines if line.startswith("irq/s"))
    assert row[9:27].startswith("·······▁ ·█······")


def test_offline_cpus_of_a_queue_take_no_space() -> None:
    wide = replace(DISK, hctxs=(Hctx(0, tuple(range(64)), 64, 0),))
    lines = render(busy(4), 120, 8, machine(4), wide).splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["0", "1", "2", "3"]


def test_ascii_grid_is_ascii() -> None:
    assert render(busy(64), 100, 12, charset=ASCII).isascii()


def test_without_a_job_there_is_no_column_of_dashes() -> None:
    assert "job" not in render(busy(), 120, 9).splitlines()[1].split()
