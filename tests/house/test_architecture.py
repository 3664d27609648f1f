"""Check the import contracts of pyproject.toml and other rules of the architecture."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from program_source import PACKAGE, modules

IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(module.name)
print(*sorted(set(sys.modules) & {"textual", "rich", "plotext", "pyarrow", "pyudev", "psutil"}))
"""


MAX_LINES = 40
TESTS = Path(__file__).resolve().parents[1]


def loaded_by(code: str, *arguments: str) -> set[str]:
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return set(process.stdout.split())


def test_the_core_does_not_import_the_screen() -> None:
    core = tuple(f"iopstui.{ring}" for ring in (
        "model", "linux", "fio", "safety", "recording", "preflight", "session", "experiment",
        "output", "features.reports", "features.fleet.hosts", "features.fleet.merging",
        "features.fleet.output",
    ))  # fmt: skip
    assert loaded_by(IMPORT_ALL, *core).isdisjoint({"textual", "rich", "plotext", "pyarrow"})


def test_the_command_line_starts_without_a_screen() -> None:
    code = (
        "import sys; from iopstui.cli.program import build_parser; build_parser(); "
        "print(*({'textual', 'rich', 'plotext', 'pyudev', 'psutil'} & set(sys.modules)))"
    )
    assert loaded_by(code) == set()


def test_a_run_imports_only_what_it_needs() -> None:
    """Half of the CPU time until a run's first line is spent on imports."""
    code = (
        "import sys; import iopstui.cli.runs.run_job, iopstui.session.runs, iopstui.output.table; "
        "print(*sys.modules)"
    )
    loaded = loaded_by(code)
    assert "iopstui.session.live" in loaded
    assert loaded.isdisjoint({
        "textual", "rich", "plotext", "pyudev", "psutil", "asyncio",
        "statistics", "random", "shutil", "tempfile", "socket", "platform", "difflib", "csv",
        "datetime", "textwrap", "iopstui.experiment", "iopstui.recording.layout",
        "iopstui.model.experiment.expectation", "iopstui.model.experiment.plan",
        "iopstui.model.metrics.fields", "iopstui.output.jsonl", "iopstui.ui",
        "iopstui.features.reports",
    })  # fmt: skip


def test_the_screen_of_one_machine_does_not_import_fleets() -> None:
    code = """
import sys, iopstui.ui.app, iopstui.ui.dashboard.screen
print(*("screen:" + name for name in sys.modules))
import iopstui.ui.help
print(*sys.modules)
"""
    loaded = loaded_by(code)
    assert "screen:textual" in loaded
    fleet = {name for name in loaded if ".fleet." in name}
    assert not {name for name in fleet if name.startswith("screen:")}
    # its help does not import them either, although that includes the keys of the fleet screen
    names = {name.rpartition(".fleet.")[2] for name in fleet}
    assert names == {"screen", "screen.keys", "screen_help"}


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    tool = "import sys; from importlinter.cli import lint_imports_command as c; c()"
    return subprocess.run(
        [sys.executable, "-c", tool, "--no-cache"], cwd=directory, capture_output=True, text=True
    )


VIOLATIONS = (
    ("model", "iopstui.linux.kernel_files"),
    ("model", "psutil"),
    ("model/block", "iopstui.model.metrics.frame"),
    ("linux", "iopstui.fio.stream"),
    ("fio", "iopstui.safety.journal"),
    ("recording", "iopstui.preflight.job"),
    ("session", "iopstui.experiment.runner"),
    ("ui", "iopstui.output.jsonl"),
    ("session", "textual"),
    ("output", "rich"),
    ("output", "iopstui.ui"),
    ("ui", "plotext"),
    ("session", "pyudev"),
    ("features/reports", "pyarrow"),
    ("features/fleet", "ClusterShell"),
    ("session", "argparse"),
    ("ui", "iopstui.cli.options"),
    ("features/fleet/hosts", "iopstui.features.fleet.merging"),
    ("session/fio", "iopstui.session.tick.outcomes"),
)  # fmt: skip


