"""Which one of several like disks is slow for its load.

The mean time of a disk's requests is predicted from its siblings: by a polynomial of the load,
fitted to their windows of ten seconds, and corrected by how far the windows nearest in load are
off. The load is how many requests are in flight while the disk is busy, how busy it is, the size of
its requests and the share of writes. For more requests, larger ones or bursts a longer time is
predicted, so the disk is not called slow; if its siblings never had such a load, nothing is
predicted.

After PERSEUS (Lu et al., FAST '23), which regresses on throughput alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, isnan, log, nan, sqrt
from operator import add, attrgetter

from iopstui.format import first_of
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.conditions import Conditions
from iopstui.model.metrics.frame import Frame
from iopstui.model.rates import fmean, median, pstdev

MIN_SIBLINGS, MAX_SIBLINGS = 4, 16
"""A disk with fewer siblings is not judged; more siblings than these would take long, and add
nothing."""
WINDOW_S = 10.0
MAX_WINDOWS, ENOUGH_WINDOWS = 30, 20
JUDGE_EVERY = 2
"""A disk is judged once in this many windows. Two judgements in a row have to agree."""
MIN_REQUESTS, MIN_MS = 200, 50.0
"""A window needs this many requests, and ms in total: the kernel counts whole milliseconds."""

WORTH_SAYING = log(1.2)
SUSPICIOUS = 0.1
"""A disk this far off the fit over all disks (logarithm) is looked at closely. The limit is low
because that fit also follows the slow disk."""
MANY_DEVIATIONS, LEAST_DEVIATION = 5.0, 0.02
"""A slow disk is at least MANY_DEVIATIONS times as far from its siblings as they are from each
other; their spread counts as LEAST_DEVIATION at least."""
MOST_WINDOWS, A_LITTLE = 0.75, log(1.05)
"""A slow disk must be slower than predicted by A_LITTLE (a logarithm) in this share of the windows
(MOST_WINDOWS)."""
EACH_THIRD, ENOUGH_THIRDS = log(1.12), 2
"""The median of each third of the time must be slower by EACH_THIRD (a logarithm); it must be known
for at least ENOUGH_THIRDS of them."""
OTHER_MIX_TIMES = 2.0
"""A share of writes that differs by d explains a time that differs by this factor times d (a
logarithm): writes may be slower than reads, or faster."""
LITTLE_GRANTED = 0.03
"""A window is skipped if its load explains at least this much (a logarithm) of its longer time,
and it would be slow only because of that."""
ENOUGH_LEVEL = 10
"""A level is the median of at least this many windows."""
COVERED_SHARE = 0.3
"""Its siblings must have had a similar load in this share of a disk's windows."""
FEWER, MORE = 2.5, 1.5
"""A disk whose requests per second are this many times fewer or more than those of any sibling does
other work, whose requests may be harder."""
RIDGE = 0.1
NEAR = (0.35, 0.5, 0.35, 0.05, 0.05)
"""How much two loads may differ in each part (see _Load) to count as near."""
ENOUGH_NEAR, NEAR_SIBLINGS = 5, 2
LONGER_BURSTS, MAX_BURST = 1.5, 1000.0
"""The kernel counts a disk as busy for whole ticks, which hides bursts that are shorter: how often
nothing is in flight at the end of a second shows them. If a disk's bursts are so much longer than
its siblings', it is unknown whether the disk is slow."""
MUCH_MORE_REST, OTHER_MIX = 0.2, 0.02
TYPICAL_BYTES = 16384

NO_CONDITIONS = Conditions()
STRIPED = ("raid0", "raid4", "raid5", "raid6", "raid10")
PHYSICAL = ("sata", "sas", "nvme")
VIRTUAL_MODELS = ("Amazon Elastic", "QEMU", "nvme_card", "MSFT", "Microsoft", "VBOX", "VMware",
                  "Virtual")  # fmt: skip

_growths = attrgetter(
    "reads", "writes", "read_bytes", "write_bytes", "read_ms", "write_ms", "io_ms", "seconds"
)
_Load = tuple[float, float, float, float, float]
"""Requests in flight while busy, share of the time busy, bytes of a request (logarithms of these),
the share of writes in the requests, and in the bytes."""
_DEPTH, _BUSY, _SIZE = range(3)
_MIX = (3, 4)


