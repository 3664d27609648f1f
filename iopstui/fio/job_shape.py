"""Read from a job file what the rules of model/findings/diagnosis.py need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import gcd
from typing import TypeVar

from iopstui.errors import UsageError
from iopstui.fio.job_text import expand_variables
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.topology import online_cpus
from iopstui.model.findings.evidence import SYNCHRONOUS, JobShape
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import PASSTHROUGH, effective_sections
from iopstui.model.fio.rows import duration_s, flag
from iopstui.model.sizes import size_bytes
from iopstui.text import printable

# latency_target has fio choose the depth itself
PACES = ("rate", "rate_iops", "thinktime", "flow", "latency_target")
_POLLS = ("hipri", "sqthread_poll")
_SYNCS = ("fsync", "fdatasync", "sync", "fsync_on_close", "end_fsync", "sync_file_range")
# options that may differ between two runs whose depths or block sizes are compared
_DEPTH = frozenset({"iodepth", "numjobs", "bs", "blocksize", "runtime", "time_based",
                    "filename", "directory", "name"})  # fmt: skip
_CPUS = frozenset({"cpus_allowed", "cpus_allowed_policy"})

Options = Mapping[str, str]
Value = TypeVar("Value")


def shape_of(text: str) -> JobShape:
    """The shape of all sections together, which run at the same time. With stonewall, ``jobs`` and
    ``in_flight`` are those of the largest section."""
    jobs = [section.options for section in jobfile.effective_sections(text)]
    if not jobs:
        return JobShape()
    staged = any("stonewall" in o or "wait_for_previous" in o for o in jobs)
    combine = max if staged else sum
    numbers = [_number(options.get("numjobs")) for options in jobs]
    return JobShape(
        jobs=combine(numbers),
        iodepth=_common([_number(options.get("iodepth")) for options in jobs]),
        engine=_common([engine(options) for options in jobs]),
        direct=_common([direct(options) for options in jobs]),
        in_flight=combine(n * _depth(o) for n, o in zip(numbers, jobs, strict=True)),
        paced=_has_option(jobs, PACES),
        polls=_has_option(jobs, _POLLS),
        syncs=_has_option(jobs, _SYNCS),
        block_size=_smallest(jobs),
        writes=any(may_write(options) for options in jobs),
        alignment=_aligned(jobs),
        offloads=any(_offloads(options) for options in jobs),
        sync_interval=min(filter(None, map(_sync_interval, jobs)), default=None),
        pace=_pace(jobs),
    )


def start_delay_s(text: str) -> float:
    """The longest time that all jobs wait before their first I/O (startdelay=, also as a range)."""
    delays = []
    for section in jobfile.effective_sections(text):
        value = section.options.get("startdelay", section.options.get("start_delay", "0"))
        ends = map(duration_s, expand_variables(value).split("-"))
        delays.append(max(end or 0.0 for end in ends))
    return min(delays, default=0.0)


def text_without_depth(text: str, bound: bool = False) -> str:
    """The job without the options in which two runs of different depth differ: runs with equal
    texts may be compared. ``bound``: its CPUs were chosen by the hardware queues, one for each
    job."""
    left_out = _DEPTH | _CPUS if bound else _DEPTH
    parts = (
        sorted(f"{name}={expand_variables(value)}" for name, value in s.options.items()
               if name not in left_out)
        for s in jobfile.effective_sections(text)
    )  # fmt: skip
    return "\n\n".join(["bound"] * bound + ["\n".join(part) for part in parts])


def engine(options: Options) -> str:
    """The ioengine of a job; fio's default is psync."""
    return expand_variables(options.get("ioengine", "psync")).partition(":")[0]


def direct(options: Options) -> bool:
    """Whether I/O bypasses the page cache, as NVMe commands always do."""
    if engine(options) == PASSTHROUGH:
        return True
    if "buffered" in options:
        return not flag(options, "buffered")
    return flag(options, "direct")


def _depth(options: Options) -> int:
    is_synchronous = engine(options) in SYNCHRONOUS and not _offloads(options)
    return 1 if is_synchronous else _number(options.get("iodepth"))


def _offloads(options: Options) -> bool:
    return expand_variables(options.get("io_submit_mode", "")).strip() == "offload"


