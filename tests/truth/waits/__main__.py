"""Are the I/Os where iopstui says? Jobs on stacked devices, compared with the kernel's trace.

The devices are made in a virtual machine: IOPSTUI_LAB is a command that runs its arguments there as
root; the checkout and Python must be at the same paths. It needs tracefs, null_blk, dm, md, loop,
lvm2, mdadm, fio and a disk with the serial number VBLK4Q, which is overwritten. With --here, this
machine is used.

Each job is recorded by `iopstui run --record`. The recording's frames are compared with the events
of the block layer, of fio's system calls and of the scheduler in the same seconds (io_places.py).
Exit code 1 if a part is off by more than 10 % and 0.5 I/Os."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scoreboard"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import wait_compare
from io_places import places
from io_trace import Device, IoTrace
from scenario import Absent, Bench
from wait_stacks import STACKS, Stack, name_of, number_of, stripe, tree_of

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 5
JOBS = {
    "read, depth 1": "rw=randread",
    "read, depth 32": "rw=randread\niodepth=32",
    "write, depth 8": "rw=randwrite\niodepth=8",
    "mixed, depth 16": "rw=randrw\niodepth=16",
    "buffered read, 4 jobs": "rw=randread\nioengine=psync\ndirect=0\nnumjobs=4",
    "buffered write": "rw=randwrite\nioengine=psync\ndirect=0\nrate_iops=300",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for. Returns the exit code."""
    options = _parser().parse_args(arguments)
    lab = shlex.split(os.environ.get("IOPSTUI_LAB", ""))
    if not options.here and not options.again:
        if not lab:
            raise SystemExit("waits: IOPSTUI_LAB names no command (or use --here)")
        command = [
            sys.executable,
            str(Path(__file__).parent),
            "--here",
            *(arguments or sys.argv[1:]),
        ]
        return subprocess.run([*lab, *command]).returncode
    print(f"Linux {platform.release()}, {time.strftime('%Y-%m-%d')}\n")
    print(wait_compare.head(), flush=True)
    rows = []
    for row in _compare_again(options) if options.again else _rows(options):
        print(row.line(), flush=True)
        rows.append(row)
    print("", *wait_compare.short_table(rows), sep="\n")
    wrong = sum(row.off for row in rows)
    print(f"\n{len(rows)} parts, {wrong} off by more than 10 % and 0.5 I/Os")
    return int(wrong > 0)


def _compare_again(options: argparse.Namespace) -> Iterator[wait_compare.Row]:
    for file in sorted(Path(options.again).glob("*.json")):
        measurement = json.loads(file.read_text())
        if _matches(options.stack, measurement["stack"]) and _matches(
            options.job, measurement["job"]
        ):
            yield from wait_compare.rows(measurement, file.with_suffix(".iops"))


def _rows(options: argparse.Namespace) -> Iterator[wait_compare.Row]:
    for stack in STACKS:
        if not _matches(options.stack, stack.name):
            continue
        with tempfile.TemporaryDirectory(prefix="iopstui-waits-") as name, ExitStack() as undo:
            bench = Bench(undo, Path(name))
            try:
                path = stack.make(bench)
            except Absent as why:
                raise SystemExit(f"waits: {stack.name}: {why}") from None
            for job in JOBS:
                if _matches(options.job, job):
                    measurement = _measure(stack, bench, path, job, options)
                    recording = bench.here / "job.iops"
                    _keep(options.keep, measurement, recording)
                    yield from wait_compare.rows(measurement, recording)


def _matches(patterns: Sequence[str], name: str) -> bool:
    return not patterns or any(pattern in name for pattern in patterns)


def _keep(directory: str | None, measurement: wait_compare.Measurement, recording: Path) -> None:
    if directory:
        name = f"{measurement['stack']} {measurement['job']}".replace(",", "").replace(" ", "-")
        shutil.copy(recording, Path(directory, f"{name}.iops"))
        Path(directory, f"{name}.json").write_text(json.dumps(measurement))


def _measure(
    stack: Stack, bench: Bench, path: str, job: str, options: argparse.Namespace
) -> wait_compare.Measurement:
    """Run a job while the kernel traces. Returns the I/Os' places in each recorded second, by the
    trace."""
    recording = bench.here / "job.iops"
    recording.unlink(missing_ok=True)
    top = name_of(bench.node)
    tree = tree_of(top)
    numbers = {number_of(name): name for name in tree}
    with IoTrace(list(numbers)) as trace:
        process = subprocess.run(
            _command(bench, path, job, recording, options),
            cwd=bench.here, capture_output=True, text=True,
            env={**os.environ, "XDG_STATE_HOME": str(bench.here / "state"),
                 "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        if process.returncode:
            raise SystemExit(f"waits: {stack.name}, {job}: {process.stderr or process.stdout}")
        events = trace.events()
    by_name = {name: number for number, name in numbers.items()}

    def addresses(device: Device, sector: int) -> Sequence[tuple[Device, int]]:
        sectors = stack.above(tree, numbers[device], sector) if stack.above else ()
        return [(by_name[name], place) for name, place in sectors]

    spans = [span for span, _ in wait_compare.seconds(recording)]
    lowest = [name for name in tree if tree_of(name) == [name]]
    in_cache = "direct=0" in JOBS[job]
    parity = stack.above is stripe
    means = places(events, spans, by_name[top], numbers, addresses, lowest, in_cache, parity)
    return {"stack": stack.name, "job": job, "tree": tree, "spans": spans, "places": means}


def _command(
    bench: Bench, path: str, job: str, recording: Path, options: argparse.Namespace
) -> list[str]:
    file, device = bench.here / "job.fio", bench.node == path
    place = [] if device else ["filename=waits.scratch"]
    lines = ["[job]", "ioengine=libaio", "direct=1", "bs=4k", "time_based",
             f"runtime={options.seconds}", "size=48m", *place, JOBS[job]]  # fmt: skip
    file.write_text("\n".join(lines) + "\n")
    probe = ["--probe"] if options.probe else []
    destroy = ["--destroy-data", path] if device and "rw=randread" not in JOBS[job] else []
    return [sys.executable, "-m", "iopstui", "run", path, "--job", str(file),
            "--record", str(recording), "--no-fence", *destroy, *probe]  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tests/truth/waits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--here", action="store_true", help="on this machine, as root")
    parser.add_argument("--stack", action="append", help="only stacks with this word")
    parser.add_argument("--job", action="append", help="only jobs with this word")
    parser.add_argument("--probe", action="store_true", help="and verify queue and device")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"of each job ({SECONDS})")
    parser.add_argument("--keep", metavar="DIR", help="keep recordings and the trace's figures")
    parser.add_argument("--again", metavar="DIR", help="compare what --keep has kept once more")
    return parser


if __name__ == "__main__":
    sys.exit(main())
