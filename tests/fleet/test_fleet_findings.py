"""Findings about many hosts: each is reported for its cause, and not for something similar."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from iopstui.features.fleet.findings import (
    WINDOW_SECONDS,
    FleetEvidence,
    fleet_evidence,
    list_findings,
)
from iopstui.features.fleet.fleet_events import FleetRunStarted, HostFigures, HostRow
from iopstui.features.fleet.fleet_state import AWAIT, BW, IOPS, UTIL, WAIT, FleetState
from iopstui.features.fleet.merging.merger import MergedInterval

Rate = Callable[[int], float]


def noisy(seed: int, rate: float, share: float = 0.05) -> Rate:
    chance = random.Random(seed)
    values = [rate * chance.uniform(1 - share, 1 + share) for _ in range(WINDOW_SECONDS)]
    return lambda second: values[second]


def evidence(
    rates: dict[str, Rate], waits: dict[str, float] | None = None,
    awaits: dict[str, float] | None = None, *, fio: bool = True,
    spread: tuple[float, float, int] | None = None,
) -> FleetEvidence:  # fmt: skip
    hosts = {}
    for name, rate in rates.items():
        iops = [rate(second) for second in range(WINDOW_SECONDS)]
        hosts[name] = {
            IOPS: iops, BW: [4096 * one for one in iops],
            WAIT: [(waits or {}).get(name, 1e6)] * WINDOW_SECONDS,
            AWAIT: [(awaits or {}).get(name, 5e5)] * WINDOW_SECONDS, UTIL: [50.0] * WINDOW_SECONDS,
        }  # fmt: skip
    sums = {name: [sum(one[name][at] for one in hosts.values()) for at in range(WINDOW_SECONDS)]
            for name in (IOPS, BW)}  # fmt: skip
    return FleetEvidence(hosts, sums, spread, fio)


def names(found: FleetEvidence) -> list[str]:
    return [one.rule for one in list_findings(found)]


def healthy(count: int = 10) -> dict[str, Rate]:
    return {f"n{at}": noisy(at, 1000) for at in range(count)}


def divided(count: int) -> dict[str, Rate]:
    """Hosts that share one limit, with different shares in every second."""
    chance = random.Random(3)
    shares = [[chance.uniform(0.5, 1.5) for _ in range(count)] for _ in range(WINDOW_SECONDS)]
    return {
        f"n{at}": lambda second, at=at: 10_000 * shares[second][at] / sum(shares[second])  # type: ignore[misc]
        for at in range(count)
    }


def test_alike_hosts_show_nothing() -> None:
    for seed in range(20):
        rates = {f"n{at}": noisy(100 * seed + at, 1000) for at in range(12)}
        assert names(evidence(rates)) == []


def test_a_straggler_is_its_disk_or_the_host_above_it() -> None:
    rates = {**healthy(), "slow": noisy(99, 400)}
    disk = evidence(rates, {"slow": 5e6}, {"slow": 3e6})
    (found,) = list_findings(disk)
    assert found.rule == "straggler" and "the disk or what is behind it" in found.text
    assert "slow: " in found.text and "5.00 ms" in found.text
    (other,) = list_findings(evidence(rates, {"slow": 5e6}))
    assert "the cause is above the device" in other.text


def test_few_ios_with_short_waits_are_no_straggler() -> None:
    assert names(evidence({**healthy(), "less": noisy(99, 400)})) == []


def test_one_bad_second_is_no_straggler() -> None:
    usual = noisy(99, 400)
    rates = {
        **healthy(),
        "slow": lambda second: 1000.0 if second == WINDOW_SECONDS - 3 else usual(second),
    }
    assert names(evidence(rates, {"slow": 5e6})) == []


def test_a_host_that_stands_still_below_has_a_limit_of_its_own() -> None:
    rates = {**healthy(), "capped": noisy(99, 400, 0.005)}
    (found,) = list_findings(evidence(rates, {"capped": 5e6}))
    assert (
        found.rule == "own limit"
        and "capped has its own limit" in found.text
        and "a steady 400 IOPS" in found.text
    )


def test_where_all_stand_still_a_flat_line_tells_nothing_of_one() -> None:
    rates = {f"n{at}": noisy(at, 1000, 0.005) for at in range(6)}
    assert names(evidence({**rates, "less": noisy(99, 400, 0.005)})) == []


def test_a_flat_sum_of_moving_shares_is_a_common_limit() -> None:
    (found,) = list_findings(evidence(divided(8)))
    assert found.rule == "common limit" and "39.1 MiB/s" in found.text


def test_independent_hosts_have_a_flat_sum_without_a_limit() -> None:
    # a hundred hosts average out: the sum varies by 0.6 %, but they share no limit
    rates = {f"n{at}": noisy(at, 1000, 0.1) for at in range(100)}
    assert "common limit" not in names(evidence(rates))


def test_two_slow_hosts_of_which_one_takes_from_the_other_share_a_path() -> None:
    share = noisy(7, 0.5, 0.4)
    pair: dict[str, Rate] = {"x": lambda n: 1000 * share(n), "y": lambda n: 1000 * (1 - share(n))}
    (found,) = list_findings(evidence({**healthy(), **pair}, {"x": 5e6, "y": 5e6}))
    assert found.rule == "one path"
    assert "x and y" in found.text and "correlation -1.00" in found.text


def test_two_slow_hosts_by_themselves_share_nothing() -> None:
    pair = {"x": noisy(71, 500, 0.2), "y": noisy(72, 500, 0.2)}
    found = names(evidence({**healthy(), **pair}, {"x": 5e6, "y": 5e6}))
    assert found == ["straggler"]


def test_all_flat_and_alike_is_left_open() -> None:
    rates = {f"n{at}": noisy(at, 1000, 0.005) for at in range(4)}
    (found,) = list_findings(evidence(rates))
    assert found.rule == "all flat" and "cannot show which" in found.text
    assert names(replace(evidence(rates), has_pacing=True)) == []


def test_a_spread_beyond_the_clocks_error_is_told() -> None:
    assert names(evidence(healthy(), spread=(400.0, 1.0, 10))) == ["start spread"]
    assert names(evidence(healthy(), spread=(400.0, 300.0, 10))) == []


def test_without_a_job_rates_are_not_compared_but_times_are() -> None:
    rates = {**healthy(), "idle": noisy(99, 100)}
    assert names(evidence(rates, fio=False)) == []
    assert names(evidence(rates, awaits={"idle": 9e6}, fio=False)) == ["slow device"]
    busy = {**healthy(), "busy": noisy(99, 9000)}
    assert names(evidence(busy, awaits={"busy": 9e6}, fio=False)) == []


def test_only_seconds_of_the_run_count() -> None:
    scene = FleetState()
    scene.apply(FleetRunStarted(1, ("a", "b"), 0.0))
    step = {"event": "step_started", "options": {"rate_iops": "500"}}
    for number in range(100, 130):
        if number == 120:
            scene.apply(FleetRunStarted(2, ("a", "b"), 0.0))
        for name in ("a", "b"):
            scene.apply(HostRow(name, {"event": "frame"}))
            scene.apply(HostFigures(name, number, True, 1.0, 1.0, 1.0, 1.0, 1.0))
        scene.apply(MergedInterval(number, 1.0, expected=2, counted=2))
    found = fleet_evidence(scene)
    assert not found.has_pacing
    scene.apply(HostRow("b", step))
    assert fleet_evidence(scene).has_pacing
    assert [*found.hosts] == ["a", "b"]
    # eight of its ten seconds: the first two are not used yet
    assert found.hosts["a"][IOPS] == [None] * 12 + [1.0] * 8
