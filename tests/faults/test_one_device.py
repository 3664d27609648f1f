"""One device with many names in many layers: a user of any of them uses all of them."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from machine import SIZE, attached, digest, loop, mounted, needs, one_partition, sh
from program import FENCES, iopstui, start, wait_for_fio

WRITE = ("--set", "rw=write", "--set", "bs=64k", "--set", "runtime=1")
# a mount to which the kernel writes nothing by itself
QUIET = ("-o", "ro")
MODES = ("write", "randrw", "trim")


def file_system(device: str) -> None:
    sh("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", device)


def node_of(device: str, place: Path) -> str:
    """Make another node of a device, outside of /dev."""
    os.mknod(place, stat.S_IFBLK | 0o600, os.stat(device).st_rdev)
    return str(place)


@contextlib.contextmanager
def program(code: str, *words: str) -> Iterator[None]:
    """Another program that has run ``code`` and waits until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint('ready', flush=True); sys.stdin.read()", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None and other.stdout.readline()
        yield
        other.communicate("")


OPENED = "import sys; f = open(sys.argv[1], 'r+b')"
# Python's own mmap keeps a descriptor
MAP = (
    "import ctypes, os, sys\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\n"
    "libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]\n"
    "fd = os.open(sys.argv[1], os.O_RDWR)\n"
    "place = libc.mmap(None, 4096, {prot}, {flags}, fd, 0)\n"
    "assert place != ctypes.c_void_p(-1).value; os.close(fd)"
)
MAPPED = MAP.format(prot=3, flags=1)
IN_A_THREAD = (
    "import ctypes, sys, threading\nready = threading.Event()\n"
    "def work():\n"
    "    assert ctypes.CDLL(None).unshare(0x400) == 0\n"
    "    f = open(sys.argv[1], 'r+b'); ready.set(); threading.Event().wait()\n"
    "threading.Thread(target=work, daemon=True).start(); ready.wait()"
)


