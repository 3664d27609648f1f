"""Whose I/O a device does: the job's, somebody else's, or unknown.

An account divides what a device did in one second by kind (reads, writes, discards, flushes) and by
three measures: requests, bytes, and requests in the device at a time. The job can have caused at
most what it completed in that direction plus what its syncs, its file system and its buffered
writes may add; anything above is others'. What it has surely caused is its own, and the rest is
unknown. Without a job everything counts as others'.

Limits of the method:

- Two programs' requests of one kind count as equally slow, unless the job's own latency says less.
- Buffered reads may make the kernel read ahead without a bound, so none of the device's reads count
  as others'. Buffered writes reach the device later, but not more than were written.
- A device below a layer is compared with that layer's own counters.

The rules judge single seconds, and fio's differ slightly from the kernel's (``SLACK``). Whether a
run was disturbed is judged from its sums (model/experiment/disturbance.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import inf

from iopstui import format as units
from iopstui.model.block.target import DIRECT_LOOP, DeviceLinks
from iopstui.model.figures.disk import DiskRates
from iopstui.model.findings.evidence import Evidence, JobShape, recent_frames, recent_job_frames
from iopstui.model.findings.finding import device_names_text
from iopstui.model.fio.interval import DirectionInterval, FioInterval
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import fmean
from iopstui.model.samples import MIXED, READ, TRIM, WRITE

READS, WRITES, DISCARDS, FLUSHES = "reads", "writes", "discards", "flushes"
KINDS = (READS, WRITES, DISCARDS, FLUSHES)
LETTERS = {READS: "r", WRITES: "w", DISCARDS: "d", FLUSHES: "f"}
_DIRECTIONS = {READS: READ, WRITES: WRITE, DISCARDS: TRIM}

SLACK = 1.05
"""Factor of tolerance, because fio's second and the kernel's begin at slightly different
moments."""
SYNC_FLUSHES, SYNC_WRITES, SYNC_BYTES = 3.0, 4.0, 64 << 10
"""What one sync may add: flushes around a journal's commit, writes, and bytes of these."""
OTHER_FLUSHES_S = 2.0
METADATA_SHARE, METADATA_IOS, METADATA_BYTES = 0.25, 50.0, 2 << 20
"""I/O that a file system may add to a job's writes: a share of them, and I/Os and bytes per
second."""
DIRECT_LAYERS = ("LVM", "dm-multipath", "dm-crypt")
"""Layers of device-mapper that write no journal."""
MOVE_DATA = ("btrfs", "bcachefs", "f2fs", "nilfs2", "zfs")
"""File systems that write data to a new place each time, and update the trees that point to it."""
LARGEST_REQUEST = 1280 << 10
DIRTY_S = 30.0
"""The kernel writes dirty pages after this time at the latest (vm.dirty_expire_centisecs)."""
PAGE, SECTOR = 4096, 512
NAMED_SHARE = 0.2
OTHER_IO_SHARE, OTHER_IOPS, OTHER_BYTES_S, OTHER_IN_FLIGHT = 0.3, 50.0, 16 << 20, 1.0
"""Least I/O of others on a shared device: share, requests/s, bytes/s, and requests in the device at
a time."""


@dataclass(frozen=True, slots=True)
class Flow:
    """I/O of one kind: requests and bytes per second, and requests in the device at a time."""

    ios_s: float = 0.0
    bytes_s: float = 0.0
    queue: float = 0.0

    def __add__(self, other: Flow) -> Flow:
        return Flow(
            self.ios_s + other.ios_s, self.bytes_s + other.bytes_s, self.queue + other.queue
        )

    def __sub__(self, other: Flow) -> Flow:
        return Flow(
            max(0.0, self.ios_s - other.ios_s),
            max(0.0, self.bytes_s - other.bytes_s),
            max(0.0, self.queue - other.queue),
        )

    def times(self, factor: float) -> Flow:
        """Each measure multiplied by ``factor``."""
        return Flow(factor * self.ios_s, factor * self.bytes_s, factor * self.queue)

    def largest(self, other: Flow) -> Flow:
        """The larger of the two values of each measure."""
        return Flow(
            max(self.ios_s, other.ios_s),
            max(self.bytes_s, other.bytes_s),
            max(self.queue, other.queue),
        )

    def share_of(self, whole: Flow) -> Flow:
        """Each measure as a part (0..1) of the same measure of ``whole``; 0 where that is 0."""
        return Flow(
            self.ios_s / whole.ios_s if whole.ios_s else 0.0,
            self.bytes_s / whole.bytes_s if whole.bytes_s else 0.0,
            self.queue / whole.queue if whole.queue else 0.0,
        )

    @property
    def most(self) -> float:
        """The largest of the three values; for a flow whose values are shares."""
        return max(self.ios_s, self.bytes_s, self.queue)