@dataclass(frozen=True, slots=True)
class OddDisk:
    """``disk`` takes ``times`` as long as its ``siblings`` do at such loads, in ``slow`` of the
    ``windows`` windows that could be compared. ``array`` is the array that has all of them as
    members ("": there is none)."""

    disk: str
    times: float
    siblings: tuple[str, ...]
    slow: int
    windows: int
    array: str = ""

    @property
    def peers(self) -> str:
        """The disks it is compared with: "7 like disks (d1, d2, d3 and 4 more)"."""
        count = len(self.siblings)
        if self.array:
            return f"{count} other members of {self.array}"
        return f"{count} like disks ({first_of(self.siblings, 3)})"


@dataclass(frozen=True, slots=True)
class Row:
    """A window of a disk: its load, the terms of its polynomial, the logarithm of the mean time of
    a request, requests per second, how many were in flight on average, how many seconds were seen
    and in how many of them requests were in flight at the end."""

    load: _Load
    terms: tuple[float, ...]
    time: float
    per_s: float
    in_flight: float
    seen: float
    seen_busy: float


Rows = Mapping[str, Sequence["Row | None"]]


class Windows:
    """Adds up the I/O of disks until it fills a window of ``length_s`` seconds."""

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._sums: dict[str, Sequence[float]] = {}
        self._since: float | None = None

    def feed(
        self, t: float, frame: Frame, names: Collection[str]
    ) -> tuple[float, dict[str, Row]] | None:
        """Count a frame that ended at ``t``. If it fills the window, return the window's beginning
        and the row of each disk that did enough in it."""
        seconds = frame.seconds or 0.0
        if self._since is None:
            self._since = t - seconds
        for name in names & frame.disks.keys():
            rates = frame.disks[name]
            growths = _growths(rates)
            if None in growths:
                # a counter that went backwards makes the window useless for this disk
                growths = tuple(nan if growth is None else growth for growth in growths)
            growths = (*growths, 1, bool(rates.in_flight))
            before = self._sums.get(name)
            self._sums[name] = growths if before is None else [*map(add, before, growths)]
        if t - self._since < self._length_s - seconds / 2:
            return None
        rows = {name: _row(*sums) for name, sums in self._sums.items()}
        began, self._since, self._sums = self._since, None, {}
        return began, {name: row for name, row in rows.items() if row is not None}


class SiblingWatch:
    """Finds the disk that is slow now for its load (``odd``); feed each frame."""

    def __init__(self) -> None:
        self.odd: OddDisk | None = None
        self._sums = Windows(WINDOW_S)
        self._names: frozenset[str] | None = None
        self._windows: deque[Mapping[str, Row]] = deque(maxlen=MAX_WINDOWS)
        self._unjudged = 0
        self._before = ""

    def feed(
        self, frame: Frame, tree: Sequence[BlockDevice], conditions: Conditions = NO_CONDITIONS
    ) -> None:
        """Count a frame. Members of an array that is rebuilt have other work than their siblings:
        they are left out."""
        if len(tree) <= MIN_SIBLINGS or not frame.seconds:
            return
        if self._names is None:
            self._names = frozenset(name for names, _ in groups(tree) for name in names)
        window = self._sums.feed(frame.t, frame, self._names)
        if window is None:
            return
        self._names = None
        self._windows.append(window[1])
        self._unjudged += 1
        if self._unjudged >= JUDGE_EVERY and len(self._windows) >= ENOUGH_WINDOWS:
            self._unjudged = 0
            self._judge(tree, conditions)

    def _judge(self, tree: Sequence[BlockDevice], conditions: Conditions) -> None:
        odd = None
        rebuilt = {name for name, state in conditions.devices.items() if state.array is not None
                   and (state.array.degraded or state.array.is_syncing)}  # fmt: skip
        for names, array in groups(tree, rebuilt):
            found = odd_one({name: [window.get(name) for window in self._windows]
                             for name in names})  # fmt: skip
            if found is not None and (odd is None or found.times > odd.times):
                odd = replace(found, array=array)
        self.odd = odd if odd is not None and odd.disk == self._before else None
        self._before = odd.disk if odd is not None else ""


