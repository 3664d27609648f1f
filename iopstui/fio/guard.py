"""The guard of one fio run: a separate process between iopstui and fio.

If only fio's main process is killed, its jobs go on with I/O, because each is in its own session.
The guard is their "child subreaper" (prctl(2)): whatever fio leaves behind becomes its child, so it
can be found and killed. It stops fio when told to, and when iopstui's end of its standard input is
closed, which means that iopstui died. (If the guard itself is stopped then, the kernel wakes it
up.) It has its own session, so that neither Ctrl-C, Ctrl-Z nor a closed terminal reaches fio.

It also fences fio in (``fence_exec``): the kernel denies fio everything that was not granted,
whatever its job file says.

With ``--deadline SECONDS`` it also stops fio if nothing came on its standard input for that time:
then iopstui hangs or is stopped (SIGSTOP), and no longer watches. The line ``alive`` only resets
the deadline. Time in which the guard itself could not run does not count.

It runs as a program (``python -I -S guard.py [--hold] [--deadline SECONDS] PRIVATE SPEC
DIRECTORY... -- fio ...``, or faster as ``fence.isolated_command`` says), and to be small and quick
it imports nothing of iopstui except the fence. PRIVATE is the run's private directory, the
DIRECTORIES its scratch directories: all are removed if iopstui dies. SPEC is the argument of
``fence_exec``, or ``-`` for a command that needs no fence. Lines on its standard output: ``started
PID``, ``exited CODE`` (negative: the signal), ``stuck PID...`` (could not be killed yet),
``deadline`` (it has passed, so fio is stopped). Lines on its standard input: ``stop`` (SIGINT
first), ``kill``. With ``--hold`` everything is made ready and ``held`` is written; after ``go
WHEN`` (ns of CLOCK_MONOTONIC) fio is started at that instant, and ``started PID WHEN`` has the time
of the start. After ``stop`` or ``kill`` without ``go`` the guard ends and leaves the DIRECTORIES
alone: iopstui removes them, or another run uses them."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from types import ModuleType

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 1.3
# a process counts as stuck if it has been in state D (uninterruptible sleep, proc(5)) for the first
# of these times, or if it still exists when the second has passed since its SIGKILL
STUCK_AFTER_S = 1.0
SLOW_AFTER_S = 5.0
KILL_TIMEOUT_S = 30.0
# how often a deadline is checked
CHECKS_PER_DEADLINE = 4


def prctl(option: int, value: int) -> None:
    """Call prctl(2); failures are ignored, because every use is a second line of defence."""
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def report_line(line: str) -> None:
    """Write a line to iopstui, if it still reads."""
    try:
        os.write(1, (line + "\n").encode())
    except OSError:
        pass


def children(pid: int) -> list[int]:
    """Direct children of a process, from /proc (empty if it is gone)."""
    pids: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                pids += [int(number) for number in file.read().split()]
    except OSError:
        return [child for child, parent in _parents() if parent == pid]
    return pids


def _parents() -> list[tuple[int, int]]:
    pairs = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                pairs.append((int(name), int(fields[1])))
            except (OSError, IndexError, ValueError):
                continue
    return pairs


def state(pid: int) -> bytes:
    """Return a process's state (proc(5)); b"" if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""


def descendants(pid: int) -> list[int]:
    """All processes below ``pid``, each after its parent."""
    pids: list[int] = []
    queue = [pid]
    while queue:
        below = children(queue.pop())
        pids += below
        queue += below
    return pids


def load_fence() -> ModuleType:
    """Load ``fence_exec`` from beside this file; an isolated Python has no path to it."""
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    return __import__("fence_exec")


class Fence:
    """The fence to set up around fio; nothing for a command that needs no fence."""

    def __init__(self, text: str) -> None:
        self._module = load_fence() if text != "-" else None
        self._spec = self._module.parse_specification(text) if self._module is not None else {}

    def before_fork(self) -> None:
        """Set up the guard process before it forks. Raises OSError."""
        if self._module is not None:
            self._module.before_fork(self._spec)

    def enter(self) -> None:
        """Set up fio's process after the fork. Raises OSError."""
        if self._module is not None:
            self._module.enter(self._spec)


