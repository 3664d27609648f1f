"""Are `fit` and `limit` right? `make virtual`: many runs on disks for which the answer is known.

They run in guests with virtual time, so other load on this machine does not affect them. Started
again, only missing results are measured. Needs QEMU, busybox (static), fio, and a kernel with its
modules."""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import guest
import judged
from simulated_queue import Queue

JUST_BELOW, JUST_ABOVE = 3_385_000, 4_165_000
"""The time of a request (ns), at most, with which the p99 of etcd's syncs is 9.0 and 11.1 ms."""
NEIGHBOURS = (
    "--filename=/run/mnt/neighbour --ioengine=sync --rw=randwrite --bs=16k --fsync=1",
    "--filename=/run/mnt/neighbour --ioengine=sync --rw=write --bs=4k --fdatasync=1 "
    "--thinktime=20ms",
    "--filename=/run/mnt/neighbour --ioengine=sync --rw=randwrite --bs=4k --fsync=8 "
    "--rate_iops=100",
    "--directory=/run/mnt --ioengine=libaio --rw=randread --bs=4k --direct=1 --iodepth=4",
)
QUEUES = (
    Queue(1 / 400, 0.030, True), Queue(1 / 500, 0.020, True), Queue(1 / 1000, 0.010, True),
    Queue(1 / 2000, 0.006, True), Queue(1 / 4000, 0.004, True),
)  # fmt: skip
AROUND = (0.8, 0.88, 0.95)
"""Rates at which fio alone measures the share of slow I/Os, as parts of the theoretical limit.
fio's arrivals come in groups (docs/guide/limit.md), so its limit is lower."""
TRUTH_IOS = 120_000
"""Number of I/Os with fio alone. 1 % of them are too slow, and these come in groups: enough to know
the limit within 1 %."""
TIME_S = 180
A_BOOT = 10


def cases(trials: int, only: str | None) -> Iterator[tuple[str, str]]:
    """Names and commands of guest.sh: the true values first, then the runs to be judged."""
    if only in (None, "fit"):
        for side, delay in (("below", JUST_BELOW), ("above", JUST_ABOVE)):
            yield f"sync-{side}", f"sync_truth sync-{side} {delay}"
        for number in range(trials):
            for side, delay in (("below", JUST_BELOW), ("above", JUST_ABOVE)):
                yield f"fit-{side}-{number}", f"fit fit-{side}-{number} {delay}"
        for number in range(max(1, trials // 4)):
            name, options = f"fit-disturbed-{number}", NEIGHBOURS[number % len(NEIGHBOURS)]
            yield name, f"fit {name} {JUST_BELOW} {options}"
    if only in (None, "limit"):
        for place, queue in enumerate(QUEUES):
            ns = round(1e9 * queue.mean_s)
            for share in AROUND:
                name = f"rate-{place}-{round(100 * share)}"
                rate = round(share * queue.limit)
                yield name, f"rate_truth {name} {ns} {rate} {max(100, TRUTH_IOS // rate)}"
        for number in range(trials):
            place = number % len(QUEUES)
            queue = QUEUES[place]
            name = f"limit-{place}-{number}"
            bound = f"{1000 * queue.bound_s:g}ms"
            yield name, f"limit {name} {round(1e9 * queue.mean_s)} {bound} {TIME_S}"


def main() -> int:
    """Returns exit code 0; 1 if more is wrong than by chance; 5 if a program is missing."""
    arguments = parse_arguments()
    missing = guest.missing_programs(str(arguments.busybox))
    if missing:
        print(f"Install first: {', '.join(missing)}.", file=sys.stderr)
        return 5
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    planned = list(cases(arguments.trials, arguments.only))
    measure(planned, out, arguments)
    bad = judged.fit_table(out) if arguments.only in (None, "fit") else False
    if arguments.only in (None, "limit"):
        bad |= judged.limit_table(out, QUEUES, AROUND)
    return 1 if bad else 0


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="make virtual", description=__doc__)
    here = platform.release()
    parser.add_argument("--kernel", type=Path, default=Path(f"/boot/vmlinuz-{here}"))
    parser.add_argument("--modules", type=Path, default=Path(f"/lib/modules/{here}"),
                        help="directory with the kernel's modules.dep")  # fmt: skip
    parser.add_argument("--busybox", type=Path, default=Path("/bin/busybox"))
    parser.add_argument("--out", type=Path, default=Path("build/virtual"),
                        help="results; those that are there are not measured again")  # fmt: skip
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--only", choices=("fit", "limit"))
    return parser.parse_args()


def measure(planned: Sequence[tuple[str, str]], out: Path, arguments: argparse.Namespace) -> None:
    """Boot guests until each case has a result, or until a guest produces none."""
    initrd = out / "initrd"
    initrd.write_bytes(guest.initial_files(arguments.modules, arguments.busybox))
    while left := [(name, line) for name, line in planned if not (out / f"{name}.rc").exists()]:
        now = left[:A_BOOT]
        (out / "plan").write_text("".join(f"{line}\n" for _, line in now))
        values = {
            "repository": Path(__file__).resolve().parents[2], "python": sys.executable,
            "seed": len(planned) - len(left) + 1,
        }  # fmt: skip
        (out / "settings").write_text(
            "".join(f"{key}={shlex.quote(str(value))}\n" for key, value in values.items())
        )
        seconds = guest.boot(arguments.kernel, initrd, out)
        done = sum((out / f"{name}.rc").exists() for name, _ in now)
        print(f"{done} of {len(now)} cases in {seconds / 60:.1f} min, {len(left) - done} left",
              flush=True)  # fmt: skip
        if not done:
            print(f"The guest did nothing; see {out / 'console'} and {out / 'log'}.")
            return


if __name__ == "__main__":
    sys.exit(main())
