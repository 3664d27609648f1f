"""Who uses a disk. A process is named for a disk only if it has something open there: /proc/PID/io
counts all disks together, so a share is what must be on this disk, at least."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from iopstui import format as units
from iopstui.model.answer.use import ELSEWHERE, WITH_CHILDREN, DiskUse, DiskUser
from iopstui.model.block.device import BlockDevice
from iopstui.model.cgroups import GroupRates
from iopstui.model.figures.disk import DiskRates, mean_ms_over
from iopstui.model.findings.conditions import Array, Conditions
from iopstui.model.histogram import merge, percentiles
from iopstui.model.metrics.probe import ProbeInterval

MAIN_SHARE, MORE_FACTOR = 0.5, 1.5
LEAST_REST = 0.05
"""If nobody is known for less than this share of the bytes, that is not worth telling."""
ALL, LITTLE_SHARE = 0.995, 0.005
LONG_PART = 0.03
"""If requests take at least this part of the seconds, users' shares are uncertain."""
SAME_PART = 0.015
"""Parts of a disk's bytes that differ by less are the same: a point, and what rounding hides. Else
the words would change from second to second."""
READS, WRITES = 0, 1
MIN_FOR_P50, MIN_FOR_P99 = 10, 100
"""Fewer requests than these give no percentile."""
ALIKE = 1.25
"""Rates of a disk that differ by a larger factor are of different seconds."""


@dataclass(frozen=True, slots=True)
class Share:
    """``share`` (0..1) of a disk's bytes are of ``name``; ``may_be_more``: so much more may be,
    because the process uses other disks, too. ``program`` names its container or pod, or else its
    program. ``through``: the device on this disk whose I/O they are ("": the process's files are on
    the disk itself, or this is not known)."""

    name: str
    share: float
    bytes_s: float
    pid: int | None = None
    program: str = ""
    may_be_more: float = 0.0
    through: str = ""

    @property
    def at_least(self) -> bool:
        """Whether it may be more, by more than the readings differ: a process and a disk are not
        read at the same moment."""
        return self.may_be_more > SAME_PART

    @property
    def percent_text(self) -> str:
        """ "64 %", or "at least 64 %" if it may be more: the same wherever a share is told."""
        bound = "at least " if self.at_least and self.share < ALL else ""
        return f"{bound}{100 * min(1.0, self.share):.0f} %"

    @property
    def label(self) -> str:
        """ "fio --name=hog (965)", "fio --name=hog (965) through loop0"."""
        return f"{self.name} through {self.through}" if self.through else self.name


def shares(
    disk: str, below: Collection[str], use: DiskUse | None, above: Collection[str] = (),
    parts: tuple[float, float] = (1.0, 1.0), copies: Collection[str] = (),
) -> tuple[Share, ...]:  # fmt: skip
    """The processes that use ``disk``, the one with most first. ``below`` are ``disk`` and all
    devices below it, ``above`` the devices built on it. ``parts``: bytes that ``disk`` reads and
    writes per byte of the disks below it. ``copies`` are disks that a mirror writes the same to."""
    if use is None:
        return ()
    moved = _moved(disk, below, use, parts)
    if not sum(moved):
        return ()
    users = [user for user in use.users if disk in user.devices and not user.kernel]
    above = {*above, *use.above(disk)}
    same = [{*below, *(name for name in above if _is_passed_on(name, side, moved[side], use))}
            for side in (READS, WRITES)]  # fmt: skip
    same[WRITES].update(copies, use.copies(disk))
    sides = [
        _without_doubt([_at_least(disk, user, side, moved[side], same[side], use)
                        for user in users], moved[side])
        for side in (READS, WRITES)
    ]  # fmt: skip
    found = []
    for user, read_s, write_s in zip(users, *sides, strict=True):
        bytes_s = read_s + write_s
        if bytes_s:
            may_be_more = _more_s(user, (read_s, write_s), moved) / sum(moved)
            share = bytes_s / sum(moved)
            program = user.container or user.comm
            found.append(Share(user.name, share, bytes_s, user.pid, program, may_be_more))
    return _with_ways(sorted(found, key=lambda one: (-one.share, one.pid or 0)), above, use)