NOTHING = Flow()
UNLIMITED = Flow(inf, inf, inf)
Flows = Mapping[str, Flow]
"""I/O by kind (reads, writes, discards, flushes)."""


@dataclass(frozen=True, slots=True)
class Account:
    """The I/O of the device ``name`` in some seconds, and the parts that are the job's and
    others'."""

    name: str
    total: Flows
    job: Flows
    others: Flows

    @property
    def whole(self) -> Flow:
        """All kinds together."""
        return together(self.total)

    @property
    def all_others(self) -> Flow:
        """All kinds together of the I/O that is surely not the job's."""
        return together(self.others)

    @property
    def others_share(self) -> Flow:
        """The part (0..1) of each measure that is surely not the job's."""
        return self.all_others.share_of(self.whole)

    def unknown(self, kind: str) -> Flow:
        """I/O that may or may not be the job's."""
        return self.total[kind] - self.job[kind] - self.others[kind]


def together(flows: Flows) -> Flow:
    """All kinds together. Flushes are not added, because each already counts as an empty write; a
    discard moves no data."""
    whole = NOTHING
    for kind, flow in flows.items():
        ios, moved = 0.0 if kind == FLUSHES else flow.ios_s, flow.bytes_s
        whole += Flow(ios, 0.0 if kind == DISCARDS else moved, flow.queue)
    return whole


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What decides how much I/O a job can cause beyond its own: its ``shape``, whether it works on
    ``files``, whether their file system ``journals_data`` or never writes in place
    (``moves_data``), the largest request of the devices in bytes, bytes of buffered writes that may
    still reach them per second, and what a file system may write: ``metadata`` each second, plus
    ``metadata_share`` of what the job writes."""

    shape: JobShape
    files: bool = False
    journals_data: bool = False
    moves_data: bool = False
    largest_request: float = LARGEST_REQUEST
    dirty_bytes_s: float = inf
    metadata: Flow = Flow(METADATA_IOS, METADATA_BYTES)
    metadata_share: float = METADATA_SHARE

    @property
    def direct(self) -> bool:
        """Whether all I/O of the job bypasses the page cache (with data=journal none does)."""
        return self.shape.direct is True and not self.journals_data

    def most(self, kind: str, fio: FioInterval) -> Flow:
        """The most that the job can have caused of this kind in this second."""
        if MIXED in fio.directions and kind != FLUSHES:
            return UNLIMITED
        own = self.least(kind, fio)
        if kind == FLUSHES:
            return Flow(SYNC_FLUSHES * self._syncs_s(fio) + OTHER_FLUSHES_S, 0.0, inf)
        if kind == DISCARDS:
            return own if not own.ios_s else Flow(inf, own.bytes_s, inf)
        split = self._requests_per_io()
        scaled = Flow(own.ios_s * split, own.bytes_s, own.queue * split)
        if kind == READS:
            return self._most_reads(scaled, fio)
        return self._most_writes(scaled, fio)

    def least(self, kind: str, fio: FioInterval) -> Flow:
        """The I/O of this kind that the job itself asked for."""
        part = fio.directions.get(_DIRECTIONS.get(kind, ""))
        return NOTHING if part is None else own_flow(part)

    def _most_reads(self, own: Flow, fio: FioInterval) -> Flow:
        if self.direct:
            return own if not self.files else own + Flow(METADATA_SHARE * own.ios_s, 0.0, 0.0)
        block = self.shape.block_size
        # a write of part of a page reads the rest of it
        partial = self.shape.writes and (block is None or block % PAGE != 0)
        return UNLIMITED if own.ios_s or partial else NOTHING

    def _most_writes(self, own: Flow, fio: FioInterval) -> Flow:
        if not self.shape.writes and not own.ios_s:
            ios_s = self.metadata.ios_s if self.files else 0.0
            return Flow(ios_s, PAGE * ios_s, inf if ios_s else 0.0)
        if self.moves_data:
            return UNLIMITED
        if not self.direct:
            return Flow(inf, (1 + self.journals_data) * self.dirty_bytes_s, inf)
        syncs_s = self._syncs_s(fio)
        most = own + Flow(SYNC_WRITES * syncs_s, SYNC_BYTES * syncs_s, inf if syncs_s else 0.0)
        if self.files:
            most += own.times(self.metadata_share) + self.metadata
        return most

    def _syncs_s(self, fio: FioInterval) -> float:
        """The most syncs per second that the job can have made."""
        if not self.shape.syncs:
            return 0.0
        writes_s = sum((fio.directions[name].iops or 0.0) for name in (WRITE, MIXED)
                       if name in fio.directions)  # fmt: skip
        every = self.shape.sync_interval
        return writes_s / every if every else float(self.shape.jobs)

    def _requests_per_io(self) -> float:
        """How many requests one I/O of the job becomes at most, judged by sizes."""
        size = self.shape.block_size
        return 1.0 if size is None else float(-(-size // int(self.largest_request)))


def own_flow(part: DirectionInterval) -> Flow:
    """The I/O that fio did in one direction."""
    latency = part.lat_ns if part.lat_ns is not None else part.clat_ns
    iops = part.iops or 0.0
    return Flow(
        iops, part.bw or 0.0, inf if latency is None and iops else iops * (latency or 0.0) / 1e9
    )


def device_flows(disk: DiskRates) -> dict[str, Flow]:
    """The I/O that a device did, by kind, without empty flushes among the writes."""
    flows = {}
    for kind, letter in LETTERS.items():
        rate = getattr(disk, f"{letter}_s") or 0.0
        moved = 0.0 if kind == FLUSHES else getattr(disk, f"{letter}_bytes_s") or 0.0
        queue = rate * (getattr(disk, f"{letter}_await") or 0.0) / 1e3
        flows[kind] = Flow(rate, moved, queue)
    writes, flushes = flows[WRITES], flows[FLUSHES]
    flows[WRITES] = Flow(max(0.0, writes.ios_s - flushes.ios_s), writes.bytes_s, writes.queue)
    return flows


def job_account(frame: Frame, names: Sequence[str], limits: JobLimits) -> Account | None:
    """The account of the devices that the job works on, together; ``None`` if one of them is not
    measured."""
    disk = frame.combined(names)
    if disk is None or disk.r_s is None or disk.w_s is None:
        return None
    fio = frame.fio
    least = {kind: limits.least(kind, fio) if fio else NOTHING for kind in KINDS}
    most = {kind: limits.most(kind, fio) if fio else NOTHING for kind in KINDS}
    if not limits.direct:
        least = dict.fromkeys(KINDS, NOTHING)
    return _divided(", ".join(names), device_flows(disk), least, most)


def _lower_account(frame: Frame, lower: str, upper: str, layer: str | None) -> Account | None:
    """The account of a lower device that does all the I/O of the device above it. That I/O counts
    as the job's here, whoever caused it: the account of the upper device shows what others do
    there."""
    disk, above = frame.disks.get(lower), frame.disks.get(upper)
    if disk is None or above is None or disk.r_s is None or disk.w_s is None:
        return None
    least = device_flows(above)
    return _divided(lower, device_flows(disk), least, lower_limits(least, upper, layer))


def lower_limits(upper: Flows, name: str, layer: str | None) -> Flows:
    """The most I/O on lower devices that the device ``name`` can have caused with its own. The page
    cache of a loop device's file reads ahead, from a file that it has parts of many times as much
    as was asked for, and writes later; past the page cache it reads what was asked for, and where
    the file system has put that. Some layers write a journal first."""
    most = dict(upper)
    if name.startswith("loop"):
        is_direct, asked = layer == DIRECT_LOOP, upper[READS].bytes_s
        most[READS] = Flow(inf, asked + METADATA_BYTES, inf) if is_direct else UNLIMITED
        most[WRITES] = most[FLUSHES] = UNLIMITED
    elif name.startswith("dm-") and layer not in DIRECT_LAYERS:
        most[WRITES], most[FLUSHES] = upper[WRITES].times(2), UNLIMITED
    return most


def _divided(name: str, total: Flows, least: Flows, most: Flows) -> Account:
    others = {kind: beyond(total[kind], least[kind], most[kind], kind) for kind in KINDS}
    job = {}
    for kind in KINDS:
        rest = total[kind] - others[kind]
        own = Flow(min(rest.ios_s, least[kind].ios_s), min(rest.bytes_s, least[kind].bytes_s))
        share = own.ios_s / rest.ios_s if rest.ios_s else 0.0
        job[kind] = Flow(own.ios_s, own.bytes_s, rest.queue * share)
    return Account(name, total, job, others)


def beyond(total: Flow, least: Flow, most: Flow, kind: str, slack: float = SLACK) -> Flow:
    """The I/O of a device beyond the ``most`` that the job can have caused. ``least`` is the I/O
    that the job itself asked for."""
    if not total.ios_s:
        return NOTHING
    moved = max(0.0, total.bytes_s - slack * most.bytes_s)
    ios = max(0.0, total.ios_s - slack * most.ios_s)
    if kind != FLUSHES and most.ios_s:
        # Extra requests count as others' only as far as extra bytes can fill them (a page each);
        # the rest are split ones of the job. Extra bytes need a request per LARGEST_REQUEST at
        # least
        smallest = SECTOR if least.bytes_s <= PAGE * least.ios_s else PAGE
        ios = max(min(ios, moved / smallest), moved / LARGEST_REQUEST)
    if not ios:
        return NOTHING
    ios = min(total.ios_s, ios)
    queue = total.queue * ios / total.ios_s
    if moved:
        queue = min(total.queue, max(queue, total.queue - slack * most.queue))
    return Flow(ios, moved, queue)


def sole_devices(
    names: Sequence[str], tree: Collection[str], links: Sequence[DeviceLinks]
) -> Iterator[tuple[str, str, str | None]]:
    """The devices below the job's device that get all I/Os of the device above: the disk of a
    partition, the device under a device-mapper or loop device. Each comes with the upper device and
    its layer. Empty if ``names`` has several devices."""
    name = names[0] if len(names) == 1 else ""
    by_name = {link.name: link for link in links}
    while name:
        disk = next((disk for disk in tree if is_part_of(name, disk)), "")
        if disk:
            yield disk, name, None
        link = by_name.get(name, DeviceLinks(name))
        if len(link.below) != 1 or not (disk or name.startswith(("dm-", "loop"))):
            break
        yield link.below[0], name, link.layer
        name = link.below[0]


def is_part_of(name: str, disk: str) -> bool:
    """Whether a device is a partition of this disk."""
    number = name.removeprefix(disk).removeprefix("p")
    return name != disk and name.startswith(disk) and number.isdecimal()


def job_limits(evidence: Evidence, frames: Sequence[Frame]) -> JobLimits:
    """The bounds of the I/O that the job can cause in these frames."""
    requests = [
        device.queue.max_sectors_kb * 1024
        for device in evidence.devices
        if device.queue is not None and device.queue.max_sectors_kb
    ]
    mounts = [mount for device in evidence.devices for mount in device.mounts]
    return JobLimits(
        evidence.shape,
        files=bool(mounts),
        journals_data=any(mount.journals_data for mount in mounts),
        moves_data=any(mount.fstype in MOVE_DATA for mount in mounts),
        largest_request=min(requests, default=LARGEST_REQUEST),
        dirty_bytes_s=_dirty_bytes_s(evidence, frames),
    )


def _dirty_bytes_s(evidence: Evidence, frames: Sequence[Frame]) -> float:
    """The most bytes per second of the job's buffered writes that can reach the devices in these
    frames: pages written since the job began, less what the devices wrote before."""
    seconds = sum(frame.seconds or 0.0 for frame in frames)
    begun = next((frame for frame in evidence.frames if frame.fio is not None), None)
    if not seconds or begun is None or evidence.uncounted_targets:
        return inf
    elapsed_s = begun.fio.elapsed_s if begun.fio is not None else None
    if (elapsed_s or 0.0) > 2.0 and frames[-1].t - begun.t < DIRTY_S:
        return inf  # earlier writes are unknown
    names = [device.name for device in evidence.devices]
    dirty = 0.0
    for frame in evidence.frames:
        if frame.fio is not None:
            parts = (frame.fio.directions.get(name) for name in (WRITE, MIXED))
            dirty += sum(SLACK * _page_bytes(part) for part in parts if part is not None)
        disk = frame.combined(names)
        if disk is not None and frame.t < frames[0].t:
            dirty = max(0.0, dirty - (disk.w_bytes_s or 0.0) * disk.seconds)
    return dirty / seconds


def _page_bytes(part: DirectionInterval) -> float:
    """Bytes of the pages that these writes touch; a write smaller than a page may touch two."""
    size = part.bytes / part.ios if part.ios else 0.0
    return max(float(part.bytes), 2.0 * PAGE * part.ios if size % PAGE else 0.0)


@dataclass(frozen=True, slots=True)
class DeviceAccounts:
    """The accounts of one device (or of all that the job works on together) in some seconds."""

    name: str
    seconds: tuple[Account, ...]

    @property
    def mean(self) -> Account:
        return Account(
            self.name,
            mean_flows([account.total for account in self.seconds]),
            mean_flows([account.job for account in self.seconds]),
            mean_flows([account.others for account in self.seconds]),
        )


def mean_flows(flows: Sequence[Flows]) -> Flows:
    """The mean of these seconds (at least one)."""
    count = len(flows)
    means = {}
    for kind in KINDS:
        total = NOTHING
        for each in flows:
            total += each[kind]
        means[kind] = Flow(total.ios_s / count, total.bytes_s / count, total.queue / count)
    return means


def device_accounts(
    evidence: Evidence, frames: Sequence[Frame] | None = None
) -> Iterator[DeviceAccounts]:
    """Accounts of the job's devices together, then of each one below that has all their I/Os, from
    the top down. ``frames``: the last seconds if none are given."""
    frames = recent_frames(evidence) if frames is None else frames
    if not frames or not evidence.devices:
        return
    limits = job_limits(evidence, frames)
    names = [device.name for device in evidence.devices]
    tops = [account for frame in frames if (account := job_account(frame, names, limits))]
    if len(tops) == len(frames):
        yield DeviceAccounts(device_names_text(evidence.devices), tuple(tops))
    tree = [device.name for device in evidence.tree]
    for name, upper, layer in sole_devices(names, tree, evidence.links):
        lower = [one for frame in frames if (one := _lower_account(frame, name, upper, layer))]
        if len(lower) == len(frames):
            yield DeviceAccounts(name, tuple(lower))


def kinds_text(flows: Flows) -> str:
    """The kinds that matter in these flows: "1.20k writes/s of 640 KiB, 300 discards/s"."""
    shares = {kind: flow.share_of(together(flows) + Flow(flows[FLUSHES].ios_s)).most
              for kind, flow in flows.items()}  # fmt: skip
    texts = []
    for kind, flow in flows.items():
        if flow.ios_s and shares[kind] >= NAMED_SHARE:
            size = f" of {units.size(flow.bytes_s / flow.ios_s)}" if flow.bytes_s else ""
            texts.append(f"{units.number(flow.ios_s)} {kind}/s{size}")
    return ", ".join(texts)


def others_share(evidence: Evidence, frames: Sequence[Frame] | None = None) -> Flow | None:
    """For each measure the largest part (0..1) that is surely not the job's, on its devices and on
    the devices below; ``None`` if none of them is measured."""
    shares = [accounts.mean.others_share for accounts in device_accounts(evidence, frames)]
    if not shares:
        return None
    return reduce(Flow.largest, shares)


@lru_cache(1)
def shared_device(evidence: Evidence) -> DeviceAccounts | None:
    """The first device from the top down that others use so much that the job's I/Os wait for
    others' I/Os."""
    frames = recent_job_frames(evidence)
    if not frames or evidence.uncounted_targets:
        return None
    for accounts in device_accounts(evidence, frames):
        queues = [account.all_others.queue for account in accounts.seconds]
        clear = all(map(_is_shared, accounts.seconds)) and _has_job_io(accounts.mean)
        if clear and fmean(queues) >= OTHER_IN_FLIGHT and min(queues) >= OTHER_IN_FLIGHT / 3:
            return accounts
    return None


def _has_job_io(account: Account) -> bool:
    """Whether some of the I/O may be the job's. It may be none: a cache may keep all of it from a
    lower device."""
    return (account.whole - account.all_others).ios_s >= 1.0


def _is_shared(account: Account) -> bool:
    others = account.all_others
    many = others.ios_s >= OTHER_IOPS or others.bytes_s >= OTHER_BYTES_S
    return many and account.others_share.most >= OTHER_IO_SHARE
