"""What new kernels count of NVMe controllers, paths and namespaces, as rates of an interval.

The names are those of the kernel's files (linux/nvme/diag.py), as published; none was seen yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from iopstui import format as units
from iopstui.model.figures.figure import SECONDS, Figure, Rows
from iopstui.model.rates import delta

SOURCE = "nvme_diag"
"""The name of these counters in a sample (KernelSample.more), and of the figures in a frame."""
NVME_COUNTERS: Mapping[str, tuple[str, str]] = {
    "reset_count": ("reset", "resets"),
    "reconnect_count": ("reconnect", "reconnects"),
    "multipath_failover_count": ("failover", "failovers"),
    "command_retry_count": ("command retried", "commands retried"),
    "command_error_count": ("command failed", "commands failed"),
    "io_requeue_no_usable_path_count": ("I/O queued again for lack of a usable path",
                                        "I/Os queued again for lack of a usable path"),
    "io_fail_no_available_path_count": ("I/O failed for lack of a path",
                                        "I/Os failed for lack of a path"),
}  # fmt: skip
"""Files in diag/ of an NVMe controller, path or namespace, with what one and several of it are."""
_END = "_count"
_CONTROLLER = re.compile(r"nvme\d+")


def figure_name(file: str) -> str:
    """The name of its figure."""
    return file.removesuffix(_END)


ROWS: Rows = tuple(Figure(figure_name(file), "1/s", several, over=SECONDS)
                   for file, (_, several) in NVME_COUNTERS.items())  # fmt: skip


def counter_name(file: str, name: str) -> str:
    """The name of a counter of an object ("nvme0c1n1")."""
    return f"{file} {name}"


def diag_rates(
    now: Mapping[str, int] | None, before: Mapping[str, int] | None, seconds: float
) -> dict[str, dict[str, float]] | None:
    """Rates by object and figure; ``None`` where nothing was read twice. A counter that went
    backwards belongs to a new object: it has no rate in this interval."""
    if not now or not before:
        return None
    objects: dict[str, dict[str, float]] = {}
    for counter, value in now.items():
        file, _, name = counter.partition(" ")
        growth = delta(value, before.get(counter))
        if growth is not None:
            objects.setdefault(name, {})[figure_name(file)] = growth / seconds
    return objects or None


def diag_texts(name: str, growths: Mapping[str, int | None]) -> Iterator[str]:
    """What was counted of an object, by file, in words. A controller's failed commands may be no
    I/O: a page that a monitor asked for."""
    for file, (one, several) in NVME_COUNTERS.items():
        growth = growths.get(file)
        if growth and not (file == "command_error_count" and _CONTROLLER.fullmatch(name)):
            yield units.counted(growth, one, several)
