"""What imports what. The contracts are in pyproject.toml; here they are held."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(module.name)
print(*sorted(set(sys.modules) & {"textual", "rich", "plotext", "pyudev", "psutil"}))
"""


def loaded_by(code: str, *arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_core_needs_no_screen() -> None:
    core = tuple(f"iopstui.{ring}" for ring in (
        "model", "linux", "fio", "safety", "recording", "preflight", "session", "experiment",
        "lesson", "fleet", "output", "report",
    ))  # fmt: skip
    assert loaded_by(IMPORT_ALL, *core).isdisjoint({"textual", "rich", "plotext"})


def test_the_model_needs_nothing_but_python() -> None:
    assert loaded_by(IMPORT_ALL, "iopstui.model") == set()


def test_the_command_line_starts_without_a_screen() -> None:
    code = (
        "import sys; from iopstui.cli.program import parser; parser(); "
        "print(*({'textual', 'rich', 'plotext', 'pyudev', 'psutil'} & set(sys.modules)))"
    )
    assert loaded_by(code) == set()


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    tool = "import sys; from importlinter.cli import lint_imports_command as c; c()"
    return subprocess.run(
        [sys.executable, "-c", tool, "--no-cache"], cwd=directory, capture_output=True, text=True
    )


def test_the_layers_hold(root: Path) -> None:
    done = lint_imports(root)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "imports"),
    [
        ("model/rogue.py", "iopstui.linux.roots"),
        ("model/rogue.py", "psutil"),
        ("model/block/rogue.py", "iopstui.model.metrics.frame"),
        ("linux/rogue.py", "iopstui.fio.stream"),
        ("fio/rogue.py", "iopstui.safety.journal"),
        ("recording/rogue.py", "iopstui.preflight.job"),
        ("session/rogue.py", "iopstui.experiment.runner"),
        ("ui/rogue.py", "iopstui.report.story"),
        ("session/rogue.py", "textual"),
        ("output/rogue.py", "rich"),
        ("output/rogue.py", "iopstui.ui"),
        ("ui/rogue.py", "plotext"),
        ("session/rogue.py", "pyudev"),
        ("session/rogue.py", "argparse"),
        ("ui/rogue.py", "iopstui.cli.options"),
    ],
)
def test_a_breach_of_the_layers_is_noticed(
    root: Path, tmp_path: Path, module: str, imports: str
) -> None:
    (tmp_path / "pyproject.toml").write_text((root / "pyproject.toml").read_text())
    for source in (root / "iopstui").rglob("*.py"):
        copy = tmp_path / "iopstui" / source.relative_to(root / "iopstui")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    (tmp_path / "iopstui" / module).write_text(f"import {imports}\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout
