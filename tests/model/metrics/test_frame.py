from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fio_recordings import frames, statuses

from iopstui.model.metrics import frame as flags
from iopstui.model.metrics import frame as frame_module
from iopstui.model.metrics.cpus import CpuFrame, rate_of
from iopstui.model.metrics.fields import BY_ID
from iopstui.model.metrics.frame import Frame, FrameBuilder
from iopstui.model.rates import cpu_load, per_second
from iopstui.model.samples import (
    CpuTimes,
    DiskCounters,
    KernelSample,
    RawSample,
)

DISK = DiskCounters("vda", 254, 0, *[0] * 17)
SECOND = 1_000_000_000


def kernel(at_s: float, **changes: Any) -> KernelSample:
    """Counters of one disk and two CPUs that grow by 100 a second each."""
    n = int(100 * at_s)
    sample = KernelSample(
        monotonic_ns=int(at_s * SECOND),
        wall_ms=1_000_000 + 1000 * at_s,
        took_ns=1,
        disks={"vda": replace(DISK, reads=n, read_ms=2 * n, in_flight=3)},
        cpus={cpu: CpuTimes(n, 0, 0, n, 0, 0, 0, 0) for cpu in (0, 1)},
        softirq_block={0: n, 1: 0},
        irqs={36: {0: n, 1: 2 * n}},
        ipi={0: 0, 1: n},
        ipi_ns=int(at_s * SECOND),
    )
    return replace(sample, **changes)


def tick(at_s: float, **changes: Any) -> RawSample:
    sample = RawSample(
        seq=int(at_s),
        arrived_ns=int(at_s * SECOND),
        wall_ms=1_000_000 + 1000 * at_s,
        kernel=kernel(at_s),
        fio=None,
        final=False,
        step=0,
    )
    return replace(sample, **changes)


def build(*ticks: RawSample) -> list[Frame]:
    builder = FrameBuilder()
    return [builder.feed(sample) for sample in ticks]


def test_the_first_sample_is_the_baseline() -> None:
    (frame,) = build(tick(5))
    assert frame.t == 0
    assert frame.seconds is None
    assert (frame.disks, frame.cpus, frame.irqs) == ({}, {}, {})
    assert frame.flags == {flags.NO_FIO}


def test_a_sample_without_kernel_gives_no_kernel_rates_and_the_next_spans_it() -> None:
    built = build(tick(1), tick(2, kernel=None), tick(3))
    assert built[1].seconds is None
    assert built[1].disks == {}
    assert built[2].seconds == 2.0
    assert built[2].disks["vda"].r_s == 100


def test_a_cpu_that_comes_online_has_no_rates_in_its_first_second() -> None:
    before = kernel(1)
    alone = replace(before, cpus={0: before.cpus[0]}, ipi={0: 0})
    frame = build(tick(1, kernel=alone), tick(2))[1]
    assert frame.cpus[1].load is None
    assert frame.cpus[1].ipi_s is None
    assert frame.cpus[0].load is not None


def test_own_cpu_is_what_was_used_since_the_sample_before() -> None:
    ticks = [tick(at, own_busy_s=busy) for at, busy in ((0, 7), (2, 7.5), (3, None), (4, 9))]
    assert [f.own_cpu for f in build(*ticks, tick(5, own_busy_s=10.0))] == [
        None, 25, None, None, 100,
    ]  # fmt: skip


def test_what_a_cpu_limit_takes_is_in_percent_of_a_cpu() -> None:
    ticks = (tick(at, kernel=kernel(at, throttled_us=us)) for at, us in ((1, 100), (3, 500_100)))
    assert [f.throttled for f in build(*ticks)] == [None, 25.0]


def test_the_age_of_function_calls_that_were_read_before_the_sample() -> None:
    built = build(*(tick(at, kernel=kernel(at, ipi_ns=int((at - 0.5) * SECOND))) for at in (1, 3)))
    assert built[1].ipi_age_s == 0.5
    assert built[1].cpus[1].ipi_s == 100


def test_ipi_rates_of_samples_without_their_own_clock() -> None:
    built = build(*(tick(at, kernel=kernel(at, ipi_ns=None)) for at in (1, 3)))
    assert built[1].cpus[1].ipi_s == 100


@pytest.mark.parametrize(
    ("name", "flag", "frames_with_it"),
    [
        ("3.42-a-randread-grp", flags.FINAL, "last"),
        ("3.42-a-randread-grp", flags.PARTIAL, "last"),
        ("3.42-b-randrw-gtod", flags.NO_LATENCY, "all"),
        ("3.42-e-ramp", flags.RAMP, "some"),
        ("3.42-e-ramp", flags.RESET, "some"),
        ("3.42-a-randread-grp", flags.RAMP, "none"),
        ("3.42-a-randread-grp", flags.RESET, "none"),
        ("3.42-a-randread-grp", flags.NO_LATENCY, "none"),
        ("3.42-a-randread-grp", flags.SUBMITTED, "none"),
    ],
)
def test_flags(name: str, flag: str, frames_with_it: str) -> None:
    has = [flag in frame.flags for frame in frames(name)]
    if frames_with_it == "last":
        assert has == [False] * (len(has) - 1) + [True]
    elif frames_with_it == "some":
        assert any(has)
        assert not all(has)
    else:
        assert all(has) if frames_with_it == "all" else not any(has)