def _sync_interval(options: Options) -> int | None:
    """The number of writes after which a job syncs; ``None`` if it does not sync after writes."""
    if _has_option([options], ("sync",)):
        return 1
    texts = [options[name] for name in ("fsync", "fdatasync", "sync_file_range") if name in options]
    counts = [_number(text.rpartition(":")[2]) for text in texts if expand_variables(text) != "0"]
    return min(counts, default=None)


def _smallest(jobs: Sequence[Options]) -> int | None:
    """The smallest block size (bytes) of all jobs; ``None`` if one of them has a range or a mix of
    sizes."""
    all_sizes: list[int] = []
    for options in jobs:
        if any(name in options for name in ("bsrange", "blocksize_range", "bssplit")):
            return None
        text = expand_variables(options.get("bs", options.get("blocksize", "4k")))
        sizes = [size_bytes(part, options) for part in re.split("[,/]", text) if part]
        all_sizes += [size for size in sizes if size]
        if not all(sizes):
            return None
    return min(all_sizes, default=None)


def _aligned(jobs: Sequence[Options]) -> int | None:
    """Alignment of all I/Os in bytes: the block size, unless offset or blockalign says otherwise.
    An offset in percent counts as aligned, because fio rounds it to blocks."""
    alignment = 0
    for options in jobs:
        size = _smallest([options])
        aligned = options.get("blockalign", options.get("ba"))
        unit = (
            size
            if aligned is None
            else size_bytes(expand_variables(aligned).split(",")[0], options)
        )
        offset = size_bytes(expand_variables(options.get("offset", "0")), options)
        if not unit:
            return None
        alignment = gcd(alignment, unit, offset or 0)
    return alignment or None


def may_write(options: Options) -> bool:
    """Whether a job's rw (fio's default: read) includes writes."""
    kind = expand_variables(options.get("rw", options.get("readwrite", "read"))).partition(":")[0]
    return "write" in kind or kind in ("rw", "randrw")


def _has_option(jobs: Sequence[Options], names: Sequence[str]) -> bool:
    return any(name in o and expand_variables(o[name]) != "0" for o in jobs for name in names)


def _pace(jobs: Sequence[Options]) -> str:
    given = [[f"{name}={expand_variables(o[name])}" for name in PACES if _has_option([o], [name])]
             for o in jobs]  # fmt: skip
    return " ".join(dict.fromkeys(one for each in given for one in each)) if all(given) else ""


def _common(values: Sequence[Value]) -> Value | None:
    return values[0] if all(value == values[0] for value in values) else None


def _number(text: str | None) -> int:
    digits = expand_variables(text or "1").split(",")[0]
    return max(1, int(digits)) if digits.isdecimal() else 1


# Check the CPU lists of a job, because fio silently reads invalid ones as CPU 0.


OPTIONS = ("cpus_allowed", "verify_async_cpus", "log_compression_cpus")
_PART = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


def check_cpus(text: str, label: str, roots: Roots | None = None) -> None:
    """Raises UsageError if a job would run on a CPU that does not exist, or if a CPU in a list is
    not a number."""
    online = set(online_cpus(roots or Roots()))
    for section in effective_sections(text):
        for name in OPTIONS:
            value = expand_variables(section.options.get(name, ""))
            if value and "$" not in value:
                _check(f"{label}, {name}={printable(value)}", value, online)


def _check(label: str, value: str, online: set[int]) -> None:
    for part in re.split(r"[,:]", value.replace(" ", "")):
        match = _PART.fullmatch(part)
        if match is None:
            raise UsageError(f"{label}: {printable(part)!r} is not a CPU.",
                             "Write CPUs as 0,2 or 0-3.")  # fmt: skip
        first, last = int(match[1]), int(match[2] or match[1])
        missing = next((cpu for cpu in range(first, last + 1) if cpu not in online), None)
        if online and missing is not None:
            raise UsageError(
                f"{label}: CPU {missing} does not exist here, or is offline.",
                f"There are {cpu_list(online)}; iopstui devices shows which queue serves which.",
            )


def cpu_list(cpus: set[int]) -> str:
    """The CPUs as a list in fio's form, in order, with neighbours joined: "0-3,6"."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], cpu]
        else:
            spans.append([cpu])
    return ",".join("-".join(map(str, part)) for part in spans)