def _is_passed_on(name: str, side: int, moved: float, use: DiskUse) -> bool:
    """Whether the disk below this device did as many bytes as it, so that they may be the same. A
    loop device whose file is in the page cache sends none; those that it sends are of kernel
    threads."""
    if name not in use.disks:
        return False
    bytes_s = use.disks[name][side]
    by_kernel = bytes_s if use.kernel_s is None else use.kernel_s[side]
    return bytes_s <= ALIKE * min(moved, by_kernel)


def _with_ways(found: Sequence[Share], above: Collection[str], use: DiskUse) -> tuple[Share, ...]:
    """With the device above through which each did its bytes: it did as many there. The kernel
    counts those of dm and md on the disk alone."""
    here, ways = {one.pid: one.bytes_s for one in found}, dict[int | None, str]()
    for top in sorted(name for name in above if found and name in use.disks):
        for one in shares(top, use.tree(top), use):
            is_lower = one.pid in ways and top in use.tree(ways[one.pid])
            if one.pid in here and ALIKE * one.bytes_s >= here[one.pid] and not is_lower:
                ways[one.pid] = one.through or top
    return tuple(replace(one, through=ways.get(one.pid, "")) for one in found)


def _without_doubt(rates: Sequence[float], moved: float) -> list[float]:
    """The least each must have done of the disk's I/O (``moved``). Their sum may be more, as some
    went to the page cache or to another disk; then each gets only what the others can't have done.
    """
    doubt = max(0.0, sum(rates) - moved)
    return [max(0.0, rate - doubt) for rate in rates]


def combined_shares(
    disks: Mapping[str, Collection[str]], use: DiskUse | None,
    seconds: Sequence[Mapping[str, DiskRates]] = (),
) -> tuple[Share, ...]:  # fmt: skip
    """The processes that use several disks together. ``disks`` count each byte once; each has the
    names of the devices below it. ``seconds`` are the rates of all of them."""
    if use is None:
        return ()
    parts = {disk: parts_of_below(disk, below, use, seconds) for disk, below in disks.items()}
    total = sum(sum(_moved(disk, below, use, parts[disk])) for disk, below in disks.items())
    together: dict[str, Share] = {}
    for disk, below in disks.items():
        ms = mean_ms_over([rates[disk] for rates in seconds if disk in rates])
        for one in as_bounds(shares(disk, below, use, parts=parts[disk]), ms, use):
            bytes_s = one.bytes_s + (together[one.name].bytes_s if one.name in together else 0.0)
            may_be_more = one.may_be_more * sum(_moved(disk, below, use, parts[disk])) / total
            may_be_more += together[one.name].may_be_more if one.name in together else 0.0
            together[one.name] = replace(
                one, share=bytes_s / total, bytes_s=bytes_s, may_be_more=may_be_more
            )
    return tuple(sorted(together.values(), key=lambda one: (-one.share, one.pid or 0)))


def as_bounds(found: Sequence[Share], ms: float | None, use: DiskUse) -> tuple[Share, ...]:
    """These shares; if requests take long (``ms`` on average), each may be more: a process counts
    bytes when requests begin, a disk when they end."""
    if (ms or 0.0) < LONG_PART * 1e3 * use.seconds:
        return tuple(found)
    return tuple(replace(one, may_be_more=1.0) for one in found)


def parts_of_below(
    disk: str, below: Collection[str], use: DiskUse | None,
    seconds: Sequence[Mapping[str, DiskRates]],
) -> tuple[float, float]:  # fmt: skip
    """Bytes that this device reads and writes for each that the disks below it do: md writes them
    several times, and a snapshot copies others. 1 if unknown."""
    counted = use.disks if use is not None else {}
    if disk in counted:
        return 1.0, 1.0
    names = [name for name in below if name in counted]
    return _part(disk, names, "read_bytes", seconds), _part(disk, names, "write_bytes", seconds)