@contextlib.contextmanager
def loop_on_a_node_of_a_mounted_device(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a:
        file_system(a)
        with mounted(a, here / "mnt", *QUIET), attached(node_of(a, here / "b")) as b:
            yield b


@contextlib.contextmanager
def device_below_a_mounted_loop(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a, attached(node_of(a, here / "b")) as b:
        file_system(b)
        with mounted(b, here / "mnt", *QUIET):
            yield a


@contextlib.contextmanager
def loop_on_a_partition_s_node(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a:
        part = one_partition(a)
        file_system(part)
        with attached(node_of(part, here / "b")) as b, mounted(part, here / "mnt", *QUIET):
            yield b


@contextlib.contextmanager
def partition_of_a_loop_on_a_node(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a, attached(node_of(a, here / "b")) as b:
        part = one_partition(b)
        file_system(a)
        with mounted(a, here / "mnt", *QUIET):
            yield part


@contextlib.contextmanager
def loop_over_loop_over_a_node(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a, attached(node_of(a, here / "b")) as b:
        file_system(a)
        with mounted(a, here / "mnt", *QUIET), attached(node_of(b, here / "c")) as c:
            yield c


@contextlib.contextmanager
def node_that_was_removed(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a:
        file_system(a)
        with mounted(a, here / "mnt", *QUIET), attached(node_of(a, here / "b")) as b:
            (here / "b").unlink()
            yield b


@contextlib.contextmanager
def node_on_tmpfs_that_was_replaced(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a, ExitStack() as stack:
        file_system(a)
        (here / "tmp").mkdir()
        sh("mount", "-t", "tmpfs", "tmpfs", str(here / "tmp"))
        stack.callback(sh, "umount", str(here / "tmp"))
        stack.enter_context(mounted(a, here / "mnt", *QUIET))
        b = stack.enter_context(attached(node_of(a, here / "tmp/b")))
        (here / "tmp/b").unlink()
        (here / "tmp/b").write_bytes(b"no node")
        yield b


@contextlib.contextmanager
def swap_by_another_node(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a, attached(node_of(a, here / "b")) as b:
        sh("mkswap", a)
        other = node_of(a, here / "swap")
        sh("swapon", other)
        try:
            yield b
        finally:
            sh("swapoff", other)


@contextlib.contextmanager
def two_loops_of_a_file(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a:
        os.link(here / "a.img", here / "same.img")
        file_system(a)
        with mounted(a, here / "mnt", *QUIET), attached(str(here / "same.img")) as b:
            yield b


@contextlib.contextmanager
def deleted_file_of_two_loops(here: Path) -> Iterator[str]:
    with loop(here / "a.img") as a:
        os.link(here / "a.img", here / "same.img")
        file_system(a)
        with mounted(a, here / "mnt", *QUIET), attached(str(here / "same.img")) as b:
            (here / "a.img").unlink()
            (here / "same.img").unlink()
            yield b


def _with_program(code: str, opened: str, target: str) -> Callable[[Path], Iterator[str]]:
    def made(here: Path) -> Iterator[str]:
        with loop(here / "a.img") as a, attached(a) as b:
            part = one_partition(b)
            names = {"file": str(here / "a.img"), "lower": a, "upper": b, "partition": part,
                     "node": node_of(a, here / "node")}  # fmt: skip
            with program(code, names[opened]):
                yield names[target]

    made.__name__ = f"{opened}_{target}"
    return made


def kinds() -> Iterator[tuple[str, Callable[[Path], AbstractContextManager[str]], str]]:
    for one in (
        loop_on_a_node_of_a_mounted_device, device_below_a_mounted_loop,
        loop_on_a_partition_s_node, partition_of_a_loop_on_a_node, loop_over_loop_over_a_node,
        node_that_was_removed, node_on_tmpfs_that_was_replaced, two_loops_of_a_file,
        deleted_file_of_two_loops,
    ):  # fmt: skip
        yield one.__name__, one, "mounted at"
    yield "swap_by_another_node", swap_by_another_node, "swap"
    words = {"opened": (OPENED, "open for writing"), "mapped": (MAPPED, "mapped for writing"),
             "in_a_thread": (IN_A_THREAD, "open for writing")}  # fmt: skip
    for how, opened in itertools.product(words, ("file", "lower", "node", "upper")):
        for target in ("upper", "partition"):
            made = _with_program(words[how][0], opened, target)
            yield f"{how}-{opened}-{target}", contextlib.contextmanager(made), words[how][1]


KINDS = list(kinds())


@pytest.mark.parametrize(("kind", "why"), [one[1:] for one in KINDS], ids=[k[0] for k in KINDS])
def test_used_by_another_name_or_layer(
    kind: Callable[[Path], AbstractContextManager[str]], why: str, here: Path
) -> None:
    with kind(here) as target:
        for mode in MODES:
            before = digest(target)
            done = iopstui("run", target, "--job", "randread-4k", "--set", f"rw={mode}",
                           "--set", "runtime=1", "--destroy-data", target, cwd=here)  # fmt: skip
            assert done.returncode == 3, (mode, done.stderr)
            assert "in use" in done.stderr and why in done.stderr, done.stderr
            assert why == "swap" or digest(target) == before, mode


@contextlib.contextmanager
def overlay(here: Path, more: str = "") -> Iterator[Path]:
    top = here / "ov"
    for name in ("lower", "upper", "work", "merged"):
        (top / name).mkdir(parents=True)
    options = f"lowerdir={top}/lower,upperdir={top}/upper,workdir={top}/work{more}"
    sh("mount", "-t", "overlay", "overlay", "-o", options, str(top / "merged"))
    try:
        yield top
    finally:
        sh("umount", str(top / "merged"))


def image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(SIZE)
    file_system(str(path))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("place", ["upper/d/img", "merged/d/img", "linked", "bound/img"])
def test_a_loop_device_s_file_in_an_overlay(place: str, lower: bool, here: Path) -> None:
    """Through the overlay and through its layers, by a link(2) and by a bind mount, copied up or
    not."""
    with overlay(here) as top, ExitStack() as stack:
        made = top / ("lower" if lower else "merged") / "d/img"
        image(made)
        through = place.startswith("merged")
        if lower:
            os.utime(top / "merged/d/img")  # this copies it up
        a = stack.enter_context(attached(str(top / ("upper" if through else "merged") / "d/img")))
        stack.enter_context(mounted(a, here / "mnt", *QUIET))
        if place == "linked":
            os.link(top / "upper/d/img", top / "linked")
        if place.startswith("bound"):
            (top / "bound").mkdir()
            sh("mount", "--bind", str(top / "upper/d"), str(top / "bound"))
            stack.callback(sh, "umount", str(top / "bound"))
        target = str(top / place)
        before = digest(target)
        done = iopstui("run", target, "--job", "randread-4k", *WRITE, "--destroy-data", target,
                       cwd=here)  # fmt: skip
        assert digest(target) == before
        assert done.returncode == 3 and "in use" in done.stderr, done.stderr


@pytest.mark.parametrize("code", [OPENED, MAPPED, IN_A_THREAD])
def test_a_file_that_another_program_writes(code: str, here: Path) -> None:
    file = here / "disk.img"
    file.write_bytes(b"precious" * 8192)
    os.link(file, here / "other")
    before = digest(str(file))
    with program(code, str(here / "other")):
        done = iopstui("run", str(file), "--job", "randread-4k", *WRITE, "--destroy-data",
                       str(file), cwd=here)  # fmt: skip
    assert done.returncode == 3 and "for writing" in done.stderr, done.stderr
    assert digest(str(file)) == before


def test_two_nodes_of_one_device_are_one(here: Path) -> None:
    with loop(here / "disk.img") as a:
        first = start("run", node_of(a, here / "one"), "--job", "randread-4k", "--set",
                      "runtime=30", cwd=here)  # fmt: skip
        wait_for_fio(first.pid)
        for other in (node_of(a, here / "two"), a):
            second = iopstui("run", other, "--job", "randread-4k", "--set", "runtime=1", cwd=here)
            assert second.returncode == 3, second.stderr
            assert f"another iopstui (pid {first.pid})" in second.stderr
        first.terminate()
        first.communicate(timeout=15)


def test_nothing_can_mount_what_lies_below_while_it_is_written(here: Path) -> None:
    with loop(here / "disk.img") as a, attached(a) as b:
        process = start("run", b, "--job", "randwrite-4k", "--set", "runtime=30",
                        "--destroy-data", b, cwd=here)  # fmt: skip
        wait_for_fio(process.pid)
        with pytest.raises(OSError, match="busy"):
            os.close(os.open(a, os.O_RDONLY | os.O_EXCL))
        process.terminate()
        process.communicate(timeout=15)


@contextlib.contextmanager
def flipping(link: Path, *targets: Path) -> Iterator[None]:
    """Point the link at each of ``targets`` in turn, as fast as possible."""
    over = threading.Event()

    def flip() -> None:
        for number, target in enumerate(itertools.cycle(targets)):
            if over.is_set():
                return
            new = link.with_name(f"new{number % 2}")
            new.symlink_to(target)
            os.replace(new, link)

    link.symlink_to(targets[0])
    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("fence", FENCES)
def test_a_word_is_for_one_file_alone(fence: str, here: Path) -> None:
    """However fast a link changes between two files: one run writes at most one of them, and only
    the one that was examined."""
    files = [here / "one", here / "two"]
    link = here / "link"
    job = here / "job.fio"
    job.write_text(f"[a]\nrw=write\nbs=64k\nsize=1m\nfilename={link}\n")
    for number in range(6):
        for file in files:
            file.write_bytes(b"precious" * (1 << 17))
        before = [digest(str(file)) for file in files]
        with flipping(link, *files):
            iopstui("run", "--job", str(job), "--destroy-data", str(files[0]), cwd=here,
                    fence=fence)  # fmt: skip
        assert digest(str(files[1])) == before[1], number
        link.unlink()


# only files that are harmless to write, in case a defect lets a job do so
KERNEL = ("/proc/self/mem", "/proc/self/comm", "/proc/self/coredump_filter",
          "/sys/block/{loop}/queue/rq_affinity", "/dev/null", "/dev/zero")  # fmt: skip


@pytest.mark.parametrize("name", KERNEL)
@pytest.mark.parametrize("bound", [False, True])
def test_what_is_the_kernel_s_is_no_target(name: str, bound: bool, here: Path) -> None:
    plain = here / "plain"
    plain.touch()
    with loop(here / "disk.img") as node, ExitStack() as stack:
        shown = name.format(loop=Path(node).name)
        if bound:
            sh("mount", "--bind", shown, str(plain))
            stack.callback(sh, "umount", str(plain))
            shown = str(plain)
        job = here / "job.fio"
        job.write_text(f"[a]\nrw=write\nbs=1\nsize=1\nfilename={shown}\n")
        for words in (("run", shown, "--job", "randread-4k", *WRITE), ("run", "--job", str(job))):
            done = iopstui(*words, "--destroy-data", shown, cwd=here)
            assert done.returncode in (2, 3), done.stderr
            assert "Traceback" not in done.stderr


@pytest.mark.parametrize("flag", ["a", "i"])
def test_a_directory_that_lets_nothing_go(flag: str, here: Path) -> None:
    needs("chattr")
    place = here / "place"
    place.mkdir()
    (here / "job.fio").write_text(f"[a]\nrw=write\nsize=1m\nfilename={place}/new\n")
    sh("chattr", f"+{flag}", str(place))
    try:
        for words in ((str(place), "--job", "randread-4k", "--size", "1m"),
                      ("--job", str(here / "job.fio"))):  # fmt: skip
            done = iopstui("run", *words, cwd=here)
            assert done.returncode == 2, done.stderr
            assert os.listdir(place) == []
            assert f"chattr -{flag}" in done.stderr, done.stderr
    finally:
        sh("chattr", f"-{flag}", str(place))


def test_what_cannot_be_removed_is_told_and_removed_later(here: Path) -> None:
    needs("chattr")
    place = here / "place"
    place.mkdir()
    process = start("run", str(place), "--job", "randread-4k", "--size", "1m", "--set",
                    "runtime=30", cwd=here)  # fmt: skip
    wait_for_fio(process.pid)
    sh("chattr", "+a", str(place))
    try:
        process.terminate()
        _, said = process.communicate(timeout=15)
        (left,) = os.listdir(place)
        assert f"cannot remove {place / left}" in said and "iopstui doctor" in said, said
    finally:
        sh("chattr", "-a", str(place))
    iopstui("doctor", cwd=here)
    assert os.listdir(place) == []


def test_without_proc(here: Path) -> None:
    code = 'umount -l /proc && exec "$@"'
    for words in (("run", ".", "--job", "randread-4k"), ("devices",), ("doctor",),
                  ("watch", "--for", "1s")):  # fmt: skip
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", code, "sh", sys.executable, "-m", "iopstui", *words],
            cwd=here, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(
                Path(__file__).parents[2])}, timeout=60,
        )  # fmt: skip
        assert done.returncode == 5, (words, done.stderr)
        assert "/proc is not mounted" in done.stderr and "Traceback" not in done.stderr
