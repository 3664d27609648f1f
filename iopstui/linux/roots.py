"""Roots of the kernel's file trees: the real ones, or fixtures in tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Roots:
    """Root directories of all kernel files that iopstui reads."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    run: Path = Path("/run")

    @classmethod
    def under(cls, base: Path) -> Roots:
        """Return the same layout below ``base`` (a fixture tree)."""
        return cls(base / "proc", base / "sys", base / "dev", base / "run")

    @property
    def real(self) -> bool:
        """True if this is the running machine, not a fixture tree."""
        return self.sys == Path("/sys")
