"""What iopstui costs: `make bench`. Prints a table, and writes the same as JSON to a file.

Only ratios of paired runs and CPU time are judged, because other load on the machine changes these
least; the table has the load of the machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import program
import report

PARTS = "abcdefghijklmno"


def machine() -> dict[str, Any]:
    """The machine, and the software on it."""
    model = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith(("model name", "Model", "CPU part"))), platform.machine(),
    )  # fmt: skip
    fio = subprocess.run([program.fio(), "--version"], capture_output=True, text=True)
    return {
        "cpus": program.CPUS, "cpu": model, "kernel": platform.release(),
        "python": platform.python_version(), "fio": fio.stdout.strip(),
        "virtual": " hypervisor" in Path("/proc/cpuinfo").read_text(),
    }  # fmt: skip


def _beside(place: Path, quick: bool) -> Any:
    import beside
    import one_run

    found = beside.measure(place, 2 if quick else 3, 2 if quick else 4)
    for name, one in one_run.measure(place, 2 if quick else 18).items():
        found[name]["one_run"] = one
    return found


def _cost(place: Path, quick: bool) -> Any:
    import cost

    return cost.measure(place, 5.0 if quick else 15.0)


def _first_frame(place: Path, quick: bool) -> Any:
    import first_frame

    return first_frame.measure(place, 2 if quick else 9)


def _kernel(place: Path, quick: bool) -> Any:
    import synthetic

    return [synthetic.kernel(cpus) for cpus in (2, 64, 256, 1024)]


def _mounts(place: Path, quick: bool) -> Any:
    import synthetic

    return [synthetic.mounts(watched, busy) for watched, busy in ((50, 50), (50, 0), (1, 1))]


def _flight(place: Path, quick: bool) -> Any:
    import flight

    sizes = {} if quick else flight.sizes(3600)  # a shorter file consists mostly of its beginning
    return {**flight.measure(15 if quick else 120), **sizes}


def _documents(place: Path, quick: bool) -> Any:
    import synthetic

    return [synthetic.documents(jobs) for jobs in (1, 4, 16, 64, 256)]


def _day(place: Path, quick: bool) -> Any:
    seconds = 8640 if quick else 86400
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "day.py"), str(seconds), "400"],
        capture_output=True, text=True, env=program.environment(place), check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def _report(place: Path, quick: bool) -> Any:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "report_day.py"), "600" if quick else "28800"],
        capture_output=True, text=True, env=program.environment(place), check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def _skew(place: Path, quick: bool) -> Any:
    import pace

    return pace.skew(place, 4 if quick else 8)


def _slow(place: Path, quick: bool) -> Any:
    import pace

    return pace.slow(place, 4 if quick else 10)


def _probe(place: Path, quick: bool) -> Any:
    import probe

    return probe.measure(place, 2 if quick else 6)


def _hosts(script: str) -> Callable[[Path, bool], Any]:
    def measured(place: Path, quick: bool) -> Any:
        words = [sys.executable, str(Path(__file__).parent / script)]
        found = []
        for hosts in (100, 1000):
            done = subprocess.run(
                [*words, str(hosts), "5" if quick else "30"],
                capture_output=True, text=True, env=program.environment(place), check=True,
            )  # fmt: skip
            found.append(json.loads(done.stdout))
        return found

    return measured


def _links(place: Path, quick: bool) -> Any:
    words = [sys.executable, str(Path(__file__).parent / "fleet_links.py")]
    found = []
    for hosts in ("100", "1000"):
        for kind in ("lines", "screen"):
            done = subprocess.run(
                [*words, hosts, "5" if quick else "30", kind],
                capture_output=True, text=True, env=program.environment(place), check=True,
            )  # fmt: skip
            found.append(json.loads(done.stdout))
    return found


MEASURES: dict[str, Callable[[Path, bool], Any]] = {
    "a": _beside, "b": _cost, "c": _first_frame, "d": _kernel, "e": _documents, "f": _day,
    "g": _skew, "h": _slow, "i": _probe, "j": _hosts("fleet.py"),
    "k": _hosts("fleet_screen.py"), "l": _links, "m": _report, "n": _mounts,
    "o": _flight,
}  # fmt: skip


def main() -> int:
    """Returns exit code 0, or 1 if a bound is missed."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default=PARTS, help="letters of the table's parts")
    parser.add_argument("--quick", action="store_true", help="too short to rely on")
    parser.add_argument("--json", default="bench.json", type=Path, metavar="FILE")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only the table of this JSON")
    options = parser.parse_args()
    if options.show:
        result = json.loads(options.show.read_text())
    else:
        result = _measure(options)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    print(report.table(result))
    return 0 if report.met(result) else 1


def _measure(options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    result: dict[str, Any] = {"machine": machine(), "quick": options.quick}
    busy = {"before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()) as directory:
        for letter in options.only:
            load = os.getloadavg()[0]
            print(f"bench: ({letter}), load {load:.1f}", file=sys.stderr)
            busy[letter] = load
            result[letter] = MEASURES[letter](Path(directory), options.quick)
    result["load"] = busy
    result["seconds"] = time.monotonic() - began
    return result


if __name__ == "__main__":
    sys.exit(main())
