"""Are the figures of each second true? `make truth`.

Runs short jobs of many kinds, several at a time, with a log line for every I/O, and compares each
row and each section with the logs of the same seconds. The table has the worst error of each
figure, and the job that had it. Exit code 1 if an error is above its bound."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import fio_runs
import oracle

import jobs

MARKED_SHARE = 0.05
"""At most this share of the rows that can be true may be marked as doubtful."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for. Returns the exit code."""
    options = _parser().parse_args(arguments)
    installed = shutil.which("fio")
    fios = options.fio or [path for path in (os.environ.get("IOPSTUI_FIO"), installed) if path][:1]
    if not fios:
        raise SystemExit("truth: fio is not installed")
    chosen = [job for job in jobs.jobs() if not options.only or job.name in options.only]
    if os.geteuid():
        print("Not root: no loop devices, so no jobs that need one.")
        chosen = [job for job in chosen if not job.on_device]
    bad = False
    for fio in fios:
        version = subprocess.run([fio, "--version"], capture_output=True, text=True).stdout.strip()
        with _directory(options.directory, options.keep) as name:
            worst = Worst(options.verbose)
            with ThreadPoolExecutor(options.side_by_side) as pool:
                for job, outcome in zip(
                    chosen, pool.map(partial(_try, fio, Path(name)), chosen), strict=True
                ):
                    worst.take(job, outcome)
            bad |= worst.told(version)
    return int(bad)


def _directory(parent: str | None, keep: bool) -> contextlib.AbstractContextManager[str]:
    """A new directory, deleted at the end or not."""
    if not keep:
        return tempfile.TemporaryDirectory(prefix="iopstui-truth-", dir=parent)
    name = tempfile.mkdtemp(prefix="iopstui-truth-", dir=parent)
    print(f"rows, logs and recordings: {name}")
    return contextlib.nullcontext(name)


def _try(fio: str, directory: Path, job: jobs.Job) -> fio_runs.Run | str:
    """The run, or the reason why it failed."""
    place = directory / job.name.replace(" ", "-")
    (place / "target").mkdir(parents=True)
    try:
        with _loop_device(place) if job.on_device else contextlib.nullcontext() as device:
            return fio_runs.run(job, fio, place, device or str(place / "target"))
    except (RuntimeError, OSError) as error:
        return str(error)


@contextlib.contextmanager
def _loop_device(place: Path) -> Iterator[str]:
    image = place / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    made = subprocess.run(["losetup", "-f", "--show", str(image)], capture_output=True, text=True)
    if made.returncode:
        raise OSError(made.stderr.strip())
    try:
        yield made.stdout.strip()
    finally:
        subprocess.run(["losetup", "-d", made.stdout.strip()], check=False)


class Worst:
    """The worst error of each figure so far, and which job had it."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._found: dict[str, tuple[float, str, int]] = {}
        self._failed: list[str] = []
        self._jobs = self._rows = self._possible = self._marked = self._wrong = 0
        self._marked_bytes = 0

    def take(self, job: jobs.Job, outcome: fio_runs.Run | str) -> None:
        """Compare one run with its logs."""
        self._jobs += 1
        if isinstance(outcome, str):
            self._failed.append(f"{job.name}: {outcome}")
            return
        possible = oracle.could_be_true(outcome.rows, outcome)
        marked = [row for row in possible if oracle.marked(row, "I/Os")]
        self._rows += len(outcome.rows)
        self._possible += len(possible)
        self._marked += len(marked)
        self._marked_bytes += sum(map(oracle.marked, possible)) - len(marked)
        above: dict[str, oracle.Error] = {}
        for error in oracle.errors(outcome):
            worst, of, count = self._found.get(error.figure, (-1.0, "", 0))
            if error.error > worst:
                worst, of = error.error, f"{job.name}, {error.where}"
            self._found[error.figure] = worst, of, count + 1
            if error.error > oracle.CHECKS[error.figure].bound:
                previous = above.get(error.figure)
                above[error.figure] = max(error, previous or error, key=lambda e: e.error)
        self._wrong += bool(above)
        if above or marked or self._verbose:
            texts = [f"{e.figure} {e.error:.3g} ({e.where})" for e in above.values()]
            texts += [f"{len(marked)} of {len(possible)} rows marked"] if marked else []
            print(f"{job.name}: {', '.join(texts) or 'true'}", flush=True)

    def told(self, version: str) -> bool:
        """Print the table. Returns whether an error is above its bound or a run failed."""
        share = self._marked / max(1, self._possible)
        print(f"\n{version}: {self._jobs} jobs, {self._rows} rows; {self._wrong} jobs have a wrong "
              f"figure; marked {self._marked} of {self._possible} rows that could be true "
              f"({100 * share:.1f} %), {self._marked_bytes} more in bytes alone\n")  # fmt: skip
        print(f"{'figure':<15} {'compared':>8} {'worst':>9} {'bound':>7}  where")
        bad = share > MARKED_SHARE
        for figure, check in oracle.CHECKS.items():
            worst, where, count = self._found.get(figure, (0.0, "", 0))
            above = worst > check.bound
            bad |= above
            print(f"{figure:<15} {count:>8} {worst:>9.3g} {check.bound:>7.3g}  "
                  f"{'ABOVE ' if above else ''}{where}: {check.what}")  # fmt: skip
        print("\n".join(self._failed), flush=True)
        return bad or bool(self._failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make truth", description=__doc__)
    parser.add_argument("--fio", action="append", help="another fio than the installed one; "
                        "repeat it for several")  # fmt: skip
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the jobs")
    parser.add_argument("--side-by-side", type=int, default=6, help="jobs at a time (6)")
    parser.add_argument("--directory", help="where the jobs' files are made (TMPDIR)")
    parser.add_argument("--keep", action="store_true", help="keep rows, logs and recordings there")
    parser.add_argument("--verbose", action="store_true", help="a line for every job")
    return parser


if __name__ == "__main__":
    sys.exit(main())
