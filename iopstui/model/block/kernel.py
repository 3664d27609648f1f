"""Kernel settings that decide how requests are completed."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kernel:
    """Properties of the running kernel. ``version`` is (major, minor), ``None`` if unknown;
    ``threaded_irqs`` is True if interrupt handlers are threads (threadirqs, PREEMPT_RT)."""

    version: tuple[int, int] | None = None
    threaded_irqs: bool = False


UNKNOWN_KERNEL = Kernel()


def parse_version(release: str) -> tuple[int, int] | None:
    """ "6.12.117-amd64" -> (6, 12)."""
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", release)
    return (int(match[1]), int(match[2])) if match else None
