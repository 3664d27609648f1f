"""Tunables: settings of a device's queue that can be changed while a job runs.

Source: Documentation/ABI/stable/sysfs-block, Documentation/core-api/irq/irq-affinity.rst."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from iopstui.errors import UsageError
from iopstui.model.block.device import BlockDevice, Hctx


@dataclass(frozen=True, slots=True)
class Tunable:
    """A file below /sys/block/X/queue. ``values`` has all allowed values; it is empty for a number
    (at least ``minimum``). ``meaning`` describes its effect."""

    name: str
    meaning: str
    values: tuple[str, ...] = ()
    minimum: int | None = None
    unit: str = ""


TUNABLES: Mapping[str, Tunable] = {
    tunable.name: tunable
    for tunable in (
        Tunable("rq_affinity", "CPU that completes a request: 0 the CPU of the interrupt, 1 one "
                               "that shares a cache with the submitter, 2 the "
                               "submitter", ("0", "1", "2")),
        Tunable("scheduler", "the I/O scheduler of every hardware queue"),
        Tunable("nomerges", "0 tries all merges, 1 only simple ones, 2 none", ("0", "1", "2")),
        Tunable("nr_requests", "requests each queue may hold (at least 4)", minimum=4),
        Tunable("wbt_lat_usec", "read latency from which writeback is throttled; 0 off, -1 default",
                minimum=-1, unit="µs"),
        Tunable("read_ahead_kb", "read-ahead of buffered reads", minimum=0, unit="KiB"),
        Tunable("max_sectors_kb", "largest request the file systems may send", minimum=1,
                unit="KiB"),
        Tunable("iostats", "whether the kernel counts I/Os in /proc/diskstats", ("0", "1")),
    )
}  # fmt: skip

# a change of the scheduler resets these (wbt: bfq turns it off)
RESET_BY_SCHEDULER = ("nr_requests", "wbt_lat_usec")


def with_side_effects(names: Iterable[str]) -> frozenset[str]:
    """``names`` and the tunables that the kernel resets when these change."""
    all_names = frozenset(names)
    return all_names | frozenset(RESET_BY_SCHEDULER) if "scheduler" in all_names else all_names


SCHEDULER_PREFIX = "iosched/"
"""Prefix of a scheduler's own settings, which are files in a directory below ``queue``."""

# A discard_max_bytes of 0 can't be undone (Linux 6.12 refuses the old value). The other files
# decide what reaches the medium, or accept no values; no tunable changes them
NEVER_RESTORED = frozenset({
    "discard_max_bytes", "write_cache", "write_zeroes_unmap_max_bytes", "io_poll", "io_poll_delay",
    "zoned",
})  # fmt: skip


def is_restorable(name: str) -> bool:
    """Whether a file below ``queue`` may be restored."""
    value_name = name.removeprefix(SCHEDULER_PREFIX)
    return _FILE.fullmatch(value_name) is not None and name not in NEVER_RESTORED


def restore_rank(name: str) -> tuple[int, str]:
    """A sort key for the order in which tunables are restored: first the scheduler, then its own
    settings and those it resets, then the limits, and last the values that the kernel derives from
    these."""
    if name.startswith(SCHEDULER_PREFIX):
        return 1, name
    return _RANKS.get(name, 2), name


_FILE = re.compile(r"[a-z][a-z0-9_]*")
_RANKS = {"scheduler": 0, "nr_requests": 3, "wbt_lat_usec": 3, "read_ahead_kb": 4}

IRQ_PREFIX = "irq"


def irq_of(name: str) -> int | None:
    """The interrupt number of a tunable named "irq/36"; ``None`` for a setting of the queue."""
    prefix, _, number = name.partition("/")
    return int(number) if prefix == IRQ_PREFIX and number.isdecimal() else None


_REQUEST = re.compile(r"([^=]*)=([^@]*)(?:@([0-9]{1,6}(?:\.[0-9]{1,3})?))?")