@pytest.fixture(scope="module")
def broken_contracts(root: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Violations reported for a tree with one module per violation. One check takes a second."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "pyproject.toml").write_text((root / "pyproject.toml").read_text())
    for source in (root / "iopstui").rglob("*.py"):
        copy = tree / "iopstui" / source.relative_to(root / "iopstui")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    for number, (package, imports) in enumerate(VIOLATIONS):
        (tree / "iopstui" / package / f"rogue{number}.py").write_text(f"import {imports}\n")
    process = lint_imports(tree)
    assert process.returncode == 1, process.stdout + process.stderr
    return {
        line.strip(" -") for line in process.stdout.partition("Broken contracts")[2].splitlines()
    }


@pytest.mark.parametrize("number", range(len(VIOLATIONS)), ids=lambda n: "-".join(VIOLATIONS[n]))
def test_a_violation_of_the_layers_is_detected(broken_contracts: set[str], number: int) -> None:
    package, imports = VIOLATIONS[number]
    module = f"iopstui.{package.replace('/', '.')}.rogue{number}"
    assert f"{module} -> {imports} (l.1)" in broken_contracts


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of lines below signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_function_is_longer_than_a_screen() -> None:
    """ruff limits parameters, statements and complexity (pyproject.toml)."""
    long_functions = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path, module in modules().items()
        for node in module.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _body_lines(node) > MAX_LINES
    ]
    assert long_functions == []


def test_names_of_test_files_are_unique() -> None:
    """pytest cannot collect two files of one name in one process, which `make mutants` needs."""
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_architecture_page_names_files_that_exist(root: Path) -> None:
    """Each file is in a folder that the same entry or section names, or in a feature's if it says
    so."""
    page = (root / "docs" / "architecture.md").read_text()
    files = [path.relative_to(root).as_posix() for folder in (PACKAGE, TESTS) for path in
             folder.rglob("*.py")]  # fmt: skip
    missing = []
    for entry in re.split(r"\n(?=## |\*\*a)", page):
        quoted = re.findall(r"`([\w/.]+)`", entry)
        folders = [name.strip("/") for name in quoted if not name.endswith(".py")]
        folders += [str(Path(name).parent) for name in quoted if "/" in name]
        folders += ["iopstui", r"features/\w+"] if "feature" in entry else ["iopstui"]
        for name in (name for name in quoted if name.endswith(".py")):
            where = "" if "/" in name else f"/(?:{'|'.join(filter(None, folders))})"
            pattern = re.compile(f"{where}/{name}$")
            if not any(pattern.search(f"/{file}") for file in files):
                missing.append(name)
    assert not missing and ".py`" in page


def test_the_scripts_import_only_what_exists(root: Path) -> None:
    """No other test reads scripts that are run once a year."""
    scripts = [
        path
        for path in (root / ".ci").rglob("*")
        if path.is_file()
        and (path.suffix == ".py" or path.read_bytes()[:30].startswith(b"#!/usr/bin/env py"))
    ]
    wanted = {
        (script.name, node.module, alias.name)
        for script in scripts for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("iopstui.")
        for alias in node.names
    }  # fmt: skip
    assert ("demo", "iopstui.session.live", "LiveSession") in wanted
    missing = [one for one in wanted if find_spec(one[1]) is None
               or not hasattr(import_module(one[1]), one[2])]  # fmt: skip
    assert missing == []


def test_texts_name_only_files_that_exist(root: Path) -> None:
    """A docstring or page that says "see x.py" must not outlive x.py."""
    folders = ("iopstui", "tests", ".ci", "docs")
    files = [str(path) for folder in folders for path in (root / folder).rglob("*.py")]
    pages = [
        *(root / "iopstui").rglob("*.py"),
        *(root / "docs").glob("*.md"),
        root / "CONTRIBUTING.md",
    ]
    examples = {"x.py", "test_x.py", "test_x_y.py"}
    missing = [
        f"{page.relative_to(root)}: {name}"
        for page in pages
        for name in re.findall(r"[\w/]*\b\w+\.py\b", page.read_text())
        if name not in examples
        and not any(
            file.endswith(f"/{name.lstrip('/')}")
            for file in files
            # the program names tests only with their folder
            if f"{root}/tests/" not in file or "tests/" in name or page.suffix == ".md"
        )
    ]
    assert missing == []
