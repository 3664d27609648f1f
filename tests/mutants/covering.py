"""Which tests run a line of the program, and how long each takes: pytest-cov asks all of them once.

The answer is kept in build/mutants as long as neither program nor tests change.
"""

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

# What the tests that are asked about one change take together at most, measured with coverage.
LONGEST_S = 20.0

_LINES = "tests.coverage"
_TIMES = "tests.xml"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Covering:
    """``seconds`` by test, ``tests`` by file and line, ``words`` by test module."""

    seconds: Mapping[str, float]
    tests: Mapping[str, Mapping[int, Set[str]]]
    words: Mapping[str, Set[str]]

    def of(self, path: Path, lines: Collection[int]) -> list[str]:
        """Those to ask about a change of ``lines``: of the file's own test modules first (x.py has
        test_x.py, test_x_y.py ...), then of those that name it, then the quickest. A line that runs
        at import, or only in a process of its own, concerns all that run anything of the file, and
        then those that only name it.
        """
        known = self.tests.get(path.as_posix(), {})
        named = {one for one in self.seconds if path.stem in self.words[_module(one)]}
        running: set[str] = set().union(*known.values())
        found = set().union(*(known.get(line, ()) for line in lines)) or named | running
        own = re.compile(rf"/test_{path.stem}(_\w+)?\.py::")

        def rank(one: str) -> tuple[bool, bool, bool, float, str]:
            return (not own.search(one), one not in running, one not in named, self.seconds[one],
                    one)  # fmt: skip

        left, chosen = LONGEST_S, []
        for name in sorted(found, key=rank):
            left -= self.seconds[name]
            if chosen and left < 0:
                break
            chosen.append(name)
        return chosen


def environment(tree: Path) -> dict[str, str]:
    """Of a pytest that tests the program in ``tree``. CI: hypothesis tries the same each time."""
    return {
        **os.environ,
        "CI": "1",
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def pytest(tree: Path, arguments: Sequence[str]) -> list[str]:
    """The command; plugins are named, for the rest of them costs a second at each start."""
    plugins = ("pytest_asyncio.plugin", "no:cacheprovider")
    return [*inside(tree), sys.executable, "-m", "pytest", "-q", f"--rootdir={tree}",
            *(word for one in plugins for word in ("-p", one)), *arguments]  # fmt: skip


def compile_all(trees: Sequence[Path], modules: Sequence[str]) -> None:
    """Keep the program and the tests as bytecode, which costs as much to make at each start as the
    tests of a change. That of the program is held against the source: a changed file is seen
    whatever its time says.
    """
    for tree in trees:
        compileall.compile_dir(
            tree / "iopstui", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH
        )
    runs = [_started(tree, ["--collect-only", *modules], subprocess.PIPE) for tree in trees]
    texts = [run.communicate()[0].decode(errors="replace") for run in runs]
    for run, text in zip(runs, texts, strict=True):
        if run.returncode:
            raise SystemExit(f"{text[-4000:]}\nmutants: pytest cannot collect the tests, see above")


def _started(tree: Path, arguments: Sequence[str], output: int | None = None
             ) -> subprocess.Popen[bytes]:  # fmt: skip
    """A pytest that keeps bytecode."""
    kept = {**environment(tree), "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.Popen(
        pytest(tree, arguments), cwd=tree, env=kept, stdin=subprocess.DEVNULL, stdout=output
    )


def covering(trees: Sequence[Path], kept: Path, modules: Sequence[str]) -> Covering:
    """From ``kept`` as far as nothing has changed, else by running the test ``modules``, a share of
    them in each of ``trees``.
    """
    now = {name: _digest([trees[0] / name]) for name in modules}
    file = kept / f"covering-{_digest(_shared(trees[0], modules))}.json"
    before, seconds, lines = json.loads(file.read_text()) if file.exists() else ({}, {}, {})
    again = [name for name in modules if before.get(name) != now[name]]
    stale = {*again, *(before.keys() - now.keys())}
    seconds = {test: time for test, time in seconds.items() if _module(test) not in stale}
    if again:
        print(f"running {len(again)} test modules, to see which test runs which line", flush=True)
        fresh_seconds, fresh_lines = _asked(trees, again)
        seconds |= fresh_seconds
        for path, by_line in fresh_lines.items():
            for line, tests in by_line.items():
                known = lines.setdefault(path, {})
                known[line] = sorted({*known.get(line, ()), *tests} & seconds.keys())
        file.write_text(json.dumps([now, seconds, lines]))
    return Covering(
        seconds,
        {path: {int(line): seconds.keys() & tests for line, tests in by_line.items()}
         for path, by_line in lines.items()},
        {name: set(_WORD.findall((trees[0] / name).read_text())) for name in modules},
    )  # fmt: skip


def _shared(tree: Path, modules: Sequence[str]) -> list[Path]:
    """The program and what several test modules use."""
    tests = {path for name in modules for path in (tree / name).parent.glob("*.py")}
    helpers = tests - {tree / name for name in modules}
    return sorted([*(tree / "iopstui").rglob("*.py"), *helpers, tree / "tests/conftest.py"])


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _asked(
    trees: Sequence[Path], modules: Sequence[str]
) -> tuple[dict[str, float], dict[str, dict[str, set[str]]]]:
    """Seconds by test, and by file and line the tests that run it."""
    shares = [(tree, modules[number :: len(trees)]) for number, tree in enumerate(trees)]
    shares = [(tree, share) for tree, share in shares if share]
    runs = [_begun(tree, share) for tree, share in shares]
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


def _begun(tree: Path, tests: Sequence[str]) -> subprocess.Popen[bytes]:
    settings = tree / "coverage.ini"
    settings.write_text(f"[run]\nsource = iopstui\ndata_file = {tree / _LINES}\n")
    arguments = [
        *tests, "-p", "pytest_cov.plugin", "--cov", f"--cov-config={settings}",
        "--cov-context=test", "--cov-report=", f"--junitxml={_TIMES}", "-ojunit_family=xunit1",
    ]  # fmt: skip
    return _started(tree, arguments)


def _seconds(report: Path) -> dict[str, float]:
    """Of all test functions that don't fail or skip, with all their parameters."""
    found: dict[str, float] = defaultdict(float)
    bad: set[str] = set()
    for case in ET.parse(report).iter("testcase"):
        classes = case.get("classname", "").removeprefix(
            case.get("file", "").removesuffix(".py").replace("/", ".")
        )
        inside = "::".join(part for part in classes.split(".") if part)
        parts = (case.get("file", ""), inside, case.get("name", ""))
        name = _function("::".join(part for part in parts if part))
        found[name] += float(case.get("time", "0"))
        if any(child.tag in ("failure", "error", "skipped") for child in case):
            bad.add(name)
    if bad:
        print("not asked, because they fail or skip as it is:", *sorted(bad), sep="\n    ")
    return {name: round(time, 3) for name, time in found.items() if name not in bad}


def _function(test: str) -> str:
    """A test's name without its parameters and pytest-cov's "|run"."""
    return test.partition("[")[0].partition("|")[0]


def _module(test: str) -> str:
    return test.partition("::")[0]
