"""Hosts of a Slurm allocation: either the one in which this process runs, or one that is made and
released here.

Each host gets its own step (`srun --overlap -N1 -n1 -w HOST`), so that the end of one srun ends
only one host. An allocation of ours is held by `salloc ... cat`: however this process ends, cat's
input ends, and salloc releases the nodes."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from iopstui.errors import Missing, UsageError
from iopstui.features.fleet.hosts.nodes import parse_nodes
from iopstui.text import printable

SLURM = "slurm"
"""In place of HOSTS it means all nodes of the allocation; as --launcher it means srun, in an
allocation."""
POLL_S = 5.0
RELEASE_TIMEOUT_S = 10.0
QUEUE_TIMEOUT_S = 10.0
_JOB = re.compile(r"job(?: allocation)? (\d+)")
_HOLD_SCRIPT = 'echo "$SLURM_JOB_ID $SLURM_JOB_NODELIST"; exec cat >/dev/null'


@dataclass(frozen=True, slots=True)
class SlurmHosts:
    """The nodes to use (a set such as n[1-4]), and the launcher's command line, with {host} in
    it."""

    nodes: str
    launcher: str


@contextlib.contextmanager
def slurm_hosts(
    hosts: str, options: str | None, environment: Mapping[str, str], report: Callable[[str], None]
) -> Iterator[SlurmHosts]:
    """The hosts of an allocation, which is released at the end if it was made here. ``hosts`` are
    node names or SLURM, ``options`` are options of salloc. Raises UsageError if there is no
    allocation to use, Missing without Slurm's commands."""
    job = environment.get("SLURM_JOB_ID")
    if job:
        yield _inside_allocation(hosts, options, job, environment.get("SLURM_JOB_NODELIST", ""))
        return
    if hosts == SLURM and options is None:
        raise UsageError(
            "This is not inside a Slurm allocation.",
            "Run it in sbatch or salloc, or let iopstui allocate nodes: --allocate '-N 4'",
        )
    allocation = _Allocation([*_split_options(options or ""), *_node_options(hosts)])
    try:
        yield SlurmHosts(allocation.wait(report), _launcher_command(allocation.job))
    finally:
        allocation.release()


def _inside_allocation(hosts: str, options: str | None, job: str, nodes: str) -> SlurmHosts:
    if options is not None:
        raise UsageError(f"--allocate: this is already inside Slurm's allocation {printable(job)}.",
                         "Leave out --allocate to use its nodes.")  # fmt: skip
    _require_command("srun")
    if hosts == SLURM:
        return SlurmHosts(nodes, _launcher_command(job))
    allocated = {node.name for node in parse_nodes(nodes)}
    unknown = [node.name for node in parse_nodes(hosts) if node.name not in allocated]
    if unknown:
        raise UsageError(
            f"{', '.join(unknown[:5])}{' ...' * (len(unknown) > 5)}: not in Slurm's allocation "
            f"{printable(job)} ({printable(nodes)}).",
            f"For all of its nodes: iopstui fleet {SLURM}",
        )
    return SlurmHosts(hosts, _launcher_command(job))


def _launcher_command(job: str) -> str:
    return f"srun --jobid={job} --overlap --quiet -N1 -n1 -w {{host}} sh -c"


