"""The flight recorder on a simulated server: CPU, memory, bytes a day before and after thinning."""

from __future__ import annotations

import random
import resource
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from iopstui.cli.runs.watch_disks import JUDGE_EVERY
from iopstui.features.flight.directory import STEPS, Name, Ring, stored_files
from iopstui.features.flight.model.bad_times import PeakFold, busiest_use
from iopstui.features.flight.recorder import FlightRecorder
from iopstui.features.flight.thinning import thin
from iopstui.linux.activity.disk_use import DiskUseReader
from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.kernel_files import Roots
from iopstui.model.answer.use import DiskUse
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target, TargetPath, combine_targets
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.metrics.frame import FrameBuilder
from iopstui.model.samples import RawSample
from iopstui.recording.records import RecordedUse
from iopstui.recording.writer import Recorder, RecordingBuffer
from iopstui.session.live import LiveSession
from iopstui.session.tick.context import Viewer

DISKS, CPUS, PROCESSES, ACTIVE = 50, 64, 500, 10
DAY_S, START_S = 86400, 1_790_474_400
GROUPS = {f"/system.slice/service{n}.service": (10.5, 2.1, 4e5, 3e5) for n in range(ACTIVE)}


class Server:
    """/proc of the server, in memory; ``advance`` simulates a second."""

    def __init__(self, base: Path) -> None:
        self.roots = Roots.under(base)
        self.chance = random.Random(7)
        self.disks = [f"sd{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(DISKS)]
        self.counts = {name: [0] * 17 for name in self.disks}
        self.cpus = [[self.chance.randrange(10**7) for _ in range(8)] for _ in range(CPUS)]
        self.block = [0] * CPUS
        self.calls = [0] * CPUS
        self.io = [0] * PROCESSES
        self.waited = 0
        for name in ("pressure", "self"):
            (self.roots.proc / name).mkdir(parents=True)
        (self.roots.sys / "class/block").mkdir(parents=True)
        for pid in range(PROCESSES):
            place = self.roots.proc / str(1000 + pid)
            (place / "fd").mkdir(parents=True)
            (place / "cmdline").write_text(f"/usr/bin/service{pid}\0--option\0")
            (place / "cgroup").write_text(f"0::/system.slice/service{pid}.service\n")
            self._process(pid)
        self.advance()

    def devices(self) -> dict[str, BlockDevice]:
        return {
            name: BlockDevice(name, f"/dev/{name}", 8, 16 * n, "scsi", 1 << 40)
            for n, name in enumerate(self.disks)
        }

    def target(self) -> Target:
        return combine_targets([TargetPath(DEVICE, f"/dev/{name}", name, (name,))
                                for name in self.disks])  # fmt: skip

    def _process(self, pid: int) -> None:
        place, io = self.roots.proc / str(1000 + pid), self.io[pid]
        zeros = " ".join(["0"] * 16)
        (place / "stat").write_text(f"{1000 + pid} (service{pid}) S 1 {zeros} 1 {pid} {zeros}\n")
        (place / "io").write_text(
            f"rchar: {io}\nwchar: {io}\nsyscr: 1\nsyscw: 1\nread_bytes: {io}\nwrite_bytes: {io}\n"
            "cancelled_write_bytes: 0\n"
        )

    def advance(self) -> None:
        chance, proc = self.chance, self.roots.proc
        for name in self.disks:
            c = self.counts[name]
            reads, writes = chance.randrange(0, 200), chance.randrange(0, 100)
            growth = (reads, 1, 64 * reads, 5 * reads, writes, 1, 64 * writes, 3 * writes,
                      0, min(1000, 4 * (reads + writes)), 5 * reads + 3 * writes)  # fmt: skip
            c[:11] = [a + b for a, b in zip(c, growth, strict=False)]
        rows = (f"8 {16 * n} {name} {' '.join(map(str, self.counts[name]))}"
                for n, name in enumerate(self.disks))  # fmt: skip
        (proc / "diskstats").write_text("\n".join(rows) + "\n")
        for cpu in range(CPUS):
            self.cpus[cpu] = [v + chance.randrange(0, 14) for v in self.cpus[cpu]]
            self.block[cpu] += chance.randrange(0, 150)
            self.calls[cpu] += chance.randrange(0, 90)
        lines = [f"cpu{n} {' '.join(map(str, v))} 0 0" for n, v in enumerate(self.cpus)]
        (proc / "stat").write_text("cpu 1 2 3 4 5 6 7 8 0 0\n" + "\n".join(lines) + "\nintr 1\n")
        head = " " * 12 + " ".join(f"CPU{n:<7}" for n in range(CPUS)) + "\n"
        (proc / "softirqs").write_text(f"{head}       BLOCK: {' '.join(map(str, self.block))}\n")
        calls = " ".join(map(str, self.calls))
        (proc / "interrupts").write_text(f"{head}  CAL: {calls}   Function call interrupts\n")
        self.waited += chance.randrange(0, 50_000)
        pressure = f"some avg10=0 avg60=0 avg300=0 total={self.waited}\n"
        for name in ("io", "memory", "cpu"):
            text = pressure + pressure.replace("some", "full")
            (proc / "pressure" / name).write_text(text)
        for pid in chance.sample(range(PROCESSES), ACTIVE):
            self.io[pid] += 1 << 20
            self._process(pid)


def measure(seconds: int) -> dict[str, float]:
    """Record for ``seconds`` in real time."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") as base:
        server = Server(Path(base) / "root")
        place = Path(base) / "flight"
        place.mkdir()
        devices = server.devices()
        target = server.target()
        viewer = Viewer(short_first_interval=False, on_screen=True, judge_every=JUDGE_EVERY)
        session = LiveSession(target, devices, target, RunRequest(own_cpus=()), viewer,
                              roots=server.roots)  # fmt: skip
        recorder = FlightRecorder(Ring(place, DAY_S, 1 << 30), print, roots=server.roots)
        recorder.attach(session)
        frames = threading.Semaphore(0)
        session.add_sink(lambda event: frames.release() if event.kind == "frame" else None)
        session.start(lambda event: None)
        for _ in range(10):  # load everything that is loaded once
            frames.acquire()
            server.advance()
        before, own = time.process_time(), time.thread_time()
        for _ in range(seconds):
            frames.acquire()
            server.advance()
        cpu_s = time.process_time() - before - (time.thread_time() - own)
        session.close()
        recorder.close()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        return {"percent": 100 * cpu_s / seconds, "peak_mib": peak}


def sizes(seconds: int) -> dict[str, float]:
    """MB a day: as written, thinned to a sample in 10 s and in 60 s, and the most that the last day
    takes."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") as base:
        server, place = Server(Path(base) / "root"), Path(base) / "flight"
        place.mkdir()
        target, sampler = server.target(), KernelSampler(server.roots, server.disks, ())
        recorder = Recorder(place / str(Name(START_S)))
        buffer = RecordingBuffer(target, server.devices, 1.0, True, (), recorder)
        builder, peaks, users = FrameBuilder(), PeakFold(), DiskUseReader(server.roots)
        uses: list[DiskUse] = []
        for n in range(seconds):
            server.advance()
            at_ns, wall_ms = n * 10**9, 1e3 * (START_S + n)
            kernel = replace(sampler.sample(), monotonic_ns=at_ns, wall_ms=wall_ms)
            raw = RawSample(n, at_ns, wall_ms, kernel, None, False, 0)
            buffer.sample(raw)
            frame = builder.feed(raw)
            peaks.feed(frame)
            use = users.read(frame.t, server.devices(), False)
            uses += [replace(use, seconds=1.0)] if use is not None else []
            if n % 5 == 4 and (joined := busiest_use(uses)) is not None:
                buffer.add(RecordedUse(frame.t, joined, GROUPS))
                uses = []
            if n % 10 == 9:
                buffer.add(peaks.take(frame.t))
            while recorder.waiting > 200:
                time.sleep(0.01)
        buffer.stop()
        found = {"written": stored_files(place)[0].size}
        began = time.process_time()
        for every_s in (10, 60):
            thin(stored_files(place)[0], every_s)
            found[f"{every_s} s"] = stored_files(place)[0].size
        thinning_s = time.process_time() - began
        days = {name: size / seconds * DAY_S / 1e6 for name, size in found.items()}
        hours = 1 + STEPS[1][0] / 3600  # the hours that are not thinned yet, at most
        last = (hours * days["written"] + (24 - hours) * days["10 s"]) / 24
        return {**days, "last day": last, "thinning_percent": 100 * thinning_s / seconds}