def _part(
    disk: str, below: Sequence[str], growth: str, seconds: Sequence[Mapping[str, DiskRates]]
) -> float:
    get, seen = attrgetter(growth), [rates for rates in seconds if disk in rates]
    lower = sum(get(rates[name]) or 0 for rates in seen for name in below if name in rates)
    return min(1.0, sum(get(rates[disk]) or 0 for rates in seen) / lower) if lower else 1.0


def are_alike(one_s: float, other_s: float) -> bool:
    """Whether two rates of a disk may be of the same seconds; its users are read at other times."""
    return one_s / ALIKE <= other_s <= one_s * ALIKE


def moved_s(
    disk: str, below: Collection[str], use: DiskUse | None, parts: tuple[float, float]
) -> float:
    """Bytes per second that the disk did in the seconds of ``use``."""
    return 0.0 if use is None else sum(_moved(disk, below, use, parts))


def _moved(
    disk: str, below: Collection[str], use: DiskUse, parts: tuple[float, float] = (1.0, 1.0)
) -> tuple[float, float]:
    rates = use.disks.get(disk)
    if rates is None:  # dm, md and partitions: the devices directly below them
        known = [use.disks[name] for name in below if name in use.disks]
        reads, writes = sum(row[READS] for row in known), sum(row[WRITES] for row in known)
        return parts[READS] * reads, parts[WRITES] * writes
    return rates[READS], rates[WRITES]


def _at_least(
    disk: str, user: DiskUser, side: int, moved: float, same: Collection[str], use: DiskUse
) -> float:
    """Bytes per second in one direction that this process must do on the disk: its bytes less
    everything that the other disks on which it has files open did, as if for this process alone.
    Disks in ``same`` don't count as others. I/O on a server is not known. What it wrote may still
    be in the page cache: not more than the disk's own writes counts."""
    usable = _usable(user, side)
    if ELSEWHERE[side] in user.devices or disk not in usable:
        return 0.0
    rate = user.write_s if side == WRITES else user.read_s
    others = use.disks.keys() & user.devices.difference(same)
    elsewhere = sum(use.disks[name][side] for name in others & usable)
    if side == READS:
        # a write of part of a page reads the page first
        elsewhere += sum(min(use.disks[name][side], user.write_s)
                         for name in others & user.only_written - usable)  # fmt: skip
    if side == WRITES:
        rate = min(rate, moved)
    return min(moved, max(0.0, rate - elsewhere))


def _usable(user: DiskUser, side: int) -> frozenset[str]:
    """The devices on which the process has files open for reading, or for writing. If there are
    none, all its devices: it may open files briefly."""
    return (user.reads_on, user.writes_on)[side] or user.devices


def _more_s(user: DiskUser, known: Sequence[float], moved: Sequence[float]) -> float:
    """Bytes per second that a process may have done on the disk besides those that are known."""
    did = (user.read_s, user.write_s)
    return sum(max(0.0, min(did[side], moved[side]) - known[side]) for side in (READS, WRITES))


def who_text(found: Sequence[Share], groups: Sequence[GroupRates] | None, disk: str) -> str:
    """ "fio --name=hog (965) does 64 % of its bytes"; "" if nobody is known to do half of them."""
    top = max((*found[:1], *programs(found)[:1]), key=_with_bonus, default=None)
    if top is not None and top.share >= MAIN_SHARE:
        part = "all" if top.share >= ALL else top.percent_text
        return f"{top.label} does {part} of its bytes"
    return _group_text(groups, disk)


