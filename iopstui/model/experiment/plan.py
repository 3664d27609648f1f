"""Experiments as data: a plan of axes or variants, and the points it expands to.

Pure: nothing here runs or reads anything. A setting is a fio option, a tunable of the device
(model/block/tunable.py), a size of the scratch files, a binding to queues, or another job."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from iopstui.errors import UsageError
from iopstui.model.block.tunable import TUNABLES, irq_of
from iopstui.model.fio.jobfile import option_names, parse_override
from iopstui.model.sizes import FACTORS, parse_whole_size, size_text

if TYPE_CHECKING:
    from iopstui.model.experiment.expectation import Outcome
    from iopstui.model.figures.figure import Figure

OPTION, KNOB, SIZE, BIND, JOB = "option", "knob", "size", "bind", "job"
HOSTS = "hosts"
"""The axis of a fleet's sweep: the number of hosts that run the job."""
SWEEP, COMPARE = "sweep", "compare"
MAX_VALUES = 10_000
MAX_DIGITS = 18
MAX_POINTS = 100_000
MAX_VARIANTS = 12
CONFIRM_FROM_POINTS = 200
AS_IS = "as-is"
IOPS = "IOPS"

# the experiment itself sets how long it measures, and the target sets where
_NOT_AN_AXIS = {
    **dict.fromkeys(("runtime", "timeout", "time_based"), "settle and measure set the time"),
    **dict.fromkeys(("filename", "directory"), "the target sets the place"),
    **dict.fromkeys(("stonewall", "wait_for_previous"), "all jobs of a point run at once"),
}
_DOUBLED_OPTIONS = {"iodepth", "numjobs", "bs", "blocksize"}
_COUNT_OPTIONS = {"iodepth", "numjobs", "nrfiles", HOSTS}
ONE_MACHINE = "hosts= varies the number of hosts, and this is one machine."
FLEET_AXIS = "For example: iopstui fleet node[01-08] DIR --job JOB --axis hosts=1,2,4,8"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. ``kind`` is a constant of this module; ``name`` and ``value`` are as the user gave
    them."""

    kind: str
    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting to vary, over ``values`` in order."""

    kind: str
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """A side of a comparison: settings that apply together (none: the job unchanged). ``kept`` are
    settings that other variants change and this one must leave unchanged."""

    settings: tuple[Setting, ...]
    kept: tuple[Setting, ...] = ()

    @property
    def label(self) -> str:
        """The settings in words: "rq_affinity=2 iodepth=16"."""
        return " ".join(map(str, self.settings)) or AS_IS


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """A fio run of an experiment: number ``index`` from 0, of ``variant`` (0 in a sweep), in
    ``repeat``. ``label`` distinguishes it from other points."""

    index: int
    job: str
    settings: tuple[Setting, ...]
    label: str
    variant: int = 0
    repeat: int = 0

    def settings_of(self, kind: str) -> dict[str, str]:
        """The settings of one kind, by name."""
        return {setting.name: setting.value for setting in self.settings if setting.kind == kind}


