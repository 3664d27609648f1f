"""What `make dist` builds: the same bytes twice, and a program that is whole in one file."""

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
    """iopstui and all it needs, as pip would put it: from what the tests themselves use."""
    made = tmp_path_factory.mktemp("site")
    for folder in ("iopstui", "jobs", "lessons", "volumes"):
        target = made / "iopstui" / folder if folder != "iopstui" else made / folder
        shutil.copytree(root / folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in sorted(below("iopstui")):
        found = distribution(name)
        for file in found.files or ():
            # scripts stand beside the packages
            if ".." not in file.parts and file.suffix != ".pyc":
                (made / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(found.locate_file(file)), made / file)
    return made


def below(name: str, extra: str = "") -> set[str]:
    """What a distribution needs, and what that needs."""
    found: set[str] = set()
    for need in map(Requirement, distribution(name).requires or ()):
        if need.marker is None or need.marker.evaluate({"extra": extra}):
            try:
                more = {one for wanted in ("", *need.extras) for one in below(need.name, wanted)}
            except PackageNotFoundError:  # of another system
                continue
            found |= {need.name} | more
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, site: Path, root: Path) -> Path:
    made = tmp_path_factory.mktemp("program") / "iopstui.pyz"
    return built(site, made, root)


def built(site: Path, out: Path, root: Path) -> Path:
    script = root / ".ci" / "single" / "build.py"
    subprocess.run([sys.executable, str(script), str(site), str(out)], check=True)
    return out


