"""Odd job files, generated from a seed: sections, comments, odd numbers, names and every option
that fio lists; and runs of them in a tree full of bait.

``python generator.py [--fence landlock|namespace] [--from SEED] [--count N]`` runs many and lists
those that did harm."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bait import Bait

from iopstui.errors import IopstuiError
from iopstui.fio import fence
from iopstui.fio.fence import Fence
from iopstui.fio.inspect import Fio, find_fio
from iopstui.fio.process import FioProcess, private_directory
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.target import Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio import jobfile
from iopstui.preflight.job import prepare
from iopstui.session.fio.fio_run import FioRun, PhaseFinished

LONGEST_S = 0.6
MODES = ("read", "write", "randread", "randwrite", "rw", "randrw", "trim", "trimwrite", "readwrite")
NUMBERS = ("0", "1", "2", "3", "4k", "64k", "1m", "0x2", "0x10", "(1+1)", "$ncpus", "1e3", "-1",
           "50%", "2g", "4k-64k", "4k,8k", "16m", "100%", "10", "7")  # fmt: skip
PLAIN = {
    "nrfiles": ("1", "2", "3"),
    "numjobs": ("1", "2"),
    "offset": ("0", "4k", "1m", "2g"),
    "bs": ("4k", "64k", "1m"),
    "loops": ("1", "2"),
    "filesize": ("4k", "1m", "4k-1m", "2g"),
}
SWITCHES = ("unlink=1", "overwrite=1", "create_on_open=1", "fallocate=none", "file_append=1",
            "fsync=1", "verify=md5", "direct=1", "stonewall", "create_only=1", "fill_device=1",
            "group_reporting", "allow_mounted_write=1", "create_serialize=0", "write_bw_log=x",
            "write_iolog=x")  # fmt: skip
WORDS = ("", "x", "none", "all", "native", "crc32c", "posix", "shared", "mmap", "malloc", "random",
         "zipf:1.1", "roundrobin", "exclusive", "strided", "zbd", "file", "'keep'", "\"x\"",
         "${HOME}", "${NOT_SET_ANYWHERE}", "0-1", "split")  # fmt: skip
DULL = frozenset({"startdelay", "thinktime", "ramp_time", "runtime", "timeout", "numjobs", "nice",
                  "mem", "iomem", "thread", "uid", "gid", "numa_cpu_nodes", "prio", "prioclass",
                  "ss_dur", "ss_ramp", "steadystate_duration", "steadystate_ramp_time",
                  "max_latency", "verify_async", "dedupe_percentage",
                  "io_size", "loops"})  # fmt: skip


def options_of(fio: Fio) -> list[str]:
    """The names of all options fio lists."""
    listed = subprocess.run([fio.path, "--cmdhelp=all"], capture_output=True, text=True).stdout
    names = re.findall(r"^(\w+) +:", listed, re.M)
    return [name for name in names if name not in DULL and not name.startswith("rate")]


class Generator:
    """Makes job files; ``paths`` are the files they may name."""

    def __init__(self, options: Sequence[str], paths: Sequence[str]) -> None:
        self._options = options
        self._paths = paths
        self._odd = 0.0

    def text(self, seed: int) -> str:
        """The job file of this seed."""
        dice = random.Random(seed)
        # fio accepts most of them; a strict reader should refuse the others
        self._odd = 0.0 if dice.random() < 0.75 else 0.3
        lines: list[str] = []
        if dice.random() < 0.5:
            lines += ["[global]", *self._body(dice, dice.randrange(1, 4))]
        for _ in range(dice.choice((1, 1, 1, 2, 2, 3))):
            size = "0x1000" if self._strange(dice, 0.1) else dice.choice(("4k", "64k", "1m"))
            lines += [self._header(dice), f"rw={dice.choice(MODES)}", f"size={size}"]
            lines += self._body(dice, dice.randrange(0, 6))
        return "\n".join(self._dressed(dice, line) for line in lines) + "\n"

    def _strange(self, dice: random.Random, part: float = 1.0) -> bool:
        return dice.random() < self._odd * part

    def _header(self, dice: random.Random) -> str:
        if not self._strange(dice, 0.3):
            return f"[{dice.choice(('a', 'keep', 'a', 'b', 'passwd', 'a b', 'ü'))}]"
        name = dice.choice(("a", "keep", "globalx", *self._paths[:6]))
        return dice.choice((f"[{name}]",) * 3 + (f"[{name}", f"[{name}]]", f"[{name}] x"))

    def _body(self, dice: random.Random, count: int) -> Iterator[str]:
        for _ in range(count):
            kind = dice.random()
            if kind < 0.35:
                yield f"filename={self._path(dice)}"
            elif kind < 0.45:
                yield f"directory={os.path.dirname(dice.choice(self._paths[:8]))}"
            elif kind < 0.6:
                odd = ("sg", "external:/x.so", "exec") if self._strange(dice) else ()
                yield f"ioengine={dice.choice((*sorted(jobfile.ENGINES), *odd))}"
            elif kind < 0.7:
                name = dice.choice(("nrfiles", "numjobs", "offset", "bs", "loops", "filesize"))
                yield f"{name}={dice.choice(NUMBERS if self._strange(dice) else PLAIN[name])}"
            elif kind < 0.85:
                yield dice.choice(SWITCHES)
            elif self._strange(dice, 0.1):
                yield f"include {self._path(dice)}"
            elif dice.random() < max(self._odd, 0.3):
                yield f"{dice.choice(self._options)}={self._value(dice)}"

    def _path(self, dice: random.Random) -> str:
        names = [dice.choice(self._paths) for _ in range(dice.choice((1, 1, 1, 2, 3)))]
        return ":".join(names)

    def _value(self, dice: random.Random) -> str:
        return dice.choice((dice.choice(NUMBERS), dice.choice(WORDS), self._path(dice)))

    def _dressed(self, dice: random.Random, line: str) -> str:
        if not self._strange(dice):
            return line
        before = dice.choice(("",) * 8 + (" ", "\t", "# ", "; "))
        behind = dice.choice(("",) * 8 + (" # c", " ; c", "#", ";x=1", "\r", " \t", "\x0b", "\x01"))
        return f"{before}{line}{behind}"


class Arena:
    """Bait, two loop devices (one of them mounted) if this user may make them, and a working
    directory."""

    def __init__(self, top: Path, fio: Fio) -> None:
        self.top = top
        self.fio = fio
        self.outcomes: Counter[str] = Counter()
        (top / "work").mkdir()
        self.bait = Bait(top / "F")
        self._nodes: list[str] = []
        self._mounted = ""
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            self._attach()
        names = [*(top / "F" / name for name in Bait.NAMES), top / "F/link", top / "F/new",
                 top / "work/new", top / "F/sub/new", top / "F/empty/x"]  # fmt: skip
        paths = [*map(str, names), *self._nodes, "../F/keep", "new", "/dev/nvme9n9", "/dev/null",
                 "/proc/self/mem", "/sys/block"]  # fmt: skip
        self.generator = Generator(options_of(fio), paths)
        self._devices = self._digests()

    def _attach(self) -> None:
        for name in ("one.img", "two.img"):
            (self.top / name).write_bytes(bytes(4 << 20))
            made = subprocess.run(["losetup", "--find", "--show", str(self.top / name)], check=True,
                                  capture_output=True, text=True)  # fmt: skip
            self._nodes.append(made.stdout.strip())
        subprocess.run(["mkfs.ext4", "-q", self._nodes[1]], check=True, capture_output=True)
        (self.top / "mnt").mkdir()
        subprocess.run(["mount", "-o", "ro", self._nodes[1], str(self.top / "mnt")], check=True)
        self._mounted = str(self.top / "mnt")

    def close(self) -> None:
        if self._mounted:
            subprocess.run(["umount", self._mounted], check=False)
        for node in self._nodes:
            subprocess.run(["losetup", "--detach", node], check=False)

    def remove(self) -> None:
        """Remove everything that was made here."""
        shutil.rmtree(self.top)

    def harm(self) -> list[str]:
        """Files and devices that were harmed."""
        now = self._digests()
        return [*self.bait.harm(), *(name for name in now if now[name] != self._devices[name])]

    def _digests(self) -> dict[str, bytes]:
        return {node: Path(node).read_bytes() for node in self._nodes}

    def run(self, seed: int) -> None:
        """Run the job of this seed as iopstui prepares and runs it; every third one on a
        directory."""
        job = self.top / "work" / "job.fio"
        job.write_bytes(self.generator.text(seed).encode())
        where = None
        if seed % 3 == 0:
            where = resolve_target(str(self.bait.top), self.top, Roots(), read_devices(Roots()))
        here = os.getcwd()
        os.chdir(self.top / "work")
        try:
            if seed % 4 == 1:
                self.outcomes[self._bare(job)] += 1
            else:
                self.outcomes[self._run(job, where)] += 1
        finally:
            os.chdir(here)
        self._tidy()

    def _bare(self, job: Path) -> str:
        """Give the same file to fio unread, so that only the fence protects the bait."""
        own = Fence(run_directories=(str(self.top / "work"),), fsize=64 << 20)
        process = FioProcess([self.fio.path, str(job)], private_directory(), own)
        until = time.monotonic() + LONGEST_S
        try:
            while not any(one.event in ("over", "gone") for one in process.read_guard()):
                if time.monotonic() > until:
                    process.send_order("kill")
                time.sleep(0.005)
        finally:
            process.close()
        return "bare"

    def _run(self, job: Path, where: Target | None) -> str:
        private = private_directory()
        devices = read_devices(Roots())
        try:
            request = RunRequest(str(job), {}, "1m" if where else None)
            prepared = prepare(request, where, self.fio, private, devices, Roots())
        except IopstuiError as error:
            return type(error).__name__
        finally:
            shutil.rmtree(private, ignore_errors=True)

        def engage() -> None:
            assert prepared.guard is not None
            prepared.guard.engage(devices)

        run = FioRun(self.fio, prepared, private_directory, 1.0, engage)
        try:
            return self._through(run)
        except IopstuiError as error:
            return type(error).__name__
        finally:
            prepared.publish()
            run.close()

    def _through(self, run: FioRun) -> str:
        run.start_phase()
        until = time.monotonic() + LONGEST_S
        while True:
            for news in run.poll():
                if not isinstance(news, PhaseFinished):
                    continue
                if run.phase == "run":
                    run.start_phase()
                else:
                    return "failed" if news.exit_code else "done"
            run.check_space()
            if time.monotonic() > until:
                run.stop(hard=True)
            time.sleep(0.005)

    def _tidy(self) -> None:
        """Remove new files, which are no harm, so that the next job can use their names."""
        for path in self.bait.new():
            with contextlib.suppress(OSError):
                os.unlink(path)
        for path in (self.top / "work").iterdir():
            if path.is_file() and path.name != "job.fio":
                path.unlink()


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--fence", default="")
    options.add_argument("--from", dest="first", type=int, default=0)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=1e9)
    asked = options.parse_args()
    if asked.fence:
        fence.fence_kind = lambda: asked.fence  # type: ignore[assignment]
    until = time.monotonic() + asked.seconds
    harmed = 0
    with tempfile.TemporaryDirectory() as top:
        arena = Arena(Path(top), find_fio())
        try:
            for seed in range(asked.first, asked.first + asked.count):
                arena.run(seed)
                harm = arena.harm()
                if harm:
                    harmed += 1
                    print(f"seed {seed}: {harm}\n{arena.generator.text(seed)}", flush=True)
                    break
                if seed % 500 == 499:
                    print(seed, dict(arena.outcomes), flush=True)
                if time.monotonic() > until:
                    break
        finally:
            arena.close()
    print(f"{asked.fence or 'any fence'}: seeds {asked.first} to {seed}, {dict(arena.outcomes)}")
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
