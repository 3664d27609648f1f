"""Merge the seconds of many hosts into one row per second.

A second is closed once every host that takes part has passed it, or when the newest second is
``LAG`` seconds ahead. A host without a frame in the second is missing; a host with only a part of
it is incomplete. Neither is counted, and both are named. Rows of other mergers are accepted like
frames, so mergers can form a tree, with the same result as one merger of all hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from iopstui.errors import EXIT_INTERRUPTED, UsageError
from iopstui.features.fleet.merging.encoded_frame import EncodedFrame, FrameSum
from iopstui.features.fleet.merging.host_timeline import MAX_WALL_S, HostInterval, HostTimeline
from iopstui.features.fleet.merging.sums import (
    HostSums,
    MalformedRow,
    Object,
    get_object,
    scaled_integer,
    total_sums,
)
from iopstui.model.figures.figure import SCHEMA
from iopstui.model.metrics.frame import RAMP
from iopstui.model.metrics.summary import DIFFERS, EXACT, UNCHECKED

HOST_EVENTS = frozenset({"frame", "session", "step_finished", "ended"})
"""The events that a merger reads from a host's lines."""
LAG = 5
"""How many seconds a second waits for hosts that are behind."""
LONGEST_GAP = 3600
"""A longer pause without data (in seconds) gets no rows."""
MAX_NAMES = 100_000
MAX_HOSTS = 50_000
"""Limit for the hosts of a single merger, because each takes some kB."""
# the fields of another merger's totals that can be added up
_MERGED_FIELDS = (
    ("hosts", ("total", "finished"), ("failed", "interrupted", "unseen")),
    ("count", ("ios", "bytes", "exact", "fio_ios", "fio_bytes"), ("differs", "unchecked", "ramp")),
)
FINISHED, FAILED, INTERRUPTED = "finished", "failed", "interrupted"


@dataclass(slots=True)
class MergedInterval:
    """Totals of one second. ``number`` counts seconds of ``interval_s`` since 1970; ``expected``
    hosts take part in it, ``counted`` of them are in ``sums``; ``flags`` has the number of hosts
    with each flag, ``util`` is the mean of their devices (percent)."""

    number: int
    interval_s: float
    sums: HostSums = field(default_factory=HostSums)
    expected: int = 0
    counted: int = 0
    missing: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    flags: dict[str, int] = field(default_factory=dict)
    util: float | None = None

    @property
    def wall_ms(self) -> float:
        """The beginning of the second, in ms since 1970."""
        return self.number * self.interval_s * 1000


@dataclass(slots=True)
class _OpenSecond:
    """A second that is not closed yet: the sums of its hosts, the sums of hosts in fio's ramp, and
    the totals of other mergers (which send final sums at their end)."""

    sums: HostSums = field(default_factory=HostSums)
    ramps: HostSums = field(default_factory=HostSums)
    encoded: FrameSum = field(default_factory=FrameSum)
    totals: HostSums = field(default_factory=HostSums)
    flags: dict[str, int] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    incomplete: set[str] = field(default_factory=set)
    utils: list[float] = field(default_factory=list)
    sub_totals: list[tuple[str, int, int, tuple[str, ...], tuple[str, ...]]] = field(
        default_factory=list
    )


@dataclass(slots=True)
class _SubMerger:
    """A merger whose rows this one merges: the seconds of its first and last row, and the hosts
    that it lost."""

    first: int | None = None
    last: int | None = None
    expected: int = 0
    has_ended: bool = False
    lost_hosts: tuple[str, ...] = ()

    def missing_hosts(self, name: str, number: int) -> tuple[str, ...]:
        """The hosts that are missing in a second for which this merger sent no row; its own
        ``name`` if it has ended early."""
        if not self.has_ended:
            return (name,)
        return self.lost_hosts if self.last is not None and number > self.last else ()


def _ignore_host_interval(name: str, interval: HostInterval, is_counted: bool) -> None:
    """Do nothing: the default, if each host's own seconds are not needed."""


