"""What a job may not do, and what fio may write to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import Refused
from iopstui.fio.fence import Grant
from iopstui.fio.inspect import JobFacts, SectionFiles, opened_files
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, FILE, Target
from iopstui.model.fio import jobfile
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.safety import write_guard
from iopstui.safety.write_guard import CheckedJob, WriteGuard
from iopstui.session import run_preparation

DEBUG = """\
parse    7 Parsing section [global]
file     7 dup files: 0
file     7 file 0x7e00 "/a/common" added at 0
parse    7 Parsing section [one]
file     7 add file sdz
file     7 file 0x7f00 "/a//dev/sdz" added at 0
one: (g=0): rw=read, bs=(R) 4096B-4096B, ioengine=psync, iodepth=1
file     7 file 0x7f00 "/etc/passwd" added at 0 (but not by fio)
parse    7 Parsing section [two]
file     7 file 0x7f01 "A/two.0.0" added at 0
file     7 file 0x7f02 "A/two.0.1" added at 1
file     7 file 0x7f03 "B/two.1.0" added at 0
file     7 file 0x7f04 "B/x\ry "z"" added at 1
parse    7 Parsing section [iopstui-end]
"""


def facts(writes: bool, *paths: str, **options: str) -> JobFacts:
    return JobFacts((SectionFiles("a", paths),), writes, tuple(options.items()))


def guard(facts_: JobFacts, cwd: Path, *words: str, scratch: Path | None = None) -> WriteGuard:
    files = tuple(os.path.join(cwd, path) for path in facts_.paths)
    return WriteGuard(CheckedJob(facts_, files, cwd, scratch), words, Roots())


def test_files_are_those_that_fio_says_it_opens() -> None:
    assert opened_files(DEBUG) == (
        SectionFiles("one", ("/a/common", "/a//dev/sdz"), 1),
        SectionFiles("two", ("/a/common", "A/two.0.0", "A/two.0.1", "B/two.1.0", 'B/x\ry "z"'), 2),
    )


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize(
    "option",
    [
        ("exec_prerun", "x"), ("exec_postrun", "x"), ("opendir", "/x"), ("read_iolog", "x"),
        ("ioscheduler", "none"), ("cgroup", "x"), ("mem", "mmap:/x"), ("iomem", "mmapshared:/x"),
        ("ioengine", "filedelete"), ("ioengine", "external:/x.so"), ("ioengine", "./x.so"),
        ("ioengine", "sg"), ("replay_redirect", "/dev/x"),
    ],
)  # fmt: skip
def test_refused_whatever_it_works_on(option: tuple[str, str], writes: bool, tmp_path: Path
                                      ) -> None:  # fmt: skip
    with pytest.raises(Refused) as caught:
        guard(facts(writes, **dict([option])), tmp_path).check({})
    assert option[0] in caught.value.message


@given(st.text(alphabet="abcdefgh/._-", min_size=1))
def test_only_known_engines_run(engine: str) -> None:
    assert jobfile.objections([("ioengine", engine)])


@pytest.mark.parametrize("engine", sorted(jobfile.ENGINES))
def test_the_known_engines_are_no_objection(engine: str) -> None:
    assert jobfile.objections([("ioengine", engine), ("rw", "write")]) == ()


def test_names_that_leave_the_scratch_directory(tmp_path: Path) -> None:
    inside = tmp_path / "scratch"
    inside.mkdir()
    guard(facts(True, "a", "b/c"), inside, scratch=inside).check({})
    for name in ("../a", "/etc/passwd", "b/../../c", "."):
        with pytest.raises(Refused):
            guard(facts(True, name), inside, scratch=inside).check({})


def test_a_reading_job_may_read_its_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("x")
    made = guard(facts(False, "f"), tmp_path)
    made.check({})
    made.engage({})
    info = file.stat()
    assert made.reads == (Grant(str(file), info.st_dev, info.st_ino),)
    assert made.writes == ()
    made.close()


def test_a_writing_job_is_granted_its_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("x")
    made = guard(facts(True, "f"), tmp_path, str(file))
    made.check({})
    made.engage({})
    info = file.stat()
    assert made.writes == (Grant(str(file), info.st_dev, info.st_ino),)
    assert made.reads == ()
    made.close()
    assert made.fds == () and made.writes == ()


def test_a_file_that_does_not_exist_is_granted_to_nobody(tmp_path: Path) -> None:
    made = guard(facts(True, "new"), tmp_path)
    made.check({})
    made.engage({})
    assert made.writes == made.reads == ()
    made.close()


def test_another_file_in_the_place_of_the_locked_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("x")
    made = guard(facts(False, "f"), tmp_path)
    monkeypatch.setattr(write_guard, "grant", lambda path: Grant(path, 0, 0))
    with pytest.raises(Refused, match="was replaced by another file"):
        made.engage({})
    assert made.fds == ()


def test_a_file_is_locked_against_a_second_job(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    first, second = (guard(facts(False, "f"), tmp_path) for _ in range(2))
    first.engage({})
    with pytest.raises(Refused, match="Cannot start a second job on"):
        second.engage({})
    first.close()
    second.engage({})
    second.close()


@pytest.mark.parametrize(("inside", "read"), [(True, 0), (False, 1)])
def test_devices_are_looked_at_again_where_a_file_may_be_on_one(
    inside: bool, read: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_text("x")
    looked: list[Roots] = []
    monkeypatch.setattr(run_preparation, "read_devices", lambda roots: looked.append(roots) or {})
    made = guard(facts(False, "f"), tmp_path, scratch=tmp_path if inside else None)
    run_preparation.recheck_writes(
        cast("PreparedJob", SimpleNamespace(guard=made, files=())), Roots()
    )
    assert len(looked) == read == len(made.reads)
    made.close()


@pytest.mark.parametrize("kind", [DEVICE, FILE])
def test_a_device_alone_is_held_exclusively(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the device is held exclusively, mounts and programs of others need no check; otherwise
    all possible users are checked."""
    node = tmp_path / "vdz"
    node.write_text("x")
    device = BlockDevice("vdz", str(node), 254, 48, "virtio-blk", 1 << 20)
    asked: list[tuple[str, object]] = []

    @contextmanager
    def hold(path: str, *_: object) -> Iterator[SimpleNamespace]:
        asked.append(("held", path))
        yield SimpleNamespace(fd=-1, verify=lambda: asked.append(("verified", path)))

    made = guard(facts(True, "vdz"), tmp_path, str(node))
    target = Target(kind, str(node), "vdz")
    monkeypatch.setattr(write_guard, "resolve_target", lambda *_, **__: target)
    monkeypatch.setattr(write_guard.safety, "open_exclusively", hold)

    def check(*_: object, reserved: bool) -> None:
        asked.append(("checked", reserved))

    monkeypatch.setattr(WriteGuard, "_check_target", check)
    made.engage({"vdz": device})
    made.close()
    held = [("held", str(node)), ("checked", True), ("verified", str(node))]
    assert asked == (held if kind == DEVICE else [("checked", False)])
