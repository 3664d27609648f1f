"""What a job must not do, whatever it works on, because no guard of devices could see it.

fio's own list of the options it has understood is examined, so ``include`` files and
``${VAR}`` are resolved. Source of the meanings: fio(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Options = Iterable[tuple[str, str]]

_COMMANDS = frozenset({"exec_prerun", "exec_postrun"})
_UNNAMED = {
    "opendir": "works on all files of a directory",
    "read_iolog": "works on the files that a recorded log names",
    "replay_redirect": "works on the files that a recorded log names",
    "merge_blktrace_file": "merges recorded logs into a file",
}
_SETTINGS = {
    "ioscheduler": "changes the device's scheduler and leaves it so (use --knob scheduler=NAME)",
    "cgroup": "makes a control group",
    "cgroup_weight": "changes a control group",
}
_REMOVES = frozenset({"unlink", "unlink_each_loop"})
_LOGS = frozenset({"write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"})
# these reach storage by filename= alone, through open(2)
_BY_NAME = frozenset(
    {
        "cpuio", "falloc", "ftruncate", "io_uring", "libaio", "mmap", "null", "posixaio", "psync",
        "pvsync", "pvsync2", "splice", "sync", "vsync",
    }
)  # fmt: skip
# these reach other machines by ways of their own, but can't write under --readonly
_READERS = frozenset(
    {
        "filecreate", "filestat", "gfapi", "gfapi_async", "http", "libhdfs", "libiscsi", "nbd",
        "net", "netsplice", "nfs", "rados", "rbd",
    }
)  # fmt: skip
_OTHERS = frozenset(
    {
        "binject", "dev-dax", "dfs", "dircreate", "dirdelete", "dirstat", "e4defrag", "exec",
        "external", "filedelete", "fileoperations", "ime_aio", "ime_psync", "ime_psyncv",
        "io_uring_cmd", "libblkio", "libpmem", "libzbc", "mtd", "pmemblk", "rdma", "sg", "xnvme",
    }
)  # fmt: skip


def objections(options: Options, writes: bool, fenced: bool) -> tuple[str, ...]:
    """Why this job is refused, in words; empty if it isn't. ``writes``: fio says it writes.
    ``fenced``: the kernel keeps fio from writing elsewhere than granted."""
    return tuple(dict.fromkeys(_objections(options, writes, fenced)))


def _objections(options: Options, writes: bool, fenced: bool) -> Iterator[str]:
    for name, value in options:
        if name in _COMMANDS:
            yield f"{name}= runs a command, and jobs get no shell"
        elif name in _UNNAMED:
            yield f"{name}= {_UNNAMED[name]}, which can't be checked beforehand"
        elif name in _SETTINGS:
            yield f"{name}= {_SETTINGS[name]}"
        elif name in ("mem", "iomem") and ":" in value:
            yield f"{name}={value} writes its buffers into a file"
        elif name == "ioengine" and not _allowed(value, writes, fenced):
            yield (
                f"ioengine={value} reaches its storage by another way than filename=, which "
                "can't be guarded"
            )


def _allowed(engine: str, writes: bool, fenced: bool) -> bool:
    if engine in _BY_NAME or (engine in _READERS and not writes):
        return True
    known = engine in _READERS | _OTHERS or not engine.replace("_", "").replace("-", "").isalnum()
    # an engine of a later fio, or none at all: fio says so
    return fenced and not known


def removes_files(options: Options) -> bool:
    """True if the job removes the files it worked on (unlink=1)."""
    return any(name in _REMOVES and value != "0" for name, value in options)


def log_prefixes(options: Options) -> tuple[str, ...]:
    """The prefixes of the log files that fio writes; "" for the job's name in its directory."""
    return tuple(value for name, value in options if name in _LOGS)


def written_logs(options: Options) -> tuple[str, ...]:
    """The files that write_iolog= makes (or appends to)."""
    return tuple(value for name, value in options if name == "write_iolog" and value)
