"""The target of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile

DEVICE, FILE, DIRECTORY = "device", "file", "directory"
NFS = ("nfs", "nfs4")
"""Types of file systems that the NFS client mounts."""
SMB = ("cifs", "smb3")
"""Types of file systems that the SMB client mounts."""
DIRECT_LOOP = "direct loop"
"""The layer of a loop device that reads its file past the page cache."""


@dataclass(frozen=True, slots=True)
class DeviceLinks:
    """The devices directly ``below`` a device of a target, and which layer it is ("raid5", "LVM").
    A partition has the links of its disk: both count the same requests."""

    name: str
    below: tuple[str, ...] = ()
    layer: str | None = None


@dataclass(frozen=True, slots=True)
class TargetPath:
    """A block device, a file, or a directory in which a scratch file is made.

    ``path`` is absolute. ``device`` is the kernel name of the block device it is on; ``None`` if it
    is not on a visible one, and then ``no_device`` says why in words ("tmpfs has no block device").
    ``tree`` lists ``device`` first and then everything below it (partition -> disk; dm, md, loop ->
    what they sit on), nearest first, without repeats. ``fstype`` and ``mountpoint`` describe the
    file system a file or directory is on. ``also`` are the other devices that this file system
    spreads its files over (btrfs); in ``tree`` they come after ``device`` and everything below it,
    with the devices below them. ``links`` says for each device of the tree what lies directly below
    it (empty in recordings of earlier versions). ``share`` is what a network file system is mounted
    from ("server:/export"), ``mount_options`` are its options that matter for speed
    ("vers=4.2,rsize=1048576"). ``passthrough``: ``path`` is the NVMe generic device of the
    namespace ``device``, which takes commands past the block layer."""

    kind: str
    path: str
    device: str | None
    tree: tuple[str, ...] = ()
    no_device: str = ""
    fstype: str | None = None
    mountpoint: str | None = None
    also: tuple[str, ...] = ()
    links: tuple[DeviceLinks, ...] = ()
    share: str = ""
    mount_options: str = ""
    passthrough: bool = False


@dataclass(frozen=True, slots=True)
class TargetPart:
    """Part ``number`` (from 1) of a target that is divided into ``of`` equal parts."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def area(self, size: int, block: int) -> tuple[int, int]:
        """Offset and length of the part of ``size`` bytes, both multiples of ``block``. The last
        part also gets the remaining blocks."""
        blocks = size // block // self.of
        offset = (self.number - 1) * blocks
        length = size // block - offset if self.number == self.of else blocks
        return offset * block, length * block


@dataclass(frozen=True, slots=True)
class Layer:
    """One device of a target. ``under`` counts how many of ``Target.devices_below`` are above it;
    0: it is itself one of them."""

    name: str
    under: int = 0