def groups(
    tree: Sequence[BlockDevice], rebuilt: Collection[str] = ()
) -> Iterator[tuple[list[str], str]]:
    """The names of like disks (same model, firmware, size, settings), and the striped array that
    all are members of ("": none). Members of ``rebuilt`` are not named. A spinning disk's times
    depend on where its data lies, and virtual disks outside an array may differ in anything."""
    alike: dict[tuple[object, str], list[str]] = {}
    by_name = {device.name: device for device in tree}
    for device in tree:
        if device.disk or device.hidden or device.queue is None or device.queue.rotational:
            continue
        parts = [device, *(by_name[name] for name in device.partitions if name in by_name)]
        users = {holder for part in parts for holder in part.holders}
        if users & {*rebuilt}:
            continue
        alone = len(users) == 1 and not any(part.mounts or part.swap for part in parts)
        array = by_name.get(min(users)) if alone else None
        member = array is not None and array.kind == "md" and array.layer in STRIPED
        physical = device.transport in PHYSICAL and device.model is not None
        virtual = not physical or (device.model or "").startswith(VIRTUAL_MODELS)
        if virtual and not member:
            continue
        key = (device.kind, device.transport, device.model, device.firmware, device.size,
               device.driver, device.layer, device.queue)  # fmt: skip
        place = array.name if array is not None and member else ""
        alike.setdefault((key, place), []).append(device.name)
    yield from ((names, array) for (_, array), names in alike.items() if len(names) > MIN_SIBLINGS)


def odd_one(rows: Rows) -> OddDisk | None:
    """The disk among these that is slow for its load; ``None`` if there is none, or this is
    unknown. ``rows`` has the rows of each disk for the same windows (``None``: too little I/O)."""
    rows = {name: found for name, found in rows.items() if has_enough(found)}
    if len(rows) <= MIN_SIBLINGS:
        return None
    sums = {name: _normal_equations(found) for name, found in rows.items()}
    off = _offs(rows, _Fit(_total(sums.values())))
    middles = {name: median(values.values()) for name, values in off.items() if values}
    odd = max(middles, key=lambda name: middles[name])
    if middles[odd] < SUSPICIOUS:
        return None
    others = [name for name in rows if name != odd][:MAX_SIBLINGS]
    return _judged(odd, {name: rows[name] for name in (odd, *others)})


def has_enough(found: Sequence[Row | None]) -> bool:
    """Whether a disk had enough I/O in enough of these windows to be compared."""
    return sum(row is not None for row in found) >= ENOUGH_WINDOWS


def _judged(odd: str, rows: Rows) -> OddDisk | None:
    per_s = {name: median([row.per_s for row in found if row]) for name, found in rows.items()}
    usual = [value for name, value in per_s.items() if name != odd]
    if not min(usual) / FEWER <= per_s[odd] <= max(usual) * MORE or _has_bursts(odd, rows):
        return None
    sums = {name: _normal_equations(found) for name, found in rows.items()}
    by_window = _level(odd, rows, sums)
    offs = [*by_window.values()]
    if not offs or median(offs) < WORTH_SAYING:
        return None
    slow = sum(one >= A_LITTLE for one in offs)
    quick = _quick_at_rest(odd, rows, sums)
    if slow < MOST_WINDOWS * (len(offs) + quick) or not _is_lasting(by_window, len(rows[odd])):
        return None
    levels = {name: _level(name, rows, sums) for name in rows if name != odd}
    siblings = tuple(name for name, level in levels.items() if level)
    others = [median(levels[name].values()) for name in siblings]
    if len(others) < MIN_SIBLINGS:
        return None
    more = median(offs) - fmean(others)
    spread = max(LEAST_DEVIATION, pstdev(others) * sqrt(len(others) / (len(others) - 1)))
    if more < max(WORTH_SAYING, MANY_DEVIATIONS * spread) or median(offs) < 2 * max(others):
        return None
    return OddDisk(odd, exp(more), siblings, slow, len(offs))


def level(name: str, rows: Rows) -> float | None:
    """How many times as long as its siblings a disk took in these windows at the same load (the
    median); ``None`` if too few windows can be compared."""
    rows = {other: found for other, found in rows.items() if any(found)}
    if name not in rows or len(rows) <= MIN_SIBLINGS:
        return None
    others = [other for other in rows if other != name][:MAX_SIBLINGS]
    rows = {other: rows[other] for other in (name, *others)}
    offs = _level(name, rows, {other: _normal_equations(found) for other, found in rows.items()})
    return exp(median(offs.values())) if len(offs) >= ENOUGH_LEVEL else None


