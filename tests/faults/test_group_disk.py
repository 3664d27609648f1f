"""An ordinary user in group disk, who may open every device: only iopstui's own rules protect
them."""

from __future__ import annotations

import grp
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from machine import attached, digest, loop, mounted, needs, sh
from program import LANDLOCK, NAMESPACE, ROOT, environment

from iopstui.fio import fence_exec

NOBODY = 65534
FENCE = ROOT / "tests/helpers/fence_tries.py"
WRITE = ("--job", "randread-4k", "--set", "rw=write", "--set", "bs=64k", "--set", "runtime=1")


def as_user(words: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run as user nobody, in group disk and without any other right."""
    needs("setpriv")
    try:
        group = grp.getgrnam("disk").gr_gid
    except KeyError:
        pytest.skip("there is no group disk")
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={group}",
            "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]  # fmt: skip
    packages = [path for path in sys.path if path.endswith("site-packages")]
    more = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"),
            "PYTHONPATH": os.pathsep.join((str(ROOT), *packages))}  # fmt: skip
    return subprocess.run([*user, _python(user), *words], cwd=home, capture_output=True, text=True,
                          env={**environment(home, **more)}, timeout=120)  # fmt: skip


def _python(user: list[str]) -> str:
    """A Python of this version that the user may run: root's own may be in root's home."""
    # setpriv itself still had all rights when it started this Python
    code = ("import os, sys; sys.exit(not os.access(sys.executable, os.X_OK) or "
            f"sys.version_info[:2] != {tuple(sys.version_info[:2])})")  # fmt: skip
    for name in (sys.executable, "/usr/bin/python3", shutil.which("python3") or ""):
        if name and subprocess.run([*user, name, "-c", code], capture_output=True).returncode == 0:
            return name
    pytest.skip("no Python that another user may run")


def program(home: Path, *words: str) -> tuple[int, str]:
    done = as_user(["-m", "iopstui", "run", *words], home)
    return done.returncode, " ".join(done.stderr.split())


@pytest.fixture
def home(here: Path) -> Iterator[Path]:
    """A directory of user nobody: pytest's own directories are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="iopstui-faults-") as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "run").mkdir(mode=0o700)
        os.chown(place / "run", NOBODY, NOBODY)
        os.chown(place, NOBODY, NOBODY)
        yield place


def node(home: Path, device: str, name: str) -> str:
    """A device node as udev makes it: group disk may read and write."""
    path = home / name
    os.mknod(path, stat.S_IFBLK, os.stat(device).st_rdev)
    os.chown(path, 0, grp.getgrnam("disk").gr_gid)
    path.chmod(0o660)
    return str(path)


@pytest.mark.parametrize("how", ["mounted", "mounted above", "mounted below", "same file", "swap"])
def test_what_is_in_use_is_refused(how: str, home: Path, here: Path) -> None:
    with ExitStack() as stack:
        a = stack.enter_context(loop(here / "a.img"))
        target, used = a, a
        if how == "mounted above":
            used = stack.enter_context(attached(a))
        elif how == "mounted below":
            target = stack.enter_context(attached(a))
        elif how == "same file":
            used = stack.enter_context(attached(str(here / "a.img")))
        if how == "swap":
            sh("mkswap", used)
            sh("swapon", used)
            stack.callback(sh, "swapoff", used)
        else:
            sh("mkfs.ext4", "-q", "-O", "^has_journal", used)
            stack.enter_context(mounted(used, here / "mnt", "-o", "ro"))
        name, before = node(home, target, "target"), digest(a)
        code, said = program(home, name, *WRITE, "--destroy-data", name)
        assert code == 3 and "in use" in said, (code, said)
        assert how == "swap" or digest(a) == before


def test_a_program_that_cannot_be_looked_into_is_told_before_a_write(
    home: Path, here: Path
) -> None:
    with loop(here / "a.img") as a:
        name = node(home, a, "target")
        code, said = program(home, name, *WRITE)
        assert code == 3 and f"--destroy-data {name}" in said
        assert "can't be inspected" in said or "not visible" in said, said
        before = digest(a)
        code, said = program(home, name, *WRITE, "--destroy-data", name)
        assert code == 0, said
        assert "may have" in said and digest(a) != before


def behind(fence: str, home: Path, reads: list[str], writes: list[str],
           tries: list[tuple[str, str]]) -> dict[str, Any]:  # fmt: skip
    done = as_user([str(FENCE), fence, *map(json.dumps, (reads, writes, tries))], home)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    if answer["code"] == 126:
        pytest.skip(f"this user may not have it: {answer['error']}")
    assert len(answer["may"]) == len(tries), answer
    return answer


@pytest.mark.parametrize("fence", [LANDLOCK, NAMESPACE])
def test_the_fence_keeps_all_other_devices(fence: str, home: Path, here: Path) -> None:
    """Without the fence this user could open each device."""
    if fence == LANDLOCK and not fence_exec.landlock_abi():
        pytest.skip("this kernel has no Landlock")
    with loop(here / "a.img") as a, loop(here / "b.img") as b:
        granted, other = node(home, a, "granted"), node(home, b, "other")
        again = node(home, a, "same-device")
        (home / "link").symlink_to(other)
        (home / "file").write_text("x")
        os.chown(home / "file", NOBODY, NOBODY)
        tries = [
            ("write", other), ("read", other), ("write", str(home / "link")), ("again", other),
            ("discard", other), ("write", again), ("read", again), ("node", str(home / "new")),
            ("write", str(home / "file")), ("truncate", str(home / "file")), ("write", a),
            ("write", b), ("read", "/dev/mem"), ("write", "/dev/loop-control"),
            ("write", "/proc/sys/kernel/hostname"), ("write", "/proc/self/mem"),
            ("kill", str(os.getpid())),
        ]  # fmt: skip
        before = digest(b)
        found = behind(fence, home, [], [granted], [("write", granted), *tries])
        assert found["may"][0] is True
        got = [one for one, may in zip(tries, found["may"][1:], strict=True) if may]
        assert got == [], got
        found = behind(fence, home, [granted], [], [("read", granted), ("write", granted),
                                                    ("again", granted)])  # fmt: skip
        # in the namespace fence, only root gets a device for reading only (docs/safety.md)
        assert found["may"] == [True, False, False] or fence == NAMESPACE
        assert digest(b) == before