def test_flags_are_the_words_that_the_reference_explains() -> None:
    words = ["RAMP", "PARTIAL", "LATE", "RESET", "NO_FIO", "NO_LATENCY", "SOME_LATENCY"]
    words += ["FINAL", "SUBMITTED", "WRONG_LATENCY", "APPROX_IOPS", "APPROX_BW", "APART"]
    words += ["HANDOVER"]
    assert [getattr(frame_module, word) for word in words] == words
    told = [part.split()[0] for part in BY_ID["flags.*"].meaning.split(";")]
    assert sorted(told) == sorted(words)


@pytest.mark.parametrize(
    ("marks", "iops", "bw"),
    [
        ((), 1, 1), (("RAMP",), 1, 1), (("HANDOVER", "PARTIAL"), 1, 1), (("APPROX_BW",), 1, 0),
        (("APPROX_IOPS",), 0, 0), (("PARTIAL",), 0, 0), (("RESET",), 0, 0),
    ],
)  # fmt: skip
def test_charts_have_a_gap_where_a_rate_does_not_hold(
    marks: tuple[str, ...], iops: int, bw: int
) -> None:
    row = replace(frames("3.42-a-randread-grp")[1], flags=frozenset(marks))
    assert row.fio is not None
    total = row.fio.total
    assert row.drawn == (total.iops if iops else None, total.bw if bw else None)


def in_one_go(now: KernelSample, before: KernelSample, ipi: KernelSample) -> dict[int, CpuFrame]:
    """Each CPU's figures between two samples, computed one after the other."""
    seconds = (now.monotonic_ns - before.monotonic_ns) / 1e9
    ipi_seconds = ((now.ipi_ns or 0) - (ipi.ipi_ns or 0)) / 1e9
    block = per_second(now.softirq_block, before.softirq_block, seconds)
    calls = per_second(now.ipi, ipi.ipi, ipi_seconds)
    own: dict[int, float] = {}
    for irq, counts in now.irqs.items():
        for cpu, rate in per_second(counts, before.irqs[irq], seconds).items():
            own[cpu] = own.get(cpu, 0.0) + rate
    return {
        cpu: CpuFrame(
            cpu_load(times, before.cpus[cpu]) if cpu in before.cpus else None,
            block.get(cpu), own.get(cpu), calls.get(cpu),
        )
        for cpu, times in now.cpus.items()
    }  # fmt: skip


def test_figures_of_cpus() -> None:
    gone = {0: CpuTimes(250, 0, 0, 310, 40, 0, 0, 0), 2: CpuTimes(1, 0, 0, 1, 0, 0, 0, 0)}
    samples = [kernel(1), kernel(2), kernel(3, cpus=gone, ipi=None, ipi_ns=None), kernel(4)]
    ticks = [tick(n, kernel=sample) for n, sample in enumerate(samples, 1)]
    before = zip(samples, samples[1:], [samples[0], samples[1], samples[1]], strict=False)
    whole = [in_one_go(now, then, ipi) for then, now, ipi in before]
    for frame, cpus in zip(build(*ticks)[1:], whole, strict=True):
        for name in ("ipi_s", "block_s", "irq_s"):
            rates = {c: getattr(one, name) for c, one in cpus.items()}
            have = {cpu: rate for cpu, rate in rates.items() if rate is not None}
            assert rate_of(frame.cpus, name) == have
        assert [*frame.cpus] == [*cpus] and frame.cpus == cpus


def test_after_a_late_document_the_kernel_covers_fios_interval() -> None:
    """fio's third document covers 2 s, of which the kernel was also read after 1.5 s."""
    one, two, three = statuses("3.33-x-thinktime3s")[:3]
    start = one.timestamp_ms / 1000 - 1000
    at = [start, start + 1, start + 2, start + 3.5, start + 4]
    documents = [None, replace(one, timestamp_ms=one.timestamp_ms + 1000),
                 replace(two, timestamp_ms=one.timestamp_ms + 2000), None,
                 replace(three, timestamp_ms=one.timestamp_ms + 4000)]  # fmt: skip
    first, _, whole, late, after = build(
        *(tick(t, fio=document, step=1) for t, document in zip(at, documents, strict=True))
    )
    assert first.seconds is None and whole.whole is whole
    assert flags.LATE in late.flags and late.seconds == 1.5
    assert after.seconds == 0.5, "readings follow one another"
    assert after.fio is not None and after.fio.seconds == 2.0
    assert after.whole.seconds == 2.0 and after.whole.disks["vda"].r_s == pytest.approx(100, 0.01)
    assert flags.APART not in after.flags | after.whole.flags
    assert after.whole.fio is after.fio


def test_a_document_found_late_is_behind_the_frame_before() -> None:
    """It was written before the kernel was read, and found when iopstui went on. It needs a time of
    its own, or a merge would take it for a repeated frame."""
    one, two, three = statuses("3.42-a-randread-grp")[:3]
    start = one.timestamp_ms / 1000 - 1000
    late = [replace(tick(start + at, fio=document, step=1), kernel=None)
            for at, document in ((5.0, two), (5.1, three))]  # fmt: skip
    built = build(tick(start, fio=one, step=1), tick(start + 2.5, step=1), *late)
    times = [frame.t for frame in built]
    assert times == sorted({*times}) and times[2] == pytest.approx(2.5, abs=0.01)


def test_a_kernel_reading_of_other_seconds_is_marked() -> None:
    """The second document was found 0.6 s late, the third at once."""
    documents = statuses("3.42-a-randread-grp")[:3]
    start = documents[0].timestamp_ms / 1000 - 1000
    late, early = build(
        *(
            tick(start + t, fio=document, step=1)
            for t, document in zip((0.0, 1.6, 2.0), documents, strict=True)
        )
    )[1:]
    assert flags.APART in late.flags and flags.APART in early.flags
