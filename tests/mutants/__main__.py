"""Would the tests notice if the program were wrong? `make mutants`: a random sample of changes.

Each change is made in a copy of the tree, where the tests that run the changed line are run. If all
pass, the other checks of `make test` are run. A change that they accept, too, is listed: either a
test is missing, or the change makes no difference. The same seed gives the same sample as long as
the program stays the same."""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

if any(importlib.util.find_spec(name) is None for name in ("mutmut", "pytest_cov")):
    raise SystemExit("mutants: mutmut or pytest-cov is not installed. Run: "
                     ".venv/bin/pip install mutmut==3.8.1 pytest-cov")  # fmt: skip

import checks
import equal
import parts
from changes import Change, sample
from covering import Coverage, compile_all, covering, environment, pytest
from sandbox import NO_SANDBOX

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutants"

NOTICED, CHECKED, SURVIVED = "noticed", "checks notice", "survived"
NEVER_RUN, EQUAL = "run by no test", "changes nothing"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return exit code 0 if the tests notice enough changes."""
    options = _parser().parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10000)
    trees = [_copy_tree(BUILD / f"tree-{number}") for number in range(options.jobs)]
    modules = list(parts.tests(ROOT, options.tests))
    compile_all(trees, modules)
    coverage = covering(trees, BUILD, modules)
    print(f"choosing {options.sample} changes with --seed {seed}", flush=True)
    paths = list(parts.files(ROOT, options.parts))
    changes = dict(enumerate(sample(ROOT, paths, options.sample, seed), 1))
    if options.only:
        changes = {number: changes[number] for number in options.only}
    counts: Counter[str] = Counter()
    for number, outcome in _outcomes(changes, coverage, trees):
        counts[outcome] += 1
        _show(number, changes[number], outcome)
    count = sum(counts.values()) - counts[EQUAL]
    percent = 100 * (counts[NOTICED] + counts[CHECKED]) / max(1, count)
    print(f"{percent:.1f} %: of {count} that count {counts[NOTICED]} were noticed by tests, "
          f"{counts[CHECKED]} by mypy or ruff")  # fmt: skip
    rest = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (SURVIVED, NEVER_RUN, EQUAL))
    print(f"{rest}; again: make mutants SAMPLE={options.sample} SEED={seed}")  # fmt: skip
    return 0 if percent >= options.least else 1


def _outcomes(
    changes: Mapping[int, Change], coverage: Coverage, trees: Sequence[Path]
) -> Iterator[tuple[int, str]]:
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)
    pool = ThreadPoolExecutor(len(trees))
    futures = {
        number: pool.submit(_outcome, change, coverage, free) for number, change in changes.items()
    }
    try:
        for number, future in futures.items():
            yield number, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _show(number: int, change: Change, outcome: str) -> None:
    print(f"{number:4} {outcome:15} {change.path}:{min(change.lines)}", flush=True)
    if outcome == EQUAL:
        print(f"     {equal.why(change)}", flush=True)
    elif outcome in (SURVIVED, NEVER_RUN):
        print(change.diff, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="how many changes (%(default)s)")
    parser.add_argument("--seed", type=int, help="which ones (each time others)")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the sample, again")
    parser.add_argument("--parts", nargs="+", default=parts.PARTS, metavar="PATH",
                        help="change only these files or packages")  # fmt: skip
    parser.add_argument("--tests", nargs="+", default=parts.TESTS, metavar="FOLDER",
                        help="ask only the tests of these folders")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="at the same time (%(default)s)")
    parser.add_argument("--least", type=float, default=0.0, metavar="PERCENT",
                        help="exit code 1 if less is noticed")  # fmt: skip
    return parser


def _copy_tree(tree: Path) -> Path:
    """Copy the files that git tracks or would add, and mypy's cache."""
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    if (ROOT / ".mypy_cache").is_dir():
        shutil.copytree(ROOT / ".mypy_cache", tree / ".mypy_cache")
    return tree


def _outcome(change: Change, coverage: Coverage, free: SimpleQueue[Path]) -> str:
    if equal.why(change):
        return EQUAL
    tests = coverage.of(change.path, change.lines)
    if not tests:
        return NEVER_RUN
    tree = free.get()
    file = tree / change.path
    try:
        file.write_text(change.after)
        limit = 60 + 10 * sum(coverage.seconds[name] for name in tests)
        if _fail(tree, tests, limit):
            return NOTICED
        return CHECKED if checks.refusing(tree) else SURVIVED
    finally:
        file.write_text(change.before)
        free.put(tree)


def _fail(tree: Path, tests: Sequence[str], limit: float) -> bool:
    """Whether one of the tests fails. A change that hangs counts as failed, too."""
    names = tree / "build-tests"
    names.write_text("\n".join(tests))
    process = subprocess.Popen(
        pytest(tree, ["-x", "--tb=short", f"@{names}"]), cwd=tree, env=environment(tree),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        _kill(process)
        return True
    # the changed program can't be imported
    code, why = process.returncode, "ERROR collecting" in output
    if code == NO_SANDBOX or output.startswith("unshare: ") or (code in (4, 5) and not why):
        raise SystemExit(f"mutants: pytest ended with {code}:\n{output}")
    return code != 0


def _kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


if __name__ == "__main__":
    started = time.monotonic()
    code = main()
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(code)
