"""What a lesson knows of its target: queues against CPUs, rights, the interrupt's CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from iopstui.features.lessons.model.formula import FACTS
from iopstui.features.lessons.play import facts as lesson_facts
from iopstui.features.lessons.play.facts import TargetFacts, read_target_facts
from iopstui.features.lessons.play.library import find_lesson
from iopstui.features.lessons.play.player import LessonRun
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice, Hctx, IrqVector, QueueLimits
from iopstui.model.block.target import Target
from iopstui.safety.tunables import TunableState

LIMITS = QueueLimits(
    "mq-deadline", ("none", "mq-deadline", "bfq"), 1, 256, 0, True, None, 512, 4096, 1280, 128,
    None, True, None, None,
)  # fmt: skip


def disk(queues: Sequence[Sequence[int]], irqs: Sequence[int], **more: object) -> BlockDevice:
    """A disk with these CPUs for each queue, and the CPU that serves each queue's interrupt."""
    return BlockDevice(
        "vda", "/dev/vda", 254, 0, "virtio-blk", 1 << 30, queue=LIMITS,
        hctxs=tuple(Hctx(n, tuple(cpus), 128, 0) for n, cpus in enumerate(queues)),
        irqs=tuple(IrqVector(30 + n, f"r{n}", n, effective_cpus=(cpu,))
                   for n, cpu in enumerate(irqs)),
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> object:
    def known(device: BlockDevice | None, cpus: int, *states: TunableState) -> TargetFacts:
        monkeypatch.setattr(lesson_facts, "online_cpus", lambda roots: tuple(range(cpus)))
        monkeypatch.setattr(lesson_facts, "initial_cpus", lambda: frozenset(range(cpus)))
        monkeypatch.setattr(lesson_facts, "tunable_states", lambda *given: list(states))
        name = device.name if device else None
        target = Target("directory", str(tmp_path), name, (name,) if name else (), "in memory")
        return read_target_facts(target, {device.name: device} if device else {}, Roots())

    return known


def knob(name: str, now: str = "1", **more: object) -> TunableState:
    return TunableState(name, "", now, (), "", **more)  # type: ignore[arg-type]


def lesson(around: TargetFacts) -> LessonRun:
    name = str(around.facts["device.name"] or "")
    target = Target("file", "/none", name or None, (name,) if name else ())
    return LessonRun(find_lesson("rq-affinity"), target, around)


def test_one_queue_for_two_cpus(machine) -> None:  # type: ignore[no-untyped-def]
    around = machine(disk([[0, 1]], [1]), 2, knob("rq_affinity"))
    facts = around.facts
    assert facts["device.queues"] == 1 and facts["device.cpus_per_queue"] == 2
    assert (facts["device.irq_cpu"], facts["device.far_cpu"]) == (1.0, 0.0)
    assert facts["matters.rq_affinity"] is True and facts["can.rq_affinity"] is True
    assert facts["device.other_scheduler"] == "none"
    assert facts["device.max_request"] == 1280 * 1024
    assert around.knobs == {"rq_affinity": "1"}
    assert lesson(around).impossible_runs() == {}
    assert facts.keys() <= FACTS.keys()


def test_a_queue_for_every_cpu_can_show_nothing(machine) -> None:  # type: ignore[no-untyped-def]
    around = machine(disk([[0], [1]], [0, 1]), 2, knob("rq_affinity"))
    assert around.facts["matters.rq_affinity"] is False
    assert "every CPU has a hardware queue" in str(around.facts["why.rq_affinity"])
    run = lesson(around)
    assert set(run.impossible_runs()) == {"zero", "one", "two"}
    seen = []
    while (page := run.page()) is not None:
        seen.append((page.kind, page.name, page.state))
        if page.name == "zero":
            assert "every CPU has a hardware queue" in page.blocks[0].text  # type: ignore[union-attr]
        run.advance()
    assert [name for kind, name, _ in seen if kind == "ask"] == ["can"]
    assert ("run", "zero", "skipped") in seen and ("run", "two", "skipped") not in seen


def test_no_right_to_turn_it(machine) -> None:  # type: ignore[no-untyped-def]
    refused = knob("rq_affinity", refused="It needs root.", hint="sudo iopstui")
    around = machine(disk([[0, 1]], [1]), 2, refused)
    assert around.facts["can.rq_affinity"] is False
    why = lesson(around).impossible_runs()["zero"]
    assert "cannot be changed here: It needs root. sudo iopstui." in why


def test_disks_that_differ_are_not_turned(machine) -> None:  # type: ignore[no-untyped-def]
    each = (("sda", "0"), ("sdb", "1"))
    around = machine(disk([[0, 1]], [1]), 2, knob("rq_affinity", by_disk=each))
    assert "differs between the disks" in str(around.facts["why.rq_affinity"])


def test_one_cpu_alone(machine) -> None:  # type: ignore[no-untyped-def]
    around = machine(disk([[0]], [0]), 1, knob("rq_affinity"))
    assert around.facts["matters.rq_affinity"] is False
    assert around.facts.get("device.far_cpu") is None


def test_no_device_at_all(machine) -> None:  # type: ignore[no-untyped-def]
    around = machine(None, 2)
    assert around.facts["device.queues"] == 0 and around.facts["why.device"] == "in memory"
    assert around.facts["can.nomerges"] is False
    assert "no device" in lesson(around).impossible_runs()["zero"]


def test_a_loop_device_has_no_interrupt(machine) -> None:  # type: ignore[no-untyped-def]
    around = machine(disk([[0, 1]], []), 2, knob("rq_affinity"))
    assert around.facts["device.far_cpu"] == 1.0 and around.facts["device.irq_cpu"] is None


@pytest.mark.parametrize(
    ("kind", "node", "release", "why"),
    [
        ("device", True, "6.12.1-amd64", ""),
        ("device", True, "odd", ""),
        ("device", True, "6.1.0", "Linux 6.2"),
        ("device", False, "6.12.1", "whole NVMe namespace"),
        ("file", True, "6.12.1", "whole NVMe namespace"),
    ],
)
def test_who_can_send_commands_past_the_block_layer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, node: bool, release: str, why: str
) -> None:
    place = tmp_path / "ng0n1"
    place.write_bytes(b"")
    monkeypatch.setattr(lesson_facts, "generic_of", lambda *_: str(place) if node else None)
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/osrelease").write_text(release + "\n")
    target = Target(kind, str(place), "nvme0n1")
    facts = read_target_facts(target, {}, Roots.under(tmp_path)).facts
    assert facts["can.passthrough"] is (not why)
    assert why in str(facts["why.passthrough"] or "")
    run = LessonRun(find_lesson("block-layer"), target, TargetFacts(facts, {}))
    assert bool(run.impossible_runs()) is bool(why)
