"""Energy that CPUs and memory have used, by the kernel's counters (RAPL).

Sources: Documentation/power/powercap/powercap.rst, drivers/powercap/intel_rapl_common.c (AMD's
processors have the same files). Only root may read them (CVE-2020-8694)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iopstui.linux.kernel_files import KernelFile, Roots, list_names, read_count, read_text

PACKAGE, MEMORY, PLATFORM = "package", "dram", "platform"
_DIRECTORY = "class/powercap"
# intel-rapl-mmio:0 counts the same package again
_DOMAIN = re.compile(r"intel-rapl:[0-9]{1,4}(:[0-9]{1,4})?")
_KINDS = (("package", PACKAGE), ("dram", MEMORY), ("psys", PLATFORM))
# larger than any counter's range; a counter that states no range wraps at 2^32 units or more
_MAX_UJ = 1 << 63


@dataclass(slots=True)
class _Domain:
    """A counter of microjoules. The kernel's value wraps to 0 after ``max_uj``; ``total_uj`` does
    not wrap."""

    kind: str
    file: KernelFile
    max_uj: int
    last_uj: int
    total_uj: int = 0

    def read(self) -> int:
        """Energy used since the counter was opened (µJ). Raises OSError or ValueError."""
        now = int(self.file.read_attribute())
        more = now - self.last_uj
        self.total_uj += more if more >= 0 else more + self.max_uj + 1
        self.last_uj = now
        return self.total_uj


class EnergyCounters:
    """The energy counters of this machine, kept open. Counters of the same kind are added up."""

    def __init__(self, roots: Roots) -> None:
        self._domains = [*_domains(roots)]

    def read(self) -> dict[str, int] | None:
        """Microjoules used since this was made, by kind of domain; ``None`` if there are no
        counters. A kind with an unreadable counter is left out from then on."""
        energy_uj: dict[str, int] = {}
        failed: set[str] = set()
        for domain in self._domains:
            try:
                energy_uj[domain.kind] = energy_uj.get(domain.kind, 0) + domain.read()
            except (OSError, ValueError):
                failed.add(domain.kind)
        if failed:
            self._close(failed)
        return {kind: used_uj for kind, used_uj in energy_uj.items() if kind not in failed} or None

    def close(self) -> None:
        """Close all files; may be called twice."""
        self._close({domain.kind for domain in self._domains})

    def _close(self, kinds: set[str]) -> None:
        for domain in self._domains:
            if domain.kind in kinds:
                domain.file.close()
        self._domains = [domain for domain in self._domains if domain.kind not in kinds]


def why_no_energy(roots: Roots) -> str:
    """Why the counters can't be read, in words; "" if they can."""
    places = [*_domain_directories(roots)]
    if not places:
        return "this machine has no energy counters (RAPL), like most virtual machines"
    counters = EnergyCounters(roots)
    try:
        return "" if counters.read() else "only root may read the energy counters"
    finally:
        counters.close()


def _domains(roots: Roots) -> Iterator[_Domain]:
    for kind, place in _domain_directories(roots):
        try:
            file = KernelFile(place / "energy_uj")
        except OSError:
            continue
        try:
            last = int(file.read_attribute())
        except (OSError, ValueError):
            file.close()
            continue
        yield _Domain(kind, file, read_count(place / "max_energy_range_uj") or _MAX_UJ, last)


def _domain_directories(roots: Roots) -> Iterator[tuple[str, Path]]:
    top = roots.sys / _DIRECTORY
    for name in sorted(list_names(top)):
        if _DOMAIN.fullmatch(name):
            domain_name = read_text(top / name / "name") or ""
            for begin, kind in _KINDS:
                if domain_name.startswith(begin):
                    yield kind, top / name
