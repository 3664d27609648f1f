"""Options that no job may use, whatever its target. Source of the meanings: fio(1).

This explains a refusal before fio sees the file; what holds is the fence (fio/fence_exec.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Options = Iterable[tuple[str, str]]

PASSTHROUGH = "io_uring_cmd"
"""The engine that sends commands past the block layer, to an NVMe generic device."""
# they reach storage by filename= alone, through open(2), and load nothing from a path
ENGINES = frozenset(
    {
        "cpuio", "filecreate", "filestat", "io_uring", PASSTHROUGH, "libaio", "mmap", "null",
        "posixaio", "psync", "pvsync", "pvsync2", "splice", "sync", "vsync",
    }
)  # fmt: skip
_MAKES_FILES = frozenset({"filecreate"})
_COMMANDS = frozenset({"exec_prerun", "exec_postrun"})
_OPENS_UNNAMED_FILES = {
    "opendir": "works on all files of a directory",
    "read_iolog": "works on the files that a recorded log names",
    "replay_": "works on the files that a recorded log names",
    "merge_blktrace": "merges recorded logs into a file",
    "dp_scheme": "reads a file of its own",
    "verify_state_load": "reads a file of an earlier run",
}
_NAMES = {
    "filename_format": "makes up file names; give them with filename=",
    "profile": "brings options that the job file does not show",
    "unique_filename": "changes the names of files",
}
# the only form that iopstui writes; fio reports the names that it makes of it, as of all others
_SPREAD = re.compile(r"\$filenum/\d+\.\$jobnum")
_SETTINGS = {
    "ioscheduler": "changes the device's scheduler and leaves it so (use --knob scheduler=NAME)",
    "cgroup": "creates a control group",
    "cgroup_weight": "changes a control group",
    "cgroup_nodelete": "leaves a control group",
}
_REMOVES = frozenset({"unlink", "unlink_each_loop"})
_ENDS_OTHERS = frozenset({"exitall", "exitall_on_error", "exit_what"})
PREFIX_LOGS = ("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log")
FILE_LOGS = ("write_iolog",)


def spread_format(index: int) -> str:
    """The filename_format= that puts the files of section ``index`` into directories 0, 1 ..."""
    return f"$filenum/{index}.$jobnum"


def objections(options: Options) -> tuple[str, ...]:
    """Why this job is refused, in words; empty if it is allowed."""
    return tuple(dict.fromkeys(_objections(options)))


def _objections(options: Options) -> Iterator[str]:
    for name, value in options:
        if name in _COMMANDS:
            yield f"{name}= runs a command, and jobs get no shell"
        elif name in _NAMES and not (name == "filename_format" and _SPREAD.fullmatch(value)):
            yield f"{name}= {_NAMES[name]}"
        elif name in _SETTINGS:
            yield f"{name}= {_SETTINGS[name]}"
        elif name in ("mem", "iomem") and ":" in value:
            yield f"{name}={value} writes its buffers into a file"
        elif name == "ioengine" and value not in ENGINES:
            yield f"ioengine={value} {_why_not(value)}"
        else:
            unnamed = next((what for what in _OPENS_UNNAMED_FILES if name.startswith(what)), None)
            if unnamed is not None:
                yield f"{name}= {_OPENS_UNNAMED_FILES[unnamed]}, which can't be checked beforehand"


def _why_not(engine: str) -> str:
    if "/" in engine or engine.startswith("external"):
        return "loads a program from a file"
    import difflib

    similar = difflib.get_close_matches(engine, sorted(ENGINES), n=1)
    if similar:
        return f"is not among the engines that can be guarded (did you mean {similar[0]}?)"
    return (
        "is not among the engines that reach their storage by filename= alone, which are "
        + ", ".join(sorted(ENGINES))
    )


def removes_files(options: Options) -> bool:
    """True if the job removes the files it worked on (unlink=1)."""
    return any(name in _REMOVES and value != "0" for name, value in options)


def ends_others(options: Options) -> bool:
    """True if one of its jobs may end others, by a signal of fio's own (exitall=1)."""
    return any(name in _ENDS_OTHERS and value != "0" for name, value in options)


def makes_files(options: Options) -> bool:
    """True if it makes files although fio takes it for one that only reads."""
    return any(name == "ioengine" and value in _MAKES_FILES for name, value in options)
