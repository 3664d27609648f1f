"""Job files that did harm once, or could: behind either fence, no byte of other files changes."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from bait import Bait
from machine import digest, loop
from program import FENCES, NO_FENCE, iopstui

CONSTRUCTOR = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void ran(void) { creat("%s", 0600); }
"""

# name: (job file, allowed exit codes)
OWN = {
    "an engine by path": ("[a]\nrw=read\nsize=4k\nioengine={here}/e.so\nfoo=1", {3}),
    "an external engine": ("[a]\nrw=read\nsize=4k\nioengine=external:{here}/e.so\nfoo=1", {3}),
    "an engine and its option": ("[a]\nrw=read\nsize=4k\nioengine={here}/e.so\nhipri=1", {3}),
    "an unknown engine": ("[a]\nrw=read\nsize=4k\nioengine=sg", {3}),
    "laid out over a file": (
        "[a]\nfilename={F}/missing\nrw=read\nsize=1m\n[b]\nfilename={F}/keep\nrw=read\nsize=1m",
        {1, 2, 3},
    ),
    "a list laid out over a file": ("[a]\nfilename={F}/missing:{F}/keep\nrw=read\nsize=1m", {1}),
    "an included format": ("[a]\ndirectory={F}\nrw=write\nsize=4k\ninclude {here}/x.inc", {2}),
    "an included directory": ("[a]\nrw=write\nsize=4k\ninclude {here}/d.inc", {2}),
    "a format": ("[a]\ndirectory={F}\nrw=write\nsize=4k\nfilename_format=keep", {3}),
    "hexadecimal files": ("[a]\ndirectory={F}\nrw=write\nsize=4k\nnrfiles=0x2", {2}),
    "hexadecimal jobs": ("[a]\ndirectory={F}\nrw=write\nsize=4k\nnumjobs=0x2", {2}),
    "a keyword": ("[a]\ndirectory={F}\nrw=write\nsize=4k\nnumjobs=$ncpus", {2}),
    "a sum": ("[a]\ndirectory={F}\nrw=write\nsize=4k\nnumjobs=$ncpus+1", {2}),
    "removed afterwards": ("[a]\ndirectory={F}\nrw=read\nsize=4k\nnrfiles=2\nunlink=1", {3}),
    "a section that is a device": (
        "[a]\nfilename={here}/new\nrw=read\nsize=4k\n"
        "[/dev/loop-control]\nrw=write\nsize=64k\noffset=16m\nallow_mounted_write=1",
        {2, 3},
    ),
    "a log over a file": ("[a]\nfilename={F}/keep\nrw=read\nsize=4k\nwrite_bw_log={F}/log", {3}),
    "a log over a link": ("[a]\nfilename={F}/keep\nrw=read\nsize=4k\nwrite_iolog={F}/link", {3}),
    "two globals": ("[global]\ndirectory={F}\n[globalx]\nrw=write\nsize=4k\n[a]\nsize=4k", {2}),
    "an open bracket": ("[a\nfilename={F}/keep\nrw=write\nsize=4k", {2}),
    "a carriage return": ("[a]\nrw=read\nsize=4k\nfilename={F}/new\x0bx\rrw=write", {2}),
    "an existing file": ("[a]\nfilename={F}/keep\nrw=write\nsize=4k", {3}),
    "an existing file of a directory": ("[keep]\ndirectory={F}\nrw=write\nsize=4k", {0}),
    "through a link": ("[a]\nfilename={F}/link\nrw=randwrite\nsize=4k", {3}),
    "make files": ("[keep]\ndirectory={F}\nioengine=filecreate\nfilesize=4k\nnrfiles=3", {0, 1, 3}),
    "a pattern from a file": ("[a]\nfilename={F}/keep\nrw=read\nsize=4k\nbuffer_pattern='{F}/keep'",
                              {0, 1, 2}),
}  # fmt: skip

