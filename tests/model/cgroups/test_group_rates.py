"""Rates of cgroups from their own counters."""

from __future__ import annotations

from iopstui.model.cgroups import (
    COUNTERS,
    CPU_US,
    ROOT_FLAG,
    counter_name,
    group_rates,
    limits_reached,
)

REAL_ROOT = {counter_name(ROOT_FLAG, "/"): 1}
UNIT = "/system.slice/db.service"


def counted(disk: str = "sda", **each: int) -> dict[str, int]:
    """Every counter of these paths; in their names "all" is "/" and "__" a slash."""
    return {
        counter_name(what, "/" if path == "all" else "/" + path.replace("__", "/"), disk): count
        for path, count in each.items()
        for what in COUNTERS
    }


def test_busiest_first_and_quiet_ones_not_at_all() -> None:
    before = counted(all=5, a=0, b=0, c=5)
    now = counted(all=5, a=10, b=20, c=5)
    assert [one.path for one in group_rates(now, before, 1.0) or ()] == ["/b", "/a"]


def test_a_new_group_counts_whole_and_one_that_was_made_again_not_at_all() -> None:
    (one,) = group_rates(counted(a=40, b=25), counted(a=40), 1.0) or ()
    assert (one.path, one.total.writes_s) == ("/b", 25.0)
    assert group_rates(counted(a=3), counted(a=9), 1.0) == ()


def test_in_a_container_the_top_is_its_own_group() -> None:
    (one,) = group_rates(counted(all=5), counted(all=0), 1.0) or ()
    assert one.name.text == "(this container)"
    (one,) = group_rates(counted(all=5) | REAL_ROOT, counted(all=0), 1.0) or ()
    assert one.name.text == "(no group)"


def test_waiting_limits_cpu_and_memory_stand_beside_the_io() -> None:
    def reading(n: int) -> dict[str, int]:
        waits = {counter_name("io.some", UNIT): 250_000 * n,
                 counter_name("memory.full", UNIT): 3_000_000 * n,
                 counter_name(CPU_US, UNIT): 1_500_000 * n}  # fmt: skip
        states = {counter_name("memory.current", UNIT): 7, counter_name("memory.max", UNIT): 9,
                  counter_name("cpu.max", UNIT): 2500, counter_name("riops", UNIT, "sda"): 40,
                  counter_name("wbps", UNIT, "sda"): 1000}  # fmt: skip
        return counted(**{UNIT[1:].replace("/", "__"): 38 * n}) | waits | states

    (one,) = group_rates(reading(2), reading(1), 1.0) or ()
    assert one.pressure == {"io.some": 25.0, "memory.full": 100.0}
    assert (one.cpu, one.cpu_limit, one.memory, one.memory_limit) == (150.0, 250.0, 7, 9)
    assert limits_reached(one) == [(95.0, "riops", 40), (3.8, "wbps", 1000)]


def test_readings_have_their_own_time() -> None:
    before, now = (
        counted(a=10 * n) | {counter_name("at_ns", "/"): n * 4_000_000_000} for n in (1, 2)
    )
    (one,) = group_rates(now, before, 1.0) or ()
    assert one.total.reads_s == 2.5
