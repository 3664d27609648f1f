from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.block.device import Hctx
from iopstui.model.block.topology import bind_to_queues, queue_order

QUEUES = st.lists(st.lists(st.integers(0, 20), unique=True, max_size=6), max_size=6)


def hctxs(*queues: tuple[int, ...]) -> tuple[Hctx, ...]:
    return tuple(Hctx(n, cpus, 64, 0) for n, cpus in enumerate(queues))


def test_the_document_s_order_first_cpu_of_each_queue_then_the_second() -> None:
    two = hctxs((0, 1), (2, 3))
    assert queue_order(two, range(4)) == [(0, 0), (2, 1), (1, 0), (3, 1)]
    bound = bind_to_queues(two, 2, range(4))
    assert bound is not None
    assert (bound.option, bound.rows, bound.notes) == ("0,2", ((0, 0, 0), (1, 2, 1)), ())


def test_interleaved_lists_of_older_kernels() -> None:
    bound = bind_to_queues(hctxs((0, 2), (1, 3)), 2, range(4))
    assert bound is not None and bound.option == "0,1"


def test_fio_takes_the_set_in_ascending_order() -> None:
    bound = bind_to_queues(hctxs((2, 3), (0, 1)), 3, range(4))
    assert bound is not None
    # CPU 2 of queue 0, CPU 0 of queue 1, CPU 3 of queue 0, handed out as 0, 2, 3
    assert bound.rows == ((0, 0, 1), (1, 2, 0), (2, 3, 0))
    assert "3 jobs on 2 hardware queues: some jobs share one" in bound.notes


def test_no_queue_or_no_usable_cpu_no_binding() -> None:
    assert bind_to_queues((), 4, range(4)) is None
    assert bind_to_queues(hctxs((), ()), 4, range(4)) is None
    assert bind_to_queues(hctxs((6, 7)), 4, range(4)) is None


@given(QUEUES, st.integers(1, 30), st.sets(st.integers(0, 20)))
def test_every_job_has_a_usable_cpu_of_the_queue_it_is_said_to_have(
    queues: list[list[int]], jobs: int, usable: set[int]
) -> None:
    given_ = hctxs(*(tuple(sorted(cpus)) for cpus in queues))
    bound = bind_to_queues(given_, jobs, usable)
    named = {cpu for cpus in queues for cpu in cpus} & usable
    assert (bound is None) is (not named)
    if bound is None:
        return
    assert [job for job, _, _ in bound.rows] == list(range(jobs))
    assert all(cpu in usable and cpu in queues[hctx] for _, cpu, hctx in bound.rows)
    assert list(bound.cpus) == sorted(set(bound.cpus)) == sorted({c for _, c, _ in bound.rows})
    assert len(bound.cpus) == min(jobs, len(named))


@given(QUEUES, st.sets(st.integers(0, 20)))
def test_as_many_queues_as_possible_before_any_is_used_twice(
    queues: list[list[int]], usable: set[int]
) -> None:
    order = queue_order(hctxs(*(tuple(sorted(cpus)) for cpus in queues)), usable)
    assert len({cpu for cpu, _ in order}) == len(order)
    used = len({hctx for _, hctx in order})
    assert len({hctx for _, hctx in order[:used]}) == used


def test_what_is_not_as_one_might_expect() -> None:
    def notes(jobs: int, usable: range, *queues: tuple[int, ...]) -> tuple[str, ...]:
        bound = bind_to_queues(hctxs(*queues), jobs, usable)
        assert bound is not None
        return bound.notes

    assert notes(2, range(2), (0,), (1,)) == notes(1, range(1), (0,)) == ()
    assert notes(2, range(2), (0, 1)) == ("2 jobs on 1 hardware queue: some jobs share one",)
    assert notes(3, range(2), (0,), (1,)) == (
        "3 jobs on 2 CPUs: fio wraps around, so some CPUs run several jobs",
        "3 jobs on 2 hardware queues: some jobs share one",
    )
    several = "some CPUs are in the lists of several queues (read or poll queues)"
    assert notes(1, range(1), (0,), (0,)) == (several,)
    out = "not used (offline or not allowed): CPU  "
    assert notes(1, range(1), tuple(range(9))) == (f"{out}1, 2, 3, 4, 5, 6, 7, 8",)
    assert notes(1, range(1), tuple(range(10))) == (f"{out}1, 2, 3, 4, 5, 6, 7, 8, ... (9 CPUs)",)
