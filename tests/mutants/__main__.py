"""Would the tests notice if the program were wrong? `make mutants`: a random sample of changes.

Each is made in a copy of the tree, where the tests that run the changed line are run. What none of
them notices is asked of the other checks of `make test`, and shown if they let it pass, too: it is
either a test that is missing, or changes nothing that counts. The same seed gives the same sample
as long as the program stays the same.
"""

from __future__ import annotations

import argparse
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

import checks
import equal
import parts
from changes import Change, sample
from covering import Covering, compile_all, covering, environment, pytest
from sandbox import NO_SANDBOX

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutants"

NOTICED, CHECKED, SURVIVED = "noticed", "checks notice", "survived"
NEVER_RUN, EQUAL = "run by no test", "changes nothing"


def main(arguments: Sequence[str] | None = None) -> int:
    """0: enough of them are noticed."""
    asked = _parser().parse_args(arguments)
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10000)
    trees = [_copied(BUILD / f"tree-{number}") for number in range(asked.jobs)]
    modules = list(parts.tests(ROOT))
    compile_all(trees, modules)
    known = covering(trees, BUILD, modules)
    print(f"choosing {asked.sample} changes with --seed {seed}", flush=True)
    changes = dict(enumerate(sample(ROOT, list(parts.files(ROOT)), asked.sample, seed), 1))
    if asked.only:
        changes = {number: changes[number] for number in asked.only}
    found: Counter[str] = Counter()
    for number, outcome in _outcomes(changes, known, trees):
        found[outcome] += 1
        _show(number, changes[number], outcome)
    count = sum(found.values()) - found[EQUAL]
    percent = 100 * (found[NOTICED] + found[CHECKED]) / max(1, count)
    print(f"{percent:.1f} %: of {count} that count {found[NOTICED]} were noticed by tests, "
          f"{found[CHECKED]} by mypy or ruff")  # fmt: skip
    print(f"{found[SURVIVED]} {SURVIVED}, {found[NEVER_RUN]} {NEVER_RUN}, {found[EQUAL]} {EQUAL}; "
          f"again: make mutants SAMPLE={asked.sample} SEED={seed}")  # fmt: skip
    return 0 if percent >= asked.least else 1


def _outcomes(
    changes: Mapping[int, Change], known: Covering, trees: Sequence[Path]
) -> Iterator[tuple[int, str]]:
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)
    pool = ThreadPoolExecutor(len(trees))
    begun = {number: pool.submit(_outcome, one, known, free) for number, one in changes.items()}
    try:
        for number, future in begun.items():
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
    parser.add_argument("--jobs", type=int, default=2, help="at the same time (%(default)s)")
    parser.add_argument("--least", type=float, default=0.0, metavar="PERCENT",
                        help="exit code 1 if less is noticed")  # fmt: skip
    return parser


def _copied(tree: Path) -> Path:
    """What git knows or would add, as it is now, and what mypy knows of it."""
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


def _outcome(change: Change, known: Covering, free: SimpleQueue[Path]) -> str:
    if equal.why(change):
        return EQUAL
    tests = known.of(change.path, change.lines)
    if not tests:
        return NEVER_RUN
    tree = free.get()
    file = tree / change.path
    try:
        file.write_text(change.after)
        limit = 60 + 10 * sum(known.seconds[name] for name in tests)
        if _fail(tree, tests, limit):
            return NOTICED
        return CHECKED if checks.refusing(tree) else SURVIVED
    finally:
        file.write_text(change.before)
        free.put(tree)


def _fail(tree: Path, tests: Sequence[str], limit: float) -> bool:
    """Whether one of them does. A change that hangs is noticed too."""
    names = tree / "build-tests"
    names.write_text("\n".join(tests))
    process = subprocess.Popen(
        pytest(tree, ["-x", "--tb=short", f"@{names}"]), cwd=tree, env=environment(tree),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        _kill(process)
        return True
    code, why = process.returncode, "ERROR collecting" in said  # it can't be imported any more
    if code == NO_SANDBOX or said.startswith("unshare: ") or (code in (4, 5) and not why):
        raise SystemExit(f"mutants: pytest ended with {code}:\n{said}")
    return code != 0


def _kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


if __name__ == "__main__":
    started = time.monotonic()
    code = main()
    print(f"{time.monotonic() - started:.0f} s")
    sys.exit(code)