@dataclass(frozen=True, slots=True)
class Plan:
    """``jobs`` x ``axes`` x ``repeats`` (a sweep), or ``variants`` x ``repeats`` (a comparison),
    each run for ``settle`` seconds unmeasured and then ``measure`` seconds; ``options`` apply to
    all. ``shuffle``: a sweep's points are in random order (a comparison's always are), from
    ``seed``. ``figure`` is a comparison's primary one (model/experiment/comparison.py). ``until``:
    it ends once that figure's difference is known to within this share (0.02: 2 %), after
    ``repeats`` at the latest."""

    name: ClassVar[str] = ""
    """The name of the command, for experiments other than sweeps and comparisons. It is named in
    results and is part of the key."""
    jobs: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    axes: tuple[Axis, ...] = ()
    variants: tuple[Variant, ...] = ()
    repeats: int = 1
    settle: float = 2.0
    measure: float = 8.0
    seed: int | None = None
    shuffle: bool = False
    until: float | None = None
    figure: str = IOPS

    @property
    def every_job(self) -> tuple[str, ...]:
        """The jobs of the plan, including those that variants name."""
        settings = (setting for variant in self.variants for setting in variant.settings)
        jobs = (setting.value for setting in settings if setting.kind == JOB)
        return tuple(dict.fromkeys((*self.jobs, *jobs)))

    @property
    def kind(self) -> str:
        """SWEEP or COMPARE."""
        return COMPARE if self.variants else SWEEP

    @property
    def unit(self) -> str:
        """The name of one run: "run" in a comparison, "point" in a sweep."""
        return "run" if self.variants else "point"

    @property
    def points(self) -> int:
        if self.variants:
            return len(self.variants) * self.repeats
        count = len(self.jobs)
        for axis in self.axes:
            count *= len(axis.values)
        return count * self.repeats

    @property
    def seconds(self) -> float:
        """Total running time of fio in seconds, without its startup and the layout of files."""
        return self.points * (self.settle + self.measure)

    def next(self, done: Sequence[Any], left: Sequence[PlannedPoint]) -> PlannedPoint | None:
        """Return what to run now: one of ``left`` (in order); ``None``: the experiment is over.
        ``done`` are the finished runs in order: events.PointFinished, or PointFailed, which has no
        ``point`` and empty ``outcomes``. An outcome that could not be judged is None."""
        return left[0] if left else None

    @property
    def columns(self) -> tuple[Figure, ...]:
        """The figures that tables show for each point; empty: the usual ones of a sweep."""
        return ()

    def conclude(self, points: Sequence[Any]) -> tuple[str, ...]:
        """The closing text about the points (events.PointFinished); empty: the usual text of a
        sweep or comparison. Also called after an interruption, with fewer ``points`` than
        planned."""
        return ()

    def judge(self, points: Sequence[Any]) -> list[tuple[str, Outcome]]:
        """The outcomes of the expectations at each point, by its label; they decide the verdict."""
        return [(point.label, outcome) for point in points for outcome in point.outcomes]

    def key(self, *more: object) -> str:
        """A key of this plan and its dependencies: equal keys mean the same experiment."""
        import hashlib

        name = [self.name] if self.name else []
        text = json.dumps([asdict(self), *name, *more], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def expand_plan(plan: Plan) -> Iterator[PlannedPoint]:
    """The points in the order they are run.

    A sweep goes through the jobs and, for each, the axes; the first axis named varies fastest, so
    that its curve is measured in one go. Repeats do all of this again, with a ``seed`` each time in
    another order. A comparison runs each variant once in every repeat, in a random order from the
    plan's ``seed``, so that a disturbance with a fixed rhythm (a garbage collection, another
    program's job every minute) can't always hit the same one. Without a seed, as in older
    recordings, the order alternates (ABBA)."""
    if plan.variants:
        yield from _comparison_points(plan)
        return
    lists = [[Setting(a.kind, a.name, v) for v in a.values] for a in reversed(plan.axes)]
    index = 0
    points = [tuple(reversed(chosen)) for chosen in itertools.product(*lists)]
    for job, repeat in itertools.product(plan.jobs, range(plan.repeats)):
        order = list(points)
        if plan.seed is not None:
            random.Random(f"{plan.seed}/{job}/{repeat}").shuffle(order)
        for settings in order:
            if len(plan.jobs) > 1:
                settings = (Setting(JOB, "job", job), *settings)
            label = " ".join(map(str, settings))
            yield PlannedPoint(index, job, settings, label, repeat=repeat)
            index += 1


def _comparison_points(plan: Plan) -> Iterator[PlannedPoint]:
    index = 0
    for repeat in range(plan.repeats):
        for number in _variant_order(plan, repeat):
            variant = plan.variants[number]
            settings = (*variant.settings, *variant.kept)
            job = next((setting.value for setting in settings if setting.kind == JOB), plan.jobs[0])
            yield PlannedPoint(
                index, job, settings, f"{variant_letter(number)}: {variant.label}", number, repeat
            )
            index += 1


def _variant_order(plan: Plan, repeat: int) -> list[int]:
    order = list(range(len(plan.variants)))
    if plan.seed is None:
        return order if repeat % 2 == 0 else order[::-1]
    random.Random(f"{plan.seed}/{repeat}").shuffle(order)
    return order


def variant_letter(number: int) -> str:
    """The letter of a variant: A, B, C ..."""
    return chr(ord("A") + number)


def setting_kind(name: str) -> str:
    """The kind of a setting by its name. An unknown name counts as a fio option."""
    if name in TUNABLES or irq_of(name) is not None:
        return KNOB
    return {"size": SIZE, "bind": BIND, "job": JOB, "hosts": HOSTS}.get(name, OPTION)


def parse_axis(text: str) -> Axis:
    """Parse --axis NAME=LIST. UsageError for anything else."""
    name, separator, values = text.partition("=")
    name = name.strip()
    if not separator or not name or re.search(r"[\s\[\]#;]", name):
        raise UsageError(
            f"Axis {text!r} is not of the form NAME=LIST.", "For example: iodepth=1,2,4..256"
        )
    if name == "job":
        raise UsageError("Several jobs are not an axis.", "Give --job several times.")
    check_name(name, f"Axis {text!r}")
    points = tuple(_parse_values(text, values))
    if not points:
        raise UsageError(f"Axis {text!r} has no values.", f"For example: {name}=1,2,4")
    times = Counter(points)
    doubled = next((value for value in points if times[value] > 1), None)
    if doubled is not None:
        raise UsageError(f"Axis {text!r} has {doubled} twice.")
    for value in points:
        check_value(name, value, f"Axis {text!r}")
    return Axis(setting_kind(name), name, points)


def check_name(name: str, label: str) -> None:
    """Raise UsageError for a name that an experiment does not vary."""
    for option_name in option_names(name):
        if option_name in _NOT_AN_AXIS:
            raise UsageError(
                f"{label}: {name} cannot be varied, because {_NOT_AN_AXIS[option_name]}."
            )


def check_value(name: str, value: str, label: str) -> None:
    """Raise UsageError for a value that is certainly wrong (fio and the kernel check the rest)."""
    is_count = value.isdecimal() and len(value) <= MAX_DIGITS and int(value) > 0
    if name in _COUNT_OPTIONS and not is_count:
        raise UsageError(f"{label}: {name} takes a whole number of 1 or more, not {value!r}.")
    if name == "bind" and value not in ("queues", "none"):
        raise UsageError(f"{label}: bind is queues or none, not {value!r}.")
    tunable = TUNABLES.get(name)
    if tunable is not None and tunable.values and value not in tunable.values:
        raise UsageError(f"{label}: {name} takes {', '.join(tunable.values)}, not {value!r}.")
    if tunable is not None and tunable.minimum is not None:
        number = value.removeprefix("-")
        if not number.isdecimal() or int(value) < tunable.minimum:
            raise UsageError(
                f"{label}: {name} takes a number of {tunable.minimum} or more, not {value!r}."
            )
    if setting_kind(name) == OPTION:
        parse_override(f"{name}={value}")


def check_axes(axes: Sequence[Axis], options: Mapping[str, str], fleet: bool = False) -> None:
    """Raise UsageError for two axes that set the same thing, even under different names, and for
    too many axes."""
    names_so_far: set[str] = set()
    for axis in axes:
        if axis.kind == HOSTS and not fleet:
            raise UsageError(ONE_MACHINE, FLEET_AXIS)
        names = option_names(axis.name)
        if names & names_so_far:
            raise UsageError(f"{axis.name} has two axes.", "Combine their values in one axis.")
        if names & set(options):
            raise UsageError(f"{axis.name} is both an axis and an option of every run.")
        names_so_far |= names
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > MAX_POINTS:
        raise UsageError(f"These axes have {count} points; at most {MAX_POINTS} are run.")


def parse_variant(text: str) -> Variant:
    """Parse --variant NAME=VALUE[,NAME=VALUE]... UsageError for anything else."""
    if text.strip() == AS_IS:
        return Variant(())
    settings = []
    # a comma followed by NAME= begins the next setting; others belong to the value (cpus)
    for part in re.split(r",(?=[^,=\s]+=)", text):
        name, separator, value = part.partition("=")
        name, value = name.strip(), value.strip()
        if not separator or not name or not value or re.search(r"[\s\[\]#;]", name):
            raise UsageError(
                f"Variant {text!r} is not of the form NAME=VALUE[,NAME=VALUE]...",
                "For example: rq_affinity=2",
            )
        check_name(name, f"Variant {text!r}")
        check_value(name, value, f"Variant {text!r}")
        settings.append(Setting(setting_kind(name), name, value))
    names = [option_name for setting in settings for option_name in option_names(setting.name)]
    if len(set(names)) < len(names):
        raise UsageError(f"Variant {text!r} sets the same thing twice.")
    if HOSTS in names:
        raise UsageError(f"Variant {text!r}: {ONE_MACHINE}", FLEET_AXIS)
    if {"bind", "cpus_allowed"} <= set(names):
        raise UsageError(f"Variant {text!r}: bind=queues chooses the CPUs itself.")
    return Variant(tuple(settings))


def check_variants(variants: Sequence[Variant], options: Mapping[str, str]) -> None:
    """Raise UsageError for variants that can't be compared."""
    if len(variants) < 2:
        raise UsageError(
            "A comparison needs two variants.",
            "For example: rq_affinity=1 and rq_affinity=2",
        )
    if len(variants) > MAX_VARIANTS:
        raise UsageError(f"{len(variants)} variants; at most {MAX_VARIANTS} are compared.")
    for variant in variants:
        for setting in variant.settings:
            if option_names(setting.name) & set(options):
                raise UsageError(
                    f"{setting.name} differs between variants and is an option of every run."
                )


def with_unvaried_tunables(
    variants: Sequence[Variant], now: Mapping[str, str]
) -> tuple[Variant, ...]:
    """The variants, each with the tunables that only other variants change kept at the value
    ``now``."""
    variants_with_fixed = []
    for variant in variants:
        varied = {setting.name for setting in variant.settings}
        fixed = tuple(Setting(KNOB, name, v) for name, v in now.items() if name not in varied)
        variants_with_fixed.append(Variant(variant.settings, fixed))
    return tuple(variants_with_fixed)


def _parse_values(text: str, values: str) -> Iterator[str]:
    parts = [part.strip() for part in values.split(",")]
    if parts == [""]:
        return
    plain: list[str] = []
    for part in parts:
        if not part:
            raise UsageError(f"Axis {text!r} has an empty value in its list.")
        low, dots, high = part.partition("..")
        if not dots:
            plain.append(part)
            yield part
            continue
        for value in _expand_range(text, [*plain, low], high):
            plain.append(value)
            yield value


def _expand_range(text: str, before: Sequence[str], end: str) -> Iterator[str]:
    """The values of the range "before[-1]..end", both included."""
    numbers = [_parse_number(text, value) for value in before]
    last = _parse_number(text, end)
    with_units = any(value[-1].isalpha() for value in (*before, end))
    candidates = [_arithmetic_range(numbers, last), _geometric_range(numbers, last)]
    if len(numbers) == 1:
        unit = FACTORS[before[-1].lstrip("0123456789").lower()]
        candidates = [range(numbers[0], last + 1, unit) if last > numbers[0] else None]
    matches = [candidate for candidate in candidates if candidate and candidate[-1] == last]
    if len(matches) == 2 and list(matches[0]) != list(matches[1]):
        if not _is_doubled(text, numbers):
            raise _ambiguous(text, f"{before[-1]}..{end}", matches, with_units)
        del matches[0]
    if not matches:
        raise UsageError(
            f"Axis {text!r}: {before[-1]}..{end} does not reach {end}.",
            "1..8 counts, 1,2,4..256 doubles, 10,20,30..100 adds 10.",
        )
    if len(matches[0]) > MAX_VALUES:
        raise UsageError(f"Axis {text!r} has {len(matches[0])} values; at most {MAX_VALUES}.")
    yield from (size_text(value) if with_units else str(value) for value in matches[0])


def _is_doubled(text: str, numbers: Sequence[int]) -> bool:
    """Whether an ambiguous range doubles: two powers of two of an option that is mostly doubled, as
    in iodepth=32,64..256. 1,2..8 is as often meant to count."""
    name, (first, second) = text.partition("=")[0].strip(), numbers[-2:]
    is_power = first & (first - 1) == 0
    return name in _DOUBLED_OPTIONS and is_power and second == 2 * first > 2


def _ambiguous(
    text: str, part: str, matches: Sequence[Sequence[int]], with_units: bool
) -> UsageError:
    """The refusal of an axis in which the range ``part`` may count or multiply, with both ways to
    write it."""
    ways = []
    for match in matches:
        first, second, *more = (size_text(n) if with_units else str(n) for n in match)
        shown = f"{first},{second}..{more[-1]}" if more else f"{first},{second}"
        ways.append(re.sub(rf"(?<![^,=\s]){re.escape(part)}(?![^,\s])", shown, text, count=1))
    (start, after, *_), ratio = matches[0], matches[1][1] // matches[1][0]
    times = "doubles" if ratio == 2 else f"multiplies by {ratio}"
    step = size_text(after - start) if with_units else after - start
    return UsageError(
        f"Axis {text!r} is ambiguous: .. may add {step}, or multiply by {ratio}.",
        f"Write {ways[0]} (adds {step}) or {ways[1]} ({times}).",
    )


def _arithmetic_range(numbers: Sequence[int], last: int) -> Sequence[int] | None:
    """Continue the numbers with the last difference."""
    if len(numbers) < 2:
        return None
    step = numbers[-1] - numbers[-2]
    if step <= 0 or (len(numbers) > 2 and numbers[-2] - numbers[-3] != step):
        return None
    return range(numbers[-1], last + 1, step)


def _geometric_range(numbers: Sequence[int], last: int) -> Sequence[int] | None:
    """Continue the numbers with the last ratio."""
    if len(numbers) < 2 or numbers[-2] <= 0 or numbers[-1] % numbers[-2]:
        return None
    ratio = numbers[-1] // numbers[-2]
    if ratio < 2 or (len(numbers) > 2 and numbers[-3] * ratio != numbers[-2]):
        return None
    values = [numbers[-1]]
    while values[-1] * ratio <= last:
        values.append(values[-1] * ratio)
    return values


def _parse_number(text: str, value: str) -> int:
    size = parse_whole_size(value)
    if size is None:
        raise UsageError(f"Axis {text!r}: {value!r} is not a number, which .. needs.")
    return size


Key = tuple[str, tuple[tuple[str, str], ...]]
"""A job and its settings: runs with equal keys belong to one point."""


def point_indexes(plan: Plan) -> dict[Key, int]:
    """The index of each point of a sweep, as if every point were run once and in order."""
    return {point_key(step): step.index for step in points_in_order(plan)}


def points_in_order(plan: Plan) -> list[PlannedPoint]:
    """A sweep's points, each once, in an order in which the first axis varies fastest."""
    return list(expand_plan(replace(plan, seed=None, repeats=1)))


def point_key(step: PlannedPoint) -> Key:
    return step.job, tuple((setting.name, setting.value) for setting in step.settings)