def wait_for_start() -> tuple[int | None, bool]:
    """Wait for orders. Returns the instant at which to start fio, or ``None`` if it must not be
    started: after ``stop``, ``kill`` or the end of the input. The second value is true if the input
    has ended."""
    at: int | None = None
    buffer = b""
    while at is None or time.monotonic_ns() < at:
        timeout_s = None if at is None else max(0.0, (at - time.monotonic_ns()) / 1e9)
        ready, _, _ = select.select([0], [], [], timeout_s)
        if not ready:
            continue
        data = os.read(0, 4096)
        if not data or b"stop" in data or b"kill" in data:
            return None, not data
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            if line.startswith(b"go "):
                at = int(line[3:])
    return at, False


def start(command: list[str], private: str, fence: Fence) -> int:
    """Start fio with its streams in files; it gets SIGTERM if this process dies."""
    parent = os.getpid()
    trouble = ""
    try:
        fence.before_fork()
    except OSError as error:
        trouble = error.strerror or str(error)
    pid = os.fork()
    if pid:
        return pid
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        # SIGPIPE's default action would let fio's own TERM handler kill it before its jobs
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        null = os.open("/dev/null", os.O_RDONLY)
        directory_fd = os.open(private, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        out = os.open("stdout", flags, 0o600, dir_fd=directory_fd)
        err = os.open("stderr", flags, 0o600, dir_fd=directory_fd)
        os.dup2(null, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.closerange(3, 1 << 16)
        # in its own PID namespace fio does not see its parent
        if os.getppid() not in (parent, 0):
            os._exit(125)
        if trouble:
            raise OSError(1, f"cannot set up the sandbox for it ({trouble})")
        fence.enter()
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"fio: {command[0]}: {error.strerror}\n".encode())
    os._exit(127)


class Guard:
    """The guard process: waits for fio and for orders on its input."""

    def __init__(self, fio: int, cleanup: list[str], deadline_s: float | None = None) -> None:
        self.fio = fio
        self.cleanup = cleanup
        self.deadline_s = deadline_s
        self.silent_s = 0.0
        self.checked_at = time.monotonic()
        self.exit_code: int | None = None
        self.orphaned = False
        self.stop_at: float | None = None
        self.kill_at: float | None = None
        self.listening = True
        self.reported_stuck = False
        self.waiting: dict[int, float] = {}

    def run(self) -> None:
        """Run until no process of this run is left."""
        wake, self.wake_write = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self.wake_write, False)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        while self.reap():
            watched = [0, wake] if self.listening else [wake]
            ready, _, _ = select.select(watched, [], [], self.timeout())
            if wake in ready:
                os.read(wake, 4096)
            if 0 in ready:
                self.order()
            self.watch_deadline(0 in ready)
            self.enforce()
        self.clean()

    def watch_deadline(self, heard: bool) -> None:
        """Stop fio if iopstui has been silent for too long. Each check counts for at most a part of
        the deadline, so that a pause of the machine or of a group of processes does not count as
        silence."""
        if self.deadline_s is None or self.stop_at is not None:
            return
        now = time.monotonic()
        self.silent_s += min(now - self.checked_at, self.deadline_s / CHECKS_PER_DEADLINE)
        self.checked_at = now
        if heard:
            self.silent_s = 0.0
        elif self.silent_s >= self.deadline_s:
            report_line("deadline")
            self.stop()

    def timeout(self) -> float | None:
        """Seconds to wait for the next event; None: no limit."""
        if self.kill_at is None:
            return None if self.deadline_s is None else self.deadline_s / CHECKS_PER_DEADLINE
        return min(max(self.kill_at - time.monotonic(), 0.02), 0.2)

    def reap(self) -> bool:
        """Reap dead children; False when none is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.fio:
                self.exit_code = os.waitstatus_to_exitcode(status)
                report_line(f"exited {self.exit_code}")
                self.kill_at = time.monotonic()
                self.enforce()

    def order(self) -> None:
        """Obey an order of iopstui; the end of the input means stop."""
        data = os.read(0, 4096)
        if not data:
            self.listening = False
            self.orphaned = True
            self.stop()
        if b"kill" in data:
            self.kill_at = time.monotonic()
        elif b"stop" in data:
            self.stop()

    def stop(self) -> None:
        """Send SIGINT, which lets fio write its last document; stopped jobs are continued, or they
        would never see it."""
        if self.stop_at is not None:
            return
        self.stop_at = time.monotonic()
        if self.kill_at is None:
            self.kill_at = self.stop_at + GRACE_S
        if self.exit_code is None:
            os.kill(self.fio, signal.SIGINT)
            for pid in (self.fio, *descendants(self.fio)):
                send(pid, signal.SIGCONT)

    def enforce(self) -> None:
        """Kill every process below the guard once the grace period is over, fio's main process
        last."""
        if self.kill_at is None or time.monotonic() < self.kill_at:
            return
        below = descendants(os.getpid())
        for pid in sorted(below, key=lambda pid: pid == self.fio):
            send(pid, signal.SIGKILL)
        stuck = [] if self.reported_stuck else self.stuck(below)
        if stuck:
            self.reported_stuck = True
            report_line("stuck " + " ".join(map(str, stuck)))
        if time.monotonic() > self.kill_at + KILL_TIMEOUT_S:
            # each process got its SIGKILL, and dies as soon as the kernel lets it
            self.clean()
            sys.exit(1)

    def stuck(self, below: list[int]) -> list[int]:
        """The processes that SIGKILL has not ended; a short wait in the kernel does not count."""
        now = time.monotonic()
        waiting = {pid for pid in below if state(pid) == b"D"}
        self.waiting = {pid: self.waiting.get(pid, now) for pid in waiting}
        stuck_pids = [pid for pid, since in self.waiting.items() if now - since >= STUCK_AFTER_S]
        if not stuck_pids and self.kill_at is not None and now - self.kill_at > SLOW_AFTER_S:
            stuck_pids = [pid for pid in below if state(pid) not in (b"", b"Z")]
        return stuck_pids

    def clean(self) -> None:
        """Remove the directories if iopstui is gone and can't remove them."""
        if self.orphaned:
            remove(self.cleanup)


