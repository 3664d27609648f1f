from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import device, disk, fio, frame

from iopstui.model.block.device import BlockDevice, IrqVector
from iopstui.model.block.topology import Topology
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.queue_map import (
    IDLE,
    INLINE,
    MIXED,
    POLLED,
    SOFTIRQ,
    SUBMITTER,
    completion_mode,
    mapped_disks,
    queue_map,
    why_no_interrupt,
)

FOUR = Topology((0, 1, 2, 3), (0, 1, 2, 3), nodes={0: 0, 1: 0, 2: 1, 3: 1})
EACH = ((0,), (1,), (2,), (3,))


def second(
    ios: float, irqs: dict[int, dict[int, float]] | None = None, *, name: str = "vda",
    block: dict[int, float] | None = None, jobs: tuple[tuple[int, float], ...] = (),
    pinned: bool = False,
) -> Frame:  # fmt: skip
    return frame(
        1.0, fio(ios), disks={name: disk(ios)}, irqs=irqs, block=block or {}, jobs=jobs,
        pinned=pinned,
    )  # fmt: skip


def test_a_row_a_queue_with_what_happens_there() -> None:
    irqs = {40: {0: 100.0}, 41: {1: 50.0, 2: 150.0}, 42: {}, 43: {}}
    (found,) = queue_map(
        [device(EACH)], second(3_000, irqs, jobs=((1, 9.0), (1, 9.0), (3, 9.0)), pinned=True), FOUR
    )
    assert [(r.hctx, r.cpus, r.irq, r.irq_s) for r in found.rows[:2]] == [
        (0, (0,), 40, 100.0),
        (1, (1,), 41, 200.0),
    ]
    assert found.rows[1].served_on == (2, 1)  # busiest first, wherever it should go
    assert found.rows[1].jobs == (0, 1) and found.rows[1].pinned == (0, 1)
    assert found.rows[3].jobs == (2,)
    assert found.irq_s == 300.0
    assert found.ios_per_irq == pytest.approx(10)
    assert found.note == ""


def test_administration_interrupts_tell_of_no_io() -> None:
    nvme = device(EACH, name="nvme0n1", kind="nvme",
                  irqs=[IrqVector(39, "nvme0q0", None), *device(EACH).irqs])  # fmt: skip
    irqs = {39: {0: 900.0}, 40: {0: 100.0}, 41: {}, 42: {}, 43: {}}
    (found,) = queue_map([nvme], second(1_000, irqs, name="nvme0n1"), FOUR)
    assert [r.irq for r in found.rows] == [40, 41, 42, 43, 39]
    assert found.rows[-1].hctx is None
    assert found.irq_s == 100.0 and found.ios_per_irq == pytest.approx(10)


def test_a_shared_interrupt_stands_in_every_row_and_counts_once() -> None:
    shared = device(EACH, irqs=[IrqVector(40, "virtio1-virtqueues", None, shared=True)])
    (found,) = queue_map([shared], second(1_000, {40: {2: 500.0}}), FOUR)
    assert [(r.hctx, r.irq) for r in found.rows] == [(0, 40), (1, 40), (2, 40), (3, 40)]
    assert found.irq_s == 500.0


def test_vectors_of_unknown_queues_are_counted_and_said() -> None:
    unknown = device(((0, 1), (2, 3)), irqs=[IrqVector(40, "mega0-msix0", None),
                                             IrqVector(41, "mega0-msix1", None)])  # fmt: skip
    (found,) = queue_map([unknown], second(1_000, {40: {0: 100.0}, 41: {1: 100.0}}), FOUR)
    assert [(r.hctx, r.irq) for r in found.rows] == [(0, None), (1, None), (None, 40), (None, 41)]
    assert found.irq_s == 200.0 and "don't tell which queue" in found.note


def test_offline_cpus_and_nodes() -> None:
    topology = replace(FOUR, online=(0, 2, 3))
    (found,) = queue_map([device(((0, 1), (2, 3)), irqs=[])], None, topology)
    assert [(r.cpus, r.offline, r.node) for r in found.rows] == [((0,), (1,), 0), ((2, 3), (), 1)]
    assert found.ios_s is None and found.completion is None and found.completion_text == ""
    # nothing is known of the machine: nothing is called offline
    (bare,) = queue_map([device(((0, 1),))], None, Topology())
    assert bare.rows[0].cpus == (0, 1) and bare.rows[0].offline == ()


MEMORY = "{} is memory: the submitting CPU copies the data, nothing interrupts"
WORKER = "a loop device has no interrupt: a kernel worker does its I/O on a file"