def _split_options(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError as error:
        raise UsageError(f"--allocate {options!r}: {error}.") from error


def _node_options(hosts: str) -> list[str]:
    if hosts == SLURM:
        return []
    names = [node.name for node in parse_nodes(hosts)]
    return [f"--nodes={len(names)}", f"--nodelist={','.join(names)}"]


def _require_command(program: str) -> None:
    if shutil.which(program) is None:
        raise Missing(f"Slurm's command {program} is not installed here.",
                      "Run iopstui on a login node, or install it: apt install "
                      "slurm-client")  # fmt: skip


class _Allocation:
    """An allocation that is released when this process ends. ``job`` is its number, "" until it is
    known."""

    def __init__(self, options: list[str]) -> None:
        _require_command("salloc")
        _require_command("srun")
        # a salloc that waits in the queue has not started cat yet, so it would not notice the end
        # of this process
        prefix = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        self.job = ""
        self._stderr = b""
        self._process = subprocess.Popen(
            [*prefix, "salloc", "--job-name=iopstui", *options, "sh", "-c", _HOLD_SCRIPT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # Ctrl-C must reach only iopstui, which stops the hosts first
            start_new_session=True,
        )  # fmt: skip

    def wait(self, report: Callable[[str], None]) -> str:
        """Wait until nodes are granted, and return them. ``report`` is called with what it waits
        for. Raises UsageError if Slurm refuses."""
        last_message, polled_s = "", time.monotonic()
        first = b""
        while not first.endswith(b"\n"):
            output, is_open = self._read(POLL_S)
            first += output
            if not is_open:
                raise self._allocation_error()
            if self.job and time.monotonic() - polled_s >= POLL_S and not first:
                polled_s = time.monotonic()
                message = _queue_position(self.job)
                if message and message != last_message:
                    last_message = message
                    report(message)
        self.job, _, nodes = first.decode("utf-8", "replace").strip().partition(" ")
        report(f"Slurm allocation {self.job}: {nodes}")
        return nodes

    def _read(self, timeout_s: float) -> tuple[bytes, bool]:
        """Read the output of salloc's command. Returns it, and whether salloc still runs."""
        process = self._process
        assert process.stdout and process.stderr
        ready, _, _ = select.select([process.stdout, process.stderr], [], [], timeout_s)
        output = os.read(process.stdout.fileno(), 4096) if process.stdout in ready else b""
        if process.stderr in ready:
            data = os.read(process.stderr.fileno(), 4096)
            self._stderr = (self._stderr + data)[-8192:]
            match = _JOB.search(self._stderr.decode("utf-8", "replace"))
            self.job = self.job or (match[1] if match else "")
        return output, bool(output) or not ready or process.poll() is None

    def _allocation_error(self) -> UsageError:
        stderr = self._stderr.decode("utf-8", "replace")
        errors = [line.partition("error: ")[2] for line in stderr.splitlines() if "error: " in line]
        reason = printable((errors or [stderr.strip() or "salloc ended"])[-1])
        return UsageError(f"Slurm gives no nodes: {reason}",
                          "Partitions and their nodes: sinfo")  # fmt: skip

    def release(self) -> None:
        """Release the nodes, or leave the queue if the job still waits."""
        process = self._process
        assert process.stdin and process.stdout and process.stderr
        with contextlib.suppress(OSError):
            process.stdin.close()
        if process.poll() is None and b"Granted" not in self._stderr:
            process.terminate()
        try:
            process.wait(timeout=RELEASE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=RELEASE_TIMEOUT_S)
        process.stdout.close()
        process.stderr.close()
        if self.job and process.returncode < 0:
            # salloc was killed, so it could not release the nodes
            _cancel(self.job)


def _cancel(job: str) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(["scancel", "--quiet", job], capture_output=True, timeout=QUEUE_TIMEOUT_S,
                       check=False)  # fmt: skip


def _queue_position(job: str) -> str:
    """A job's place in its partition's queue, and why it waits; "" if Slurm does not say."""
    try:
        result = subprocess.run(
            ["squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format=%i|%P|%r"],
            capture_output=True, text=True, timeout=QUEUE_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    rows = [line.split("|", 2) for line in result.stdout.splitlines() if line.count("|") >= 2]
    return queue_position_text(job, rows)


def queue_position_text(job: str, rows: list[list[str]]) -> str:
    """A sentence with a job's place among the pending jobs that squeue lists: number, partition,
    reason."""
    job_row = next((row for row in rows if row[0] == job), None)
    if job_row is None:
        return ""
    queue = [row[0] for row in rows if row[1] == job_row[1]]
    return (f"Slurm job {job} waits ({printable(job_row[2])}): number {queue.index(job) + 1} of "
            f"{len(queue)} in partition {printable(job_row[1])}")  # fmt: skip