@dataclass(frozen=True, slots=True)
class Target(TargetPath):
    """The target of a job: a single device, file or directory, or several ``parts`` that every job
    uses (empty: single).

    If there are several, ``kind`` is that of the first, ``path`` joins their paths with ":" like
    fio's filename= (for display only: a path may contain a colon itself), ``device`` is the first
    block device that any of them is on, and ``tree`` has all devices with everything below."""

    parts: tuple[TargetPath, ...] = ()

    @property
    def places(self) -> tuple[TargetPath, ...]:
        """The parts of the target in the order they were named; a single target is its only
        part."""
        return self.parts or (self,)

    @property
    def has_several(self) -> bool:
        """True if the target has more than one part."""
        return len(self.parts) > 1

    @property
    def on_nvme(self) -> bool:
        """Whether an NVMe disk is among the target's devices, judged by their names."""
        return any(name.startswith("nvme") for name in self.tree)

    @property
    def devices_below(self) -> tuple[str, ...]:
        """The devices that the places are on, each once. Their counters count the jobs' I/Os."""
        return tuple(dict.fromkeys(name for place in self.places for name in _place_devices(place)))

    @property
    def opened(self) -> tuple[str, ...]:
        """``devices_below`` if their figures can be added up. Empty if one device lies below
        another (a partition and its disk, dm and its slave), because both count the upper device's
        I/O."""
        return () if self.nested is not None else self.devices_below

    @property
    def stacks(self) -> dict[str, tuple[str, ...]]:
        """Devices below each device of ``devices_below``, nearest first."""
        stacks: dict[str, tuple[str, ...]] = {}
        for place in self.places:
            stacks |= {name: below for name, below in _stacks_of_place(place) if name not in stacks}
        return stacks

    @property
    def nested(self) -> tuple[str, str] | None:
        """The first pair of these devices in which one lies on the other, as (upper, lower);
        ``None`` without such a pair."""
        on = self.devices_below
        for top, below in self.stacks.items():
            for name in below:
                if name in on:
                    return top, name
        return None

    @property
    def without_device(self) -> tuple[TargetPath, ...]:
        """The places that are on no visible block device."""
        return tuple(place for place in self.places if place.device is None)

    @property
    def shares(self) -> tuple[str, ...]:
        """The mount points of the NFS or SMB mounts that the places are on, each once. If there are
        both kinds, only mounts with the protocol of the first place are measured."""
        fstypes = {place.mountpoint: place.fstype for place in self.places if place.mountpoint}
        served = {path: fstype for path, fstype in fstypes.items() if fstype in (*NFS, *SMB)}
        first = next(iter(served.values()), None)
        protocol = NFS if first in NFS else SMB
        return tuple(path for path, fstype in served.items() if fstype in protocol)

    @property
    def share_source(self) -> str:
        """Which counters ``shares`` have: "nfs", "smb", or "" if there are no shares."""
        if not self.shares:
            return ""
        return "smb" if self.smb_shares else "nfs"

    @property
    def only_shares(self) -> bool:
        """Whether the target is on NFS or SMB mounts and on no device."""
        return bool(self.shares) and not self.devices_below

    @property
    def smb_shares(self) -> tuple[str, ...]:
        """The shares that the mounts in ``shares`` are mounted from ("//server/share"), each
        once."""
        share_places = [place for place in self.places if place.mountpoint in self.shares]
        return tuple(dict.fromkeys(place.share for place in share_places if place.fstype in SMB))

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every device once: each of ``devices_below`` with the devices that are below it alone,
        then the devices that are below several of them."""
        on, stacks = self.devices_below, self.stacks
        under = {name: sum(name in below for below in stacks.values()) for name in self.tree}
        layers: list[Layer] = []
        for top in on:
            layers.append(Layer(top))
            below = stacks.get(top, ())
            layers += [Layer(name, 1) for name in below if name not in on and under[name] == 1]
        shared = [name for name in self.tree if name not in on and under[name] > 1]
        return (*layers, *(Layer(name, under[name]) for name in shared))

    @property
    def levels(self) -> dict[str, int]:
        """The largest number of layers above each device of ``tree``. A partition and its disk are
        one layer."""
        levels = dict.fromkeys(self.tree, 0)
        # repeat once per link, so that the result does not depend on the order of the links
        for _ in self.links:
            for link in self.links:
                for lower in link.below:
                    levels[lower] = max(levels.get(lower, 0), levels.get(link.name, 0) + 1)
        return levels

    @property
    def name(self) -> str:
        """A short name for the measured devices: the device's name, or how many
        devices are summed."""
        on = self.devices_below
        if len(on) > 1:
            return f"{len(on)} devices"
        return on[0] if on else self.path


def combine_targets(places: Sequence[Target | TargetPath]) -> Target:
    """Combine these places (at least one) into one target."""
    flat = tuple(_flatten_places(places))
    first = flat[0]
    if len(flat) == 1:
        return Target(**{field.name: getattr(first, field.name) for field in fields(TargetPath)})
    tree = dict.fromkeys(name for place in flat for name in place.tree)
    return Target(
        kind=first.kind,
        path=":".join(place.path for place in flat),
        device=next((place.device for place in flat if place.device is not None), None),
        tree=tuple(tree),
        no_device="; ".join(dict.fromkeys(p.no_device for p in flat if p.no_device)),
        fstype=first.fstype,
        mountpoint=first.mountpoint,
        links=tuple({link.name: link for place in flat for link in place.links}.values()),
        parts=flat,
    )


def _place_devices(place: TargetPath) -> tuple[str, ...]:
    return (place.device, *place.also) if place.device is not None else ()


def _stacks_of_place(place: TargetPath) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each device of a place, with the devices that follow it in the tree."""
    on = _place_devices(place)
    for top in on:
        below = place.tree[place.tree.index(top) + 1 :] if top in place.tree else ()
        yield top, tuple(takewhile(lambda name: name not in on, below))


def _flatten_places(places: Sequence[Target | TargetPath]) -> Iterator[TargetPath]:
    for place in places:
        if isinstance(place, Target) and place.parts:
            yield from place.parts
        else:
            yield TargetPath(
                **{field.name: getattr(place, field.name) for field in fields(TargetPath)}
            )
