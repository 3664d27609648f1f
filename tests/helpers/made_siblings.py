"""Simulated nights of similar disks under different loads: windows of ten seconds of each disk.

A disk is a queue with several servers (approximated after Allen and Cunneen) whose requests come in
bursts. It does not use the polynomial that model/findings/siblings.py fits."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import median

from evidence_frames import limits

from iopstui.model.block.device import BlockDevice
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.frame import Frame

SECONDS = 10.0
BUSIEST = 0.95
REMEMBERED = 30
"""Number of windows for which a night remembers the true slowness: five minutes."""


def like_disks(count: int = 8, **changes: object) -> list[BlockDevice]:
    values: dict[str, object] = {
        "kind": "nvme", "size": 1 << 40, "model": "Like", "transport": "nvme", "firmware": "1",
        "queue": limits(), "holders": (), **changes,
    }  # fmt: skip
    return [BlockDevice(f"d{n}", f"/dev/d{n}", 259, n, **values) for n in range(count)]  # type: ignore[arg-type]


@dataclass(slots=True)
class Side:
    """Reads or writes of a disk: ms of one alone, requests per second, and bytes of each."""

    alone_ms: float
    rate: float
    size: float
    half_size: float = 131072.0

    @property
    def service_ms(self) -> float:
        return self.alone_ms * (1 + self.size / self.half_size)


@dataclass(slots=True)
class Disk:
    servers: int
    reads: Side
    writes: Side
    burst: float
    slower: float = 1.0
    hidden: float = 1.0
    collects: float = field(default=0.0)
    """Seconds for which it still collects garbage."""


def rates(
    rng: random.Random, disk: Disk, slower: float, ticks: bool, seconds: float = SECONDS,
    samples: int = 10,
) -> list[DiskRates]:  # fmt: skip
    """``samples`` samples of a disk that takes ``slower`` times as long; all increase is in the
    last one. ``ticks``: the kernel counts whole ticks of 4 ms as busy."""
    sides = (disk.reads, disk.writes)
    services = [side.service_ms * slower for side in sides]
    wanted = sum(side.rate * ms for side, ms in zip(sides, services, strict=True)) / 1e3
    part = min(1.0, BUSIEST * disk.servers / wanted) if wanted else 0.0
    load = part * wanted / disk.servers
    total = sum(side.rate for side in sides) * part
    mean = 1e3 * wanted * part / total if total else 0.0
    wait = mean / disk.servers * load ** (math.sqrt(2 * (disk.servers + 1)) - 1) / (1 - load)
    wait *= (1 + disk.burst) / 2
    wait += mean * max(0.0, disk.burst - 1) / 2 / disk.servers
    counts, waits = [], []
    for side, service in zip(sides, services, strict=True):
        expected = side.rate * part * seconds
        count = max(0, round(rng.gauss(expected, math.sqrt(expected * disk.burst))))
        ms = (service + wait) * max(0.2, rng.gauss(1, math.sqrt(disk.burst / max(1, count))))
        counts.append(count)
        waits.append(count * ms)
    in_flight = sum(waits) / 1e3 / seconds
    busy = 1 - math.exp(-in_flight / max(1.0, disk.burst))
    depth = in_flight / busy if busy else 0.0
    seen = [1 + int(rng.expovariate(1 / max(0.01, depth - 0.5))) if rng.random() < busy else 0
            for _ in range(samples)]  # fmt: skip
    if ticks:
        busy = max(busy, min(1.0, sum(counts) / seconds / disk.burst * 0.004))
    each = seconds / samples
    quiet = [DiskRates(each, *(0,) * 16, in_flight) for in_flight in seen[:-1]]
    return [*quiet, DiskRates(
        each, counts[0], counts[1], 0, 0, int(counts[0] * sides[0].size),
        int(counts[1] * sides[1].size), 0, 0, 0, 0, float(round(waits[0])),
        float(round(waits[1])), 0.0, 0.0, float(round(sum(waits))),
        float(round(busy * seconds * 1e3)), seen[-1],
    )]  # fmt: skip


def frames_of(number: int, disks: dict[str, list[DiskRates]]) -> Iterator[Frame]:
    """The frames of window ``number``, which counts from 1."""
    for second in range(int(SECONDS)):
        t = (number - 1) * SECONDS + second + 1
        yield Frame(int(t), 0, t, 0.0, 1.0, frozenset(), None, None, None,
                    disks={name: rates[second] for name, rates in disks.items()})  # fmt: skip


def zipf(rng: random.Random, count: int, exponent: float) -> list[float]:
    """Zipf-distributed shares with a mean of 1, in random order."""
    shares = [1 / (rank + 1) ** exponent for rank in range(count)]
    rng.shuffle(shares)
    return [share * count / sum(shares) for share in shares]


class Night:
    """A night of ``count`` similar disks. The first one takes ``odd`` times as long."""

    def __init__(self, rng: random.Random, count: int = 8, odd: float = 1.0) -> None:
        self.rng = rng
        self.ticks = rng.random() < 0.5
        alone = rng.uniform(0.06, 0.4)
        write = alone * rng.choice((0.2, 0.5, 1.0, 2.0))
        servers = rng.choice((4, 8, 16, 32))
        load = rng.choice((0.05, 0.2, 0.4, 0.6)) * rng.uniform(0.7, 1.3)
        share = rng.choice((0.0, 0.1, 0.3, 0.5, 0.9))
        size = rng.choice((4096, 8192, 16384, 65536, 262144))
        self.shares = zipf(rng, count, rng.choice((0.0, 0.2, 0.5, 1.0, 1.3)))
        spread = rng.choice((0.02, 0.05, 0.15))
        burst = rng.choice((1.0, 1.5, 3.0, 6.0))
        self.disks = []
        for _ in range(count):
            hidden = math.exp(max(-0.1, min(0.1, rng.gauss(0, 0.025))))
            sizes = [size * math.exp(rng.gauss(0, spread)) for _ in range(2)]
            reads, writes = Side(alone, 0, sizes[0]), Side(write, 0, sizes[1])
            bursts = burst * math.exp(abs(rng.gauss(0, spread)))
            self.disks.append(Disk(servers, reads, writes, bursts, hidden=hidden))
        self.write_shares = [
            min(1.0, max(0.0, share + rng.gauss(0, spread / 2))) for _ in range(count)
        ]
        first = self.disks[0]
        mean = (1 - share) * first.reads.service_ms + share * first.writes.service_ms
        self.rate = load * servers * 1e3 / mean
        self._make_one_special()
        self.disks[0].slower = odd
        self.swing, self.phase = rng.uniform(0, 0.8), rng.uniform(0, 6.28)
        self.noise = rng.choice((0.05, 0.2, 0.5))
        self._slowness: list[deque[float]] = [deque(maxlen=REMEMBERED) for _ in self.disks]

    def true_times(self, name: str) -> float:
        """How many times as long this disk took as the others in the last five minutes, independent
        of its load. A disk that collects garbage for so long counts as slow."""
        middles = {f"d{n}": median(kept) for n, kept in enumerate(self._slowness)}
        return middles.pop(name) / median(middles.values())

    def make_even(self) -> None:
        """Give all disks the work of the first one, so that they only differ as disks."""
        first = self.disks[0]
        self.shares = [1.0] * len(self.disks)
        self.write_shares = [self.write_shares[0]] * len(self.disks)
        for disk in self.disks:
            disk.reads, disk.writes = replace(first.reads), replace(first.writes)
            disk.burst = first.burst

    def _make_one_special(self) -> None:
        """In half of the nights, one disk has more load, larger requests, another mix, or longer
        bursts than all others."""
        place, kind = self.rng.randrange(len(self.disks)), self.rng.randrange(8)
        disk = self.disks[place]
        if kind == 0:
            self.shares[place] *= self.rng.uniform(1.2, 4)
        elif kind == 1:
            disk.reads.size *= self.rng.uniform(1.2, 8)
            disk.writes.size *= self.rng.uniform(1.2, 8)
        elif kind == 2:
            self.write_shares[place] = self.rng.random()
        elif kind == 3:
            disk.burst *= self.rng.uniform(1.2, 8)

    def frames(self, hours: float) -> Iterator[Frame]:
        for number, seconds in enumerate(self.windows(hours), 1):
            yield from frames_of(number, seconds)

    def windows(
        self, hours: float, length_s: float = SECONDS, samples: int = 10
    ) -> Iterator[dict[str, list[DiskRates]]]:
        """Successive windows of ``length_s``, each in ``samples`` samples."""
        rng, disks = self.rng, self.disks
        common, levels = 0.0, [0.0] * len(disks)
        pause, scrub, scrubbed = 0.0, 0.0, 0
        for number in range(1, int(hours * 3600 / length_s) + 1):
            common = 0.95 * common + rng.gauss(0, 0.3 * self.noise)
            day = 1 + self.swing * math.sin(self.phase + number * length_s / 4000)
            if rng.random() < 0.01:
                pause = rng.uniform(1.2, 8)  # a pause of the machine: all disks wait
            if rng.random() < 0.001:
                scrub, scrubbed = rng.uniform(60, 1800), rng.randrange(len(disks))
            scrub -= length_s
            seconds = {}
            for place, disk in enumerate(disks):
                levels[place] = 0.9 * levels[place] + rng.gauss(0, 0.43 * self.noise)
                rate = self.rate * self.shares[place] * day * math.exp(common + levels[place])
                share = self.write_shares[place]
                disk.reads.rate, disk.writes.rate = rate * (1 - share), rate * share
                size = disk.reads.size
                if scrub > 0 and place == scrubbed:
                    disk.reads.rate *= 1.5
                    disk.reads.size = 0.7 * size + 0.3 * 524288
                slower = disk.slower * disk.hidden * self._collecting(disk, length_s)
                self._slowness[place].append(slower)
                made = rates(rng, disk, slower * max(1.0, pause), self.ticks, length_s, samples)
                seconds[f"d{place}"] = made
                disk.reads.size = size
            pause = 0.0
            yield seconds

    def _collecting(self, disk: Disk, length_s: float) -> float:
        """Garbage collection of one disk alone. It is more frequent the more the disk writes."""
        if disk.collects > 0:
            disk.collects -= length_s
            return self.rng.uniform(1.3, 3)
        if self.rng.random() < 0.02 * min(1.0, disk.writes.rate / self.rate):
            disk.collects = self.rng.expovariate(1 / 20)
        return 1.0


def random_loads(
    rng: random.Random, seconds: float, odd: float = 1.0, count: int = 8, servers: int = 8
) -> Iterator[Frame]:
    """Windows of disks with new random loads every 30 s. The first disk takes ``odd`` times as
    long."""
    disks = [Disk(servers, Side(0.1, 0, 4096), Side(0.05, 0, 4096), 1.5,
                  slower=odd if n == 0 else 1.0, hidden=math.exp(rng.gauss(0, 0.02)))
             for n in range(count)]  # fmt: skip
    for number in range(1, int(seconds / SECONDS) + 1):
        if number % 3 == 1:
            for disk in disks:
                rate = rng.uniform(0.05, 0.6) * servers * 1e4
                share = rng.choice((0.0, 0.3, 0.5))
                disk.reads.rate, disk.writes.rate = rate * (1 - share), rate * share
                disk.reads.size = disk.writes.size = rng.choice((4096, 8192, 16384))
        made = {f"d{n}": rates(rng, disk, disk.slower * disk.hidden, False)
                for n, disk in enumerate(disks)}  # fmt: skip
        yield from frames_of(number, made)


def minutes_of_weeks(
    rng: random.Random, days: int, count: int = 8, odd: float = 1.0, even: bool = False
) -> Iterator[dict[str, DiskRates]]:
    """Minutes of a ``Night`` that lasts for days. The first disk slows down evenly, until it takes
    ``odd`` times as long. The shares and sizes of all disks vary around their means. In half of the
    weeks, one disk has more and more load, larger requests, longer bursts or fewer writes.
    ``even``: all disks have the same work on average, like members of an array."""
    night = Night(rng, count)
    place, grows = rng.randrange(count), rng.randrange(8)
    if even:
        night.make_even()
        grows = 8
    shares, sizes = [*night.shares], [disk.reads.size for disk in night.disks]
    swings = [[0.0, 0.0] for _ in night.disks]
    special, hours = night.disks[place], days * 24
    more = rng.uniform(1.2, 4) ** (1 / hours)
    for number, minute in enumerate(night.windows(hours, 60.0, 1)):
        yield {name: rates for name, (rates,) in minute.items()}
        night.disks[0].slower = 1 + (odd - 1) * number / (hours * 60)
        if number % 60 != 59:
            continue
        for disk, swing in enumerate(swings):
            swing[:] = [0.98 * swing[0] + rng.gauss(0, 0.02), 0.98 * swing[1] + rng.gauss(0, 0.005)]
            night.shares[disk] = shares[disk] * math.exp(swing[0])
            night.disks[disk].reads.size = sizes[disk] * math.exp(swing[1])
        if grows == 0:
            shares[place] *= more
        elif grows == 1:
            sizes[place] *= more
            special.writes.size *= more
        elif grows == 2:
            special.burst *= more
        elif grows == 3:
            night.write_shares[place] /= more
