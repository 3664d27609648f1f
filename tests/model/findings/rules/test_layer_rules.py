from __future__ import annotations

from dataclasses import replace

import pytest
from disks import changed
from evidence_frames import device, disk, fio, fired, seconds

from iopstui.model.block.target import DeviceLinks
from iopstui.model.findings.conditions import Array, Conditions, DeviceState
from iopstui.model.findings.diagnosis import diagnose
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.findings.rules.health import io_errors, memory_pressure
from iopstui.model.findings.rules.job import cpu_bound_jobs
from iopstui.model.findings.rules.layers import (
    first_writes,
    parity_reads,
    slow_direction,
    starved_direction,
    write_back,
)
from iopstui.model.fio.interval import FioInterval
from iopstui.model.metrics.waits import Waits

WRITES = JobShape(jobs=1, iodepth=4, engine="libaio", direct=True, writes=True)
MEMBERS = ("sda", "sdb", "sdc")


# -- parity


def raid5(reads: float = 340.0, writes: float = 400.0, action: str = "idle") -> Evidence:
    links = (DeviceLinks("md0", MEMBERS, "raid5"), *map(DeviceLinks, MEMBERS))
    frames = seconds(
        3, interval=fio(500, lat_ns=8e6), links=links,
        disks={"md0": disk(0, 500), **{one: disk(reads, writes) for one in MEMBERS}},
    )  # fmt: skip
    md = replace(device(name="md0", kind="md"), layer="raid5")
    state = DeviceState(array=Array(action, 0, 3, 65536))
    return Evidence(tuple(frames), devices=[md], tree=[md], links=links, shape=WRITES,
                    conditions=Conditions(1.0, {"md0": state}))  # fmt: skip


def test_small_writes_to_raid_5_read_first() -> None:
    found = fired(parity_reads(raid5()))
    assert "500 writes/s cost 1.02k reads/s and 1.20k writes/s on its members, 4.4 for each" in (
        found.text.replace("500.0", "500")
    )
    assert found.options == "bs=128k"


def test_whole_stripes_and_a_rebuild_are_no_parity_cost() -> None:
    assert parity_reads(raid5(reads=5.0)) is None
    assert parity_reads(raid5(action="resync")) is None


# -- first writes


def copying(above: float = 4096, below: float = 65536, held: float = 3.5) -> Evidence:
    links = (DeviceLinks("dm-3", ("dm-1",)), DeviceLinks("dm-1"))
    frames = seconds(
        3, interval=fio(200, lat_ns=20e6), links=links,
        disks={"dm-3": disk(0, 200, size=above, aqu=4.0, wait=20.0),
               "dm-1": disk(200, 200, size=below, aqu=2 * (4.0 - held), wait=(4 - held) * 5)},
    )  # fmt: skip
    top = replace(device(name="dm-3", kind="dm"), layer="LVM")
    return Evidence(tuple(frames), devices=[top], tree=[top], links=links, shape=WRITES)


def test_a_snapshot_copies_before_the_first_write() -> None:
    found = fired(first_writes(copying()))
    assert "written to dm-3 move" in found.text and "32.0 times as much" in found.text


def test_a_layer_that_passes_writes_on_copies_nothing() -> None:
    assert first_writes(copying(below=2048)) is None
    assert first_writes(copying(held=0.2)) is None, "another program below"
    assert first_writes(replace(copying(), shape=replace(WRITES, writes=False))) is None


# -- starved


def both(reads: float, writes: float) -> FioInterval:
    ways = {"read": fio(reads).total, "write": fio(writes).total}
    return replace(fio(reads + writes), directions=ways)


def mixed(w_await: float, scheduler: str = "kyber", aqu: float = 20.0) -> Evidence:
    one = changed(disk(900, 100, wait=2.0, aqu=aqu), w_await=w_await)
    frames = seconds(3, interval=both(900, 100), disks={"vda": one})
    return Evidence(tuple(frames), devices=[device(scheduler=scheduler)], shape=WRITES)


def test_a_scheduler_that_lets_writes_wait() -> None:
    found = fired(starved_direction(mixed(200.0)))
    assert "vda: writes take 200 ms, reads 2.00 ms: the scheduler kyber may" in found.text
    assert found.key == "k"


def test_mq_deadline_holds_nothing_while_the_driver_has_tags() -> None:
    """A hypervisor lets 30 writes a second through; the others wait in the device."""
    evidence = mixed(520.0, "mq-deadline")
    assert starved_direction(evidence) is None
    found = fired(slow_direction(evidence))
    assert "writes take 520 ms, reads 2.00 ms. They wait in vda itself" in found.text
    assert "20.0 requests are in it, it takes 128 at once" in found.text and not found.key
    assert slow_direction(mixed(520.0, "none")) is not None
    # more than the driver takes: the rest is in the scheduler
    full = replace(evidence, devices=[device(scheduler="mq-deadline", tags=16)])
    assert starved_direction(full) is not None and slow_direction(full) is None
    assert slow_direction(mixed(520.0, "bfq")) is None
    assert slow_direction(mixed(40.0, "none")) is None
    assert slow_direction(replace(evidence, shape=replace(WRITES, syncs=True))) is None


