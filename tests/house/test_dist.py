"""`make dist`: reproducible packages and a program in a single file."""

from __future__ import annotations

import ast
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import iopstui

VERSION = iopstui.__version__
EPOCH = "1767225600"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """iopstui and its requirements as pip installs them, copied from the tests' environment."""
    target_dir = tmp_path_factory.mktemp("site")
    for folder in ("iopstui", "jobs", "lessons", "volumes"):
        target = target_dir / "iopstui" / folder if folder != "iopstui" else target_dir / folder
        shutil.copytree(root / folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in sorted(requirements_of("iopstui")):
        dist = distribution(name)
        for file in dist.files or ():
            # scripts are outside of site-packages
            if ".." not in file.parts and file.suffix != ".pyc":
                (target_dir / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(dist.locate_file(file)), target_dir / file)
    return target_dir


def requirements_of(name: str, extra: str = "") -> set[str]:
    """All requirements of a distribution, recursively."""
    names: set[str] = set()
    for need in map(Requirement, distribution(name).requires or ()):
        if need.marker is None or need.marker.evaluate({"extra": extra}):
            try:
                more = {
                    name_
                    for extra_name in ("", *need.extras)
                    for name_ in requirements_of(need.name, extra_name)
                }
            except PackageNotFoundError:  # for another system
                continue
            names |= {need.name} | more
    return names


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, site: Path, root: Path) -> Path:
    out = tmp_path_factory.mktemp("program") / "iopstui.pyz"
    return build(site, out, root)


def build(site: Path, out: Path, root: Path) -> Path:
    script = root / ".ci" / "single" / "build.py"
    subprocess.run([sys.executable, str(script), str(site), str(out)], check=True)
    return out


