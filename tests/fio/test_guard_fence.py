"""With either fence the kernel denies fio everything that was not granted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from iopstui.errors import Missing
from iopstui.fio import fence, fence_exec
from iopstui.fio.fence import LANDLOCK, NAMESPACE, Fence, fenced_command, grant, start_fenced
from iopstui.fio.inspect import run_fio
from iopstui.fio.process import FioProcess, abandoned_directories, private_directory

# not the Python of a virtual environment, which reads files beside it
PYTHON = os.path.realpath(sys.executable)
NO_LANDLOCK = Path(__file__).parents[1] / "helpers" / "no_landlock.py"

TRY = """
import ctypes, os, sys
def attempt(what, path, act):
    try:
        act(path)
        print("may", what, path, flush=True)
    except OSError as error:
        print("not", what, path, error.strerror, flush=True)
def write(path):
    os.close(os.open(path, os.O_WRONLY))
def longer(path):
    with open(path, "r+b", buffering=0) as file:
        file.seek(1 << 20)
        file.write(b"x" * 8192)
def load(path):
    ctypes.CDLL(path)
acts = {"write": write, "longer": longer, "load": load, "remove": os.unlink, "link": lambda path:
        os.link(path, path + "-link"), "make": lambda path: os.close(os.open(path, os.O_WRONLY |
        os.O_CREAT | os.O_EXCL)), "read": lambda path: os.close(os.open(path, os.O_RDONLY))}
for word in sys.argv[1:]:
    what, _, path = word.partition(":")
    attempt(what, path, acts[what])
"""


@pytest.fixture(params=[LANDLOCK, NAMESPACE])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each fence that this kernel has."""
    if request.param == LANDLOCK and fence_exec.landlock_abi() == 0:
        pytest.skip("this kernel has no Landlock")
    monkeypatch.setattr(fence, "fence_kind", lambda: request.param)
    if request.param == NAMESPACE:
        done = subprocess.run(
            fenced_command(Fence(), [sys.executable, "-c", ""]), capture_output=True
        )
        if done.returncode == 126:
            pytest.skip("this user may not make namespaces")
    return str(request.param)


