"""Which of several similar disks is slow for its load. `make simulate` does the same many times."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from evidence_frames import limits
from made_siblings import Disk, Night, Side, frames_of, like_disks, random_loads, rates

from iopstui.model.block.device import BlockDevice, Mount
from iopstui.model.findings.conditions import Array, Conditions, DeviceState
from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.rules.health import slow_member, slow_sibling
from iopstui.model.findings.siblings import OddDisk, SiblingWatch, groups
from iopstui.model.metrics.frame import Frame


def watched(
    frames: Iterable[Frame], disks: list[BlockDevice], conditions: Conditions | None = None
) -> OddDisk | None:
    watch = SiblingWatch()
    for frame in frames:
        watch.feed(frame, disks, conditions or Conditions())
        if watch.odd is not None:
            return watch.odd
    return None


def slow_first(seed: int, seconds: float = 300.0) -> Iterable[Frame]:
    return random_loads(random.Random(seed), seconds, 1.3)


@pytest.mark.parametrize("seed", range(4))
def test_a_disk_that_is_slower_by_30_percent_is_found_within_5_minutes(seed: int) -> None:
    odd = watched(slow_first(seed), like_disks())
    assert odd is not None and odd.disk == "d0"
    assert 1.2 <= odd.times < 1.45 and odd.slow <= odd.windows
    assert {*odd.siblings} <= {*NAMES[1:]} and len(odd.siblings) >= 4


def test_no_disk_of_equal_ones_is_accused() -> None:
    for seed in range(5):
        assert watched(random_loads(random.Random(seed), 600), like_disks()) is None
        assert watched(Night(random.Random(seed)).frames(0.25), like_disks()) is None


def steady(**first: float) -> Iterable[Frame]:
    """Ten minutes of eight disks with about the same load; the keywords change the first disk."""
    rng = random.Random(3)
    disks = [Disk(8, Side(0.1, 15000, 8192), Side(0.05, 5000, 8192), 1.5) for _ in range(8)]
    disks[0].reads.rate *= first.get("load", 1.0)
    disks[0].writes.rate *= first.get("load", 1.0)
    disks[0].reads.size *= first.get("size", 1.0)
    disks[0].burst *= first.get("burst", 1.0)
    for number in range(1, 61):
        made = {}
        for place, disk in enumerate(disks):
            now = replace(
                disk, reads=replace(disk.reads, rate=disk.reads.rate * rng.uniform(0.5, 1.5))
            )
            slower = first.get("slower", 1.0) if place == 0 else 1.0
            made[f"d{place}"] = rates(rng, now, slower, True)
        yield from frames_of(number, made)


def test_only_a_slow_disk_is_accused_not_one_with_another_load() -> None:
    found = watched(steady(slower=1.5), like_disks())
    assert found is not None and found.disk == "d0"
    for first in ({"load": 2.5}, {"size": 4.0}, {"burst": 6.0}):
        assert watched(steady(**first), like_disks()) is None


def slow_for_two_minutes(seed: int) -> Iterable[Frame]:
    """Ten minutes of a disk that has less work than its seven siblings, and for two of them takes
    twice as long as they do, which makes it as busy as they are."""
    rng = random.Random(seed)
    disk = Disk(8, Side(0.4, 0, 262144), Side(0.8, 0, 262144), 3.2)
    for number in range(1, 61):
        made = {}
        for place in range(8):
            disk.reads.rate = disk.writes.rate = rng.uniform(135, 165) * (1 if place else 0.6)
            slower = rng.uniform(1.7, 2.3) if place == 0 and 25 <= number <= 36 else 1.0
            made[f"d{place}"] = rates(rng, disk, slower, False)
        yield from frames_of(number, made)


def test_a_disk_that_was_slow_for_two_minutes_alone_is_not_accused() -> None:
    for seed in range(2):
        assert watched(slow_for_two_minutes(seed), like_disks()) is None


def changed(changes: Mapping[str, object], count: int = 1) -> list[BlockDevice]:
    disks = like_disks()
    return [*(replace(disk, **changes) for disk in disks[:count]), *disks[count:]]  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [
    {"firmware": "2"}, {"model": "Other"}, {"size": 1 << 41}, {"hidden": True},
    {"queue": limits(scheduler="mq-deadline")}, {"queue": limits(rotational=True)},
])  # fmt: skip
def test_a_disk_that_is_not_like_the_others_is_not_compared(changes: dict[str, object]) -> None:
    assert watched(slow_first(0), changed(changes)) is None


def test_fewer_than_four_siblings_are_not_enough() -> None:
    assert watched(slow_first(0), like_disks()[:4]) is None
    assert [*groups(like_disks(4))] == [] and [*groups(like_disks(5))] != []


NAMES = [f"d{n}" for n in range(8)]


@pytest.mark.parametrize("kind", [
    {"kind": "virtio-blk", "transport": "virtio", "model": None}, {"model": "QEMU NVMe Ctrl"},
])  # fmt: skip
def test_virtual_disks_are_alike_only_as_members_of_a_striped_array(
    kind: dict[str, object],
) -> None:
    assert [*groups(like_disks(8, **kind))] == []
    members = like_disks(8, **kind, holders=("md0",))
    assert [*groups([*members, array("raid6")])] == [(NAMES, "md0")]
    assert [*groups([*members, array("linear")])] == [] == [*groups(members)]
    # as partitions, too
    parts = [replace(disk, name=f"{disk.name}p1", disk=disk.name) for disk in members]
    whole = [replace(disk, holders=(), partitions=(f"{disk.name}p1",)) for disk in members]
    assert [*groups([*parts, *whole, array("raid6")])] == [(NAMES, "md0")]
    # a member with a file system of its own has other work
    root = Mount("/", "ext4")
    busy = replace(parts[0], mounts=(root,))
    assert [*groups([busy, *parts[1:], *whole, array("raid6")])] == [(NAMES[1:], "md0")]


def test_spinning_disks_are_not_compared() -> None:
    members = like_disks(8, queue=limits(rotational=True), holders=("md0",))
    assert [*groups([*members, array("raid6")])] == []


def test_like_disks_of_no_array_are_told_apart_from_members_of_one() -> None:
    disks = [*like_disks(8, holders=("md0",)), array("raid0")]
    member, other = watched(slow_first(0), disks), watched(slow_first(0), like_disks())
    assert member is not None and member.array == "md0"
    assert other is not None and other.array == ""
    for odd, rule, with_which in (
        (member, "slow-member", "7 other members of md0 with a similar"),
        (other, "siblings", "7 like disks (d1, d2, d3 and 4 more) with a similar"),
    ):
        evidence = Evidence([], odd_disk=odd)
        said = [finding for finding in (slow_member(evidence), slow_sibling(evidence)) if finding]
        assert [finding.rule for finding in said] == [rule]
        assert with_which in said[0].text


def array(layer: str) -> BlockDevice:
    return BlockDevice("md0", "/dev/md0", 9, 0, "md", 1 << 42, layer=layer)


def test_members_of_an_array_that_is_rebuilt_are_left_out() -> None:
    members = [*like_disks(8, holders=("md0",)), array("raid5")]
    for state, found in ((Array("recover", 0), False), (Array("idle", 1), False),
                         (Array("idle", 0), True)):  # fmt: skip
        conditions = Conditions(devices={"md0": DeviceState(array=state)})
        assert (watched(slow_first(0), members, conditions) is not None) is found


def test_it_is_over_when_the_disk_is_as_quick_as_the_others() -> None:
    watch, disks, seen = SiblingWatch(), like_disks(), []
    healed = random_loads(random.Random(1), 600)
    frames = [*slow_first(0), *(replace(frame, t=frame.t + 300) for frame in healed)]
    for frame in frames:
        watch.feed(frame, disks)
        seen.append(watch.odd is not None)
    assert any(seen) and not seen[-1]


def test_counters_that_go_back_or_are_not_counted_say_nothing() -> None:
    frames = [replace(frame, disks={name: replace(rates, read_ms=None)
                                    for name, rates in frame.disks.items()})
              for frame in slow_first(0)]  # fmt: skip
    assert watched(frames, like_disks()) is None