def test_writes_that_the_job_does_not_wait_for_starve_nobody() -> None:
    """Another program's write-back beside a job that reads, and a job's own."""
    evidence = mixed(520.0, "none")
    for rule, slow in ((slow_direction, evidence), (starved_direction, mixed(520.0))):
        assert rule(slow) is not None
        reading = [replace(one, fio=fio(900)) for one in slow.frames]
        assert rule(replace(slow, frames=tuple(reading))) is None
        assert rule(replace(slow, shape=replace(WRITES, direct=False))) is None
        watched = [replace(one, fio=None, step=0) for one in slow.frames]
        assert rule(replace(slow, frames=tuple(watched))) is not None, "without a job"


def test_bursts_of_swapping_starve_nobody() -> None:
    evidence = mixed(200.0)
    short = [replace(one, more={"memory": {"some": 30.0}}) for one in evidence.frames]
    assert starved_direction(replace(evidence, frames=tuple(short))) is None
    idle = [replace(one, fio=None, step=0) for one in evidence.frames]
    swap = replace(evidence, frames=tuple(idle), devices=[replace(evidence.devices[0], swap=True)])
    assert starved_direction(swap) is None
    # one second of three is a burst
    frames = list(evidence.frames)
    frames[1] = replace(frames[1], disks={"vda": disk(900, 100, wait=2.0, aqu=20.0)})
    assert starved_direction(replace(evidence, frames=tuple(frames))) is None


def test_writes_that_wait_so_long_that_few_complete() -> None:
    """In two of eight seconds none completes, and two in each of the others."""
    some = changed(disk(900, 2, wait=2.0, aqu=20.0), w_await=9_000.0)
    none = changed(some, w_s=0.0, w_await=None)
    frames = [
        seconds(1, interval=both(900, 2), disks={"vda": one}, start=1.0 + number)[0]
        for number, one in enumerate((some, some, none, some, some, some, none, some))
    ]
    evidence = Evidence(tuple(frames), devices=[device(scheduler="kyber")], shape=WRITES)
    assert "writes take 9.00 s, reads 2.00 ms" in fired(starved_direction(evidence)).text
    assert starved_direction(replace(evidence, frames=tuple(frames[:4]))) is None, (
        "six writes are too few"
    )


@pytest.mark.parametrize(
    "evidence", [mixed(8.0), mixed(200.0, "none"), mixed(200.0, aqu=0.5)],
    ids=["a little", "no scheduler", "no queue"],
)  # fmt: skip
def test_nobody_is_starved(evidence: Evidence) -> None:
    assert starved_direction(evidence) is None


# -- write-back

BUFFERED = JobShape(jobs=1, iodepth=1, engine="psync", direct=False, writes=True)


def dirty(busy: float = 20.0, util: float = 100.0) -> Evidence:
    frames = seconds(
        3, interval=fio(500, lat_ns=2e6), jobs=((0, busy),),
        disks={"vda": disk(0, 400, util=util, aqu=50.0)},
    )  # fmt: skip
    return Evidence(tuple(frames), devices=[device()], shape=BUFFERED, online=(0, 1, 2, 3))


def test_buffered_writes_wait_for_write_back() -> None:
    assert "1.0 buffered writes wait" in fired(write_back(dirty())).text
    assert write_back(dirty(busy=90.0)) is None
    assert write_back(dirty(util=30.0)) is None
    # those that wait for a CPU are not counted, and the rest may be too few
    for cpu, text in ((0.4, "0.6 buffered writes wait"), (0.6, "")):
        waits = Waits(1.0, cpu, 0.0, {"vda": 0.0}, None, None, 0.0, cache=1 - cpu)
        frames = tuple(replace(one, waits=waits) for one in dirty().frames)
        found = write_back(replace(dirty(), frames=frames))
        assert text in found.text if found else not text


def test_a_full_cpu_is_not_the_limit_while_the_device_writes_back() -> None:
    assert cpu_bound_jobs(dirty(busy=99.0)) is None
    assert cpu_bound_jobs(dirty(busy=99.0, util=20.0)) is not None


# -- memory and errors


def test_waiting_for_memory() -> None:
    short = Evidence(tuple(seconds(3, interval=fio(900), memory=35.0)))
    assert "35 % of the time" in fired(memory_pressure(short)).text
    assert memory_pressure(Evidence(tuple(seconds(3, interval=fio(900), memory=2.0)))) is None
    assert memory_pressure(Evidence(tuple(seconds(3, interval=fio(900))))) is None


def test_errors_while_the_job_goes_on() -> None:
    frames = seconds(4, interval=fio(900))
    assert io_errors(Evidence(tuple(frames))) is None
    frames[3] = replace(frames[3], fio=replace(fio(900), failed=12))
    assert "12 I/Os failed in the last 3 s" in fired(io_errors(Evidence(tuple(frames)))).text
    old = replace(frames[0], fio=replace(fio(900), failed=12))
    assert io_errors(Evidence((old, *seconds(3, 2.0, interval=fio(900))))) is None


# -- wording


@pytest.mark.parametrize("evidence", [raid5(), copying(), mixed(200.0), dirty()])
def test_no_sentence_is_longer_than_two_lines(evidence: Evidence) -> None:
    for one in diagnose(evidence):
        assert len(one.text) <= 230, one.text