def started(
    program: Path, home: Path, *words: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """As a user has it: nothing of the checkout, and no packages but its own."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(program), *words],
        cwd=home, env={"PATH": os.environ["PATH"], "HOME": str(home), **more},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_it_runs_by_itself(program: Path, home: Path) -> None:
    done = started(program, home, "--version")
    assert (done.returncode, done.stdout) == (0, f"iopstui {VERSION}\n"), done.stderr
    done = started(program, home, "replay", "demo", "--format", "csv")
    assert done.returncode == 0 and done.stdout.startswith("t,wall_ms,utc"), done.stderr
    # what the screen needs, and compiled modules
    (unpacked,) = (home / ".cache" / "iopstui").iterdir()
    needed = "import sys; sys.path[:0] = sys.argv[1:]; import plotext, psutil, iopstui.ui.app"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", needed, str(unpacked)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_what_another_could_change_is_not_used(program: Path, home: Path) -> None:
    open_to_all = home / "open"
    (open_to_all / "iopstui").mkdir(parents=True)
    open_to_all.chmod(0o777)
    done = started(program, home, "--version", XDG_CACHE_HOME=str(open_to_all))
    assert done.returncode == 0, done.stderr
    assert list((open_to_all / "iopstui").iterdir()) == []
    assert (home / ".cache" / "iopstui").exists()


def test_an_old_python_is_told_so(root: Path) -> None:
    """Its beginning is read by any Python 3: nothing in it is newer than 3.5."""
    text = (root / ".ci" / "single" / "main.py").read_text()
    ast.parse(text, feature_version=(3, 5))
    asked = "import sys; sys.version_info = (3, 9, 0, 'final', 0); sys.argv = ['x']\n"
    done = subprocess.run([sys.executable, "-c", asked + text], capture_output=True, text=True)
    assert done.returncode == 5 and "needs 3.10 or newer" in done.stderr


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, site: Path, root: Path) -> Path:
    """What a package installs."""
    made = tmp_path_factory.mktemp("tree")
    for name in ("man/man1/iopstui.1", "zsh/site-functions/_iopstui"):
        (site / "share" / name).parent.mkdir(parents=True, exist_ok=True)
        (site / "share" / name).write_text(name)
    script = root / ".ci" / "tree"
    subprocess.run(["sh", str(script), str(site), str(made), "zsh/vendor-completions"], check=True)
    shutil.rmtree(site / "share")
    return made


def test_a_package_s_files_are_everybody_s_to_read_and_root_s_alone_to_write(tree: Path) -> None:
    modes = {path.relative_to(tree).as_posix(): stat.S_IMODE(path.stat().st_mode)
             for path in tree.rglob("*")}  # fmt: skip
    assert {mode for name, mode in modes.items() if (tree / name).is_dir()} == {0o755}
    assert [name for name, mode in modes.items()
            if mode != 0o644 and (tree / name).is_file()] == ["usr/bin/iopstui"]  # fmt: skip
    assert {"usr/share/man/man1/iopstui.1.gz", "usr/share/zsh/vendor-completions/_iopstui",
            "usr/lib/iopstui/iopstui/jobs/randread-4k.fio"} <= set(modes)  # fmt: skip
    assert not any("__pycache__" in name or name.endswith("/RECORD") for name in modes)


@pytest.mark.parametrize("newer", [True, False])
def test_a_package_s_program_takes_a_newer_python_where_the_system_s_is_old(
    tree: Path, newer: bool
) -> None:
    text = (tree / "usr" / "bin" / "iopstui").read_text()
    ast.parse(text, feature_version=(3, 5))
    asked = (
        "import os, sys; sys.version_info = (3, 9, 0, 'final', 0); sys.argv = ['x', 'jobs']\n"
        f"os.access = lambda path, how: {newer} and path.endswith('3.12')\n"
        "os.execv = lambda path, words: sys.exit(' '.join([path, '|', *words]))\n"
    )
    done = subprocess.run([sys.executable, "-c", asked + text], capture_output=True, text=True)
    if newer:
        assert done.stderr == "/usr/bin/python3.12 | /usr/bin/python3.12 -I x jobs\n"
    else:
        assert done.returncode == 5 and "needs Python 3.10 or newer" in done.stderr


def test_two_programs_are_the_same_bytes(
    program: Path, site: Path, root: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(site, copy)
    (copy / "iopstui" / "__pycache__").mkdir()
    (copy / "iopstui" / "__pycache__" / "x.pyc").touch()
    os.utime(copy / "iopstui" / "__init__.py", (0, 0))
    assert built(copy, tmp_path / "again.pyz", root).read_bytes() == program.read_bytes()
    (copy / "iopstui" / "__init__.py").write_text("")
    assert built(copy, tmp_path / "other.pyz", root).read_bytes() != program.read_bytes()


def test_wheel_and_sdist_hold_what_they_should(root: Path, tmp_path: Path) -> None:
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
    assert "iopstui/jobs/randread-4k.fio" in wheel and "iopstui/data/demo.iops" in wheel
    with tarfile.open(tmp_path / f"iopstui-{VERSION}.tar.gz") as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {".ci/dist", "Makefile", "docs/man/iopstui.1", "tests/conftest.py"} <= names


def test_the_lock_s_runtime_part_is_what_is_imported(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(root / ".ci" / "single" / "needed.py")],
        input=(root / "requirements.txt").read_text(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert {line.split("==")[0] for line in lines} == {name.lower() for name in below("iopstui")}
    assert all(" --hash=sha256:" in line and ";" not in line for line in lines)


TOOLS = ("dirname", "git", "ls", "mkdir", "mktemp", "rm", "sed", "sh", "uname")


def test_a_package_that_can_t_be_built_is_told(root: Path, tmp_path: Path) -> None:
    """Without rpmbuild the rpm was left out silently."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found is not None, name
        (tools / name).symlink_to(found)
    for name in ("python", "dpkg-deb"):
        (tools / name).write_text("#!/bin/sh\nexit 0\n")
        (tools / name).chmod(0o755)
    checkout = tmp_path / "checkout"
    for name in (".ci/dist", "iopstui/__init__.py", "requirements.txt"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, checkout / name)
    (checkout / ".ci" / "deb").write_text('echo "a deb is built" >&2\n')
    done = subprocess.run(
        [str(checkout / ".ci" / "dist")], cwd=checkout, capture_output=True, text=True,
        env={"PATH": str(tools), "PYTHON": "python", "OUT": str(tmp_path / "out")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "a deb is built" in done.stderr
    assert done.stderr.endswith(
        "dist: no rpm was built: rpmbuild is missing. Install it: apt install rpm | dnf install "
        "rpm-build\n"
    )