def perhaps_text(disk: str, below: Collection[str], use: DiskUse | None,
                 parts: tuple[float, float] = (1.0, 1.0)) -> str:  # fmt: skip
    """ "perhaps the users of loop0": a loop device on the disk is in use, and what it asks for may
    be most of the disk's I/O, or be in the page cache; "" if there is none."""
    moved = moved_s(disk, below, use, parts)
    if use is None or not moved:
        return ""
    names = [name for name in sorted(use.above(disk) & use.disks.keys())
             if sum(use.disks[name][:2]) >= MAIN_SHARE * moved]  # fmt: skip
    return f"perhaps the users of {' and '.join(names)}" if names else ""


def _with_bonus(one: Share) -> float:
    """Sort key: a single process is preferred to its program, unless it does clearly less."""
    return one.share + (0.1 if one.pid is not None else 0.0)


def programs(found: Sequence[Share]) -> list[Share]:
    """Several processes of one program, or in one container, as one: a program may start a new one
    for each file. One that does half of the I/O, with another command than the others, stands
    alone, as does one that does much more than the next."""
    by_program: dict[str, list[Share]] = {}
    for one in found:
        by_program.setdefault(one.program, []).append(one)
    several = [
        Share(f"{program} ({len(ones)} processes){_with_children(ones)}",
              sum(one.share for one in ones), sum(one.bytes_s for one in ones), program=program,
              may_be_more=sum(one.may_be_more for one in ones), through=_way_of(ones))
        for program, ones in by_program.items() if len(ones) > 1 and not _stands_alone(ones)
    ]  # fmt: skip
    return sorted(several, key=lambda one: -one.share)


def _way_of(ones: Sequence[Share]) -> str:
    """The device through which all of them use the disk."""
    ways = {one.through for one in ones}
    return ways.pop() if len(ways) == 1 else ""


def _stands_alone(ones: Sequence[Share]) -> bool:
    first, *others = ones
    commands = {one.name.rpartition(" (")[0] for one in others}
    is_other = first.name.rpartition(" (")[0] not in commands
    return first.share >= MAIN_SHARE and (is_other or first.share >= MORE_FACTOR * others[0].share)


def _with_children(ones: Sequence[Share]) -> str:
    have = any(one.name.endswith(WITH_CHILDREN) for one in ones)
    return " with their children" if have else ""


def _group_text(groups: Sequence[GroupRates] | None, disk: str) -> str:
    by_name: dict[str, float] = {}
    for group in groups or ():
        if disk in group.disks:
            name = group.name.text
            by_name[name] = by_name.get(name, 0.0) + group.disks[disk].bytes_s
    total = sum(by_name.values())
    top = max(by_name, key=lambda name: by_name[name], default="")
    if not total or by_name[top] < MAIN_SHARE * total or top == "/":
        return ""
    return f"{top} does {100 * by_name[top] / total:.0f} % of its bytes"


def who_rows(
    found: Sequence[Share], disks: Sequence[str], probes: Sequence[ProbeInterval], most: int = 3
) -> Iterator[str]:
    """The users of a disk with their shares, for the evidence. ``disks`` are the disk and those
    below it."""
    for one in [one for one in found[:most] if one.share >= LITTLE_SHARE]:
        p50_ns, p99_ns = request_latency(one.pid or 0, disks, probes)
        times = [f"{name} about {units.axis_latency(ns)}"
                 for name, ns in (("p50", p50_ns), ("p99", p99_ns)) if ns is not None]  # fmt: skip
        each = f" ({', '.join(times)})" if times else ""
        yield f"{one.label} {one.percent_text}{each}"


def request_latency(
    pid: int, disks: Sequence[str], probes: Sequence[ProbeInterval]
) -> tuple[int | None, int | None]:
    """p50 and p99 (ns) in the device of the requests that this process sent itself, on the first of
    these disks where it sent any; unknown if there were too few. Its writes through the page cache
    are not included: the kernel sends them. Rounded to two digits: the bins are 12 % wide."""
    tasks = [task for probe in probes for task in probe.tasks if task.pid == pid]
    disk = next((name for name in disks if any(task.disk == name for task in tasks)), "")
    bins = merge(task.bins for task in tasks if task.disk == disk)
    ios, ranks = sum(bins.values()), percentiles(bins, (50.0, 99.0))
    return (_rounded(ranks.get(50.0)) if ios >= MIN_FOR_P50 else None,
            _rounded(ranks.get(99.0)) if ios >= MIN_FOR_P99 else None)  # fmt: skip