def _is_lasting(offs: Mapping[int, float], windows: int) -> bool:
    """Whether a disk was slow in each third of the time in which it can be compared."""
    thirds: list[list[float]] = [[], [], []]
    for number, off in offs.items():
        thirds[number * 3 // windows].append(off)
    known = [median(part) for part in thirds if part]
    return len(known) >= ENOUGH_THIRDS and min(known) >= EACH_THIRD


def _has_bursts(odd: str, rows: Rows) -> bool:
    """Whether the requests of a disk may come in longer bursts than those of its siblings."""
    bursts = {name: _burst([row for row in found if row]) for name, found in rows.items()}
    return bursts.pop(odd) > LONGER_BURSTS * median(bursts.values())


def _burst(rows: Sequence[Row]) -> float:
    """How many requests come at once (at least 1), if bursts come independently: the size that
    explains how often requests were in flight."""
    low, high = 0.0, log(MAX_BURST)
    while high - low > 0.01:
        middle = (low + high) / 2
        often = sum(row.seen * (1 - exp(-row.in_flight / exp(middle))) for row in rows)
        low, high = (middle, high) if often > sum(row.seen_busy for row in rows) else (low, middle)
    return exp(high)


def _level(name: str, rows: Rows, sums: Mapping[str, Sequence[float]]) -> dict[int, float]:
    """How a disk's windows compare with the windows of all other disks, by window; empty if too few
    can be compared."""
    offs = dict(_against_others(name, rows, sums))
    windows = sum(row is not None for row in rows[name])
    return offs if len(offs) >= COVERED_SHARE * windows else {}


def _quick_at_rest(name: str, rows: Rows, sums: Mapping[str, Sequence[float]]) -> int:
    """Count the windows in which a disk was idle more than its siblings and answered about as fast
    as they did."""
    return sum(off < A_LITTLE for _, off in _against_others(name, rows, sums, at_rest=True))


def _against_others(
    name: str, rows: Rows, sums: Mapping[str, Sequence[float]], at_rest: bool = False
) -> Iterator[tuple[int, float]]:
    others = {other: found for other, found in rows.items() if other != name}
    fit = _Fit(_total(sums[other] for other in others))
    return _compared(rows[name], others, fit, at_rest)


def _offs(rows: Rows, fit: _Fit) -> dict[str, dict[int, float]]:
    """How much longer than this fit predicts each disk's requests took, by window (logarithms). The
    part that all disks have in common in a window (a pause of the machine) is subtracted."""
    off = {
        name: {n: row.time - fit.value(row.terms) for n, row in enumerate(found) if row}
        for name, found in rows.items()
    }
    for number in range(len(next(iter(rows.values())))):
        window = [values[number] for values in off.values() if number in values]
        common = median(window) if len(window) > MIN_SIBLINGS else nan
        for values in off.values():
            if number in values:
                values[number] -= common
                if isnan(common):
                    del values[number]
    return off


def _compared(
    rows: Sequence[Row | None], others: Rows, fit: _Fit, at_rest: bool
) -> Iterator[tuple[int, float]]:
    """By window: how much longer a disk's requests took than its siblings' at such a load
    (logarithms), less the excess that its load explains (``_granted``). Left out are windows in
    which too few siblings had such a load, and windows that are slow only by that excess.
    ``at_rest``: only the windows in which the disk rested much more than its siblings ever do; else
    only the others."""
    off = _offs(others, fit)
    box = _covered(others)
    pauses = _pauses(others, fit, off)
    for number, row in enumerate(rows):
        if row is None or number not in pauses:
            continue
        if at_rest is not (row.load[_BUSY] < box[_BUSY][0] - MUCH_MORE_REST):
            continue
        load = [
            min(max(value, low), high) for value, (low, high) in zip(row.load, box, strict=True)
        ]
        if any(abs(row.load[place] - load[place]) > OTHER_MIX for place in _MIX):
            continue
        near = [
            (name, off[name][other], sibling.time - pauses[other], sibling.load)
            for name, found in others.items()
            for other, sibling in enumerate(found)
            if sibling is not None and other in off[name] and _is_near(load, sibling.load)
        ]
        if len(near) >= ENOUGH_NEAR and len({name for name, *_ in near}) >= NEAR_SIBLINGS:
            # expect the longer of two times: the fit, corrected near this load, and the median near
            # this load
            fitted = fit.value(_terms(*load)) + median([value for _, value, *_ in near])
            expected = max(fitted, median([time for _, _, time, _ in near]))
            more = row.time - expected - pauses[number]
            granted = _granted(row.load, load[_DEPTH], [sibling for *_, sibling in near])
            if granted < LITTLE_GRANTED or not more - granted < WORTH_SAYING <= more:
                yield number, more - granted


def _granted(load: _Load, depth: float, near: Sequence[_Load]) -> float:
    """How much longer (logarithm) requests may take because their queue is deeper than any
    sibling's (``depth``), or because, compared with the siblings' windows ``near`` this load, they
    are larger or have another share of writes. A queue n times as deep, or requests n times as
    large, explain at most n times as long."""
    size, writes = (median([sibling[place] for sibling in near]) for place in (_SIZE, _MIX[0]))
    other_mix = OTHER_MIX_TIMES * abs(load[_MIX[0]] - writes)
    return max(0.0, load[_DEPTH] - depth) + max(0.0, load[_SIZE] - size) + other_mix


def _pauses(rows: Rows, fit: _Fit, off: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """How much longer the requests of all disks took in each window."""
    return {
        number: row.time - fit.value(row.terms) - off[name][number]
        for name, found in rows.items()
        for number, row in enumerate(found)
        if row is not None and number in off[name]
    }


def _is_near(load: Sequence[float], other: _Load) -> bool:
    # called very often, and a loop would take four times as long
    depth, busy, size, writes, written = NEAR
    return (
        abs(load[0] - other[0]) <= depth
        and abs(load[1] - other[1]) <= busy
        and abs(load[2] - other[2]) <= size
        and abs(load[3] - other[3]) <= writes
        and abs(load[4] - other[4]) <= written
    )


def _row(
    reads: float, writes: float, read_bytes: float, write_bytes: float, read_ms: float,
    write_ms: float, io_ms: float, seconds: float, seen: float, seen_busy: float,
) -> Row | None:  # fmt: skip
    count, size, ms = reads + writes, read_bytes + write_bytes, read_ms + write_ms
    # also true if a sum is NaN
    if not (count >= MIN_REQUESTS and ms >= MIN_MS and size > 0 and io_ms > 0):
        return None
    load = (
        log(max(1.0, ms / io_ms)), log(min(1.0, io_ms / 1e3 / seconds)),
        log(size / count / TYPICAL_BYTES), writes / count, write_bytes / size,
    )  # fmt: skip
    return Row(load, _terms(*load), log(ms / count), count / seconds,
                ms / 1e3 / seconds, seen, seen_busy)  # fmt: skip


def _terms(*load: float) -> tuple[float, ...]:
    depth, busy, size, writes, written = load
    return 1.0, depth, depth * depth, busy, size, size * size, writes, written


def _covered(rows: Rows) -> list[tuple[float, float]]:
    """For each part of the load, the range that at least two of these disks had. A disk's range is
    without the lowest and the highest twentieth of its windows."""
    ranges = []
    for found in rows.values():
        columns = zip(*(row.load for row in found if row is not None), strict=True)
        ordered = [sorted(column) for column in columns]
        rare = len(ordered[0]) // 20
        ranges.append([(column[rare], column[-1 - rare]) for column in ordered])
    return [(sorted(low for low, _ in column)[1], sorted(high for _, high in column)[-2])
            for column in zip(*ranges, strict=True)]  # fmt: skip


def _normal_equations(rows: Sequence[Row | None]) -> list[float]:
    """The lower triangle of X'X, then X'y."""
    known = [row for row in rows if row is not None]
    columns = [*zip(*(row.terms for row in known), strict=True)]
    times = [row.time for row in known]
    pairs = [(columns[i], columns[j]) for i in range(len(columns)) for j in range(i + 1)]
    pairs += [(column, times) for column in columns]  # type: ignore[misc]
    return [sum(map(float.__mul__, a, b)) for a, b in pairs]


def _total(sums: Iterable[Sequence[float]]) -> list[float]:
    return [sum(column) for column in zip(*sums, strict=True)]


class _Fit:
    """A polynomial by least squares (Cholesky). The ridge keeps a load that did not vary from
    predicting anything."""

    def __init__(self, equations: Sequence[float]) -> None:
        lower: list[list[float]] = []
        place = 0
        half: list[float] = []
        size = len(_terms(*NEAR))
        for i in range(size):
            line: list[float] = []
            for j in range(i):
                line.append((equations[place] - _dot(line, lower[j])) / lower[j][j])
                place += 1
            line.append(sqrt(max(equations[place] - _dot(line, line), 0.0) + RIDGE))
            place += 1
            lower.append(line)
        for line, right in zip(lower, equations[place:], strict=True):
            half.append((right - _dot(line, half)) / line[-1])
        self._weights = [0.0] * size
        for i in reversed(range(size)):
            rest = half[i] - sum(lower[k][i] * self._weights[k] for k in range(i + 1, size))
            self._weights[i] = rest / lower[i][i]

    def value(self, terms: Sequence[float]) -> float:
        """The prediction."""
        return _dot(self._weights, terms)


def _dot(a: Iterable[float], b: Iterable[float]) -> float:
    return sum(map(float.__mul__, a, b))
