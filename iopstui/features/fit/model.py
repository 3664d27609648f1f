"""A program as described by a file in fits/, and the judgement of its bound from measured
figures."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import NormalDist
from typing import Any

from iopstui.errors import UsageError
from iopstui.format import latency
from iopstui.model import histogram
from iopstui.model.experiment.expectation import Expectation, parse_expectation
from iopstui.model.figures.figure import BY_PERCENTILE
from iopstui.model.metrics.fields import BY_ID
from iopstui.model.metrics.figures import is_measurable
from iopstui.model.sizes import size_bytes
from iopstui.model.volumes.schema import CheckedTable

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
OPTIONS = frozenset({
    "ioengine", "rw", "bs", "bssplit", "bsrange", "fsync", "fdatasync", "sync_file_range", "size",
    "direct", "iodepth", "numjobs", "rate", "rate_iops", "rwmixread", "thinktime",
})  # fmt: skip
"""Options of fio that a program's description may contain. None of them names a file or runs a
command."""
ENGINES = ("sync", "psync", "pvsync", "pvsync2", "vsync", "libaio", "io_uring")
DEFAULT_S, LONGEST_S = 22.0, 27.0
"""The default and the limit for the seconds to measure: a confidence interval needs 20, and half a
minute for each program is enough."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A published requirement: the ``expectation``, the title and ``url`` of the ``page`` that
    states it, and the day on which the page was ``read``."""

    expectation: Expectation
    page: str
    url: str
    read: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure without a bound: the ``path`` of its field, and what it means for the program."""

    name: str
    path: tuple[str, ...]
    means: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program. ``also`` are other names for it, ``needs`` and ``helps`` are sentences, ``job``
    are options of fio. ``preallocated``: the blocks of its file are allocated but not written
    before the program writes to it."""

    name: str
    title: str
    also: tuple[str, ...]
    needs: str
    helps: str
    job: Mapping[str, str]
    seconds: float
    preallocated: bool
    bound: Bound | None
    shown: tuple[Shown, ...]
    seen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def block_size(self) -> float:
        """Mean bytes of a write."""
        if "bssplit" not in self.job:
            return float(size_bytes(self.job.get("bs", "4k")) or 4096)
        parts = [part.split("/") for part in self.job["bssplit"].split(":")]
        shares = [(size_bytes(size) or 0, float(share)) for size, share in parts]
        return sum(size * share for size, share in shares) / sum(share for _, share in shares)


def parse_program(data: Mapping[str, Any], name: str) -> tuple[Program | None, list[str]]:
    """Parse the description of a program in a file called ``name``. Returns the program (``None``
    if the file can't be used) and all mistakes in the file."""
    problems: list[str] = []
    top = CheckedTable(data, "", problems)
    if not NAME.fullmatch(name):
        top.add_problem(f"the file's name {name!r} may only have a-z, 0-9, - and _")
    seconds = top.number("seconds") or DEFAULT_S
    if not 1 <= seconds <= LONGEST_S:
        top.add_problem(f"seconds must be 1 to {LONGEST_S:g}")
    program = Program(
        name, top.text("title", needed=True), tuple(map(str, top.items("also"))),
        top.text("needs", needed=True), top.text("helps"), _job(top.table("job")), seconds,
        top.boolean("preallocated"), _bound(top), _shown(top), _seen(top),
    )  # fmt: skip
    if not top.has("bound") and not top.has("figure"):
        top.add_problem("neither a [bound] nor a [[figure]]")
    top.end()
    return (None if problems else program), problems


def _job(table: CheckedTable) -> dict[str, str]:
    job: dict[str, str] = {}
    for name in table.data:
        table.known.add(name)
        job[name] = table.text(name, needed=True)
        if name not in OPTIONS:
            table.add_problem(f"{name} is not allowed here; allowed: {', '.join(sorted(OPTIONS))}")
        elif "\n" in job[name] or "$" in job[name]:
            table.add_problem(f"{name} must be one line without $")
    if job.get("ioengine", "sync") not in ENGINES:
        table.add_problem(f"ioengine must be one of {', '.join(ENGINES)}")
    for name in ("size", "bs"):
        if name in job and not size_bytes(job[name]):
            table.add_problem(f"{name} must be a size such as 64m")
    if "bssplit" in job and not re.fullmatch(r"\d+[km]?/\d+(:\d+[km]?/\d+)*", job["bssplit"]):
        table.add_problem("bssplit must be of the form 8k/90:16k/10")
    if "size" not in job:
        table.add_problem("no size")
    return job


def _bound(top: CheckedTable) -> Bound | None:
    if not top.has("bound"):
        return None
    table = top.table("bound")
    expectation = _expectation(table, table.text("expect", needed=True))
    bound = table.text("page", needed=True), table.text("url", needed=True), table.date("read")
    table.end()
    return Bound(expectation, *bound) if expectation is not None else None


def _shown(top: CheckedTable) -> tuple[Shown, ...]:
    figures = []
    for number, item in enumerate(top.items("figure"), 1):
        table = CheckedTable(item, f"figure {number}", top.problems)
        name, means = table.text("name", needed=True), table.text("means", needed=True)
        known = BY_ID.get(f"fio.{name}")
        table.end()
        if known is not None and is_measurable(known.path):
            figures.append(Shown(name, known.path, means))
        elif name:
            table.add_problem(f"no figure of fio over a whole run is called {name}")
    return tuple(figures)


def _expectation(table: CheckedTable, text: str) -> Expectation | None:
    if not text:
        return None
    try:
        expectation = parse_expectation(text)
    except UsageError as error:
        message = error.message.replace("--expect ", "").replace("'", '"')
        table.add_problem(f"{message} {error.hint}".strip().rstrip("."))
        return None
    if expectation.path[0] != "fio" or expectation.part is not None:
        table.add_problem(f"{text}: it must be an absolute figure of fio, such as sync.p99<=10ms")
        return None
    return expectation


def _seen(top: CheckedTable) -> Mapping[str, Any]:
    """What was observed when the real program ran, for people and for a test that compares it with
    the job."""
    if not top.has("seen"):
        return {}
    table = top.table("seen")
    texts = {name: table.text(name, needed=True) for name in ("program", "load")}
    seen: dict[str, Any] = {**texts, "date": table.date("date"), "sync": table.text("sync")}
    for name in ("bytes_per_sync", "bytes_per_write", "sequential"):
        seen[name] = table.number(name)
    table.end()
    return seen


PASS, FAIL, UNDECIDED, NO_BOUND = "PASS", "FAIL", "can't tell", "–"
OVERLAP = 1.05
UNSTEADY_FACTOR = 3.0
"""If an interval's upper end is more than this multiple of its lower end, the figure is too
unsteady."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run, with its 95 % interval; ``why`` is the reason if it has none. ``above`` is
    the interval of the share (0..1) of the run's syncs that take longer than a percentile's bound.
    ``of_all`` is the same for all syncs, including seconds that differ from those of the run."""

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""
    above: tuple[float, float] | None = None
    of_all: tuple[float, float] | None = None

    @property
    def is_unsteady(self) -> bool:
        """Whether the interval is too wide to say much."""
        return self.low is not None and self.high is not None and (
            self.high > UNSTEADY_FACTOR * self.low
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SyncTime:
    """How the time of an average sync is spent, in ns: the ``whole``, and how much of it the disk's
    requests take as ``flushes`` and as ``writes``. ``None``: not known. The time of a write with
    FUA includes the flushes around it, so the two may add up to more than the whole."""

    disk: str
    whole: float | None = None
    flushes: float | None = None
    writes: float | None = None

    @property
    def text(self) -> str:
        """ "A sync takes 102 µs on average; per sync, vda spends 38 µs on cache flushes, 41 µs on
        writes"; "" if fio timed no syncs."""
        if not self.whole:
            return ""
        parts = [f"{latency(time)} on {name}" for name, time in
                 (("cache flushes", self.flushes), ("writes", self._plain_writes))
                 if time]  # fmt: skip
        on_disk = f"; per sync, {self.disk} spends {', '.join(parts)}" if parts else ""
        return f"A sync takes {latency(self.whole)} on average{on_disk}"

    @property
    def _plain_writes(self) -> float | None:
        """The time of writes; ``None`` if it includes the time of flushes."""
        both = (self.flushes or 0.0) + (self.writes or 0.0)
        return None if self.flushes and both > OVERLAP * (self.whole or 0.0) else self.writes

    @property
    def on_disk(self) -> float | None:
        """How much of a sync the disk's requests take. A faster drive can't save more than that."""
        known = (self.flushes, self._plain_writes)
        return None if not self.whole or known == (None, None) else sum(n or 0.0 for n in known)

    @property
    def is_above_disk(self) -> bool:
        """Whether more than half of a sync is spent above the disk."""
        return self.on_disk is not None and 2 * self.on_disk < (self.whole or 0.0)

    @property
    def binding(self) -> str:
        """What takes most of a sync's time; "" if it is not known."""
        if self.on_disk is None:
            return ""
        flushes, writes = self.flushes or 0.0, self._plain_writes or 0.0
        if self.is_above_disk:
            return "above the disk (file system, or waiting for a CPU)"
        return f"{self.disk}'s {'cache flushes' if flushes >= writes else 'writes'}"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the answer: the ``figure``, its ``name``, the ``bound`` that it must meet (without
    one, ``means`` says what the figure means for the program), the ``result``, and ``why`` in a
    sentence ("" if there is nothing to add)."""

    name: str
    figure: Figure
    bound: Bound | None = None
    means: str = ""
    result: str = NO_BOUND
    why: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result for a program. ``disturbed`` are sentences on who else used the disk during the
    run."""

    program: Program
    rows: tuple[Row, ...]
    time: SyncTime
    disturbed: tuple[str, ...] = ()


def judge(bound: Bound, figure: Figure, disturbed: Sequence[str]) -> Row:
    """The row of a bound. If the disk meets the bound although others use it, the result is PASS.
    If it then misses the bound, it might meet it without them."""
    result, why = _result(bound.expectation, figure, disturbed)
    if result == PASS and (unsure := _why_too_uneven(bound.expectation, figure)):
        result, why = UNDECIDED, unsure
    return Row(bound.expectation.name, figure, bound, "", result, why)


def _result(
    expectation: Expectation, figure: Figure, disturbed: Sequence[str]
) -> tuple[str, str]:  # fmt: skip
    if figure.value is None:
        return UNDECIDED, figure.why or "nothing was measured"
    low, high = figure.low, figure.high
    if low is None or high is None or not math.isfinite(high):
        return _result_by_share(expectation, figure, disturbed)
    worst, best = (high, low) if expectation.op == "<=" else (low, high)
    if expectation.met_by(worst):
        return PASS, f"although it was disturbed ({disturbed[0]})" if disturbed else ""
    if disturbed:
        return UNDECIDED, f"it was disturbed ({disturbed[0]})"
    if not expectation.met_by(best):
        return FAIL, ""
    if figure.is_unsteady:
        return UNDECIDED, "too unsteady: the interval includes the bound and is very wide"
    return UNDECIDED, "too near: the interval includes the bound"


def _why_too_uneven(expectation: Expectation, figure: Figure) -> str:
    """Why the measured seconds differ too much to judge this percentile; "" if they don't."""
    percent = BY_PERCENTILE.get(expectation.path[-1])
    if percent is None or figure.of_all is None or expectation.op != "<=":
        return ""
    most, allowed = figure.of_all[1], 1 - percent / 100
    if most <= allowed:
        return ""
    return (f"too uneven: its seconds differ so much that slower ones may come, with up to "
            f"{100 * most:.2g} % of all syncs above the bound (allowed: {100 * allowed:.2g} %); "
            "measure longer (--measure)")  # fmt: skip


def _result_by_share(
    expectation: Expectation, figure: Figure, disturbed: Sequence[str]
) -> tuple[str, str]:
    """The result for a percentile without an interval, judged by the share of the syncs that take
    longer than its bound."""
    percent = BY_PERCENTILE.get(expectation.path[-1])
    if percent is None or figure.above is None or expectation.op != "<=":
        return UNDECIDED, f"no interval: {figure.why or 'too little was measured'}"
    least, most = figure.above
    allowed = 1 - percent / 100
    share = f"{100 * least:.3g} to {100 * most:.3g} % of the syncs take longer than the bound"
    if most <= allowed:
        return PASS, f"{share} (allowed: {100 * allowed:.2g} %)"
    if disturbed:
        return UNDECIDED, f"it was disturbed ({disturbed[0]})"
    if least > allowed:
        return FAIL, f"{share} (allowed: {100 * allowed:.2g} %)"
    return UNDECIDED, f"too unsteady: {share} (allowed: {100 * allowed:.2g} %)"


# Estimate the share of slow syncs among all syncs, including seconds that differ from those of the
# run.
#
# The seconds of an uneven disk differ, and a short run may have missed the slow ones. So the
# measured seconds are treated as a sample. The 90th percentile of a second is assumed to be a
# log-normal random value, whose mean and spread are known only roughly.


SCALE_PERCENT = 90.0
POINTS = 11
"""How many equally likely values are tried for each unknown."""
OF_95 = 0.025
_NORMAL = NormalDist()
_QUANTILES = tuple(_NORMAL.inv_cdf((n + 0.5) / POINTS) for n in range(POINTS))


def unevenness(seconds: Sequence[Mapping[int, int]]) -> tuple[float, float] | None:
    """The mean and the standard deviation of the seconds' slowness, as natural logarithms of ns.
    ``None`` with fewer than three seconds."""
    scales = _scales(seconds)
    if len(scales) < 3:
        return None
    mean = sum(scales) / len(scales)
    return mean, math.sqrt(sum((each - mean) ** 2 for each in scales) / (len(scales) - 1))


def share_of_all(seconds: Sequence[Mapping[int, int]], limit: float) -> tuple[float, float] | None:
    """The 95 % interval of the share of all syncs that take longer than ``limit`` (ns), computed
    from the histograms of single seconds."""
    known = unevenness(seconds)
    if known is None:
        return None
    mean, spread = known
    above = _Above(seconds, mean)
    count = len(_scales(seconds))
    shares = sorted(
        above.expected(math.log(limit) - mean - shift * wide / math.sqrt(count), wide)
        for wide in (spread * factor for factor in _spread_factors(count - 1))
        for shift in _QUANTILES
    )
    rank = OF_95 * len(shares)
    return shares[int(rank)], shares[-1 - int(rank)]


def _scales(seconds: Sequence[Mapping[int, int]]) -> list[float]:
    found = (histogram.percentiles(bins, (SCALE_PERCENT,)).get(SCALE_PERCENT) for bins in seconds)
    return [math.log(max(1, key)) for key in found if key is not None]


def _spread_factors(freedom: int) -> list[float]:
    """The factors by which the true spread may exceed the observed one: sqrt(f / chi2), for equally
    likely values of chi2 (by Wilson and Hilferty)."""
    part = 2 / (9 * freedom)
    return [max(0.05, 1 - part + z * math.sqrt(part)) ** -1.5 for z in _QUANTILES]


class _Above:
    """The share of syncs, over all seconds, that exceed their second's scale by a given distance of
    logarithms."""

    def __init__(self, seconds: Sequence[Mapping[int, int]], mean: float) -> None:
        values: list[tuple[float, int]] = []
        for bins in seconds:
            scale = _scales((bins,))
            values += [(math.log(max(1, key)) - scale[0], n) for key, n in bins.items() if scale]
        values.sort()
        self._places = [place for place, _ in values]
        self._below = [0, *accumulate(n for _, n in values)]

    def share(self, distance: float) -> float:
        """The share of syncs that are further above their second's scale than ``distance``."""
        return 1 - self._below[bisect_right(self._places, distance)] / self._below[-1]

    def expected(self, distance: float, spread: float) -> float:
        """The expected share over all seconds, if their scales vary around the mean with this
        ``spread``."""
        return sum(self.share(distance - spread * z) for z in _FINE) / len(_FINE)


_FINE = tuple(_NORMAL.inv_cdf((n + 0.5) / 200) for n in range(200))
