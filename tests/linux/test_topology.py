from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import Tree

from iopstui.linux.machine.topology import read_topology
from iopstui.model.block.topology import Domain, Topology

CPU = "devices/system/cpu"


def cpus(tree: Tree, caches: dict[int, str], level: int = 3) -> None:
    for cpu, sharers in caches.items():
        for index, (depth, shared) in enumerate(((1, str(cpu)), (2, str(cpu)), (level, sharers))):
            tree.sys(f"{CPU}/cpu{cpu}/cache/index{index}/level", f"{depth}\n")
            tree.sys(f"{CPU}/cpu{cpu}/cache/index{index}/shared_cpu_list", f"{shared}\n")


def test_two_sockets_with_two_cache_domains_each(tree: Tree) -> None:
    tree.sys(f"{CPU}/possible", "0-7\n")
    tree.sys(f"{CPU}/online", "0-6\n")
    tree.sys(f"{CPU}/isolated", "6\n")
    tree.sys("devices/system/node/node0/cpulist", "0-3\n")
    tree.sys("devices/system/node/node1/cpulist", "4-6\n")
    cpus(tree, {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3", 4: "4-5", 5: "4-5", 6: "6"})
    found = read_topology(tree.roots)
    assert found.online == (0, 1, 2, 3, 4, 5, 6) and found.possible == tuple(range(8))
    assert found.isolated == (6,) and found.numa
    assert found.domains() == (
        Domain(0, 0, (0, 1)),
        Domain(0, 1, (2, 3)),
        Domain(1, 2, (4, 5)),
        Domain(1, 3, (6,)),
    )


def test_cpu_directories_where_no_list_is_kept(tree: Tree) -> None:
    for name in ("cpu0", "cpu10", "cpufreq", "cpuidle"):
        tree.sys(f"{CPU}/{name}/uevent", "")
    assert read_topology(tree.roots).online == (0, 10)


def test_a_cache_that_does_not_name_its_own_cpu_is_not_believed(tree: Tree) -> None:
    tree.sys(f"{CPU}/online", "0-1\n")
    cpus(tree, {0: "1", 1: "garbage"})
    assert read_topology(tree.roots).caches == {}


@pytest.mark.parametrize(
    ("stat", "accounted"),
    [
        ("cpu0 1 0 1 1 0 0 500 0 0 0\ncpu1 1 0 1 1 0 0 3 0 0 0\n", False),
        ("cpu0 1 0 1 1 0 0 500 0 0 0\ncpu1 1 0 1 1 0 9 3 0 0 0\n", True),
        ("cpu0 1 0 1 1 0 0 5 0 0 0\n", None),  # too early to tell
        ("", None),
    ],
)
def test_whether_interrupt_time_is_accounted(tree: Tree, stat: str, accounted: bool | None) -> None:
    tree.proc("stat", "cpu  1 1 1 1 1 1 1\n" + stat if stat else "")
    assert read_topology(tree.roots).irq_time is accounted


@given(
    st.sets(st.integers(0, 63)), st.dictionaries(st.integers(0, 63), st.integers(0, 3)),
    st.dictionaries(st.integers(0, 63), st.integers(0, 7)),
)  # fmt: skip
def test_every_cpu_is_in_exactly_one_domain(
    online: set[int], nodes: dict[int, int], caches: dict[int, int]
) -> None:
    domains = Topology(tuple(sorted(online)), nodes=nodes, caches=caches).domains()
    listed = [cpu for domain in domains for cpu in domain.cpus]
    assert sorted(listed) == sorted(online)
    for domain in domains:
        assert {nodes.get(cpu) for cpu in domain.cpus} == {domain.node}
        assert len({caches.get(cpu) for cpu in domain.cpus}) == 1