def attempt(what: Fence, *tries: str, cwd: Path | None = None) -> dict[str, bool]:
    private = private_directory()
    process = FioProcess([PYTHON, "-I", "-S", "-c", TRY, *tries], private, what, cwd=cwd)
    over = False
    while not over:
        over = any(one.event in ("over", "gone") for one in process.read_guard())
        time.sleep(0.01)
    said = [line.split() for line in process.messages()]
    process.close()
    assert not private.exists()
    return {
        f"{words[1]}:{words[2]}": words[0] == "may" for words in said if words[0] in ("may", "not")
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("own", "theirs"):
        (tmp_path / name).mkdir()
    for name in ("granted", "other", "readable", "theirs/file"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    return tmp_path


@pytest.mark.usefixtures("kind")
def test_only_what_is_granted_can_be_written(place: Path) -> None:
    may = [f"write:{place}/granted", f"make:{place}/own/new", f"write:{place}/own/new",
           f"read:{place}/readable", f"remove:{place}/own/new"]  # fmt: skip
    not_ = [
        f"write:{place}/other", f"write:{place}/link", f"make:{place}/new",
        f"make:{place}/theirs/new", f"write:{place}/theirs/file", f"remove:{place}/theirs/file",
        f"write:{place}/readable", f"remove:{place}/granted", f"link:{place}/granted",
        f"remove:{place}/other",
    ]  # fmt: skip
    what = Fence(
        read=(grant(f"{place}/readable"),),
        write=(grant(f"{place}/granted"),),
        run_directories=(str(place / "own"),),
    )
    answers = attempt(what, *may, *not_)
    assert [one for one in may if not answers[one]] == []
    assert [one for one in not_ if answers[one]] == []
    assert (place / "theirs/file").read_text() == "x"


CAPABILITIES = "print(*[l.split()[1] for l in open('/proc/self/status') if l[:3] == 'Cap'])"


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("way", ["read", "write"])
def test_who_may_open_a_character_device_does_not_administrate(way: str) -> None:
    """With CAP_SYS_ADMIN the kernel would accept any NVMe command on a descriptor opened for
    reading."""
    words = [PYTHON, "-I", "-S", "-c", CAPABILITIES]
    given = Fence(read=(grant("/dev/full"),)) if way == "read" else Fence(
        write=(grant("/dev/full"),))  # fmt: skip
    done = subprocess.run(fenced_command(given, words), capture_output=True, text=True)
    # CapInh, CapPrm, CapEff, CapBnd and CapAmb; CAP_SYS_ADMIN is number 21
    *held, bound, ambient = (int(word, 16) >> 21 & 1 for word in done.stdout.split())
    assert (held, ambient) == ([0, 0, 0], 0), done.stderr
    assert bound == 0 or os.geteuid() != 0


@pytest.mark.usefixtures("kind")
def test_what_is_asked_is_fenced_in_and_who_asks_is_not(place: Path) -> None:
    """Landlock restricts only the thread that starts the question: neither threads that were there
    before nor later ones."""
    there, asked = threading.Event(), threading.Event()
    before: list[str] = []
    after: list[str] = []

    def write(done: list[str]) -> None:
        there.set()
        assert asked.wait(60)
        (place / "other").write_text("y")
        done.append(Path("/proc/thread-self/status").read_text())

    threads = [threading.Thread(target=write, args=(done,)) for done in (before, after)]
    threads[0].start()
    assert there.wait(60)
    tries = [f"write:{place}/other", f"make:{place}/new", f"read:{place}/readable"]
    what = Fence(read=(grant(f"{place}/readable"),))
    process = start_fenced(what, [PYTHON, "-I", "-S", "-c", TRY, *tries], place)
    out, _ = process.communicate()
    threads[1].start()
    asked.set()
    for thread in threads:
        thread.join()
    said = [line.split()[0] for line in out.decode().splitlines()]
    assert said == ["not", "not", "may"]
    for status in (*before, *after, Path("/proc/self/status").read_text()):
        assert "NoNewPrivs:\t0" in status


@pytest.mark.usefixtures("kind")
def test_nothing_is_asked_where_a_granted_file_is_another_one(place: Path) -> None:
    examined = grant(f"{place}/granted")
    (place / "granted").rename(place / "kept")
    (place / "granted").write_text("x")
    try:
        process = start_fenced(Fence(read=(examined,)), [PYTHON, "-c", "print(1)"])
    except OSError as error:
        assert "was replaced by another file" in str(error.strerror)
        return
    out, said = process.communicate()
    assert (process.returncode, out) == (126, b"")
    assert b"was replaced by another file" in said


def test_no_thread_to_ask_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(fence, "fence_kind", lambda: LANDLOCK)
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(Missing, match="Resource temporarily unavailable") as found:
        run_fio(["/bin/true"], None, Fence())
    assert "ulimit -u" in found.value.hint


def test_what_goes_wrong_in_the_thread_is_told_where_it_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(spec: object) -> None:
        raise MemoryError

    monkeypatch.setattr(fence, "fence_kind", lambda: LANDLOCK)
    monkeypatch.setattr(fence.fence_exec, "enter", none)
    with pytest.raises(MemoryError):
        start_fenced(Fence(), ["/bin/true"])


def test_what_is_not_granted_is_not_even_read(kind: str, place: Path) -> None:
    answers = attempt(Fence(), f"read:{place}/other", "read:/etc/passwd")
    assert answers["read:/etc/passwd"]
    # in a mount namespace the file can be read, but not loaded, changed or executed
    assert answers[f"read:{place}/other"] == (kind == NAMESPACE)


@pytest.mark.usefixtures("kind")
def test_no_library_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    """A copy of a real library, in the directory of a job file."""
    with open("/proc/self/maps") as maps:
        library = next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-" in line)
    copy = tmp_path / "engine.so"
    copy.write_bytes(Path(library).read_bytes())
    open_to_all = Fence(open=(str(tmp_path),))
    assert attempt(open_to_all, f"load:{library}")[f"load:{library}"]
    assert not attempt(Fence(), f"load:{copy}")[f"load:{copy}"]


@pytest.mark.usefixtures("kind")
def test_another_file_in_the_place_of_the_granted_one(place: Path) -> None:
    file = place / "granted"
    examined = grant(str(file))
    file.rename(place / "kept")
    file.write_text("another")
    assert attempt(Fence(write=(examined,)), f"write:{file}") == {}
    assert file.read_text() == "another"


@pytest.mark.usefixtures("kind")
def test_a_link_put_in_the_place_of_the_granted_one(place: Path) -> None:
    examined = grant(str(place / "granted"))
    (place / "granted").unlink()
    (place / "granted").symlink_to(place / "other")
    assert attempt(Fence(write=(examined,)), f"write:{place}/granted") == {}


@pytest.mark.usefixtures("kind")
def test_no_file_becomes_longer_than_it_may(place: Path) -> None:
    file = place / "own" / "long"
    file.write_bytes(b"")
    what = Fence(run_directories=(str(place / "own"),), fsize=(1 << 20) + 4096)
    answers = attempt(what, f"longer:{file}", f"write:{file}")
    assert answers[f"write:{file}"]
    # the first write is cut at the limit, the next one would have failed
    assert file.stat().st_size <= (1 << 20) + 4096


@pytest.mark.usefixtures("kind")
def test_relative_names_work_where_fio_is_started(place: Path) -> None:
    answers = attempt(Fence(run_directories=(str(place / "own"),)), "make:new", cwd=place / "own")
    assert answers == {"make:new": True}


@pytest.mark.usefixtures("kind")
def test_a_file_that_becomes_too_long_is_no_death_by_signal() -> None:
    """By default SIGXFSZ would end fio without a message; if it is ignored, write(2) fails with
    EFBIG."""
    command = ["/usr/bin/env", "cat", "/proc/self/status"]
    own = Fence(open=("/bin", "/usr/bin"), fsize=1 << 20)
    spec = fence_exec.parse_specification(fence.specification(own, command[0]))
    spec["execute"] += ["/bin", "/usr/bin"]
    told = [
        *fence.isolated_command(fence_exec),
        fence_exec.specification_text(spec),
        "--",
        *command,
    ]
    done = subprocess.run(told, capture_output=True, text=True, check=True)
    (ignored,) = re.findall(r"^SigIgn:\s*([0-9a-f]+)$", done.stdout, re.M)
    assert int(ignored, 16) >> (signal.SIGXFSZ - 1) & 1


def test_what_is_fenced_in_sees_no_other_process(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "echo $$; ls /proc | grep -c '^[0-9]'; cat /proc/self/status"]
    spec = fence.specification(Fence(open=("/bin",)), sys.executable)
    script = [sys.executable, "-I", "-S", fence_exec.__file__]
    told = fence_exec.parse_specification(spec)
    told["kind"], told["execute"] = NAMESPACE, ["/bin", "/usr/bin", *told["execute"]]
    spec = fence_exec.specification_text(told)
    done = subprocess.run([*script, spec, "--", *command], capture_output=True, text=True)
    if done.returncode == 126:
        pytest.skip("this user may not make namespaces")
    assert done.stdout.split()[0] == "1"
    assert int(done.stdout.split()[1]) < 10
    bounds = next(line for line in done.stdout.split("\n") if line.startswith("CapBnd"))
    kept = (fence_exec.CAP_IPC_LOCK, fence_exec.CAP_SYS_NICE, fence_exec.CAP_SETUID,
            fence_exec.CAP_SETGID, fence_exec.CAP_DAC_READ_SEARCH)  # fmt: skip
    assert int(bounds.split()[1], 16) == sum(1 << one for one in kept)


@pytest.mark.parametrize("more", [[], ["--no-namespaces"]])
def test_the_fence_there_is_is_found(more: list[str]) -> None:
    """The kernel itself is asked, not its version: a fence can be switched off."""
    kind = [sys.executable, "-I", "-S", fence_exec.__file__, "--kind"]
    done = subprocess.run([sys.executable, str(NO_LANDLOCK), *more, *kind], capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert done.stdout.split()[0] == ("none" if more else fence_without_landlock())


def fence_without_landlock() -> str:
    # namespaces may be switched off for ordinary users
    return NAMESPACE if os.geteuid() == 0 or _user_namespaces() else "none"


def _user_namespaces() -> bool:
    return subprocess.run(["unshare", "-Urpf", "true"], capture_output=True).returncode == 0


def test_private_directories_of_the_living_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    own = private_directory()
    dead = tmp_path / f"iopstui-{os.getpid()}-1-abc"
    dead.mkdir()
    (tmp_path / "iopstui-abc").mkdir()
    (tmp_path / "iopstui-1-2-link").symlink_to(own)
    found = [path for path in abandoned_directories() if path.parent == tmp_path]
    assert found == [dead]


def test_a_file_system_whose_server_is_gone_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """statvfs(2) would never return there. The kernel's flags show that the mount is read-only."""
    flags = {"/": 0, "/gone": 0}

    def mount(source: str | None, target: str, kind: str | None, wanted: int) -> None:
        flags[target] = wanted

    def never(path: str) -> None:
        raise AssertionError(f"statvfs of {path}")

    monkeypatch.setattr(fence_exec, "_mounts", lambda: list(flags.items()))
    monkeypatch.setattr(fence_exec, "_mount", mount)
    monkeypatch.setattr(fence_exec.os, "statvfs", never)
    fence_exec._restrict_mounts(set(), set(), set())
    assert all(one & fence_exec.MS_RDONLY and one & fence_exec.MS_NODEV for one in flags.values())
