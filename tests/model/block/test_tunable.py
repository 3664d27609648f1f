from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from evidence_frames import device
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import UsageError
from iopstui.model.block.device import IrqVector, Kernel, parse_version
from iopstui.model.block.tunable import (
    RESET_BY_SCHEDULER,
    TUNABLES,
    TunableRequest,
    current_scheduler,
    irq_of,
    parse_tunable,
    restore_rank,
    why_rq_affinity_cannot_matter,
    with_side_effects,
)


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("rq_affinity=2", TunableRequest("rq_affinity", "2")),
        (" scheduler = mq-deadline ", TunableRequest("scheduler", "mq-deadline")),
        ("rq_affinity=2@7", TunableRequest("rq_affinity", "2", 7.0)),
        ("irq/36=0-1,3@2.5", TunableRequest("irq/36", "0-1,3", 2.5)),
        ("wbt_lat_usec=-1", TunableRequest("wbt_lat_usec", "-1")),
        ("nr_requests=2", None),
    ],
)
def test_knobs_of_the_command_line(text: str, request_: TunableRequest | None) -> None:
    if request_ is None:
        with pytest.raises(UsageError, match="from 4 up"):
            parse_tunable(text)
    else:
        assert parse_tunable(text) == request_


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rq_affinity", "not NAME=VALUE"),
        ("rq_affinity=", "not NAME=VALUE"),
        ("=2", "not NAME=VALUE"),
        ("rq_affinity=2@", "not NAME=VALUE"),
        ("rq_affinity=2@soon", "not NAME=VALUE"),
        ("rq_affinity=2@-1", "not NAME=VALUE"),
        ("rq_affinity=3", "0, 1, 2, not '3'"),
        ("iostats=yes", "0, 1, not 'yes'"),
        ("wbt_lat_usec=-2", "-1 up"),
        ("read_ahead_kb=1e3", "whole number"),
        ("discard_max_bytes=0", "is not a tunable"),
        ("write_cache=write through", "is not a tunable"),
        ("irq/=1", "is not a tunable"),
        ("irq/x=1", "is not a tunable"),
        ("../../etc=1", "is not a tunable"),
    ],
)
def test_what_no_device_takes_is_refused_with_what_it_takes(text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_tunable(text)
    assert says in error.value.message


@given(st.text())
def test_any_text_is_a_request_or_a_usage_error(text: str) -> None:
    try:
        found = parse_tunable(text)
    except UsageError:
        return
    assert found.value and (found.name in TUNABLES or irq_of(found.name) is not None)


def test_settings_that_can_t_be_undone_are_none_of_ours() -> None:
    # writing 0 to discard_max_bytes can't be taken back on Linux 6.12
    assert not {"discard_max_bytes", "write_cache", "io_timeout", "zoned"} & set(TUNABLES)


def test_the_scheduler_is_put_back_before_what_it_resets() -> None:
    names = sorted([*TUNABLES, "irq/36", "irq/4"], key=restore_rank)
    assert names[0] == "scheduler" and names[-1] == "read_ahead_kb"
    assert set(names[-3:-1]) == {"nr_requests", "wbt_lat_usec"}
    assert with_side_effects(["scheduler", "nomerges"]) == {
        "scheduler", "nomerges", *RESET_BY_SCHEDULER,
    }  # fmt: skip
    assert with_side_effects(["nr_requests"]) == {"nr_requests"}


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("[none] mq-deadline", "none"), ("none [bfq] kyber\n", "bfq"), ("none\n", "none"), ("", "")],
)
def test_the_chosen_scheduler(text: str, chosen: str) -> None:
    assert current_scheduler(text) == chosen


def test_where_rq_affinity_can_and_cannot_matter() -> None:
    def why(queues: tuple[tuple[int, ...], ...], online: tuple[int, ...], **more: str) -> str:
        return why_rq_affinity_cannot_matter(device(queues, **more), online) or ""

    four = (0, 1, 2, 3)
    assert not why((four,), four)
    assert not why(((0, 1), (2, 3)), four)
    assert not why((four,), four, kind="loop")
    assert not why((four,), four, kind="scsi")
    assert "of its own" in why(((0,), (1,), (2,), (3,)), four)
    assert "null_blk" in why((four,), four, kind="null_blk")
    assert "bio-based" in why((), four, kind="dm")
    assert "only one CPU" in why((four,), (0,))
    # two CPUs a queue, but one of each pair is offline
    assert "of its own" in why(((0, 1), (2, 3)), (0, 2))


OWN = ((0,), (1,), (2,), (3,))


def why_with(irqs: Sequence[IrqVector], kernel: Kernel) -> str:
    disk = replace(device(OWN, irqs=irqs), kernel=kernel)
    return why_rq_affinity_cannot_matter(disk, (0, 1, 2, 3)) or ""


@pytest.mark.parametrize(
    ("release", "moves"),
    [("5.15.0", True), ("6.0.9", True), ("6.1.192", False), ("6.4.16", False), ("6.5.0", True),
     ("6.12.117-amd64", True), ("unknown", True)],
)  # fmt: skip
def test_one_interrupt_for_all_queues_leaves_it_to_the_kernel(release: str, moves: bool) -> None:
    shared = IrqVector(40, "virtio1-virtqueues", None, True, (2,), 0)
    why = why_with([shared], Kernel(parse_version(release)))
    assert (why == "") is moves
    assert moves or "Linux 6.1 to 6.4" in why


def test_an_interrupt_away_from_its_queue_can_be_moved_back() -> None:
    away = [IrqVector(40 + n, f"nvme0q{n + 1}", n, False, (0,), 0) for n in range(4)]
    assert why_with(away, Kernel((6, 12))) == ""
    own = [replace(vector, effective_cpus=(n,)) for n, vector in enumerate(away)]
    assert "of its own" in why_with(own, Kernel((6, 12)))


def test_threaded_interrupts_move_nothing() -> None:
    one = replace(device(((0, 1, 2, 3),)), kernel=Kernel((6, 12), threaded_irqs=True))
    assert "threadirqs" in (why_rq_affinity_cannot_matter(one, (0, 1, 2, 3)) or "")


def test_a_device_without_a_queue_has_no_rq_affinity() -> None:
    bare = replace(device(()), queue=None)
    assert why_rq_affinity_cannot_matter(bare, (0, 1)) is not None