@dataclass(frozen=True, slots=True)
class TunableRequest:
    """A tunable change requested on the command line, ``after_s`` seconds into the run
    (``None``: before the run starts)."""

    name: str
    value: str
    after_s: float | None = None

    def __str__(self) -> str:
        """NAME=VALUE[@SECONDS], as ``parse_tunable`` reads it."""
        after = f"@{self.after_s:g}" if self.after_s is not None else ""
        return f"{self.name}={self.value}{after}"


def parse_tunable(text: str) -> TunableRequest:
    """Parse NAME=VALUE or NAME=VALUE@SECONDS. Raises UsageError if invalid.

    Only values that no device could accept are refused here; the kernel decides about the
    others."""
    match = _REQUEST.fullmatch(text.strip())
    if match is None or not match[1].strip() or not match[2].strip():
        raise UsageError(f"{text!r} is not NAME=VALUE or NAME=VALUE@SECONDS")
    name, value = match[1].strip(), match[2].strip()
    tunable = TUNABLES.get(name)
    if tunable is None and irq_of(name) is None:
        raise UsageError(f"{name!r} is not a tunable; known are {', '.join(TUNABLES)}, irq/NUMBER")
    if tunable is not None and tunable.values and value not in tunable.values:
        raise UsageError(f"{name} takes {', '.join(tunable.values)}, not {value!r}")
    if (
        tunable is not None
        and tunable.minimum is not None
        and not _at_least(value, tunable.minimum)
    ):
        raise UsageError(f"{name} takes a whole number from {tunable.minimum} up, not {value!r}")
    return TunableRequest(name, value, None if match[3] is None else float(match[3]))


def _at_least(text: str, minimum: int) -> bool:
    return re.fullmatch(r"-?[0-9]{1,10}", text) is not None and int(text) >= minimum


def current_scheduler(text: str) -> str:
    """The scheduler that is marked in a text like "none [mq-deadline] kyber"; without a mark, the
    text itself."""
    for word in text.split():
        if word.startswith("[") and word.endswith("]"):
            return word[1:-1]
    return text.strip()


def why_rq_affinity_cannot_matter(device: BlockDevice, online: Sequence[int]) -> str | None:
    """Return why rq_affinity can't move anything on this device; ``None`` if it can. From
    block/blk-mq.c, blk_mq_complete_need_ipi: a completion is only moved if its request came from
    another CPU than the one its interrupt is served on. ``online`` are all online CPUs, whether or
    not the job may use them (empty: unknown)."""
    if device.kind == "null_blk":
        return "null_blk completes on the submitting CPU and never moves a completion"
    if not device.hctxs:
        return (
            f"{device.name} is bio-based: it has no blk-mq requests whose completions rq_affinity "
            "could move"
        )
    if len(online) == 1:
        return "there is only one CPU"
    if device.kernel.threaded_irqs:
        return "its interrupts run as threads (threadirqs), so the kernel does not move completions"
    usable = set(online) or {cpu for hctx in device.hctxs for cpu in hctx.cpus}
    crowded = [h for h in device.hctxs if len(set(h.cpus) & usable) > 1]
    if crowded or len(device.hctxs) == 1:
        return None
    if all(_has_own_interrupt(device, hctx, usable) for hctx in device.hctxs):
        return "every CPU has a hardware queue and an interrupt of its own"
    # "blk-mq: don't redirect completion for hctx withs only one ctx mapping", and 6.5's
    # "blk-mq: check on cpu id when there is only one ctx mapping"
    if device.kernel.version is not None and (6, 1) <= device.kernel.version < (6, 5):
        return (
            "each of its queues serves one CPU, and Linux 6.1 to 6.4 completes such a queue's I/O "
            "on the CPU of its interrupt"
        )
    return None


def _has_own_interrupt(device: BlockDevice, hctx: Hctx, usable: set[int]) -> bool:
    """Whether an interrupt serves this queue alone, on its own CPUs. An interrupt on none of the
    ``usable`` CPUs counts, too."""
    vectors = [vector for vector in device.irqs if vector.hctx == hctx.index]
    return any(
        not vector.shared
        and (not set(vector.effective_cpus) & usable or set(vector.effective_cpus) & set(hctx.cpus))
        for vector in vectors
    )
