"""Is what iopstui shows true? `make truth`: many short jobs on the installed fio.

Every job is run as iopstui runs it, with a log line for every I/O beside. Its frames are then held
against fio's last document and the logs. The table says the worst error of each comparison, and
which job had it. Exit code 1 if one is above its bound.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import compare
import fio_runs

import jobs
from iopstui.safety.scratch import supports_direct


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    options = _parser().parse_args(arguments)
    fio = options.fio or os.environ.get("IOPSTUI_FIO") or shutil.which("fio")
    if not fio:
        raise SystemExit("truth: fio is not installed")
    print(subprocess.run([fio, "--version"], capture_output=True, text=True).stdout.strip())
    with tempfile.TemporaryDirectory(prefix="iopstui-truth-", dir=options.directory) as name:
        place = Path(name)
        fio_runs.lay_out(fio, jobs.FILE, jobs.SIZE, place)
        engines = [engine for engine in jobs.ENGINES if _runs(fio, engine, place)]
        missing = sorted(set(jobs.ENGINES) - set(engines))
        print(f"engines: {', '.join(engines)}" + (f"; not here: {', '.join(missing)}"
                                                  if missing else ""))  # fmt: skip
        chosen = jobs.jobs(options.jobs, options.seed, engines, supports_direct(place))
        worst = Worst()
        for job in chosen:
            if options.only is None or job.number in options.only:
                worst.take(job, fio, place, options.verbose)
    return worst.told()


class Worst:
    """The worst error of each comparison so far, and which job had it."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, int, int]] = {}
        self._failed: list[str] = []
        self._done = 0
        self._traits: dict[str, int] = {}

    def take(self, job: jobs.Job, fio: str, place: Path, verbose: bool) -> None:
        """Run one job and compare."""
        self._done += 1
        for trait in job.traits:
            self._traits[trait] = self._traits.get(trait, 0) + 1
        try:
            measured = fio_runs.run(fio, job, place)
        except RuntimeError as error:
            self._failed.append(f"job {job.number}: {error}")
            return
        above = {}
        for name, error in compare.errors(measured):
            worst, of, count = self._found.get(name, (-1.0, 0, 0))
            worst, of = max((worst, of), (float(error), job.number), key=lambda item: item[0])
            self._found[name] = worst, of, count + 1
            if error > compare.CHECKS[name].bound:
                above[name] = max(error, above.get(name, 0))
        if verbose or above:
            text = ", ".join(f"{name} {error:.4g}" for name, error in above.items()) or "fine"
            print(f"job {job.number} ({', '.join(job.traits)}): {text}", flush=True)
            if above:
                print("    " + job.text.rstrip().replace("\n", "\n    "))

    def told(self) -> int:
        """The table; 1 if something is above its bound or a job failed."""
        print(f"\n{self._done} jobs: " + ", ".join(f"{n} {t}" for t, n in self._traits.items()))
        print(f"\n{'compared':<20} {'times':>7} {'worst':>10} {'bound':>10} unit  job")
        bad = False
        for name, check in compare.CHECKS.items():
            worst, of, count = self._found.get(name, (0.0, 0, 0))
            above = worst > check.bound or not count
            bad |= above
            print(f"{name:<20} {count:>7} {worst:>10.4g} {check.bound:>10.4g} {check.unit:<4} "
                  f"{of:>4}  {'ABOVE  ' if above else ''}{check.what}")  # fmt: skip
        for line in self._failed:
            print(line)
        return 1 if bad or self._failed else 0


def _runs(fio: str, engine: str, place: Path) -> bool:
    process = subprocess.run(
        [fio, "--name=probe", f"--ioengine={engine}", f"--filename={jobs.FILE}", "--size=4k",
         "--rw=read", "--output=/dev/null"],
        cwd=place, capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return process.returncode == 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make truth", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100, help="how many (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of jobs (1)")
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of some jobs")
    parser.add_argument("--fio", help="another fio than the installed one")
    parser.add_argument("--directory", help="where its file of 16 MiB is made (TMPDIR)")
    parser.add_argument("--verbose", action="store_true", help="a line for every job")
    return parser


if __name__ == "__main__":
    sys.exit(main())