def run_program(
    program: Path, home: Path, *args: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run as a user does: without the checkout and without other packages."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(program), *args],
        cwd=home, env={"PATH": os.environ["PATH"], "HOME": str(home), **more},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_why_of_the_single_file_writes_nothing(program: Path, home: Path, root: Path) -> None:
    page = (root / "docs/guide/why.md").read_text()
    line = next(line for line in page.splitlines() if line.startswith("    ssh db1 "))
    assert "cat >/dev/shm/iopstui && python3 /dev/shm/iopstui why" in line
    before = sorted(Path("/dev/shm").glob("iopstui-program-*"))
    result = run_program(program, home, "why", "4999999")
    assert (result.returncode, "no process 4999999" in result.stderr) == (2, True), result
    assert not list(home.iterdir())
    assert sorted(Path("/dev/shm").glob("iopstui-program-*")) == before


def test_the_single_file_program_runs(program: Path, home: Path) -> None:
    process = run_program(program, home, "--version")
    assert (process.returncode, process.stdout) == (0, f"iopstui {VERSION}\n"), process.stderr
    process = run_program(program, home, "replay", "demo", "--format", "csv")
    assert process.returncode == 0 and process.stdout.startswith("t,wall_ms,utc"), process.stderr
    # requirements of the screen, including compiled modules
    (unpacked,) = (home / ".cache" / "iopstui").iterdir()
    needed = "import sys; sys.path[:0] = sys.argv[1:]; import plotext, psutil, iopstui.ui.app"
    process = subprocess.run(
        [sys.executable, "-I", "-S", "-c", needed, str(unpacked)], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr


def test_a_cache_that_others_can_write_is_not_used(program: Path, home: Path) -> None:
    open_to_all = home / "open"
    (open_to_all / "iopstui").mkdir(parents=True)
    open_to_all.chmod(0o777)
    process = run_program(program, home, "--version", XDG_CACHE_HOME=str(open_to_all))
    assert process.returncode == 0, process.stderr
    assert list((open_to_all / "iopstui").iterdir()) == []
    assert (home / ".cache" / "iopstui").exists()


def test_an_old_python_gets_an_error(root: Path) -> None:
    """Any Python 3 must be able to parse the file: its syntax is that of 3.5."""
    text = (root / ".ci" / "single" / "main.py").read_text()
    ast.parse(text, feature_version=(3, 5))
    code = "import sys; sys.version_info = (3, 9, 0, 'final', 0); sys.argv = ['x']\n"
    process = subprocess.run([sys.executable, "-c", code + text], capture_output=True, text=True)
    assert process.returncode == 5 and "needs 3.10 or newer" in process.stderr


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, site: Path, root: Path) -> Path:
    """The files that a package installs."""
    target_dir = tmp_path_factory.mktemp("tree")
    for name in ("man/man1/iopstui.1", "zsh/site-functions/_iopstui"):
        (site / "share" / name).parent.mkdir(parents=True, exist_ok=True)
        (site / "share" / name).write_text(name)
    script = root / ".ci" / "tree"
    subprocess.run(
        ["sh", str(script), str(site), str(target_dir), "zsh/vendor-completions"], check=True
    )
    shutil.rmtree(site / "share")
    return target_dir


def test_package_files_are_readable_by_all_and_writable_by_root(tree: Path) -> None:
    modes = {path.relative_to(tree).as_posix(): stat.S_IMODE(path.stat().st_mode)
             for path in tree.rglob("*")}  # fmt: skip
    assert {mode for name, mode in modes.items() if (tree / name).is_dir()} == {0o755}
    assert [name for name, mode in modes.items()
            if mode != 0o644 and (tree / name).is_file()] == ["usr/bin/iopstui"]  # fmt: skip
    assert {"usr/share/man/man1/iopstui.1.gz", "usr/share/zsh/vendor-completions/_iopstui",
            "usr/lib/iopstui/iopstui/jobs/randread-4k.fio"} <= set(modes)  # fmt: skip
    assert not any("__pycache__" in name or name.endswith("/RECORD") for name in modes)


@pytest.mark.parametrize("newer", [True, False])
def test_the_packaged_program_uses_a_newer_python_if_the_default_is_old(
    tree: Path, newer: bool
) -> None:
    text = (tree / "usr" / "bin" / "iopstui").read_text()
    ast.parse(text, feature_version=(3, 5))
    code = (
        "import os, sys; sys.version_info = (3, 9, 0, 'final', 0); sys.argv = ['x', 'jobs']\n"
        f"os.access = lambda path, how: {newer} and path.endswith('3.12')\n"
        "os.execv = lambda path, words: sys.exit(' '.join([path, '|', *words]))\n"
    )
    process = subprocess.run([sys.executable, "-c", code + text], capture_output=True, text=True)
    if newer:
        assert process.stderr == "/usr/bin/python3.12 | /usr/bin/python3.12 -I x jobs\n"
    else:
        assert process.returncode == 5 and "needs Python 3.10 or newer" in process.stderr


def test_two_builds_are_identical(site: Path, root: Path, tmp_path: Path) -> None:
    first, copy = tmp_path / "here", tmp_path / "elsewhere"
    for name in ("iopstui", "plotext"):  # all of them take ten times as long
        shutil.copytree(site / name, first / name)
    shutil.copytree(first, copy)
    built = build(first, tmp_path / "first.pyz", root).read_bytes()
    (copy / "iopstui" / "__pycache__").mkdir()
    (copy / "iopstui" / "__pycache__" / "x.pyc").touch()
    os.utime(copy / "iopstui" / "__init__.py", (0, 0))
    assert build(copy, tmp_path / "again.pyz", root).read_bytes() == built
    (copy / "iopstui" / "__init__.py").write_text("")
    assert build(copy, tmp_path / "other.pyz", root).read_bytes() != built


def test_wheel_and_sdist_have_all_files(root: Path, tmp_path: Path) -> None:
    """`make dist-check` builds both twice and compares."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)], cwd=root,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PYTHONPATH": ""},
        check=True, capture_output=True,
    )  # fmt: skip
    wheel = zipfile.ZipFile(tmp_path / f"iopstui-{VERSION}-py3-none-any.whl").namelist()
    shared = f"iopstui-{VERSION}.data/data/share/"
    for name in ("man/man1/iopstui.1", "man/man1/iopstui-run.1", "zsh/site-functions/_iopstui",
                 "bash-completion/completions/iopstui",
                 "fish/vendor_completions.d/iopstui.fish"):  # fmt: skip
        assert shared + name in wheel
    assert {"iopstui/py.typed", "iopstui/data/demo.iops"} <= {*wheel}
    for folder, suffix in (("jobs", ".fio"), ("lessons", ".ini")):
        kept = {path.name for path in (root / folder).glob(f"*{suffix}")}
        assert kept and {f"iopstui/{folder}/{name}" for name in kept} <= {*wheel}
    with tarfile.open(tmp_path / f"iopstui-{VERSION}.tar.gz") as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {".ci/dist", "Makefile", "docs/man/iopstui.1", "tests/conftest.py"} <= names
    assert {str(path.relative_to(root)) for path in (root / "docs").rglob("*.*")} <= names


def test_the_runtime_lock_has_exactly_the_requirements(root: Path) -> None:
    process = subprocess.run(
        [sys.executable, str(root / ".ci" / "single" / "needed.py")],
        input=(root / "requirements.txt").read_text(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = process.stdout.splitlines()
    assert {line.split("==")[0] for line in lines} == {
        name.lower() for name in requirements_of("iopstui")
    }
    assert all(" --hash=sha256:" in line and ";" not in line for line in lines)


TOOLS = ("dirname", "git", "ls", "mkdir", "mktemp", "rm", "sed", "sh", "uname")


def test_a_package_that_cannot_be_built_is_reported(root: Path, tmp_path: Path) -> None:
    """A missing rpmbuild is reported."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        tool = shutil.which(name)
        assert tool is not None, name
        (tools / name).symlink_to(tool)
    for name in ("python", "dpkg-deb"):
        (tools / name).write_text("#!/bin/sh\nexit 0\n")
        (tools / name).chmod(0o755)
    checkout = tmp_path / "checkout"
    for name in (".ci/dist", "iopstui/__init__.py", "requirements.txt"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, checkout / name)
    (checkout / ".ci" / "deb").write_text('echo "a deb is built" >&2\n')
    process = subprocess.run(
        [str(checkout / ".ci" / "dist")], cwd=checkout, capture_output=True, text=True,
        env={"PATH": str(tools), "PYTHON": "python", "OUT": str(tmp_path / "out")},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "a deb is built" in process.stderr
    assert process.stderr.endswith(
        "dist: no rpm was built: rpmbuild is missing. Install it: apt install rpm | dnf install "
        "rpm-build\n"
    )
