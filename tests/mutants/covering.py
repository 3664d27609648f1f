"""Find out, with pytest-cov, which tests run a line of the program and how long each test takes.

The result is cached in build/mutants until the program or the tests change."""

from __future__ import annotations

import compileall
import hashlib
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

from coverage import CoverageData
from sandbox import inside

# Longest time of all tests for one change, measured with coverage.
LONGEST_S = 20.0

_LINES = "tests.coverage"
_TIMES = "tests.xml"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Coverage:
    """``seconds`` by test, ``tests`` by file and line, ``words`` by test module."""

    seconds: Mapping[str, float]
    tests: Mapping[str, Mapping[int, Set[str]]]
    words: Mapping[str, Set[str]]

    def of(self, path: Path, lines: Collection[int]) -> list[str]:
        """The tests to run for a change of ``lines``: first those of the file's own test modules
        (test_x.py or test_x_y.py of x.py), then those that mention the file, then the fastest. For
        a line that runs at import or only in a subprocess: all tests that run any line of the file,
        then those that only mention it.
        """
        tests_by_line = self.tests.get(path.as_posix(), {})
        naming = {test for test in self.seconds if path.stem in self.words[_module(test)]}
        running: set[str] = set().union(*tests_by_line.values())
        candidates = (
            set().union(*(tests_by_line.get(line, ()) for line in lines)) or naming | running
        )
        own_module = re.compile(rf"/test_{path.stem}(_\w+)?\.py::")

        def rank(test: str) -> tuple[bool, bool, bool, float, str]:
            return (not own_module.search(test), test not in running, test not in naming,
                    self.seconds[test], test)  # fmt: skip

        time_left, chosen = LONGEST_S, []
        for name in sorted(candidates, key=rank):
            time_left -= self.seconds[name]
            if chosen and time_left < 0:
                break
            chosen.append(name)
        return chosen