class Merger:
    """Merges rows of many hosts. ``feed`` takes rows of any host in order of arrival,
    ``close_seconds`` returns the finished seconds. ``hosts`` are those that sent frames;
    ``interval_s`` is the length of a second.

    ``keep_bins``: every host's whole histogram is kept (for ``--expect each...``). ``on_interval``
    is called with each host's own seconds, and whether they are counted, before their totals.
    ``late_frames`` counts frames that came after their second was closed; ``lost_hosts`` are hosts
    that no longer report. ``sums`` adds up all frames of all hosts, even late and incomplete ones,
    but not those in fio's ramp. ``seconds_by_hosts`` counts the closed seconds by their number of
    hosts."""

    def __init__(self, interval_s: float = 1.0, keep_bins: bool = False) -> None:
        self.interval_s = interval_s
        self.on_interval: Callable[[str, HostInterval, bool], None] = _ignore_host_interval
        self.hosts: dict[str, HostTimeline] = {}
        self.sub_mergers: dict[str, _SubMerger] = {}
        self.merged_rows: dict[str, Mapping[str, Any]] = {}
        self.late_frames: dict[str, int] = {}
        self.sums = HostSums()
        self.lost_hosts: set[str] = set()
        self.seconds_by_hosts: Counter[int] = Counter()
        self._foreign_hosts: set[str] = set()
        self._keep_bins = keep_bins
        self._open_seconds: dict[int, _OpenSecond] = {}
        self._next_number: int | None = None
        self._newest_number = 0

    def host(self, name: str) -> HostTimeline:
        """The host with this name; created if it is new. Raises UsageError for more than
        MAX_HOSTS."""
        if name not in self.hosts:
            if len(self.hosts) >= MAX_HOSTS:
                raise UsageError(f"There are more than {MAX_HOSTS} hosts.",
                                 "Merge them in parts, then merge the results: iopstui "
                                 "merge")  # fmt: skip
            self.hosts[name] = HostTimeline(name, self.interval_s, self._keep_bins)
        return self.hosts[name]

    def feed(self, name: str, row: Mapping[str, Any]) -> None:
        """Process a line of ``name``. Raises MalformedRow if iopstui can't have written it; nothing
        of it is then counted."""
        kind = row.get("event")
        if self._foreign_hosts or "schema" in row:
            self._check_schema(name, row)
        if kind == "frame":
            host = self.hosts.get(name) or self.host(name)
            for interval in host.feed(row):
                self._add_interval(host, interval)
        elif kind == "session":
            self._begin_session(name, bool(row.get("merged")))
        elif kind == "step_finished":
            self._finish_host(name, row)
        elif kind == "ended":
            self.end(name)
        elif kind == "total":
            self._add_total(name, row)
        elif kind == "merged":
            self._add_merged(name, row)

    def feed_all(
        self, rows: Iterable[tuple[str, Mapping[str, Any]]], our_clock_s: float,
        on_malformed: Callable[[str, MalformedRow], None],
    ) -> None:  # fmt: skip
        """``feed`` for lines that have just arrived, at ``our_clock_s`` by our clock.
        ``on_malformed`` is called for malformed ones."""
        for name, row in rows:
            try:
                self.host(name).our_clock_s = our_clock_s
                self.feed(name, row)
            except MalformedRow as error:
                on_malformed(name, error)

    def _check_schema(self, name: str, row: Mapping[str, Any]) -> None:
        """Refuse a stream whose schema changes, because its fields may then have another
        meaning."""
        if "schema" in row:
            self._foreign_hosts.discard(name)
            if row["schema"] != SCHEMA:
                self._foreign_hosts.add(name)
        if name in self._foreign_hosts:
            raise MalformedRow(f"its schema is not {SCHEMA}; it is from another version of iopstui")

    def _begin_session(self, name: str, merged: bool) -> None:
        """Note a host before its first frame, so that no second is closed without it."""
        if merged:
            self.sub_mergers.setdefault(name, _SubMerger())
        else:
            self.host(name).begin_session()

    def _finish_host(self, name: str, row: Mapping[str, Any]) -> None:
        host = self.host(name)
        host.io_totals.add_final(row)
        failed = row.get("error") or row.get("exit_code") not in (0, EXIT_INTERRUPTED)
        host.outcome = FAILED if failed else INTERRUPTED if row.get("interrupted") else FINISHED
        self.end(name)

    def end(self, name: str) -> None:
        """Note that the host has ended, so that it is not expected in later seconds."""
        host = self.hosts.get(name)
        if host is not None:
            for interval in host.end():
                self._add_interval(host, interval)

    def mark_lost(self, name: str) -> None:
        """Mark a host as missing from now on, until it reports again."""
        self.lost_hosts.add(name)

    # -- seconds

    def _open_second(self, number: int) -> _OpenSecond | None:
        if self._next_number is not None and number < self._next_number:
            return None
        if number > self._newest_number:
            self._newest_number = number
        open_second = self._open_seconds.get(number)
        if open_second is None:
            open_second = self._open_seconds[number] = _OpenSecond()
        return open_second

    def _add_interval(self, host: HostTimeline, interval: HostInterval) -> None:
        open_second = self._open_second(interval.number)
        name, flags = host.name, interval.flags
        self.lost_hosts.discard(name)
        is_counted = open_second is not None and interval.complete(self.interval_s)
        self.on_interval(name, interval, is_counted)
        if open_second is None:
            self.late_frames[name] = self.late_frames.get(name, 0) + 1
        elif is_counted:
            open_second.hosts.add(name)
            open_second.incomplete.discard(name)
            if interval.util is not None:
                open_second.utils.append(interval.util)
            ramp, data = RAMP in flags, interval.data
            if isinstance(data, EncodedFrame) and not ramp:
                open_second.encoded.add(data, name)
            else:
                (open_second.ramps if ramp else open_second.sums).add(interval.sums)
            for flag in flags:
                open_second.flags[flag] = open_second.flags.get(flag, 0) + 1
        elif name not in open_second.hosts:
            open_second.incomplete.add(name)
        if not is_counted and RAMP not in flags:
            # an uncounted second is not added with the totals, so add it here
            self.sums.add(interval.sums)

    def _add_total(self, name: str, row: Mapping[str, Any]) -> None:
        if row.get("interval_s") != self.interval_s:
            raise MalformedRow("its intervals have a different length")
        number = scaled_integer(row.get("second"))
        if number * self.interval_s >= MAX_WALL_S:
            raise MalformedRow("its second is impossible")
        sums = total_sums(row)
        hosts = get_object(row, "hosts")
        expected, counted = (
            scaled_integer(hosts.get("expected")),
            scaled_integer(hosts.get("counted")),
        )
        names = _names(hosts.get("missing")), _names(hosts.get("incomplete"))
        flags = {
            str(flag): scaled_integer(count) for flag, count in get_object(row, "flags").items()
        }
        sub_merger = self.sub_mergers.setdefault(name, _SubMerger())
        sub_merger.first = number if sub_merger.first is None else sub_merger.first
        sub_merger.last, sub_merger.expected = max(sub_merger.last or 0, number), expected
        open_second = self._open_second(number)
        if open_second is None:
            self.late_frames[name] = self.late_frames.get(name, 0) + 1
            return
        open_second.totals.add(sums)
        open_second.sub_totals.append((name, expected, counted, *names))
        for flag, count in flags.items():
            open_second.flags[flag] = open_second.flags.get(flag, 0) + count

    def _add_merged(self, name: str, row: Mapping[str, Any]) -> None:
        sums, lost_hosts = total_sums(row), _names(row.get("lost"))
        for section, counts, lists in _MERGED_FIELDS:
            part = get_object(row, section)
            for key in counts:
                scaled_integer(part.get(key))
            for key in lists:
                _names(part.get(key))
        late_counts = get_object(row, "late")
        late = {host: scaled_integer(late_counts[host]) for host in _names([*late_counts])}
        self.merged_rows[name] = row
        self.sums.add(sums)
        for host, count in late.items():
            self.late_frames[host] = self.late_frames.get(host, 0) + count
        if name in self.sub_mergers:
            self.sub_mergers[name].has_ended = True
            # a host that never sent a frame is not missing
            unseen = {*_names(get_object(row, "hosts").get("unseen"))}
            self.sub_mergers[name].lost_hosts = tuple(
                host for host in lost_hosts if host not in unseen
            )

    @property
    def ran_apart(self) -> bool:
        """Whether the merger's own hosts were never all measured in the same second. Their rates
        then do not add up to a rate of all."""
        spans = [(host.first, host.last) for host in self.hosts.values()
                 if host.first is not None and host.last is not None]  # fmt: skip
        return bool(spans) and max(first for first, _ in spans) > min(last for _, last in spans)

    def run_sums(self) -> HostSums:
        """``sums`` with the rates of whole runs, each over its host's own time."""
        rated = [host.run_sums() for host in self.hosts.values()]
        rated += [total_sums(row) for row in self.merged_rows.values()]
        for name, part in self.sums.fio.items():
            parts = [sums.fio[name] for sums in rated if name in sums.fio]
            part.iops_m = sum(p.iops_m for p in parts)
            part.bw_m = sum(p.bw_m for p in parts)
        device = self.sums.device
        device.hosts = sum(sums.device.hosts for sums in rated)
        for kind, total in device.parts.items():
            kind_parts = [sums.device.parts[kind] for sums in rated if kind in sums.device.parts]
            total.iops_m = sum(p.iops_m for p in kind_parts)
        return self.sums

    def close_seconds(
        self, last_number: int | None = None, early: bool = True
    ) -> Iterator[MergedInterval]:
        """The seconds that are over: those that all hosts have passed (only with ``early``; not for
        recordings, in which a run may follow after a pause), that are ``LAG`` behind the newest, or
        that are not after ``last_number``."""
        while self._open_seconds:
            number = self._next_to_close()
            waited = self._newest_number - number >= LAG or (
                last_number is not None and number <= last_number
            )
            if not waited and not (early and self._all_passed(number)):
                return
            yield self._close(number)

    def finish(self) -> Iterator[MergedInterval]:
        """Close the remaining seconds, because no more rows come. A host that did not end normally
        is lost."""
        for host in self.hosts.values():
            for interval in host.flush():
                self._add_interval(host, interval)
        self.lost_hosts = {host.name for host in self.hosts.values() if not host.has_ended}
        while self._open_seconds:
            yield self._close(self._next_to_close())

    def _next_to_close(self) -> int:
        first, following = min(self._open_seconds), self._next_number
        if following is not None and first - following <= LONGEST_GAP:
            return following
        # a host may have begun an earlier second that is still incomplete
        open_seconds = [
            host.open_second for host in self.hosts.values() if host.open_second is not None
        ]
        if following is not None:
            open_seconds = [number for number in open_seconds if number >= following]
        return min([first, *open_seconds])

    def _all_passed(self, number: int) -> bool:
        open_second = self._open_seconds.get(number)
        if number > self._newest_number:
            return False
        for host in self.hosts.values():
            behind = host.last is None or host.last < number
            if behind and not host.has_ended and host.name not in self.lost_hosts:
                return False
            if host.last == number and not (
                open_second
                and (host.name in open_second.hosts or host.name in open_second.incomplete)
            ):
                return False
        return all(
            sub_merger.has_ended or (sub_merger.last or 0) >= number
            for sub_merger in self.sub_mergers.values()
        )

    def _close(self, number: int) -> MergedInterval:
        for host in self.hosts.values():
            # a host that has been silent for so long will send nothing more
            for interval in host.flush() if host.last == number else ():
                self._add_interval(host, interval)
        second = self._open_seconds.pop(number, None) or _OpenSecond()
        self._next_number = number + 1
        expected = {
            host.name for host in self.hosts.values()
            if host.first is not None and host.first <= number
            and ((host.last is not None and number <= host.last) or not host.has_ended)
        }  # fmt: skip
        second.sums.add(second.encoded.drain())
        self.sums.add(second.sums)
        for sums in (second.ramps, second.totals):
            second.sums.add(sums)
        row = MergedInterval(number, self.interval_s, second.sums, flags=second.flags)
        row.util = sum(second.utils) / len(second.utils) if second.utils else None
        missing = expected - second.hosts - second.incomplete
        incomplete = second.incomplete - second.hosts
        row.expected, row.counted = len(expected | second.hosts | incomplete), len(second.hosts)
        for _, sub_expected, counted, absent, part in second.sub_totals:
            row.expected, row.counted = row.expected + sub_expected, row.counted + counted
            missing |= {*absent}
            incomplete |= {*part}
        reported = {name for name, *_ in second.sub_totals}
        for name, sub_merger in self.sub_mergers.items():
            if name not in reported and sub_merger.first is not None and number > sub_merger.first:
                absent = sub_merger.missing_hosts(name, number)
                missing |= {*absent}
                row.expected += len(absent) if sub_merger.has_ended else sub_merger.expected
        row.missing, row.incomplete = tuple(sorted(missing)), tuple(sorted(incomplete))
        if row.counted:
            self.seconds_by_hosts[row.counted] += 1
        return row


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_NAMES:
        raise MalformedRow("the host names are not a list")
    return tuple(str(name) for name in value)