# job files on a directory of the user: the size of what iopstui makes there is limited
SCRATCH = {
    "an offset beyond": "[a]\nrw=write\noffset=2g\nsize=16m",
    "an increment": "[a]\nrw=write\nsize=16m\nnumjobs=4\noffset_increment=1g",
    "blocks above the size": "[a]\nrw=write\nsize=16m\nbs=1g",
    "zones": "[a]\nrw=write\nsize=16m\nzonemode=strided\nzonesize=1g\nzonerange=2g",
    "many files": "[a]\nrw=write\nsize=600m\nnrfiles=7\nnumjobs=3",
    "a comment behind a number": "[a]\nrw=read\nsize=400m # each\nnumjobs=4 ; four",
    "a comment behind a name": "[a]\nrw=read\nsize=4m\nfilename=datafile.tmp ; the same\n"
                               "[b]\nrw=read\nsize=4m\nfilename=datafile.tmp",
    "appended": "[a]\nrw=write\nsize=16m\nfile_append=1\nloops=100",
    "filled": "[a]\nrw=write\nfill_device=1\nbs=1m",
    "another directory": "[a]\nrw=write\nsize=4k\ninclude {here}/d.inc",
    "an escape": "[a]\nrw=write\nsize=4k\nfilename=../../keep",
}  # fmt: skip


@contextlib.contextmanager
def small(place: Path, size: int) -> Iterator[Path]:
    """A file system in memory."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)
        place.rmdir()


class Peak:
    """The most bytes that were allocated on a file system at once."""

    def __init__(self, place: Path) -> None:
        self.bytes = 0
        self._place = place
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            space = os.statvfs(self._place)
            self.bytes = max(self.bytes, (space.f_blocks - space.f_bfree) * space.f_frsize)


@pytest.fixture
def bait(here: Path) -> Bait:
    made = Bait(here / "F")
    (here / "x.inc").write_text("filename_format=keep\n")
    (here / "d.inc").write_text(f"directory={here / 'F'}\nfilename=keep\n")
    (here / "c.c").write_text(CONSTRUCTOR % (here / "ran"))
    return made


def library(here: Path) -> None:
    """An object whose constructor leaves a trace: loading it is enough."""
    subprocess.run(["cc", "-shared", "-fPIC", "-o", here / "e.so", here / "c.c"], check=True)


def leave(here: Path) -> None:
    for name in ("x.inc", "d.inc", "c.c", "e.so", "job.fio"):
        (here / name).unlink(missing_ok=True)


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("how", OWN)
def test_a_job_file_of_ones_own(how: str, fence: str, here: Path, bait: Bait) -> None:
    if "engine" in how:
        library(here)
    text, codes = OWN[how]
    job = here / "job.fio"
    job.write_text(text.format(here=here, F=bait.top) + "\n", newline="")
    done = iopstui("run", "--job", str(job), cwd=here, fence=fence)
    assert bait.harm() == []
    assert not (here / "ran").exists(), "a library was loaded"
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr
    leave(here)


@pytest.mark.parametrize("fence", FENCES)
def test_no_library_is_loaded_while_a_sweep_is_planned(fence: str, here: Path, bait: Bait) -> None:
    library(here)
    job = here / "job.fio"
    job.write_text(f"[a]\nrw=read\nsize=4k\nioengine=external:{here}/e.so\nfoo=1\n")
    done = iopstui("sweep", ".", "--job", str(job), "--axis", "iodepth=1,2", "--dry-run",
                   cwd=here, fence=fence)  # fmt: skip
    assert not (here / "ran").exists()
    assert done.returncode == 3, done.stderr
    leave(here)


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("how", SCRATCH)
def test_scratch_files_stay_as_small_as_promised(
    how: str, fence: str, here: Path, bait: Bait
) -> None:
    """Without --size: at most 512 MiB, by the counters of a file system of its own."""
    job = here / "job.fio"
    job.write_text(SCRATCH[how].format(here=here, F=bait.top) + "\n")
    with small(here / "mnt", 4 << 30) as place, Peak(place) as peak:
        done = iopstui("run", str(place), "--job", str(job), "--set", "runtime=2",
                       "--set", "direct=0", cwd=here, fence=fence)  # fmt: skip
        assert list(place.iterdir()) == []
    assert peak.bytes < (512 + 32) << 20
    assert bait.harm() == []
    assert done.returncode in (0, 1, 2, 3), done.stderr
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr
    leave(here)


@pytest.mark.parametrize("rw", ["read", "write"])
def test_without_any_fence_ones_own_writing_jobs_need_a_word(rw: str, here: Path) -> None:
    job = here / "own.fio"
    job.write_text(f"[a]\nrw={rw}\nsize=1m\nfilename={here / 'data'}\n")
    done = iopstui("run", "--job", str(job), cwd=here, fence=NO_FENCE)
    if rw == "read":
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 3 and "--no-fence" in done.stderr
        assert not (here / "data").exists()
        done = iopstui("run", "--job", str(job), "--no-fence", cwd=here, fence=NO_FENCE)
        assert done.returncode == 0, done.stderr
    assert (here / "data").stat().st_size == 1 << 20
    done = iopstui("run", ".", "--job", "randwrite-4k", "--set", "runtime=1", "--size", "8m",
                   "--set", "direct=0", cwd=here, fence=NO_FENCE)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (here / "data").unlink()
    job.unlink()


@pytest.mark.parametrize("fence", FENCES)
def test_a_reading_job_has_a_device_for_reading_only(fence: str, here: Path) -> None:
    """The fence decides, not fio's readonly switch: the program that runs as fio opens the device
    for writing itself."""
    with loop(here / "disk.img") as node:
        before = digest(node)
        script = here / "fio"
        script.write_text(FAKE_WRITER.format(node=node, real=shutil.which("fio")))
        script.chmod(0o755)
        done = iopstui("run", node, "--job", "randread-4k", "--set", "runtime=1", cwd=here,
                       fence=fence, IOPSTUI_FIO=str(script))  # fmt: skip
        assert digest(node) == before
        assert "refused: Permission denied" in done.stderr, done.stderr
        script.unlink()


FAKE_WRITER = """#!/bin/sh
case "$*" in *--status-interval*)
    (echo harm >{node}) 2>/dev/null || echo "refused: Permission denied" >&2
