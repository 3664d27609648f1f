"""The job that only creates another job's files, and a check that it makes progress.

fio makes all files of a job beforehand with ``create_only=1``. Options that only say how the job
runs are removed: with some of them creating the files would take minutes, or never end (fio
3.33)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from iopstui.model.fio import jobfile
from iopstui.model.fio.sizes import size_bytes

# fio would wait for startdelay; with io_submit_mode=offload the threads that would submit are
# started and never end
_RUN_OPTIONS = (
    "startdelay",
    "io_submit_mode",
    # the files must exist afterwards, and stay
    "create_on_open",
    "unlink",
    "unlink_each_loop",
)
# nothing is measured, so fio need not calibrate the CPU's clock (60 ms of CPU)
_CLOCK = {"clocksource": "clock_gettime"}
_BLOCK_SIZES = ("blocksize", "bsrange", "blocksize_range", "bssplit")
# files are written in blocks of the job's size: with 3 bytes at a time that would take for ever, so
# never less than a page is written at once
MIN_BLOCK = 4096
IDLE_S = 30.0


def layout_text(text: str) -> str:
    """Return the job ``text`` changed for a run with --create_only=1."""
    text = jobfile.with_overrides(text, _CLOCK, removed=_RUN_OPTIONS)
    sections = jobfile.effective_sections(text)
    if any(map(_has_small_blocks, sections)) and not any(map(_has_small_files, sections)):
        return jobfile.with_overrides(text, {"bs": str(MIN_BLOCK)}, removed=_BLOCK_SIZES)
    return text


def _has_small_blocks(section: jobfile.Section) -> bool:
    texts = [section.options.get(name, "") for name in ("bs", *_BLOCK_SIZES)]
    sizes = [size_bytes(part) for text in texts for part in re.split("[,/:-]", text)]
    return any(size is not None and size < MIN_BLOCK for size in sizes)


def _has_small_files(section: jobfile.Section) -> bool:
    """Whether the section has small files: a file must be at least as long as a block."""
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
        """Note the ``work`` at ``t`` seconds. Returns True once nothing was written and hardly
        anything done for ``IDLE_S``."""
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
