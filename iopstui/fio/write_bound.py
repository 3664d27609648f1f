"""The most that a job can write, and the job that only lays out another job's files.

fio makes all files of a job beforehand with ``create_only=1``. Options that only say how the job
runs are removed: with some of them creating the files would take minutes, or never end (fio
3.33).

fio(1): ``size`` (``io_size``) is what each clone of a job transfers, reads and writes together, and
again for each of its ``loops``; ``time_based`` ignores that; ``rate`` bounds what a clone writes in
a second. Only data that fio counts is included, not a file system's journal."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iopstui.fio.inspect import SectionFiles
from iopstui.fio.job_shape import may_write
from iopstui.fio.job_text import count_of, expand_variables, largest_block
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section
from iopstui.model.fio.rows import duration_s, flag
from iopstui.model.sizes import part_bytes, size_bytes

# fio would wait for startdelay; with io_submit_mode=offload the threads that would submit are
# started and never end
_RUN_OPTIONS = (
    "startdelay",
    "io_submit_mode",
    # options that would remove the files, which must exist afterwards
    "create_on_open",
    "unlink",
    "unlink_each_loop",
    # with zonemode=zbd fio looks at the file's zones before it makes the file, and fails
    "zonemode",
    "zonesize",
    "zonerange",
    "zoneskip",
)
# nothing is measured, so fio need not calibrate the CPU's clock (60 ms of CPU), nor look through
# all block devices (0.1 s for 200)
_UNMEASURED = {"clocksource": "clock_gettime", "disk_util": "0"}
_BLOCK_SIZES = ("blocksize", "bsrange", "blocksize_range", "bssplit")
# at least a page is written at once: fio fills files in blocks of the job's size, and 3 bytes at a
# time would take for ever
MIN_BLOCK = 4096
IDLE_S = 30.0


def layout_text(text: str) -> str:
    """Return the job ``text`` changed for a run with --create_only=1."""
    text = jobfile.with_overrides(text, _UNMEASURED, removed=_RUN_OPTIONS)
    sections = jobfile.effective_sections(text)
    if any(map(_has_small_blocks, sections)) and not any(map(_has_small_files, sections)):
        return jobfile.with_overrides(text, {"bs": str(MIN_BLOCK)}, removed=_BLOCK_SIZES)
    return text


def _has_small_blocks(section: jobfile.Section) -> bool:
    texts = [section.options.get(name, "") for name in ("bs", *_BLOCK_SIZES)]
    sizes = [size_bytes(part) for text in texts for part in re.split("[,/:-]", text)]
    return any(size is not None and size < MIN_BLOCK for size in sizes)


def _has_small_files(section: jobfile.Section) -> bool:
    """Whether the section has files smaller than MIN_BLOCK, which can't be written in larger
    blocks."""
    options = section.options
    files = size_bytes(options.get("nrfiles", "1")) or 1
    sizes = [size_bytes(part) for part in options.get("filesize", "").split("-")]
    total = size_bytes(options.get("size", ""))
    file_sizes = [size for size in (*sizes, total // files if total else None) if size is not None]
    return any(size < MIN_BLOCK for size in file_sizes)


@dataclass(frozen=True, slots=True)
class LayoutWork:
    """The work done so far by fio's processes: bytes in the files, bytes passed to write(2) and the
    like (``None``: unknown), and CPU time in seconds. ``waits``: one of them waits for a device
    now, or is stopped (SIGSTOP)."""

    file_bytes: int
    written: int | None
    busy_s: float
    waits: bool


class StallDetector:
    """Detects that laying out files no longer makes progress."""

    def __init__(self) -> None:
        self._last: LayoutWork | None = None
        self._since = 0.0

    def feed(self, t: float, work: LayoutWork) -> bool:
        """Note the ``work`` at ``t`` seconds. Return True once nothing was written, and hardly
        anything else done, for ``IDLE_S``."""
        last, self._last = self._last, self._last or work
        if last is None or self._has_progressed(t - self._since, last, work):
            self._last, self._since = work, t
            return False
        return t - self._since > IDLE_S

    def _has_progressed(self, seconds: float, last: LayoutWork, work: LayoutWork) -> bool:
        return (
            work.written is None
            or work.waits
            or (last.file_bytes, last.written) != (work.file_bytes, work.written)
            # fio's main process checks every 10 ms whether its jobs have ended
            or work.busy_s - last.busy_s > 0.05 * max(seconds, 1.0)
        )


STALLED = (
    "fio does not finish creating the job's files: it has written nothing and used no CPU "
    f"for {IDLE_S:.0f} s. `fio --create_only=1` hangs like this with some options. Use files "
    "that exist already, or remove options until it works"
)
OFFLOAD_STALLED = (
    f"fio hangs: no figures and no CPU use for {IDLE_S:.0f} s. fio itself hangs like this "
    "with io_submit_mode=offload here; use --set io_submit_mode=inline"
)
SILENT_LAYOUT = (
    f"no figures from fio for {IDLE_S:.0f} s, and hardly any CPU use. The job either waits "
    "(thinktime, startdelay) or hangs; Ctrl-C ends it"
)


SizeOf = Callable[[str], "int | None"]
# with these options, something else decides how much is written: a trace, the free space, a random
# pace
_UNBOUNDED_OPTIONS = ("read_iolog", "fill_device", "fill_fs", "profile")
_RATE_PROCESS = "rate_process"
RAMPS = 2
"""Seconds of additional writes at the job's rate that are allowed, because fio catches up after it
was late."""


@dataclass(frozen=True, slots=True)
class WriteBound:
    """The most that jobs may write, in bytes, and the block size: a clone may exceed its size by
    one block if the size is not a multiple of it."""

    nominal: int
    excess: int

    @property
    def total(self) -> int:
        return self.nominal + self.excess


def max_written_bytes(text: str, sections: Sequence[SectionFiles], size_of: SizeOf) -> int | None:
    """``write_bound`` as one number: the most bytes that all jobs together write."""
    bound = write_bound(text, sections, size_of)
    return None if bound is None else bound.total


def write_bound(text: str, sections: Sequence[SectionFiles], size_of: SizeOf) -> WriteBound | None:
    """Maximum writes of all jobs together; ``None``: limited only by the device.

    ``size_of`` returns the size of an existing file or device, in bytes."""
    nominal = spare = 0
    for job, files in zip(jobfile.effective_sections(text), sections, strict=True):
        before = _layout_bytes(job, files, size_of)
        if before is None:
            return None
        nominal += before
        if not may_write(job.options):
            continue
        clone = _by_size(job, files, size_of), _by_rate(job)
        bounds = [bound for bound in clone if bound is not None]
        if not bounds or any(flag(job.options, name) for name in _UNBOUNDED_OPTIONS):
            return None
        clones = count_of(job.options.get("numjobs"))
        nominal += clones * min(bounds)
        spare += clones * largest_block(job)
    return WriteBound(nominal, spare)


def layout_bytes(text: str, sections: Sequence[SectionFiles], size_of: SizeOf) -> int | None:
    """Bytes that fio fills files with before the jobs begin; ``None``: not known."""
    layouts = [
        _layout_bytes(job, files, size_of)
        for job, files in zip(jobfile.effective_sections(text), sections, strict=True)
    ]
    sizes = [size for size in layouts if size is not None]
    return sum(sizes) if len(sizes) == len(layouts) else None


def run_seconds(text: str, writers: bool = True) -> float | None:
    """An upper bound in seconds of the time that the jobs (``writers``: only those that write) may
    take by their own options, one stage after another. ``None`` if a job has no limit of time."""
    times = [
        _seconds(job)
        for job in jobfile.effective_sections(text)
        if not writers or may_write(job.options)
    ]
    known_times = [time for time in times if time is not None]
    staged = any(
        name in job.options
        for job in jobfile.effective_sections(text)
        for name in ("stonewall", "wait_for_previous", "wait_for")
    )
    if not times or len(known_times) < len(times):
        return None
    return sum(known_times) if staged else max(known_times)


def _by_size(job: Section, files: SectionFiles, size_of: SizeOf) -> int | None:
    if flag(job.options, "time_based"):
        return None
    loops = count_of(job.options.get("loops"))
    existing = _existing_bytes(files, size_of)
    text = next(
        filter(_is_set, (_first_option(job, "io_size", "io_limit"), _first_option(job, "size"))),
        "100%",
    )
    size = part_bytes(text, existing, job.options)
    return None if size is None else loops * size


def _is_set(text: str) -> bool:
    """Whether an option is set: fio treats 0 as if it were not."""
    return bool(text) and text.rstrip("%").strip("0") != ""


def _existing_bytes(files: SectionFiles, size_of: SizeOf) -> int | None:
    """The bytes of existing files that one clone works on; ``None`` if a file does not exist."""
    sizes = [size_of(path) for path in files.paths]
    existing_sizes = [size for size in sizes if size]
    return sum(existing_sizes) if sizes and len(existing_sizes) == len(sizes) else None


def _by_rate(job: Section) -> int | None:
    seconds = _seconds(job)
    if seconds is None or expand_variables(job.options.get(_RATE_PROCESS, "linear")) != "linear":
        return None
    paces = []
    if (rate := _write_rate(job, "rate")) is not None:
        paces.append(rate)
    if (rate := _write_rate(job, "rate_iops")) is not None:
        paces.append(rate * largest_block(job))
    return round(min(paces) * (seconds + RAMPS)) if paces else None


def _write_rate(job: Section, name: str) -> int | None:
    """The write rate in a value "R,W,T"; a single rate holds for each direction."""
    parts = expand_variables(job.options.get(name, "")).split(",")
    part = parts[1] if len(parts) > 1 else parts[0]
    return size_bytes(part, job.options) or None


def _seconds(job: Section) -> float | None:
    runtime = _first_option(job, "runtime", "timeout")
    # fio reads 0.5s as 0, which means no limit
    run = None if "." in runtime else duration_s(runtime)
    ramp = _first_option(job, "ramp_time") or "0"
    before = duration_s(ramp)
    return run + before if run and before is not None else None


def _layout_bytes(job: Section, files: SectionFiles, size_of: SizeOf) -> int | None:
    """Bytes in files that don't exist yet and are filled first, because the job reads or
    overwrites. Existing files can't be extended: the fence does not allow fio to create them
    anew."""
    kind = (_first_option(job, "rw", "readwrite") or "read").partition(":")[0]
    reads = "read" in kind or kind in ("rw", "randrw")
    if not (reads or flag(job.options, "overwrite")):
        return 0
    if all(size_of(path) is not None for path in files.paths):
        return 0
    if any(name.startswith("offset") for name in job.options):
        return None
    file_size = _first_option(job, "filesize", "file_size").rpartition("-")[2]
    if _is_set(file_size):
        file_bytes = size_bytes(file_size, job.options)
        return None if file_bytes is None else file_bytes * len(files.paths)
    size = size_bytes(_first_option(job, "size"), job.options)
    return None if not size else size * max(1, files.sets)


def _first_option(job: Section, *names: str) -> str:
    return next((expand_variables(job.options[name]) for name in names if name in job.options), "")
