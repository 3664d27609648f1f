from __future__ import annotations

import pytest
from trees import Tree

from iopstui.linux.machine.conditions import CPU_GROUPS, CpuStates, parse_governor
from iopstui.model.findings.conditions import CpuState

CPU = "devices/system/cpu/cpu"


def cpu(tree: Tree, number: int, sleeps: tuple[int, ...] = (0, 2, 10, 133)) -> None:
    tree.sys(f"{CPU}{number}/cpufreq/scaling_governor", "powersave\n")
    tree.sys(f"{CPU}{number}/cpufreq/scaling_cur_freq", "2400000\n")
    tree.sys(f"{CPU}{number}/cpufreq/cpuinfo_max_freq", "3800000\n")
    for state, latency in enumerate(sleeps):
        tree.sys(f"{CPU}{number}/cpuidle/state{state}/latency", f"{latency}\n")
        tree.sys(f"{CPU}{number}/cpuidle/state{state}/disable", "0\n")


@pytest.mark.parametrize(
    ("text", "governor"),
    [
        ("schedutil\n", "schedutil"),
        ("", None),
        ("<unknown>", None),
        ("a" * 5000, None),
        ("\x1b[2J", None),
        ("two words", None),
    ],
)
def test_governors(text: str, governor: str | None) -> None:
    assert parse_governor(text) == governor


def test_a_cpu_with_everything(tree: Tree) -> None:
    cpu(tree, 0)
    assert CpuStates(tree.roots).read([0]) == {0: CpuState("powersave", 2400000, 3800000, 133)}


def test_the_longest_way_out_is_of_a_state_that_is_not_disabled(tree: Tree) -> None:
    # not sorted by depth: some firmware numbers them so
    cpu(tree, 0, sleeps=(0, 133, 10, 200))
    tree.sys(f"{CPU}0/cpuidle/state3/disable", "1\n")
    assert CpuStates(tree.roots).read([0])[0].wake_us == 133
    tree.sys(f"{CPU}0/cpuidle/state1/disable", "1\n")
    (tree.roots.sys / f"{CPU}0/cpuidle/state2/disable").unlink()
    assert CpuStates(tree.roots).read([0])[0].wake_us == 10
    tree.sys(f"{CPU}0/cpuidle/state2/disable", "1\n")
    assert CpuStates(tree.roots).read([0])[0].wake_us == 0
    tree.sys(f"{CPU}0/cpuidle/state0/disable", "1\n")
    assert CpuStates(tree.roots).read([0])[0].wake_us is None


def test_a_virtual_cpu_tells_nothing(tree: Tree) -> None:
    tree.sys(f"{CPU}0/cpuidle/driver/name", "none\n")
    assert CpuStates(tree.roots).read([0, 7]) == {0: CpuState(), 7: CpuState()}


def test_no_more_cpus_than_asked_for(tree: Tree) -> None:
    for number in range(5):
        cpu(tree, number)
    assert list(CpuStates(tree.roots, most=2).read([4, 1, 0])) == [4, 1]


def test_a_frequency_is_fresh_and_a_setting_follows_within_a_few_readings(tree: Tree) -> None:
    numbers = range(2 * CPU_GROUPS)
    for number in numbers:
        cpu(tree, number)
    states = CpuStates(tree.roots)
    states.read(numbers)
    for number in numbers:
        tree.sys(f"{CPU}{number}/cpufreq/scaling_cur_freq", "800000\n")
        tree.sys(f"{CPU}{number}/cpufreq/scaling_governor", "performance\n")
        tree.sys(f"{CPU}{number}/cpuidle/state3/disable", "1\n")
    turned = []
    for _ in range(CPU_GROUPS):
        found = states.read(numbers)
        assert {one.khz for one in found.values()} == {800000}
        turned.append(
            sum(one == CpuState("performance", 800000, 3800000, 10) for one in found.values())
        )
    assert turned == [2, 4, 6, 8]


def test_a_cpu_that_came_online_is_looked_at_anew(tree: Tree) -> None:
    states = CpuStates(tree.roots)
    assert states.read([0]) == {0: CpuState()}
    cpu(tree, 0)
    states.forget()
    assert states.read([0])[0].max_khz == 3800000


def test_no_frequency_is_0(tree: Tree) -> None:
    cpu(tree, 0)
    tree.sys(f"{CPU}0/cpufreq/scaling_cur_freq", "0\n")
    tree.sys(f"{CPU}0/cpufreq/cpuinfo_max_freq", "-1\n")
    assert CpuStates(tree.roots).read([0]) == {0: CpuState("powersave", None, None, 133)}
