"""How long the device is without a request when an option of a running job changes, and how far
apart the rows around it are. Root; creates its own loop devices and a tracer of its own (tracefs).

    sudo .venv/bin/python tests/bench/handover.py --changes 10
    ... --tree DIR   another checkout of iopstui, to compare with
    ... --device /dev/nullb0   that device in place of the loop devices (its data is destroyed)
    ... --busy   with a process on each CPU that does nothing but compute

For each kind of change and each target one line: the longest gap between two requests of the
device (block_rq_issue) in the seconds after a key, the same in the second before it, the longest
time from row to row, and how many runs have rows that do not add up to fio's own totals.
"replaced": how many changes replaced a running job; if the next key comes before the new job is
prepared, only the last key counts. Jobs are limited to some thousand I/Os per second, so that every
request can be traced.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

RATE = 2000
EVERY_S = 3.5
"""Seconds between two changes."""
CHANGES = {
    "iodepth": [{"iodepth": str(depth)} for depth in (4, 16)],
    "numjobs": [{"numjobs": str(count)} for count in (1, 3)],
    "bs": [{"bs": size} for size in ("4k", "16k")],
    "rwmix": [{"rwmixread": str(share)} for share in (80, 30)],
}
GLOBAL = (
    f"[global]\ndirect=1\nioengine=libaio\nrate_iops={RATE}\ntime_based\nruntime=600\nsize=48m\n"
)
JOBS = {
    "reader": "[one]\nrw=randread\nbs=4k\niodepth=4\nfilename=a.scratch\n",
    "writer": "[one]\nrw=randwrite\nbs=4k\niodepth=4\nfilename=a.scratch\n",
    "mixed": "[one]\nrw=randrw\nbs=4k\niodepth=4\nfilename=a.scratch\n",
    "two": "[one]\nrw=randread\nbs=4k\niodepth=4\nfilename=a.scratch\n"
    "[two]\nrw=randwrite\nbs=4k\niodepth=4\nfilename=a.scratch\n",
}
DRIVER = """
import json, queue, sys, threading, time
from pathlib import Path
from iopstui import events
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.session.live import LiveSession
from iopstui.model.experiment.run_request import RunRequest

where, job, changes, every_s = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])
devices = read_devices(Roots())
target = resolve_target(where, Path("/"), Roots(), devices)
measured, lock = threading.Event(), threading.Lock()

def say(kind, **more):
    with lock:
        print(json.dumps({"kind": kind, "ns": time.monotonic_ns(), **more}), flush=True)

def sink(event):
    if isinstance(event, events.FrameReady) and event.frame.fio is not None:
        frame = event.frame
        say("row", step=frame.step, ios=frame.fio.total.ios, flags=sorted(frame.flags))
        measured.set()
    elif isinstance(event, events.StepStarted) and event.phase == "run":
        say("start", step=event.step, overlap=getattr(event, "overlap_s", None))
    elif isinstance(event, events.StepFinished):
        total = event.summary.get("total", {})
        say("end", step=event.step, error=event.error,
            ios=sum(part["total_ios"] for part in total.values()))

session = LiveSession(target, devices, target, RunRequest(destroy_data=(where,), interval_s=1.0))
session.start(sink)
for change in changes:
    say("request", change=change)
    session.run_job(job, change)
    if change is changes[0]:
        measured.wait(60)
    time.sleep(every_s)