def _rounded(ns: int | None) -> int | None:
    return None if ns is None else int(float(f"{ns:.2g}"))


def syncing_array(
    disk: str, below: Collection[str], conditions: Conditions, devices: Mapping[str, BlockDevice],
    lower: Mapping[str, Sequence[str]],
) -> tuple[str, Array] | None:  # fmt: skip
    """The md array with this disk that is being rebuilt or checked, or was just now."""
    for name, state in conditions.devices.items():
        array = state.array
        if array is None or not array.syncs_or_did:
            continue
        slaves = devices[name].slaves if name in devices else ()
        disks = [devices[slave].disk for slave in slaves if slave in devices]
        if name in below or disk in {*slaves, *disks, *lower.get(name, ())}:
            return name, array
    return None


# Role of a kernel thread, from its name.


@dataclass(frozen=True, slots=True)
class Role:
    """What a thread does, and the device it works for ("": its name does not tell)."""

    sentence: str
    device: str = ""

    @property
    def is_journal(self) -> bool:
        """Whether the thread commits the journal of a file system."""
        return self.sentence == _JOURNAL

    def text(self, devices: Mapping[str, BlockDevice]) -> str:
        """ "the journal of /srv (jbd2)"; a device that is not mounted has its own name."""
        device = devices.get(self.device)
        place = device.mounts[0].mountpoint if device is not None and device.mounts else self.device
        return self.sentence.format(place)


def role(comm: str, numbers: Mapping[str, str]) -> Role | None:
    """ "jbd2/vda-8" -> the journal of vda; ``None`` for a thread whose name says nothing.
    ``numbers`` has device names by "major:minor"."""
    for pattern, sentence in _ROLES:
        match = re.match(pattern, comm)
        if match is not None:
            name = match[1] if match.groups() else ""
            return Role(sentence, numbers.get(name, name))
    return None


_JOURNAL = "the journal of {} (jbd2)"
_ROLES: tuple[tuple[str, str], ...] = (
    (r"jbd2/(.+?)-\d+$", _JOURNAL),
    (r"kworker/.*[-+]flush-(\d+:\d+)", "write-back of the page cache on {}"),
    (r"kworker/.*[-+]flush-btrfs", "write-back of the page cache on btrfs"),
    (r"kworker/.*[-+](?:writeback|wb_)", "write-back of the page cache"),
    (r"(md\d+)_resync", "resync of {} (md)"),
    (r"(md\d+)_(?:raid|cluster)", "writes of the array {} (md)"),
    (r"kswapd\d*", "memory reclaim (kswapd)"),
    (r"xfsaild/(.+)$", "metadata of {} (xfs)"),
    (r"kworker/.*[-+]xfs-\w+/(\S+)", "metadata of {} (xfs)"),
    (r"btrfs-transacti", "a commit of btrfs"),
    (r"btrfs-cleaner", "cleaning of btrfs snapshots"),
    (r"dmcrypt_write/(\d+:\d+)", "writes of {} (dm-crypt)"),
    (r"kworker/.*[-+]kcryptd", "encryption (dm-crypt)"),
    (r"kworker/.*[-+](loop\d+)", "I/O of {}"),
    (r"(loop\d+)$", "I/O of {}"),
    (r"kworker/.*[-+]kdelayd", "delayed I/O (dm-delay)"),
    (r"(?:txg_sync|z_wr_iss|z_rd_iss)", "ZFS"),
    (r"nfsd", "NFS clients' I/O (nfsd)"),
)
