"""CPU clock frequencies and the deepest idle states allowed.

Sources: Documentation/admin-guide/pm/cpufreq.rst, Documentation/admin-guide/pm/cpuidle.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui.linux.roots import Roots
from iopstui.linux.sysattr import list_names, read_count, read_text
from iopstui.model.findings.conditions import CpuState

MAX_CPUS = 64
# governors and C-states are settings: each CPU's are read anew in every so many readings
CPU_GROUPS = 4
_GOVERNOR = re.compile(r"[a-z][a-z0-9_-]{0,30}")
_STATE = re.compile(r"state[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class _Files:
    """Files of one CPU. ``sleeps`` are its C-states: how long each takes to leave, and the file
    that says whether it is disabled."""

    governor: str
    khz: str
    khz_most: int | None
    sleeps: tuple[tuple[int, str], ...]


def parse_governor(text: str) -> str | None:
    """scaling_governor: "powersave"."""
    text = text.strip()
    return text if _GOVERNOR.fullmatch(text) else None


class CpuStates:
    """Reads CPU states repeatedly, for at most ``most`` CPUs; their files are looked up once."""

    def __init__(self, roots: Roots, most: int = MAX_CPUS) -> None:
        self._base = roots.sys / "devices/system/cpu"
        self._max_cpus = most
        self._files: dict[int, _Files] = {}
        self._settings: dict[int, tuple[str | None, int | None]] = {}
        self._group = 0

    def forget(self) -> None:
        """Find the files anew: other CPUs are online than before."""
        self._files, self._settings = {}, {}

    def read(self, cpus: Sequence[int]) -> Mapping[int, CpuState]:
        """The first ``most`` of these. Frequencies are read each time."""
        self._group = (self._group + 1) % CPU_GROUPS
        states: dict[int, CpuState] = {}
        for place, cpu in enumerate(cpus[: self._max_cpus]):
            files = self._files.get(cpu)
            if files is None:
                files = self._files[cpu] = self._find(cpu)
            last = self._settings.get(cpu)
            if last is None or place % CPU_GROUPS == self._group:
                last = parse_governor(read_text(files.governor) or ""), _wake(files)
                self._settings[cpu] = last
            governor, wake_us = last
            khz = read_count(files.khz) or None
            states[cpu] = CpuState(governor, khz, files.khz_most, wake_us)
        return states

    def _find(self, cpu: int) -> _Files:
        clock, idle = self._base / f"cpu{cpu}/cpufreq", self._base / f"cpu{cpu}/cpuidle"
        sleeps = []
        for name in list_names(idle):
            latency = read_count(idle / name / "latency") if _STATE.fullmatch(name) else None
            if latency is not None:
                sleeps.append((latency, str(idle / name / "disable")))
        return _Files(
            governor=str(clock / "scaling_governor"),
            khz=str(clock / "scaling_cur_freq"),
            khz_most=read_count(clock / "cpuinfo_max_freq") or None,
            sleeps=tuple(sorted(sleeps, reverse=True)),
        )


def _wake(files: _Files) -> int | None:
    """The longest that is not disabled: what is deeper matters no more, so it isn't read."""
    return next((latency for latency, off in files.sleeps if not read_count(off)), None)