# The result of a merge: which hosts finished or were lost, and whether the sums match fio's totals.


_OF_HOSTS = ("finished", "failed", "interrupted", "unseen")
_COUNT = ("ios", "bytes", "fio_ios", "fio_bytes", "exact", "differs", "unchecked", "ramp")


@dataclass(slots=True)
class MergeCertificate:
    """Counts of hosts and their names. ``ios`` and ``bytes`` are the sums of all frames,
    ``fio_ios`` and ``fio_bytes`` are those of fio's final reports (``None``: there is no report, or
    I/Os have several sizes). ``unseen`` are the ``lost`` hosts that sent no frame at all. The
    counts of ``exact`` hosts agree with fio's, those of ``differs`` hosts don't, and ``unchecked``
    hosts have no final report. ``ramp`` hosts differ by no more than the I/Os in flight when their
    ramp ended. ``shared_seconds`` of the ``seconds`` have figures of all hosts; in a tree, each
    merger counts its own."""

    hosts: int = 0
    finished: int = 0
    failed: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    ios: int = 0
    bytes: int = 0
    fio_ios: int | None = None
    fio_bytes: int | None = None
    exact: int = 0
    differs: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    ramp: tuple[str, ...] = ()
    seconds: int = 0
    shared_seconds: int = 0

    def as_object(self) -> Object:
        """The certificate as the parts of a merger's row."""
        values = {name: [*value] if isinstance(value, tuple) else value
                  for name, value in asdict(self).items()}  # fmt: skip
        return {
            "hosts": {"total": self.hosts, **{name: values[name] for name in _OF_HOSTS}},
            "lost": values["lost"], "count": {name: values[name] for name in _COUNT},
        }  # fmt: skip

    def add(self, other: MergeCertificate) -> None:
        both_sized = self.fio_bytes is not None and other.fio_bytes is not None
        if self.fio_ios is None or other.fio_ios is None:
            self.fio_bytes = other.fio_bytes if self.fio_ios is None else self.fio_bytes
            self.fio_ios = other.fio_ios if self.fio_ios is None else self.fio_ios
        else:
            self.fio_bytes = self.fio_bytes + other.fio_bytes if both_sized else None  # type: ignore[operator]
            self.fio_ios += other.fio_ios
        for name in ("hosts", "finished", "ios", "bytes", "exact"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("failed", "interrupted", "lost", "unseen", "differs", "unchecked", "ramp"):
            setattr(self, name, tuple(sorted((*getattr(self, name), *getattr(other, name)))))


def certify_merge(merger: Merger) -> MergeCertificate:
    """The certificate of all hosts of a merger and of the mergers below it. Of a merger that was
    cut off, only its own name is known."""
    certificate = MergeCertificate()
    for name, host in merger.hosts.items():
        totals = host.io_totals
        ios, byte_count = totals.finals or (None, None)
        lost = not host.has_ended
        reasons = {
            "failed": host.outcome == FAILED, "interrupted": host.outcome == INTERRUPTED,
            "lost": lost, "unseen": lost and host.first is None, "ramp": totals.ramp,
            "differs": totals.verdict == DIFFERS, "unchecked": totals.verdict == UNCHECKED,
        }  # fmt: skip
        named: dict[str, Any] = {reason: (name,) for reason, is_so in reasons.items() if is_so}
        certificate.add(MergeCertificate(
            1, int(host.outcome == FINISHED or (host.has_ended and not host.outcome)),
            ios=totals.ios, bytes=totals.bytes, fio_ios=ios, fio_bytes=byte_count,
            exact=int(totals.verdict == EXACT), **named,
        ))  # fmt: skip
    for row in merger.merged_rows.values():
        certificate.add(_parse_certificate(row))
    for name, sub_merger in merger.sub_mergers.items():
        if not sub_merger.has_ended:
            certificate.add(MergeCertificate(sub_merger.expected, lost=(name,), unchecked=(name,)))
    seen = certificate.hosts - len(certificate.unseen)
    certificate.seconds = merger.seconds_by_hosts.total()
    certificate.shared_seconds = merger.seconds_by_hosts[seen]
    return certificate


def _parse_certificate(row: Mapping[str, Any]) -> MergeCertificate:
    hosts, count = get_object(row, "hosts"), get_object(row, "count")
    values = {**hosts, **count, "hosts": hosts.get("total"), "lost": row.get("lost")}
    certificate = MergeCertificate()
    for name, default in asdict(certificate).items():
        value = values.get(name)
        if default == ():
            setattr(certificate, name, tuple(map(str, value or ())))
        elif value is not None:
            setattr(certificate, name, scaled_integer(value))
    return certificate
