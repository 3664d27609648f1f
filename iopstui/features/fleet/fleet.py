"""Run many hosts at once: launch, check, start together, watch and stop them.

No host starts unless all are armed. From then on each host gets a heartbeat at least every two
seconds, and stops by itself if that stays away. Runs in one thread and never blocks on a single
host."""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iopstui.errors import (
    EXIT_JOB_FAILED,
    EXIT_REFUSED,
    Interrupted,
    IopstuiError,
    JobFailed,
    Refused,
    error_for_exit_code,
)
from iopstui.features.fleet.hosts.conversation import start_spread
from iopstui.features.fleet.hosts.free_space import (
    SpaceNeed,
    join_shared,
    join_similar,
    marks_to_find,
    overcommit_messages,
)
from iopstui.features.fleet.hosts.host_disks import disk_conflicts, duplicate_machines
from iopstui.features.fleet.hosts.member import ARMED, GREETED, LAUNCHED, OVER, STARTED, Member
from iopstui.features.fleet.hosts.nodes import Node
from iopstui.features.fleet.merging.merger import HOST_EVENTS, MergedInterval, Merger
from iopstui.features.fleet.merging.sums import MalformedRow
from iopstui.text import printable

Object = dict[str, Any]
TICK_S = 0.1
CHECK_EVERY_S = 0.25
HEARTBEAT_EVERY_S = 1.0
HEARTBEATS_PER_CLOCK_CHECK = 10
"""The number of heartbeats from one comparison of clocks to the next."""
MANY_HOSTS, PAUSE_S = 16, 0.1
"""With at least this number of hosts, the thread pauses for this long between two reads of their
lines."""
VERY_MANY_HOSTS, LONG_PAUSE_S = 256, 0.2
"""With at least this number of hosts, waking up for each line costs too much: lines are read in
batches, except while clocks are compared."""
# after how long without a line a host is shown as late, and given up as lost
LATE_AFTER_S, LOST_AFTER_S = 2.5, 12.0
CONNECT_TIMEOUT_S = 60.0
LAUNCH_NOTICE_S = 5.0
"""If a launcher has printed nothing for this long, iopstui says that it is waiting, because it may
be queued (srun)."""
START_TIMEOUT_S = 10.0
CLOCK_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0
# a second is closed at most this long after its end, so that a late host is noticed within 3 s
CLOSE_AFTER_S = 1.5
MIN_START_DELAY_S = 0.3
# the limit for different messages of one host; further ones are not shown
MAX_MESSAGES_PER_HOST = 20
MAX_LATE_NAMED = 5
"""Up to this number of late hosts get a line each; more share a line."""
SMALLER_SIZE_ADVICE = "Give a smaller --size, or another TARGET."
SEPARATE_FILES_ADVICE = (
    "They have the same size and free space, so they may be one file system. If they are "
    "separate: --assume-apart. Otherwise use a smaller --size."
)


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Options of a fleet. ``min_hosts``: minimum number of armed hosts; ``stop_on_loss``: stop all
    hosts when one is lost; ``assume_separate_filesystems``: treat file systems as different unless
    known to be the same; ``connect_timeout_s``: time limit for reaching a host; ``split_target``:
    each host uses its own part of the target."""

    min_hosts: int
    stop_on_loss: bool = False
    watching: bool = False
    assume_separate_filesystems: bool = False
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    split_target: bool = False


@dataclass(frozen=True, slots=True)
class FleetCallbacks:
    """Callbacks of a fleet run: ``report`` receives messages, ``on_interval`` each interval,
    ``on_row`` each row of a host. ``stop_reason`` is called every second; a non-empty reason ends
    the run. ``is_completed`` returns whether the job then counts as done."""

    report: Callable[[str], None]
    on_interval: Callable[[MergedInterval], None]
    on_row: Callable[[str, Object], None]
    stop_reason: Callable[[MergedInterval], str]
    is_completed: Callable[[], bool] = lambda: False


class Fleet:
    """Runs one job on many hosts. ``run`` raises IopstuiError if nothing was started.
    ``stop_reason`` is "" until all hosts are told to stop. ``on_tick`` is called in its thread
    every 0.1 s, or every 0.2 s with ``VERY_MANY_HOSTS`` hosts. ``has_changes`` is True if a host's
    state may have changed since this was set to False."""

    def __init__(
        self,
        nodes: Sequence[Node],
        command: Callable[[Node], Sequence[str]],
        order: Callable[[Node], Object],
        merger: Merger,
        options: FleetOptions,
        callbacks: FleetCallbacks,
    ) -> None:
        self.members: dict[str, Member] = {}
        self.stop_reason = ""
        self.has_changes = True
        self._nodes = nodes
        self._command_for = command
        self._order_for = order
        self._merger = merger
        self._options = options
        self._callbacks = callbacks
        self._poller = select.epoll()
        self._member_by_fd: dict[int, Member] = {}
        self._warnings: dict[str, set[str]] = {}
        self._next_heartbeat_s = self._next_check_s = self._next_tick_s = self._clocks_asked_s = 0.0
        self._heartbeats = 0
        self._late_hosts: list[str] = []
        self._next_late_report_s = 0.0
        self._has_started = self._wait_reported = False
        self._interrupted = False
        self._killed = False
        self._orders: deque[tuple[str, Object]] = deque()
        self.on_tick: Callable[[], None] = lambda: None

    # -- callable from a signal handler or another thread

    def interrupt(self) -> None:
        """Make all hosts stop; their last figures still arrive."""
        self._interrupted = True

    def kill(self) -> None:
        """Give up at once. The hosts stop by themselves when their links close."""
        self._killed = True

    def send_order(self, name: str, order: Object) -> None:
        self._orders.append((name, order))

    # -- the course of a run

    def run(self) -> None:
        """Run until all hosts have ended or been given up."""
        try:
            self._launch()
            if not self._options.watching:
                self._run_until(self._all_planned)
                self._lay_out_files()
            self._run_until(self._all_ready)
            for member in self._active_hosts():
                member.compare_clock()
            self._run_until(self._all_ready)
            self._check_start()
            for member in self.members.values():
                self._merger.host(member.name).offset_ms = member.offset.wall_ms
            if not self._options.watching:
                self._start()
            self._has_started = True
            self._run_until(self._all_ended)
            for member in self.members.values():
                # check members that ended in the last loop
                self._check_member(member)
            for second in self._merger.finish():
                self._callbacks.on_interval(second)
        finally:
            self._close()

    def _launch(self) -> None:
        for node in self._nodes:
            command = self._command_for(node)
            try:
                member = Member(node, command, self._order_for(node))
            except OSError as error:
                program = printable(command[0])
                raise JobFailed(
                    f"Cannot connect to {node.name}: {program}: {error.strerror}.",
                    f"Is {program} installed? Are there enough descriptors (ulimit -n)?",
                ) from error
            self.members[node.name] = member
            for fd in (member.link.out_fd, member.link.err_fd):
                self._poller.register(fd, select.EPOLLIN)
                self._member_by_fd[fd] = member

    def _all_planned(self) -> bool:
        """Whether every host is ready, has reported which files it needs, or does not take part."""
        return all(
            member.state in (ARMED, OVER) or member.needs is not None
            for member in self.members.values()
        )

    def _lay_out_files(self) -> None:
        """Let the hosts lay out their files. Raises before any file is made if they must not."""
        self._check_host_count()
        self._refuse(overcommit_messages(self._space_needs()), SMALLER_SIZE_ADVICE)
        marks = marks_to_find(self._space_needs())
        if marks:
            self._find_shared_file_systems(marks)
        for member in self._active_hosts():
            member.send_order({"op": "lay_out"})

    def _space_needs(self) -> dict[str, list[SpaceNeed]]:
        return {member.name: member.needs or [] for member in self._active_hosts()}

    def _find_shared_file_systems(self, marks: Mapping[str, Sequence[str]]) -> None:
        """Have hosts look for each other's scratch directories. Raises if two file systems are, or
        may be, the same one, and the files of all hosts do not fit into it."""
        members = [self.members[name] for name in marks]
        for member in members:
            member.search_marks(marks[member.name])
        self._run_until(
            lambda: all(member.state == OVER or member.seen_marks is not None for member in members)
        )
        self._check_host_count()
        needs = join_shared(
            self._space_needs(), {member.name: member.seen_marks or () for member in members}
        )
        self._refuse(overcommit_messages(needs), SMALLER_SIZE_ADVICE)
        if not self._options.assume_separate_filesystems:
            self._refuse(
                overcommit_messages(join_similar(needs), is_certain=False), SEPARATE_FILES_ADVICE
            )

    def _refuse(self, messages: Iterator[str], hint: str) -> None:
        reasons = list(messages)
        if reasons:
            for reason in reasons[1:]:
                self._callbacks.report(reason)
            raise Refused(f"{reasons[0]}; no host was started.", hint)

    def _check_host_count(self) -> None:
        """Raise UsageError if too few hosts are left."""
        if self.stop_reason:
            raise Interrupted("Nothing was started.")
        ended = [member for member in self.members.values() if member.state == OVER]
        if len(self.members) - len(ended) < self._options.min_hosts:
            raise self._too_few_hosts_error(ended)

    def _all_ready(self) -> bool:
        """Whether every host is armed and its clock is compared, or it does not take part."""
        waiting = (GREETED, LAUNCHED) if not self._options.watching else (LAUNCHED,)
        return all(
            member.state not in waiting and (member.state == OVER or member.is_compared)
            for member in self.members.values()
        )

    def _check_start(self) -> None:
        """Raise if the hosts may not be started."""
        if self.stop_reason:
            raise Interrupted("Nothing was started.")
        disks = {
            member.name: member.disks for member in self.members.values() if member.state == ARMED
        }
        self._refuse(
            disk_conflicts(disks, self._options.split_target),
            "If several hosts share a disk, only one of them may write to it.",
        )
        self._check_host_count()
        for warning in duplicate_machines(
            {n: member.boot_id for n, member in self.members.items() if n in disks}
        ):
            self._callbacks.report(warning)
        for member in self.members.values():
            if member.state == OVER:
                self._callbacks.report(f"{member.name} is left out: {member.error}")

    def _too_few_hosts_error(self, ended: Sequence[Member]) -> IopstuiError:
        for member in ended:
            hint = f". {member.hint}" if member.hint else ""
            self._callbacks.report(f"{member.name}: {member.error.rstrip('.')}{hint}")
        codes = {member.exit_code for member in ended} or {EXIT_JOB_FAILED}
        code = EXIT_REFUSED if EXIT_REFUSED in codes else max(codes)
        hosts = len(self.members)
        ready_hosts = hosts - len(ended)
        hint = "To start with fewer hosts: --min-hosts N" if ready_hosts else ""
        if any("iopstui with sudo" in member.hint for member in ended):
            hint += " " * bool(hint) + "--sudo runs all of them as root."
        return error_for_exit_code(
            code, f"{ready_hosts} of {hosts} hosts are ready, so none was started.", hint
        )  # fmt: skip

    def _start(self) -> None:
        """Order all armed hosts to start at the same instant, soon."""
        armed_members = [member for member in self.members.values() if member.state == ARMED]
        now_ns = time.monotonic_ns()
        error_ns = max((member.offset.error_at(now_ns) for member in armed_members), default=0)
        ahead_ns = int(MIN_START_DELAY_S * 1e9) + 8 * error_ns + len(armed_members) * 200_000
        wall_ms = time.time() * 1000 + ahead_ns / 1e6
        for member in armed_members:
            member.start(now_ns + ahead_ns)
            self._merger.host(member.name).expect(wall_ms)

    def _all_ended(self) -> bool:
        return all(member.state == OVER for member in self.members.values())

    # -- one pass of the loop

    def _run_until(self, condition: Callable[[], bool]) -> None:
        """Serve the hosts until ``condition`` holds. After a request to stop, serve them until they
        have stopped, or give them up after ``END_TIMEOUT_S``."""
        give_up: float | None = None
        while not condition():
            if self._interrupted and not self.stop_reason:
                self.stop("interrupted")
            if self.stop_reason and give_up is None:
                give_up = time.monotonic() + END_TIMEOUT_S
            if self._killed or (give_up is not None and time.monotonic() > give_up):
                for member in self._active_hosts():
                    member.give_up("it may not have stopped")
                return
            if self.stop_reason and self._all_ended():
                return
            self._poll()

    def _active_hosts(self) -> Iterator[Member]:
        return (member for member in self.members.values() if member.state != OVER)

    def _poll(self) -> None:
        if self._can_pause():
            time.sleep(PAUSE_S if len(self.members) < VERY_MANY_HOSTS else LONG_PAUSE_S)
        self._read_all()
        now = time.monotonic()
        if now < self._next_tick_s:
            return
        # not for every line that arrives
        self._next_tick_s = now + TICK_S
        self.on_tick()
        while self._orders:
            name, order = self._orders.popleft()
            # before its greeting, a host reads the package on the same stream: send nothing in
            # between
            if name in self.members and self.members[name].state not in (LAUNCHED, OVER):
                self.members[name].send_order(order)
        if now >= self._next_heartbeat_s:
            self._send_heartbeats(now)
        if now >= self._next_check_s:
            self._next_check_s = now + (CHECK_EVERY_S if self._has_started else TICK_S)
            lately_ns = time.monotonic_ns() - int(LATE_AFTER_S * 1e9)
            for member in self.members.values():
                if member.link.unsent:
                    member.link.flush()
                if member.state != STARTED or member.last_row_ns < lately_ns:
                    previous = member.state, member.is_late
                    self._check_member(member)
                    self.has_changes |= previous != (member.state, member.is_late)
            self._report_waiting_launchers()
            self._report_late_hosts(now)
        last_number = int((time.time() - CLOSE_AFTER_S) / self._merger.interval_s) - 1
        for second in self._merger.close_seconds(last_number):
            self._callbacks.on_interval(second)
            reason = self._callbacks.stop_reason(second)
            if reason and not self.stop_reason:
                self.stop(reason, self._callbacks.is_completed())

    def _can_pause(self) -> bool:
        busy = (
            self._interrupted or self._killed or self.stop_reason or len(self.members) < MANY_HOSTS
        )
        return (
            not busy
            and self._has_started
            and time.monotonic() - self._clocks_asked_s > CHECK_EVERY_S
        )

    def _send_heartbeats(self, now: float) -> None:
        """Send a heartbeat to every host, and ask for the time of its clock if needed."""
        self._next_heartbeat_s = now + HEARTBEAT_EVERY_S
        asks = not self._has_started or self._heartbeats % HEARTBEATS_PER_CLOCK_CHECK == 0
        self._heartbeats += 1
        if asks:
            self._clocks_asked_s = now
        lately_ns = time.monotonic_ns() - int(HEARTBEAT_EVERY_S * 1e9)
        for index, member in enumerate(self.members.values()):
            if asks:
                member.ask_time()
            elif index % 2 == self._heartbeats % 2 or member.last_row_ns < lately_ns:
                # every other second is enough for a host that sends rows: it stops only after 5 s
                # without one
                member.send_heartbeat()

    def _read_all(self) -> None:
        """Read what all hosts send within a tenth of a second, then add it up: a thousand lines
        take less time if each step is done for all of them together."""
        ready = self._poller.poll(TICK_S)
        now_s = time.time()
        rows: list[tuple[str, Object]] = []
        for fd, _ in ready:
            member = self._member_by_fd[fd]
            if fd == member.link.err_fd:
                self._read_stderr(fd, member)
            else:
                self._read_member(fd, member, member.link.receive(), rows)
        self._merger.feed_all(rows, now_s, self._report_malformed_row)

    def _read_stderr(self, fd: int, member: Member) -> None:
        member.link.read_stderr()
        if member.link.err_fd < 0:
            self._unregister(fd)

    def _read_member(
        self, fd: int, member: Member, data: bytes | None, rows: list[tuple[str, Object]]
    ) -> None:
        link, state = member.link, member.state
        for row in member.take_rows(data):
            self._handle_row(member, row)
            if row["event"] in HOST_EVENTS:
                rows.append((member.name, row))
        if member.state != state:
            self.has_changes = True
        if link.out_fd < 0:
            self._unregister(fd)
            link.hang_up()

    def _unregister(self, fd: int) -> None:
        self._poller.unregister(fd)
        del self._member_by_fd[fd]

    def _handle_row(self, member: Member, row: Object) -> None:
        kind, name = row["event"], member.name
        if kind != "frame" or member.is_late:
            self.has_changes = True
        member.is_late = False
        self._callbacks.on_row(name, row)

    def _report_malformed_row(self, name: str, error: MalformedRow) -> None:
        member = self.members[name]
        member.invalid_lines += 1
        self._warn_once(member, f"skipping rows such as this one: {error}")

    def _check_member(self, member: Member) -> None:
        """Report, once each, hosts that are late, lost, failed or without a probe."""
        if member.probe_problem:
            self._warn_once(member, f"no device percentiles: {member.probe_problem}")
        if member.state != OVER and member.state != LAUNCHED:
            if member.silent_s > LOST_AFTER_S:
                member.give_up(f"no data for {LOST_AFTER_S:g} s")
            elif member.silent_s > LATE_AFTER_S and not member.is_late:
                member.is_late = True
                self._late_hosts.append(member.name)
        elif member.state == LAUNCHED and member.silent_s > self._options.connect_timeout_s:
            stderr = printable(member.link.last_error_line)
            member.give_up(
                f"no connection within {self._options.connect_timeout_s:g} s"
                f"{f': {stderr}' if stderr else ''}",
                "Either it cannot be reached, or its launcher (srun) waits in a queue. To wait "
                "longer: --connect-timeout 1h",
            )
        if member.comparing_s > CLOCK_TIMEOUT_S:
            # otherwise a host that answers without its time would keep the others waiting forever
            member.stop()
            member.give_up(f"its clock could not be compared within {CLOCK_TIMEOUT_S:g} s")
        if member.state == ARMED and (member.since_start_signal_s or 0.0) > START_TIMEOUT_S:
            # a host that answers is never late, so without this it would keep the others waiting
            # forever
            member.stop()
            member.give_up(f"it did not start within {START_TIMEOUT_S:g} s of the start signal")
        if member.state == OVER and member.error:
            if member.is_lost:
                self._merger.mark_lost(member.name)
            was_watched = self._options.watching and member.name in self._merger.hosts
            if was_watched or member.since_start_signal_s is not None:
                outcome = "lost" if member.is_lost else "failed"
                self._warn_once(member, f"{outcome}: {member.error}")
            if member.is_lost and self._options.stop_on_loss and not self.stop_reason:
                self.stop(f"{member.name} is lost")

    def _report_late_hosts(self, now: float) -> None:
        """Report the names of late hosts; many of them in one line, which is not repeated at
        once."""
        if not self._late_hosts or now < self._next_late_report_s:
            return
        late, self._late_hosts = self._late_hosts, []
        if len(late) <= MAX_LATE_NAMED:
            for name in late:
                self._callbacks.report(f"{name} is late: no data for {LATE_AFTER_S:g} s")
            return
        self._next_late_report_s = now + LATE_AFTER_S
        self._callbacks.report(f"{len(late)} hosts are late: no data for {LATE_AFTER_S:g} s: "
                         f"{', '.join(late[:MAX_LATE_NAMED])} ...")  # fmt: skip

    def _report_waiting_launchers(self) -> None:
        """Report once which launchers run but have written nothing so far."""
        if self._wait_reported or self._has_started or self.stop_reason:
            return
        quiet = [member for member in self.members.values()
                 if member.state == LAUNCHED and member.silent_s > LAUNCH_NOTICE_S]  # fmt: skip
        if quiet:
            self._wait_reported = True
            hosts = quiet[0].name if len(quiet) == 1 else f"{len(quiet)} hosts"
            stderr = next(
                (line for member in quiet if (line := printable(member.link.last_error_line))), ""
            )
            self._callbacks.report(
                f"{hosts}: waiting for the launcher, {self._options.connect_timeout_s:g} s at most "
                f"(--connect-timeout){f': {stderr}' if stderr else ''}"
            )

    def _warn_once(self, member: Member, message: str) -> None:
        warnings = self._warnings.setdefault(member.name, set())
        if (
            message not in warnings
            and len(warnings) < MAX_MESSAGES_PER_HOST
            and not self.stop_reason
        ):
            warnings.add(message)
            self._callbacks.report(f"{member.name}: {message}")

    def stop(self, reason: str, completed: bool = False) -> None:
        """Stop all hosts in an orderly way, and report the ``reason``. ``completed``: their job
        counts as done, not as interrupted."""
        self.stop_reason = reason
        self._callbacks.report(f"all hosts are stopped: {reason}")
        for member in self._active_hosts():
            member.stop(completed)

    def _close(self) -> None:
        """Close all links; an agent stops by itself when its link closes."""
        for member in self._active_hosts():
            member.stop()
            member.link.flush()
        for member in self.members.values():
            member.link.hang_up()
        deadline = time.monotonic() + END_TIMEOUT_S
        while not self._killed and time.monotonic() < deadline and self._any_link_open():
            self._read_all()
        for member in self.members.values():
            if member.link.out_fd >= 0:
                member.link.kill()
            member.link.close()
        self._poller.close()

    def _any_link_open(self) -> bool:
        return any(member.link.out_fd >= 0 for member in self.members.values())


def start_spread_ms(members: Mapping[str, Member]) -> tuple[float, float] | None:
    """The time between the first and the last start of fio (ms), and its error (ms); ``None`` if no
    host has started."""
    executions = [
        (member.executed_ns, member.error_ns)
        for member in members.values()
        if member.executed_ns is not None
    ]
    if not executions:
        return None
    spread_ns, error_ns = start_spread(executions)
    return spread_ns / 1e6, error_ns / 1e6
