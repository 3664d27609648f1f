"""What imports what. The contracts are in pyproject.toml; here they are held."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

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
    assert loaded_by(IMPORT_ALL, *core).isdisjoint({"textual", "rich", "plotext", "pyarrow"})


def test_the_model_needs_nothing_but_python() -> None:
    assert loaded_by(IMPORT_ALL, "iopstui.model") == set()


def test_the_command_line_starts_without_a_screen() -> None:
    code = (
        "import sys; from iopstui.cli.program import build_parser; build_parser(); "
        "print(*({'textual', 'rich', 'plotext', 'pyudev', 'psutil'} & set(sys.modules)))"
    )
    assert loaded_by(code) == set()


def test_a_run_loads_only_what_it_does() -> None:
    """Half of the CPU that a run takes to its first line is for loading modules."""
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
        "iopstui.model.metrics.fields", "iopstui.output.jsonl", "iopstui.ui", "iopstui.report",
    })  # fmt: skip


def test_the_screen_of_one_machine_loads_nothing_of_fleets() -> None:
    code = "import sys; import iopstui.ui.app, iopstui.ui.dashboard.screen; print(*sys.modules)"
    loaded = loaded_by(code)
    assert "textual" in loaded
    assert not {name for name in loaded if ".fleet" in name}
    # nor does its help, which has the keys of a fleet's screen, too
    loaded = loaded_by("import sys; import iopstui.ui.fleet_keys; print(*sys.modules)")
    assert not {name for name in loaded if name.startswith("iopstui.fleet")}


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    tool = "import sys; from importlinter.cli import lint_imports_command as c; c()"
    return subprocess.run(
        [sys.executable, "-c", tool, "--no-cache"], cwd=directory, capture_output=True, text=True
    )


def test_the_layers_hold(root: Path) -> None:
    done = lint_imports(root)
    assert done.returncode == 0, done.stdout + done.stderr


BREACHES = (
    ("model", "iopstui.linux.roots"),
    ("model", "psutil"),
    ("model/block", "iopstui.model.metrics.frame"),
    ("linux", "iopstui.fio.stream"),
    ("fio", "iopstui.safety.journal"),
    ("recording", "iopstui.preflight.job"),
    ("session", "iopstui.experiment.runner"),
    ("ui", "iopstui.report.story"),
    ("session", "textual"),
    ("output", "rich"),
    ("output", "iopstui.ui"),
    ("ui", "plotext"),
    ("session", "pyudev"),
    ("report", "pyarrow"),
    ("fleet", "ClusterShell"),
    ("session", "argparse"),
    ("ui", "iopstui.cli.options"),
    ("fleet/hosts", "iopstui.fleet.merging.sums"),
    ("session/fio", "iopstui.session.tick.steady"),
)  # fmt: skip


@pytest.fixture(scope="module")
def broken(root: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What is said of a tree with all the breaches, each in a module of its own: looked at once,
    as that takes a second."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "pyproject.toml").write_text((root / "pyproject.toml").read_text())
    for source in (root / "iopstui").rglob("*.py"):
        copy = tree / "iopstui" / source.relative_to(root / "iopstui")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.read_bytes())
    for number, (package, imports) in enumerate(BREACHES):
        (tree / "iopstui" / package / f"rogue{number}.py").write_text(f"import {imports}\n")
    done = lint_imports(tree)
    assert done.returncode == 1, done.stdout + done.stderr
    return {line.strip(" -") for line in done.stdout.partition("Broken contracts")[2].splitlines()}


@pytest.mark.parametrize("number", range(len(BREACHES)), ids=lambda n: "-".join(BREACHES[n]))
def test_a_breach_of_the_layers_is_noticed(broken: set[str], number: int) -> None:
    package, imports = BREACHES[number]
    module = f"iopstui.{package.replace('/', '.')}.rogue{number}"
    assert f"{module} -> {imports} (l.1)" in broken


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Its lines below the signature and the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_function_is_longer_than_a_screen() -> None:
    """ruff bounds parameters, statements and complexity (pyproject.toml)."""
    package = Path(__file__).parents[2] / "iopstui"
    found = [
        f"{path.relative_to(package)}:{node.lineno} {node.name}"
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _body_lines(node) > MAX_LINES
    ]
    assert found == []


def test_no_two_test_files_have_one_name() -> None:
    """pytest cannot collect both in one process, which `make mutants` does."""
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_architecture_page_names_files_that_exist() -> None:
    root = Path(__file__).parents[2]
    named = set(re.findall(r"`([\w/.]+\.py)`", (root / "docs" / "architecture.md").read_text()))
    files = [f"/{one.relative_to(root)}" for name in ("iopstui", "tests") for one in
             (root / name).rglob("*.py")]  # fmt: skip
    assert named
    assert [one for one in named if not any(file.endswith(f"/{one}") for file in files)] == []


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
    gone = [
        f"{page.relative_to(root)}: {name}"
        for page in pages
        for name in re.findall(r"[\w/]*\b\w+\.py\b", page.read_text())
        if name not in examples and not any(one.endswith(f"/{name.lstrip('/')}") for one in files)
    ]
    assert gone == []
