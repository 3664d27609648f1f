"""What no job may do, each with its reason."""

from __future__ import annotations

import pytest

from iopstui.model.fio.jobfile import makes_files, objections, removes_files, spread_format

SHELL = "runs a command, and jobs get no shell"
LOGS = "works on the files that a recorded log names"
BEFOREHAND = "which can't be checked beforehand"
REASONS = {
    "exec_prerun": SHELL,
    "exec_postrun": SHELL,
    "opendir": f"works on all files of a directory, {BEFOREHAND}",
    "read_iolog": f"{LOGS}, {BEFOREHAND}",
    "read_iolog_chunked": f"{LOGS}, {BEFOREHAND}",
    "replay_redirect": f"{LOGS}, {BEFOREHAND}",
    "replay_no_stall": f"{LOGS}, {BEFOREHAND}",
    "merge_blktrace_file": f"merges recorded logs into a file, {BEFOREHAND}",
    "dp_scheme": f"reads a file of its own, {BEFOREHAND}",
    "verify_state_load": f"reads a file of an earlier run, {BEFOREHAND}",
    "filename_format": "makes up file names; give them with filename=",
    "profile": "brings options that the job file does not show",
    "unique_filename": "changes the names of files",
    "ioscheduler": "changes the device's scheduler and leaves it so (use --knob scheduler=NAME)",
    "cgroup": "creates a control group",
    "cgroup_weight": "changes a control group",
    "cgroup_nodelete": "leaves a control group",
}
ENGINES = (
    "cpuio, filecreate, filestat, io_uring, io_uring_cmd, libaio, mmap, null, posixaio, psync, "
    "pvsync, pvsync2, splice, sync, vsync"
)


@pytest.mark.parametrize(("option", "reason"), REASONS.items())
def test_an_option_is_refused_with_its_reason(option: str, reason: str) -> None:
    assert objections([("rw", "read"), (option, "x")]) == (f"{option}= {reason}",)


@pytest.mark.parametrize("option", ["mem", "iomem"])
def test_buffers_in_a_file_are_refused(option: str) -> None:
    said = f"{option}=mmap:/x writes its buffers into a file"
    assert objections([(option, "mmap:/x")]) == (said,)
    assert objections([(option, "mmap")]) == ()


def test_engines_that_can_be_guarded_are_named() -> None:
    for engine in ENGINES.split(", "):
        assert objections([("ioengine", engine)]) == ()
    assert objections([("ioengine", "rados"), ("ioengine", "rados")]) == (
        "ioengine=rados is not among the engines that reach their storage by filename= alone, "
        f"which are {ENGINES}",
    )
    assert objections([("ioengine", "libaoi")]) == (
        "ioengine=libaoi is not among the engines that can be guarded (did you mean libaio?)",
    )
    for path in ("external:x", "./x.so", "external"):
        assert objections([("ioengine", path)]) == (f"ioengine={path} loads a program from a file",)


def test_the_one_format_of_names_that_is_known() -> None:
    assert spread_format(12) == "$filenum/12.$jobnum"
    assert objections([("filename_format", spread_format(12))]) == ()
    for other in ("$filenum/x.$jobnum", "/$filenum/1.$jobnum", "$filenum/1.$jobnum/"):
        assert objections([("filename_format", other)])


def test_what_removes_and_what_makes_files() -> None:
    for name in ("unlink", "unlink_each_loop"):
        assert removes_files([("rw", "read"), (name, "1")]) and removes_files([(name, "")])
        assert not removes_files([(name, "0")])
    assert not removes_files([("rw", "1")])
    assert makes_files([("rw", "read"), ("ioengine", "filecreate")])
    assert not makes_files([("ioengine", "filestat"), ("rw", "filecreate")])