session.stop_job()
time.sleep(2.5)
session.close()
"""


@dataclass
class Gaps:
    """Longest times in seconds, one for each change."""

    holes: list[float] = field(default_factory=list)
    steady: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    overlaps: list[float] = field(default_factory=list)
    wrong_sums: int = 0


class Tracer:
    """Times at which requests were sent to a device (ns of CLOCK_MONOTONIC), from a tracefs
    instance for this device only."""

    def __init__(self, number: tuple[int, int]) -> None:
        self.issued: list[int] = []
        self._resources = ExitStack()
        self._place = Path(self._resources.enter_context(tempfile.TemporaryDirectory()))
        subprocess.run(["mount", "-t", "tracefs", "none", str(self._place)], check=True)
        self._resources.callback(subprocess.run, ["umount", str(self._place)])
        self._instance = self._place / "instances" / f"iopstui-{os.getpid()}"
        self._instance.mkdir()
        self._write("trace_clock", "mono")
        self._write("events/block/block_rq_issue/filter", f"dev == {number[0] << 20 | number[1]}")
        self._write("events/block/block_rq_issue/enable", "1")
        self._pipe = os.open(self._instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _write(self, name: str, text: str) -> None:
        (self._instance / name).write_text(text)

    def _read(self) -> None:
        left = b""
        while not self._ends.is_set():
            try:
                data = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                time.sleep(0.05)
                continue
            *lines, left = (left + data).split(b"\n")
            for line in lines:
                if b"block_rq_issue" in line:
                    stamp = line.partition(b": block_rq_issue")[0].split()[-1]
                    self.issued.append(round(float(stamp) * 1e9))

    def close(self) -> None:
        """Remove the instance."""
        self._ends.set()
        self._thread.join()
        self._write("events/block/block_rq_issue/enable", "0")
        os.close(self._pipe)
        self._instance.rmdir()
        self._resources.close()


def longest_gap(times: Sequence[int], begin: int, end: int) -> float:
    """The longest time in seconds between two of these within a window."""
    inside = [begin, *(time for time in sorted(times) if begin < time < end), end]
    return max(after - before for before, after in pairwise(inside)) / 1e9


@contextmanager
def loop_device(place: Path, name: str) -> Iterator[str]:
    """A loop device of 512 MiB on a file."""
    image = place / name
    with open(image, "wb") as file:
        file.truncate(512 << 20)
    made = subprocess.run(["losetup", "--show", "-f", image], check=True, capture_output=True)
    node = made.stdout.decode().strip()
    try:
        yield node
    finally:
        subprocess.run(["losetup", "-d", node])


@contextmanager
def targets(place: Path, device: str | None) -> Iterator[dict[str, tuple[str, str]]]:
    """By name: the path that jobs use, and the device whose requests are traced."""
    if device:
        yield {device: (device, device)}
        return
    with loop_device(place, "raw") as raw, loop_device(place, "fs") as below:
        mounted = place / "mounted"
        mounted.mkdir()
        subprocess.run(["mkfs.ext4", "-q", below], check=True)
        subprocess.run(["mount", below, mounted], check=True)
        try:
            with open(mounted / "file", "wb") as file:
                file.write(bytes(64 << 20))
            directory = mounted / "directory"
            directory.mkdir()
            yield {
                "directory": (str(directory), below), "file": (str(mounted / "file"), below),
                "loop device": (raw, raw),
            }  # fmt: skip
        finally:
            # the driver has ended, but its fio may still be ending
            subprocess.run(["umount", "--lazy", mounted])


def measure(
    tree: Path,
    where: str,
    device: str,
    job: Path,
    changes: Sequence[Mapping[str, str]],
    every_s: float,
) -> Gaps:
    """Run the changes one after another."""
    info = os.stat(device).st_rdev
    tracer = Tracer((os.major(info), os.minor(info)))
    try:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, where, job, json.dumps(changes), str(every_s)],
            env={**os.environ, "PYTHONPATH": str(tree)}, cwd=tree, stdout=subprocess.PIPE,
        )  # fmt: skip
        time.sleep(0.2)
    finally:
        tracer.close()
    return gaps([json.loads(line) for line in done.stdout.splitlines()], tracer.issued, every_s)


def gaps(events: Sequence[Mapping[str, Any]], issued: Sequence[int], every_s: float) -> Gaps:
    """The longest gaps after each change but the first."""
    found = Gaps()
    rows = [event["ns"] for event in events if event["kind"] == "row"]
    requests = [event["ns"] for event in events if event["kind"] == "request"]
    for request in requests[1:]:
        end = request + int(every_s * 1e9)
        found.holes.append(longest_gap(issued, request, end))
        before = [row for row in rows if row < request]
        after = [row for row in rows if request <= row < end]
        found.rows.append(longest_gap(after, before[-1], after[-1]) if after else every_s)
        found.steady.append(longest_gap(issued, request - int(1e9), request))
    for event in events:
        if event["kind"] == "end":
            ios = sum(r["ios"] for r in events if r["kind"] == "row" and r["step"] == event["step"])
            found.wrong_sums += ios != event["ios"] or bool(event["error"])
        elif event["kind"] == "start" and event["overlap"] is not None:
            found.overlaps.append(event["overlap"])
    return found


def line(name: str, found: Gaps) -> str:
    """A line of the table: medians and maxima."""

    def pair(values: Sequence[float]) -> str:
        ordered = sorted(values)
        return f"{ordered[len(ordered) // 2]:6.2f} {ordered[-1]:6.2f}" if ordered else " " * 13

    return (
        f"{name:34} {len(found.overlaps):2} of {len(found.holes):2} {pair(found.holes)}   "
        f"{pair(found.steady)}   {pair(found.rows)}   {pair(found.overlaps)}   {found.wrong_sums}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--kinds", nargs="+", default=list(CHANGES), choices=list(CHANGES))
    parser.add_argument("--jobs", nargs="+", default=[], choices=list(JOBS))
    parser.add_argument("--device")
    parser.add_argument("--every", type=float, default=EVERY_S, metavar="SECONDS")
    parser.add_argument("--busy", action="store_true")
    arguments = parser.parse_args()
    spinners = []
    if arguments.busy:
        spin = [sys.executable, "-c", "while True: pass"]
        spinners = [subprocess.Popen(spin) for _ in os.sched_getaffinity(0)]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; seconds: median, longest")
    titles = "replaced  without request   without change   row to row      overlap         sums"
    print(f"{'':34} {titles}")
    try:
        with tempfile.TemporaryDirectory() as name, targets(Path(name), arguments.device) as all_of:
            for kind in arguments.kinds:
                for number, (target, (where, device)) in enumerate(all_of.items()):
                    default = ["mixed"] if kind == "rwmix" else [list(JOBS)[(0, 1, 3)[number]]]
                    for job in arguments.jobs or default:
                        file = Path(name) / "job.fio"
                        file.write_text(GLOBAL + JOBS[job])
                        two = CHANGES[kind]
                        changes = [two[index % 2] for index in range(arguments.changes + 1)]
                        found = measure(
                            arguments.tree, where, device, file, changes, arguments.every
                        )
                        print(line(f"{kind}, {job}, {target}", found), flush=True)
    finally:
        for process in spinners:
            process.kill()
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
