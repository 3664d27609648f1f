"""What a job may not do, and what fio is allowed to write to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import Refused
from iopstui.model import job_rules
from iopstui.session.write_guard import Guarded, WriteGuard
from iopstui.sources.fio_inspect import JobFacts, named_paths
from iopstui.sources.roots import Roots

DEBUG = """\
parse    7 Parsing section [global]
parse    7 handle_option=directory, ptr=/a:/b\\:c
file     7 add file common
parse    7 Parsing section [one]
file     7 add file /dev/sdz
parse    7 Parsing section [two]
parse    7 handle_option=directory, ptr=/own
file     7 add file x\ry
"""


def facts(writes: bool, *paths: str, **options: str) -> JobFacts:
    return JobFacts(("a",), paths, writes, paths, tuple(options.items()))


def guard(facts_: JobFacts, cwd: Path, *words: str, scratch: Path | None = None) -> WriteGuard:
    files = tuple(os.path.join(cwd, path) for path in facts_.paths)
    return WriteGuard(Guarded(facts_, files, cwd, scratch), words, Roots())


def test_files_are_joined_as_fio_joins_them() -> None:
    assert named_paths(DEBUG) == (
        "/a/common", "/a//dev/sdz", "/b:c/common", "/b:c//dev/sdz", "/own/common", "/own/x\ry",
    )  # fmt: skip


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize(
    "option",
    [
        ("exec_prerun", "x"), ("exec_postrun", "x"), ("opendir", "/x"), ("read_iolog", "x"),
        ("ioscheduler", "none"), ("cgroup", "x"), ("mem", "mmap:/x"), ("iomem", "mmapshared:/x"),
        ("ioengine", "filedelete"), ("ioengine", "external:/x.so"), ("ioengine", "./x.so"),
        ("ioengine", "io_uring_cmd"), ("replay_redirect", "/dev/x"),
    ],
)  # fmt: skip
def test_refused_whatever_it_works_on(option: tuple[str, str], writes: bool, tmp_path: Path
                                      ) -> None:  # fmt: skip
    with pytest.raises(Refused) as caught:
        guard(facts(writes, **dict([option])), tmp_path).check({})
    assert option[0] in caught.value.message


@given(st.sampled_from(["rbd", "http", "nbd"]))
def test_engines_of_other_machines_may_read(engine: str) -> None:
    assert job_rules.objections([("ioengine", engine)], False, True) == ()
    assert job_rules.objections([("ioengine", engine)], True, True) != ()


@given(st.text(alphabet="abcdefgh", min_size=9))
def test_an_unknown_engine_runs_only_fenced_in(engine: str) -> None:
    assert job_rules.objections([("ioengine", engine)], True, True) == ()
    assert job_rules.objections([("ioengine", engine)], True, False) != ()


def test_names_that_leave_the_scratch_directory(tmp_path: Path) -> None:
    inside = tmp_path / "scratch"
    inside.mkdir()
    guard(facts(True, "a", "b/c"), inside, scratch=inside).check({})
    for name in ("../a", "/etc/passwd", "b/../../c", "."):
        with pytest.raises(Refused):
            guard(facts(True, name), inside, scratch=inside).check({})


def test_a_reading_job_is_granted_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    made = guard(facts(False, "f"), tmp_path)
    made.check({})
    made.engage({})
    assert made.grants == ()
    made.close()


def test_a_writing_job_is_granted_its_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("x")
    made = guard(facts(True, "f"), tmp_path, str(file))
    made.check({})
    made.engage({})
    info = file.stat()
    assert made.grants == (f"w:{info.st_dev}:{info.st_ino}:{file}",)
    made.close()
    assert made.fds == ()


@pytest.mark.parametrize("name", ["/new", "/sys/new", "/proc/new"])
def test_no_directory_of_the_system_is_granted(name: str, tmp_path: Path) -> None:
    made = guard(facts(True, name), tmp_path)
    made.check({})
    assert made.grants == ()


def test_what_is_new_may_be_made_where_it_belongs(tmp_path: Path) -> None:
    made = guard(facts(True, "new"), tmp_path)
    made.check({})
    info = tmp_path.stat()
    assert made.grants == (f"d:{info.st_dev}:{info.st_ino}:{tmp_path}",)
    assert stat.S_ISDIR(info.st_mode)


def test_a_file_is_locked_against_a_second_job(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    first, second = (guard(facts(False, "f"), tmp_path) for _ in range(2))
    first.engage({})
    with pytest.raises(Refused, match="No second job"):
        second.engage({})
    first.close()
    second.engage({})
    second.close()