@pytest.mark.parametrize(
    ("kind", "changes", "note"),
    [
        ("null_blk", {}, "null_blk is not hardware: it completes on the submitting CPU, or from a "
                         "timer"),
        ("loop", {}, WORKER),
        ("loop", {"backing_file": "/x"}, f"{WORKER} (/x)"),
        ("zram", {}, MEMORY.format("zram")),
        ("ram", {}, MEMORY.format("ram")),
        ("dm", {"slaves": ("sda", "sdb")}, "dm has no interrupt of its own; sda, sdb below it may"),
        ("md", {"slaves": ("sda",), "layer": "raid1"},
         "raid1 has no interrupt of its own; sda below it may"),
        ("md", {"slaves": tuple("abcd")},
         "md has no interrupt of its own; a, b, c, d below it may"),
        ("md", {"slaves": tuple("abcde")},
         "md has no interrupt of its own; a, b, c, d ... below it may"),
        ("nbd", {}, "the kernel names no interrupt of vda"),
    ],
)  # fmt: skip
def test_devices_without_an_interrupt_say_why(
    kind: str, changes: dict[str, object], note: str
) -> None:
    one = replace(device((), kind=kind, irqs=[]), **changes)  # type: ignore[arg-type]
    (found,) = queue_map([one], None, FOUR)
    assert found.note == note


def test_interrupts_whose_queue_is_not_known() -> None:
    unknown = [IrqVector(40, "mega0-msix0", None)]
    told = "the names of vda's interrupts don't tell which queue each one serves"
    assert why_no_interrupt(device(irqs=unknown)) == told
    assert why_no_interrupt(device((), irqs=unknown)) == ""
    shared = [IrqVector(40, "x", None, shared=True)]
    assert why_no_interrupt(device(irqs=shared)) == why_no_interrupt(device()) == ""


@pytest.mark.parametrize(
    ("ios", "irq", "block", "how"),
    [
        (5.0, {}, {}, IDLE),
        (99.0, {}, {}, IDLE),
        (100.0, {}, {}, POLLED),
        (9_000, {1: 8.9}, {}, POLLED),
        (9_000, {1: 9.0}, {}, INLINE),
        (9_000, {1: 900.0}, {1: 89.0}, INLINE),
        (9_000, {1: 900.0}, {1: 90.0}, MIXED),
        (9_000, {1: 900.0}, {1: 449.0}, MIXED),
        (9_000, {1: 900.0}, {1: 450.0}, SOFTIRQ),
        (9_000, {1: 99_000.0}, {1: 9_899.0}, INLINE),
        (1_000, {1: 5_000.0}, {1: 500.0}, SOFTIRQ),
        (1_000, {1: 4_990.0}, {1: 499.0}, MIXED),
        (9_000, {1: 900.0}, {1: 900.0}, SOFTIRQ),
        (9_000, {1: 900.0}, {}, INLINE),
        (9_000, {1: 9_000.0}, {1: 2_000.0}, MIXED),
        (9_000, {}, {}, POLLED),
    ],
)
def test_how_io_completes(ios: float, irq: dict[int, float], block: dict[int, float], how: str
                          ) -> None:  # fmt: skip
    one = device()
    (found,) = queue_map([one], second(ios, {40: irq}, block=block), FOUR)
    assert found.completion == how and found.completion_text


def test_inline_completions_are_not_called_idle() -> None:
    (found,) = queue_map([device()], second(9_000, {40: {1: 900.0}}), FOUR)
    assert "no BLOCK softirq" in found.completion_text and "not idle" in found.completion_text


def test_a_device_without_interrupts_completes_where_it_submits_or_in_softirqs() -> None:
    null = device(kind="null_blk", irqs=[])
    assert completion_mode(null, second(9_000)) == SUBMITTER
    assert completion_mode(null, second(9_000, block={0: 9_000.0})) == SOFTIRQ
    assert completion_mode(null, frame(1.0, fio(9))) is None
    assert completion_mode(null, None) is None
    assert completion_mode(null, second(9_000, block={0: 899.0})) == SUBMITTER
    assert completion_mode(null, second(9_000, block={0: 400.0, 1: 500.0})) == SOFTIRQ


def test_partitions_stand_for_their_disk_and_disks_are_mapped_once() -> None:
    disk_ = device()
    part = BlockDevice("vda1", "/dev/vda1", 254, 1, "partition", 1, disk="vda")
    devices = {"vda": disk_, "vda1": part}
    assert mapped_disks(("vda1", "vda", "gone"), devices) == [disk_]