def environment(tree: Path) -> dict[str, str]:
    """Environment variables for pytest in ``tree``. CI makes hypothesis deterministic."""
    return {
        **os.environ,
        "CI": "1",
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def pytest(tree: Path, arguments: Sequence[str]) -> list[str]:
    """The pytest command. Loading only the named plugins saves a second per start."""
    plugins = ("pytest_asyncio.plugin", "no:cacheprovider")
    return [*inside(tree), sys.executable, "-m", "pytest", "-q", f"--rootdir={tree}",
            *(option for plugin in plugins for option in ("-p", plugin)), *arguments]  # fmt: skip


def compile_all(trees: Sequence[Path], modules: Sequence[str]) -> None:
    """Keep the program and the tests as bytecode. Compiling them at each start would cost as much
    as the tests of a change. The program's bytecode is checked against the source itself, so a
    changed file is noticed whatever its time stamp is."""
    for tree in trees:
        compileall.compile_dir(
            tree / "iopstui", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH
        )
    runs = [_start_pytest(tree, ["--collect-only", *modules], subprocess.PIPE) for tree in trees]
    texts = [run.communicate()[0].decode(errors="replace") for run in runs]
    for run, text in zip(runs, texts, strict=True):
        if run.returncode:
            raise SystemExit(f"{text[-4000:]}\nmutants: pytest cannot collect the tests, see above")


def _start_pytest(tree: Path, arguments: Sequence[str], output: int | None = None
             ) -> subprocess.Popen[bytes]:  # fmt: skip
    """Start a pytest that writes bytecode."""
    variables = {**environment(tree), "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.Popen(
        pytest(tree, arguments), cwd=tree, env=variables, stdin=subprocess.DEVNULL, stdout=output
    )


def covering(trees: Sequence[Path], folder: Path, modules: Sequence[str]) -> Coverage:
    """The coverage: from the cache in ``folder`` if nothing has changed, else from running the test
    ``modules``, a share of them in each of ``trees``."""
    now = {name: _digest([trees[0] / name]) for name in modules}
    file = folder / f"covering-{_digest(_shared(trees[0], modules))}.json"
    before, seconds, lines = json.loads(file.read_text()) if file.exists() else ({}, {}, {})
    outdated = [name for name in modules if before.get(name) != now[name]]
    stale = {*outdated, *(before.keys() - now.keys())}
    seconds = {test: time for test, time in seconds.items() if _module(test) not in stale}
    if outdated:
        print(
            f"running {len(outdated)} test modules, to see which test runs which line", flush=True
        )
        fresh_seconds, fresh_lines = _measure_coverage(trees, outdated)
        seconds |= fresh_seconds
        for path, by_line in fresh_lines.items():
            for line, tests in by_line.items():
                tests_by_line = lines.setdefault(path, {})
                tests_by_line[line] = sorted(
                    {*tests_by_line.get(line, ()), *tests} & seconds.keys()
                )
        file.write_text(json.dumps([now, seconds, lines]))
    return Coverage(
        seconds,
        {path: {int(line): seconds.keys() & tests for line, tests in by_line.items()}
         for path, by_line in lines.items()},
        {name: set(_WORD.findall((trees[0] / name).read_text())) for name in modules},
    )  # fmt: skip


def _shared(tree: Path, modules: Sequence[str]) -> list[Path]:
    """The program and the files that several test modules use."""
    tests = {path for name in modules for path in (tree / name).parent.glob("*.py")}
    helpers = tests - {tree / name for name in modules}
    return sorted([*(tree / "iopstui").rglob("*.py"), *helpers, tree / "tests/conftest.py"])


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _measure_coverage(
    trees: Sequence[Path], modules: Sequence[str]
) -> tuple[dict[str, float], dict[str, dict[str, set[str]]]]:
    """Run the tests. Return seconds by test, and tests by file and line."""
    shares = [(tree, modules[number :: len(trees)]) for number, tree in enumerate(trees)]
    shares = [(tree, share) for tree, share in shares if share]
    runs = [_start_with_coverage(tree, share) for tree, share in shares]
    for run in runs:
        if run.wait() not in (0, 1):
            raise SystemExit(f"mutants: pytest ended with exit code {run.returncode}")
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, set[str]]] = {}
    for tree, _ in shares:
        seconds |= _seconds(tree / _TIMES)
        data = CoverageData(str(tree / _LINES))
        data.read()
        for measured in data.measured_files():
            by_line = lines.setdefault(Path(measured).relative_to(tree).as_posix(), {})
            for line, contexts in data.contexts_by_lineno(measured).items():
                by_line.setdefault(str(line), set()).update(map(_function, contexts))
    return seconds, lines


def _start_with_coverage(tree: Path, tests: Sequence[str]) -> subprocess.Popen[bytes]:
    settings = tree / "coverage.ini"
    settings.write_text(f"[run]\nsource = iopstui\ndata_file = {tree / _LINES}\n")
    arguments = [
        *tests, "-p", "pytest_cov.plugin", "--cov", f"--cov-config={settings}",
        "--cov-context=test", "--cov-report=", f"--junitxml={_TIMES}", "-ojunit_family=xunit1",
    ]  # fmt: skip
    return _start_pytest(tree, arguments)


def _seconds(report: Path) -> dict[str, float]:
    """Seconds of each test function with all its parameters, without those that fail or skip."""
    seconds: dict[str, float] = defaultdict(float)
    bad: set[str] = set()
    for case in ET.parse(report).iter("testcase"):
        classes = case.get("classname", "").removeprefix(
            case.get("file", "").removesuffix(".py").replace("/", ".")
        )
        inside = "::".join(part for part in classes.split(".") if part)
        parts = (case.get("file", ""), inside, case.get("name", ""))
        name = _function("::".join(part for part in parts if part))
        seconds[name] += float(case.get("time", "0"))
        if any(child.tag in ("failure", "error", "skipped") for child in case):
            bad.add(name)
    if bad:
        print("not asked, because they fail or skip as it is:", *sorted(bad), sep="\n    ")
    return {name: round(time, 3) for name, time in seconds.items() if name not in bad}


def _function(test: str) -> str:
    """A test's name without its parameters and pytest-cov's "|run"."""
    return test.partition("[")[0].partition("|")[0]


def _module(test: str) -> str:
    return test.partition("::")[0]