def send(pid: int, number: int) -> None:
    """Send a signal (kill(2)) to a process that may be gone."""
    try:
        os.kill(pid, number)
    except OSError:
        pass


def remove(directories: list[str]) -> None:
    """Remove directories with everything in them, as far as possible."""
    import shutil  # imported here: it takes longer than all the rest, and is hardly ever needed

    for path in directories:
        shutil.rmtree(path, ignore_errors=True)


def main(argv: list[str]) -> None:
    """Handle PRIVATE SPEC DIRECTORY... -- command: run the command to its end, and leave no process
    behind."""
    hold = argv[0] == "--hold"
    argv = argv[hold:]
    deadline_s = float(argv[1]) if argv[0] == "--deadline" else None
    argv = argv[2 if deadline_s is not None else 0 :]
    split = argv.index("--")
    private, text, *scratch = argv[:split]
    command = argv[split + 1 :]
    fence = Fence(text)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    # a handler of our own, so that the death of a child wakes select
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # the kernel wakes up a stopped guard when its parent dies, so that it sees this
    prctl(PR_SET_PDEATHSIG, signal.SIGCONT)
    if hold:
        report_line("held")
        at, orphaned = wait_for_start()
        if at is None:
            if orphaned:
                # iopstui is gone, so this run's files are not needed any more
                remove([private, *scratch])
            report_line("over")
            return
    began_ns = time.monotonic_ns()
    fio = start(command, private, fence)
    report_line(f"started {fio} {began_ns}" if hold else f"started {fio}")
    Guard(fio, [private, *scratch], deadline_s).run()
    report_line("over")


if __name__ == "__main__":
    main(sys.argv[1:])
