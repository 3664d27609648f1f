"""The energy counters of a made-up machine: which ones are read, and how they wrap around."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees import Tree

from iopstui.linux.counters import energy
from iopstui.linux.counters.energy import EnergyCounters, why_no_energy
from iopstui.linux.counters.sampler import KernelSampler
from iopstui.model.sources import POWER, figures


def domain(tree: Tree, name: str, kind: str, used: int | str = 0, most: int | str = 999) -> Path:
    """The counter file of a new domain. In reality, /sys/class/powercap has links to such
    directories."""
    place = tree.roots.sys / "class/powercap" / name
    tree.attributes(place, name=kind, energy_uj=str(used), max_energy_range_uj=str(most))
    return place / "energy_uj"


def test_counters_of_a_kind_are_added_up(tree: Tree) -> None:
    packages = [domain(tree, f"intel-rapl:{n}", f"package-{n}", 100) for n in (0, 1)]
    memory = domain(tree, "intel-rapl:0:1", "dram", 5)
    domain(tree, "intel-rapl:0:0", "core", 5)
    domain(tree, "intel-rapl:2", "psys", 7)
    # the same package through another register, which would count twice
    domain(tree, "intel-rapl-mmio:0", "package-0", 100)
    counters = EnergyCounters(tree.roots)
    assert counters.read() == {"package": 0, "dram": 0, "platform": 0}
    packages[0].write_text("150\n")
    packages[1].write_text("130\n")
    memory.write_text("6\n")
    assert counters.read() == {"package": 80, "dram": 1, "platform": 0}
    counters.close()
    counters.close()


def test_a_counter_that_begins_again_goes_on(tree: Tree) -> None:
    file = domain(tree, "intel-rapl:0", "package-0", 990, most=999)
    counters = EnergyCounters(tree.roots)
    for text, total in (("999", 9), ("4", 14), ("4", 14), ("3", 1013)):
        file.write_text(text + "\n")
        assert counters.read() == {"package": total}


@pytest.mark.parametrize("text", ["", "many\n", "-\n"])
def test_a_kind_that_can_not_be_read_is_left_out_for_good(tree: Tree, text: str) -> None:
    file = domain(tree, "intel-rapl:0", "package-0")
    domain(tree, "intel-rapl:1", "package-1")
    domain(tree, "intel-rapl:0:0", "dram")
    counters = EnergyCounters(tree.roots)
    file.write_text(text)
    assert counters.read() == {"dram": 0}, "half of the packages would be too little"
    file.write_text("5\n")
    assert counters.read() == {"dram": 0}


def test_no_counters(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    assert EnergyCounters(tree.roots).read() is None
    assert "no energy counters" in why_no_energy(tree.roots)
    domain(tree, "intel-rapl:0", "package-0")
    assert why_no_energy(tree.roots) == ""

    def refuse(path: Path) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(energy, "KernelFile", refuse)
    assert EnergyCounters(tree.roots).read() is None
    assert why_no_energy(tree.roots) == "only root may read the energy counters"


def test_a_sample_has_them_and_the_figures_are_watts(tree: Tree) -> None:
    file = domain(tree, "intel-rapl:0", "package-0", 0, most=10**12)
    sampler = KernelSampler(tree.roots, [], [])
    first = sampler.sample().more
    file.write_text("90000000\n")
    second = sampler.sample().more
    sampler.close()
    assert figures(second, first, 2.0)[POWER] == {"package": 45.0, "dram": None, "platform": None}
    assert POWER not in figures({}, {}, 1.0)