esac
exec {real} "$@"
"""


@pytest.mark.parametrize(
    ("more", "code", "why"),
    [
        ("rw=write", 3, "second run would overwrite"),
        ("rw=read\nwrite_bw_log=log", 2, "every run would overwrite it"),
    ],
)
def test_a_sweep_is_refused_before_its_first_point(
    more: str, code: int, why: str, here: Path
) -> None:
    """Not only before the second point, because of files that the first point has made."""
    job = here / "own.fio"
    job.write_text(f"[a]\nfilename={here}/new\nsize=64k\n{more}\n")
    sweep = ("sweep", "--job", str(job), "--axis", "bs=4k,8k", "--settle", "0", "--measure", "1")
    done = iopstui(*sweep, cwd=here)
    assert done.returncode == code and why in done.stderr, done.stderr
    assert [path.name for path in here.iterdir()] == ["own.fio"]
    if code == 3:
        done = iopstui(*sweep, "--destroy-data", f"{here}/new", cwd=here)
        assert done.returncode == 0, done.stderr
        (here / "new").unlink()
    job.unlink()


@pytest.mark.parametrize("fence", FENCES)
def test_a_device_is_read_beside_a_new_file(fence: str, here: Path) -> None:
    job = here / "own.fio"
    with loop(here / "disk.img") as node:
        before = digest(node)
        job.write_text(f"[a]\nrw=read\nsize=128k\nfilename={node}:{here}/new\n")
        done = iopstui("run", "--job", str(job), cwd=here, fence=fence)
        assert done.returncode == 0, done.stderr
        assert digest(node) == before and (here / "new").stat().st_size == 64 << 10
    job.unlink()
    (here / "new").unlink()


@pytest.mark.parametrize("fence", FENCES)
def test_new_files_get_their_names_and_nothing_else_is_left(fence: str, here: Path) -> None:
    (here / "data").mkdir()
    job = here / "own.fio"
    for rw in ("read", "write"):
        job.write_text(f"[{rw}]\nrw={rw}\nsize=1m\ndirectory={here / 'data'}\nnumjobs=2\n"
                       f"[b{rw}]\nrw={rw}\nsize=64k\nfilename={here}/data/x{rw}\n"
                       f"write_bw_log={here}/log{rw}\n")  # fmt: skip
        done = iopstui("run", "--job", str(job), cwd=here, fence=fence)
        assert done.returncode == 0, done.stderr
        names = {f"{rw}.0.0", f"{rw}.1.0", f"x{rw}"}
        assert names <= {path.name for path in (here / "data").iterdir()}
        assert (here / f"log{rw}_bw.3.log").stat().st_size
    assert len(list((here / "data").iterdir())) == 6
    again = iopstui("run", "--job", str(job), cwd=here, fence=fence)
    assert again.returncode == 3 and "exists" in again.stderr
    shutil.rmtree(here / "data")
    for path in here.iterdir():
        path.unlink()


# own job files that are useful, and the files that must exist afterwards
LEGIT = {
    "filename of global beside a directory": (
        "[global]\nfilename=x\n[a]\ndirectory={here}/data\nrw=write\nsize=64k", {"x": 65536}),
    "an existing file elsewhere": (
        "[a]\nfilename=/etc/passwd:{here}/data/new\nrw=read\nbs=512\nsize=2k", {"data/new": 1024}),
    "read and removed": ("[a]\nfilename={here}/data/new\nrw=read\nsize=64k\nunlink=1", {}),
    "made when opened": (
        "[a]\nfilename={here}/data/new\nrw=read\nsize=64k\ncreate_on_open=1", {"data/new": 65536}),
    "a colon in a directory": (
        "[a]\ndirectory={here}/data/c\\:d\nrw=write\nsize=64k", {"data/c:d/a.0.0": 65536}),
    "a backslash": ("[a]\nfilename=data/b\\s\nrw=write\nsize=64k", {"data/b\\s": 65536}),
    "verified": (
        "[a]\nfilename=data/v\nrw=write\nsize=64k\nverify=crc32c", {"data/v": 65536}),
}  # fmt: skip


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("how", LEGIT)
def test_what_job_files_are_for_works(how: str, fence: str, here: Path) -> None:
    (here / "data" / "c:d").mkdir(parents=True)
    text, expected = LEGIT[how]
    job = here / "own.fio"
    job.write_text(text.format(here=here) + "\n")
    before = os.listdir("/etc")
    done = iopstui("run", "--job", str(job), cwd=here, fence=fence)
    assert done.returncode == 0, done.stderr
    assert "denied" not in done.stderr and "Read-only" not in done.stderr
    job.unlink()
    found = {str(path.relative_to(here)): path.stat().st_size
             for path in here.rglob("*") if path.is_file()}  # fmt: skip
    assert found == expected
    assert os.listdir("/etc") == before
    shutil.rmtree(here / "data")
    (here / "x").unlink(missing_ok=True)


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("new", ["", ":{here}/new"])
def test_a_file_that_is_too_short_is_said_to_be(new: str, fence: str, here: Path) -> None:
    (here / "short").write_bytes(b"s" * 4096)
    job = here / "own.fio"
    job.write_text(f"[a]\nrw=write\nsize=1m\nfilename={here}/short"
                   + new.format(here=here) + "\n")  # fmt: skip
    done = iopstui("run", "--job", str(job), "--destroy-data", str(here / "short"), cwd=here,
                   fence=fence)  # fmt: skip
    assert done.returncode == 1 and "shorter than its size=" in done.stderr
    assert (here / "short").stat().st_size == 4096
    for path in here.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[a]\nrw=read\nsize=4k\nfilename=-", "standard input"),
        ("[a]\nrw=read\nsize=4k\nfilename=n\nwrite_bw_log=no/l", "does not exist"),
        ("[iopstui-end]\n[a]\nrw=write\nsize=4k\nfilename=n", "marks the end"),
    ],
)
def test_what_cannot_work_is_refused_before_it_starts(text: str, why: str, here: Path) -> None:
    job = here / "own.fio"
    job.write_text(text + "\n")
    done = iopstui("run", "--job", str(job), cwd=here)
    assert done.returncode == 2 and why in done.stderr, done.stderr
    job.unlink()
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("rw", ["read", "write"])
@pytest.mark.parametrize("numjobs", [1, 4])
def test_files_of_a_job_leave_a_small_file_system_its_last(
    numjobs: int, rw: str, fence: str, here: Path
) -> None:
    """It fills faster than anybody can look; only a limit in the kernel can stop it in time."""
    job = here / "job.fio"
    job.write_text(f"[a]\nrw={rw}\nsize=1g\nbs=64k\nnumjobs={numjobs}\ndirectory={here}/mnt\n")
    with small(here / "mnt", 64 << 20) as place, Peak(place) as peak:
        done = iopstui("run", "--job", str(job), cwd=here, fence=fence)
        left = os.statvfs(place)
    assert peak.bytes <= 61 << 20 and left.f_bavail >= left.f_blocks // 21
    # whichever limit is reached first
    told = ("a file may grow to", "only 5 % free space left")
    assert done.returncode == 1 and any(one in done.stderr for one in told), done.stderr
    leave(here)
