"""Start, read and stop the bpftrace process. It never outlives iopstui.

Stale requests, whose completion was not seen, are removed from its maps one by one: its own
``clear()`` ends it (0.17, "Could not clear map") where a request completes at that moment, and
would drop those in flight.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from iopstui.linux.probe import bpf
from iopstui.linux.probe.output import GroupOf, ProbeOutput
from iopstui.linux.probe.programs import BpfPrograms, ProbeCost
from iopstui.linux.probe.script import TIME_MASK, Region
from iopstui.linux.process.clock import Clock
from iopstui.linux.process.processes import cpu_s
from iopstui.model.samples import ProbeSample
from iopstui.text import printable

# what bpftrace calls @t and @p in the kernel
TIMES, TASKS = "AT_t", "AT_p"
LEAK_AGE_NS = 5_000_000_000
"""A request in flight for longer is taken for one that has ended, and counted as missed when it
ends after all."""


def drop_leaks(pid: int, now_ns: int, proc: Path = Path("/proc")) -> int:
    """Drop what the maps of process ``pid`` have kept for longer than LEAK_AGE_NS; return how
    many. ``now_ns``: monotonic clock. 0, too, if the kernel does not let us look."""
    maps = _maps(pid, proc)
    try:
        times = _map(maps, TIMES)
        if times is None:
            return 0
        tasks = _map(maps, TASKS)
        # before the times: what begins meanwhile isn't among these
        task_keys = [(tasks, key) for key in tasks] if tasks is not None else []
        remaining, dropped = set(), 0
        for key in list(times):
            value = times.get(key)
            if value is not None and (now_ns - value) & TIME_MASK > LEAK_AGE_NS:
                dropped += times.delete(key)
            elif value is not None:
                remaining.add(key)
        for map_of, key in task_keys:
            if key not in remaining:
                map_of.delete(key)
        return dropped
    finally:
        for fd, _ in maps.values():
            os.close(fd)


def _maps(pid: int, proc: Path) -> dict[str, tuple[int, int]]:
    """Descriptor and room of each map of the process, by its name."""
    maps: dict[str, tuple[int, int]] = {}
    with contextlib.suppress(OSError):
        for file in (proc / str(pid) / "fdinfo").iterdir():
            number = _map_id(file)
            fd = bpf.open_map(number) if number is not None else -1
            if fd < 0:
                continue
            described = bpf.describe_map(fd)
            if described is None or described[0] in maps:
                os.close(fd)
            else:
                maps[described[0]] = (fd, described[1])
    return maps


def _map_id(file: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            if line.startswith("map_id:"):
                return int(line.partition(":")[2])
    return None


def _map(maps: dict[str, tuple[int, int]], name: str) -> bpf.Map | None:
    entry = maps.get(name)
    return bpf.Map(*entry) if entry is not None else None


PROGRAM = "bpftrace"
# loading the programs takes bpftrace 2 s, in an emulated machine 12 s
FIRST_WITHIN_S = 60.0
SILENCE_TIMEOUT_S = 10.0
MAX_UNKNOWN_LINES = 50
# an answer takes 1 ms; one that takes longer is told with the next tick
ANSWER_S = 0.02
# of the keys of a map, taken by requests of which no completion was seen
LEAK_SHARE = 0.2
MAX_LINE_BYTES = 4 << 20
TERMINATE_TIMEOUT_S = 2.0
_LIMIT = ("BPFTRACE_MAP_KEYS_MAX", "BPFTRACE_MAX_MAP_KEYS")


def map_keys_for(cpus: int, matrix: bool) -> int:
    """How many keys a map is given: bins by direction and disk fit into 8,192, the matrix may need
    a key for each pair of CPUs. The kernel takes the memory at once, for every CPU."""
    return max(8192, min(cpus * cpus, 65536)) if matrix else 8192


class ProbeProcess:
    """The bpftrace process of the probe. For one thread, which waits ``ANSWER_S`` at most, and
    in ``close``.

    The kernel kills bpftrace when the thread that made this object ends (PR_SET_PDEATHSIG), and its
    probes end with it.
    """

    def __init__(
        self,
        text: str,
        regions: Sequence[Region],
        parts: Sequence[str],
        probe_number: int,
        keys: int,
        clock: Clock,
        group_of: GroupOf = lambda pid: "",
    ) -> None:
        self._clock = clock
        self._keys = keys
        self._output = ProbeOutput(regions, parts, probe_number, keys, group_of)
        self._samples: deque[ProbeSample] = deque(maxlen=1)
        self._sample_arrived = threading.Event()
        self._problem = ""
        self._costs: ProbeCost | None = None
        self._skipped = 0
        self._readings = 0
        # since when an answer is waited for: at first that the programs are loaded
        self._waits_since_ns: int | None = clock.monotonic_ns()
        self._errors = os.memfd_create("bpftrace-stderr", os.MFD_CLOEXEC)
        self._process: subprocess.Popen[bytes] | None = None
        environment = {**os.environ, **dict.fromkeys(_LIMIT, str(keys)), "LC_ALL": "C"}
        guarded = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        try:
            self._process = subprocess.Popen(
                [*guarded, PROGRAM, "-q", "-f", "json", "-e", text],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors,
                env=environment, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._problem = f"bpftrace can't be run: {error.strerror}"
            return
        self._thread = threading.Thread(target=self._read, name="probe", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """bpftrace's."""
        return self._process.pid if self._process is not None else None

    def take(self) -> ProbeSample | None:
        """The newest reading, once: asked for now, or an earlier one that is told only now."""
        if self._readings and self._process is not None:
            self._sample_arrived.clear()
            if self._waits_since_ns is None:
                self._waits_since_ns = self._clock.monotonic_ns()
            with contextlib.suppress(OSError):
                os.kill(self._process.pid, signal.SIGWINCH)
            self._sample_arrived.wait(ANSWER_S)
        return self._samples.pop() if self._samples else None

    def problem(self) -> str:
        """Why no more readings will come; "" while it works."""
        if self._problem or self._process is None:
            return self._problem
        code = self._process.poll()
        if code is not None:
            return f"bpftrace has ended ({_exit_text(code)}){self._last_error_line()}"
        waiting_since_ns = self._waits_since_ns
        silent = (
            0.0
            if waiting_since_ns is None
            else (self._clock.monotonic_ns() - waiting_since_ns) / 1e9
        )
        if silent > (SILENCE_TIMEOUT_S if self._readings else FIRST_WITHIN_S):
            return f"bpftrace has printed nothing for {silent:.0f} s{self._last_error_line()}"
        return ""

    def close(self) -> None:
        """End bpftrace; the kernel removes its probes. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
            self._thread.join(TERMINATE_TIMEOUT_S)
        # not before: the thread may just have begun it
        if self._costs is not None:
            self._costs.close()
        self._samples.clear()
        errors, self._errors = self._errors, -1
        if errors >= 0:
            os.close(errors)

    def _last_error_line(self) -> str:
        """The last line of its stderr that counts; it always complains about RLIMIT_MEMLOCK."""
        try:
            text = os.pread(self._errors, 65536, 0).decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text.splitlines()]
        lines = [line for line in lines if line and "RLIMIT_MEMLOCK" not in line]
        return f": {printable(lines[-1])[:300]}" if lines else ""

    def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        stream = self._process.stdout
        while line := stream.readline(MAX_LINE_BYTES):
            arrived = self._clock.monotonic_ns()
            sample = self._output.feed(line.decode("utf-8", "replace"), arrived)
            if self._output.unknown_lines > MAX_UNKNOWN_LINES:
                self._problem = f"what bpftrace prints is not understood: {_excerpt(line)}"
                return
            if sample is not None:
                self._readings += 1
                self._waits_since_ns = None
                self._samples.append(self._with_costs(sample))
                self._sample_arrived.set()

    def _with_costs(self, sample: ProbeSample) -> ProbeSample:
        pid = self.pid
        if pid is None:
            return sample
        if self._costs is None:
            self._costs = ProbeCost(BpfPrograms(pid))
        with_cost = self._costs.with_cost(sample, cpu_s(pid))
        self._forget_leaks(with_cost.counts["skipped"] + with_cost.counts["missed"])
        return with_cost

    def _forget_leaks(self, lost: int) -> None:
        """The beginning of a request whose completion was skipped stays in the map: before these
        fill it, they are dropped. As many beginnings were skipped as completions are missed, and
        those are about as many as were left behind."""
        if self._process is not None and lost - self._skipped > self._keys * LEAK_SHARE:
            self._skipped = lost
            drop_leaks(self._process.pid, self._clock.monotonic_ns())


def _excerpt(line: bytes) -> str:
    return printable(line[:80].decode("utf-8", "replace").strip())


def _exit_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        try:
            process.wait(TERMINATE_TIMEOUT_S)
            return
        except subprocess.TimeoutExpired:
            continue
