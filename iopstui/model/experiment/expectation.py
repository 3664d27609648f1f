"""Expectations: "iops>=5000", "read.clat.p99<=2ms", and whether a run met them.

A figure is named as in the field registry (model/metrics/fields.py); obvious parts may be left out:
``fio.``, ``total.``, and ``kernel.disks.DEVICE.`` for the target's own device. With several devices
``r/s`` is their sum (``kernel.total.r/s``) and ``vdb.r/s`` one of them. "JOB:iops" is one job's
figure, from fio's final report (model/experiment/job_figures.py). "iops>=95%" is a share of a
baseline's figure (model/experiment/baseline.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from iopstui.errors import UsageError
from iopstui.model.figures.figure import ANY, DEVICE, OF_BINS, TOTAL, WAIT
from iopstui.model.fio.interval import BW, IOPS
from iopstui.model.fio.rows import flag, syncs_in_between
from iopstui.model.metrics.aws import SOURCE as AWS
from iopstui.model.metrics.fields import FIELDS, Field
from iopstui.model.metrics.figures import LATENCIES, Meter, is_measurable
from iopstui.model.metrics.frame import WRONG_LATENCY, Frame
from iopstui.model.metrics.nvme import DIAG, NVME

if TYPE_CHECKING:
    from iopstui.model.experiment.baseline import BaselineFigure, BatchMeans
    from iopstui.model.fio.jobfile import Section

EXAMPLES = "For example: --expect 'iops>=5000' --expect 'read.clat.p99<=2ms' --expect 'util<=90%'"
_EXPECTATION = re.compile(r"\s*(?:([^<>=!]+):)?([^<>=!\s:]+)\s*(>=|<=)\s*(\S.*?)\s*")
_SHARE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%")
_VALUE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Zµμ%]*)(?:/s)?")

_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6,
          "s": 1e9}  # fmt: skip
_BYTES = {"b": 1.0} | {
    f"{letter}{kind}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for kind, base in (("b", 1000.0), ("ib", 1024.0))
}
# M is mega, and a small b is a bit
_BITS = re.compile(r"[KMGT]i?b")
_BITS_NAMES = {"K": "kilo", "M": "mega", "G": "giga", "T": "tera"}
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6}
_PERCENT = {"": 1.0, "%": 1.0}
# by a field's unit: the units that a value may have, with their factors, and the text that lists
# them in a message
_UNITS: Mapping[str, tuple[Mapping[str, float], str]] = {
    "ns": (_TIMES, "ns, us, ms or s"),
    "ms": ({name: ns / 1e6 for name, ns in _TIMES.items()}, "ns, us, ms or s"),
    "B/s": (_BYTES, "kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s"),
    "B": (_BYTES, "B, kB, MB, GB, KiB, MiB or GiB"),
    "MiB/s": ({name: size / 2**20 for name, size in _BYTES.items()}, "MB/s or MiB/s"),
    "KiB": ({name: size / 2**10 for name, size in _BYTES.items()}, "kB, KiB or MiB"),
    "1/s": (_COUNTS, "nothing, k or M"),
    "": (_COUNTS, "nothing, k or M"),
    "%": (_PERCENT, "%"),
    "% of a CPU": (_PERCENT, "%"),
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """``name`` as the user gave it, the concrete ``path`` of the field, ``op`` ">=" or "<=",
    ``required`` in the field's ``unit``, ``tolerance`` as a share (0.1 is 10 %). With a ``base``
    ``required`` is ``part`` (0.95) of that run's figure."""

    text: str
    name: str
    path: tuple[str, ...]
    unit: str
    op: str
    required: float
    tolerance: float = 0.0
    part: float | None = None
    base: BaselineFigure | None = None

    def relative_to(self, base: BaselineFigure) -> Expectation:
        """Return the expectation relative to this figure."""
        return replace(self, base=base, required=(self.part or 0.0) * base.value)

    @property
    def of_job(self) -> bool:
        """Whether the expectation is about one job, not the whole run."""
        from iopstui.model.experiment.job_figures import is_job_figure

        return is_job_figure(self.path)

    @property
    def limit(self) -> float:
        """The worst value that is still accepted."""
        return self.required * (1 + (-self.tolerance if self.op == ">=" else self.tolerance))

    def met_by(self, value: float) -> bool:
        """Whether a figure is within the limit."""
        return value >= self.limit if self.op == ">=" else value <= self.limit


@dataclass(frozen=True, slots=True)
class Outcome:
    """``measured`` is the whole run's figure (``None``: it was not measured), ``share`` is the part
    of the measured time whose seconds met the expectation by themselves (0..1, ``None`` likewise).
    ``low`` and ``high`` bound its ratio to a baseline's figure (``None``: no interval). ``why``
    says why it can't be judged ("": it can, or nothing was measured)."""

    expectation: Expectation
    measured: float | None
    share: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the expectation was met; ``None`` if there was nothing to judge by. Against a
        baseline it fails only if the whole interval does."""
        if self.measured is None or self.why:
            return None
        expectation = self.expectation
        if expectation.base is not None and self.low is not None and self.high is not None:
            return expectation.met_by(
                (self.high if expectation.op == ">=" else self.low) * expectation.base.value
            )
        return expectation.met_by(self.measured)


def parse_tolerance(text: str) -> float:
    """Parse a tolerance: "10%" or "10" is 0.1. UsageError for anything but a percentage from 0 to
    below 100."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*%?", text.strip())
    if match is None or not 0 <= float(match[1]) < 100:
        raise UsageError(f"--tolerance {text!r} is not a percentage.", "For example: 10%")
    return float(match[1]) / 100


def parse_expectation(
    text: str,
    tree: Sequence[str] = (),
    tolerance: float = 0.0,
    devices: Sequence[str] | None = None,
) -> Expectation:
    """Parse an --expect. ``tree`` names the devices under the target, ``devices`` the ones that the
    jobs use (``None``: the first of ``tree`` alone). Raises UsageError."""
    match = _EXPECTATION.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--expect {text!r} is not of the form FIGURE>=VALUE or FIGURE<=VALUE.", EXAMPLES
        )
    job, name, op, value = match.groups()
    option = f"--expect {text!r}"
    if job is not None:
        from iopstui.model.experiment.job_figures import job_field

        field = job_field(option, job.strip(), name)
        name = f"{job.strip()}:{name}"
    else:
        field = _parse_field(option, name, tree, tree[:1] if devices is None else devices)
    share = _SHARE.fullmatch(value) if not field.unit.startswith("%") else None
    if share is not None:
        return Expectation(text.strip(), name, field.path, field.unit, op, 0.0, tolerance,
                           float(share[1]) / 100)  # fmt: skip
    required = _parse_value(option, name, value, field)
    return Expectation(text.strip(), name, field.path, field.unit, op, required, tolerance)


def parse_figure_and_value(
    option: str, name: str, value: str, tree: Sequence[str], devices: Sequence[str]
) -> tuple[Field, float]:
    """The field of the figure that ``name`` means, its path without ``*``, and ``value`` in the
    field's unit. ``option`` is the whole option, for the text of a UsageError."""
    field = _parse_field(option, name, tree, devices)
    return field, _parse_value(option, name, value, field)


def _parse_field(option: str, name: str, tree: Sequence[str], devices: Sequence[str]) -> Field:
    fields = {field.id: field for field in _matching_fields(name, tree)}
    device_prefix = f"kernel.disks.{devices[0]}." if len(devices) == 1 else f"kernel.{TOTAL}."
    prefixes = ("", "fio.", f"fio.{TOTAL}.", device_prefix, "kernel.", "kernel.disks.")
    for prefix in prefixes:
        if prefix + name in fields:
            _check_sum(option, fields[prefix + name], tree, devices)
            return fields[prefix + name]
    if not tree and any(field.path[-1] == name.rpartition(".")[2] for field in _disk_fields()):
        raise UsageError(
            f"{option} cannot be measured: no block device is visible under the target.",
            "Use one of fio's figures: iops, bw, clat.mean, clat.p99 ...",
        )
    short = {_without_prefix(name, prefixes) for name in fields}
    import difflib

    matches = difflib.get_close_matches(name.lower(), sorted(short), n=3, cutoff=0.5)
    matches = [figure for figure in short if figure.lower() == name.lower()] or matches
    raise UsageError(
        f"{option} cannot be measured: no figure of a whole run is called {name!r}.",
        (f"Did you mean {' or '.join(matches)}? " if matches else "") + "List: iopstui fields",
    )


def _check_sum(option: str, field: Field, tree: Sequence[str], devices: Sequence[str]) -> None:
    """Raise UsageError for a figure that several devices can't have together."""
    if field.path[:2] != ("kernel", TOTAL) or len(devices) == 1:
        return
    if devices and field.path[-1] != "util":
        return
    why = "every device has its own, and shares of time cannot be added"
    if not devices:
        why = "the devices have no total, because one lies on another"
    names = " or ".join(f"{name}.{field.path[-1]}" for name in (devices or tree)[:3])
    raise UsageError(f"{option}: {why}.", f"Name the device: {names}")


def _without_prefix(name: str, prefixes: Sequence[str]) -> str:
    return min((name[len(p) :] for p in prefixes if name.startswith(p)), key=len)


def _disk_fields() -> Iterator[Field]:
    return (field for field in FIELDS if field.path[:2] == ("kernel", "disks"))


def _matching_fields(name: str, tree: Sequence[str]) -> Iterator[Field]:
    """The fields that have one figure for a whole run, with every ``*`` filled in."""
    cpu = re.search(r"(?:^|\.)cpus\.(\d+)\.", name)
    operation = re.search(r"(?:^|\.)(?:nfs|smb)\.others\.(\w+)\.", name)
    operations = (operation[1],) if operation else ()
    fillings: Mapping[tuple[str, ...], Sequence[str]] = {
        ("kernel", "disks"): tree, ("kernel", TOTAL): tree[:1], (DEVICE, "disks"): tree,
        (WAIT, "layers"): tree, ("kernel", "cpus"): (cpu[1],) if cpu else (),
        ("kernel", DIAG): (), ("kernel", AWS): [name for name in tree if name.startswith("nvme")],
        ("kernel", "nfs", "others"): operations, ("kernel", "smb", "others"): operations,
    }  # fmt: skip
    for field in FIELDS:
        place = next((field.path[:n] for n in (2, 3) if field.path[:n] in fillings), ())
        for filling in fillings.get(place, ("",)):
            path = tuple(filling if key == ANY else key for key in field.path)
            if "" not in path and is_measurable(path):
                yield replace(field, path=path)


def _parse_value(option: str, name: str, value: str, field: Field) -> float:
    # a source of samples may define its own unit
    own_units = {"": 1.0, field.unit.removesuffix("/s").lower(): 1.0}
    units, unit_names = _UNITS.get(field.unit, (own_units, field.unit))
    match = _VALUE.fullmatch(value)
    if match is not None and "mib" in units and _BITS.fullmatch(match[2]):
        number, prefix = float(match[1]), match[2][:-1]
        raise UsageError(
            f"{option}: {value} is {_BITS_NAMES[prefix[0]]}bits, but {name} is in bytes.",
            f"As bytes that is {number / 8:g}{prefix}B/s. If you meant bytes: "
            f"{number:g}{prefix}B/s",
        )
    factor = units.get(match[2].lower()) if match else None
    if match is None or factor is None:
        problem = "needs a unit" if match and not match[2] else "is not understood"
        raise UsageError(
            f"{option}: the value {value!r} {problem}.", f"{field.title} takes {unit_names}."
        )
    return float(match[1]) * factor


def why_not_measurable(expectation: Expectation, jobs: Sequence[Section]) -> str | None:
    """Return why this job can't give the figure, judged by its options; ``None`` if it may.
    ``jobs`` are the job file's sections with their variables expanded."""
    path = expectation.path
    if path[0] != "fio" or len(path) < 3 or not jobs:
        return None
    if expectation.of_job:
        from iopstui.model.experiment.job_figures import sections_of_job, why_no_such_job

        why, jobs = why_no_such_job(path, jobs), sections_of_job(path, jobs)
        if why:
            return why
        path = ("fio", *path[3:])
    direction, kind = path[1], path[2]
    if direction == "sync":
        return None if any(map(_may_sync, jobs)) else (
            "the job does no syncs (fsync=, fdatasync= or sync_file_range=)"
        )  # fmt: skip
    if direction == "mixed" and not any("unified_rw_reporting" in job.options for job in jobs):
        return "only with unified_rw_reporting=1 does fio count reads and writes as one"
    if direction in ("read", "write", "trim") and not any(
        has_direction(job.options, direction) for job in jobs
    ):
        return f"the job does no {direction}s"
    if kind not in ("slat", "clat", "lat"):
        return None
    reason = next(filter(None, (_why_no_latency(job, kind) for job in jobs)), None)
    if reason:
        return reason
    if path[3] not in OF_BINS:
        return None
    if kind == "lat" and not all(map(_has_bins_of_lat, jobs)):
        return ("percentiles of lat need lat_percentiles=1 and clat_percentiles=0: where fio has "
                "both histograms, that of clat is used")  # fmt: skip
    if kind == "clat" and any(_is_disabled(job, "clat_percentiles") for job in jobs):
        return "fio keeps no histogram of clat (clat_percentiles=0)"
    return None


def _may_sync(job: Section) -> bool:
    """Whether fio may time syncs of a section; a replayed log may contain some. It times neither
    end_fsync nor fsync_on_close."""
    return syncs_in_between(job.options) or "read_iolog" in job.options


def _has_bins_of_lat(job: Section) -> bool:
    """Whether fio's histogram is of lat, not of clat, which is preferred (fio/stream/status.py).
    Since 3.19 fio has both."""
    has_none_of_clat = _is_disabled(job, "clat_percentiles") or flag(job.options, "disable_clat")
    return flag(job.options, "lat_percentiles") and has_none_of_clat


def _why_no_latency(job: Section, kind: str) -> str | None:
    if flag(job.options, "gtod_reduce"):
        return "the job measures no latencies (gtod_reduce=1)"
    if flag(job.options, f"disable_{kind}"):
        return f"the job does not measure {kind} (disable_{kind}=1)"
    return None


def _is_disabled(job: Section, option: str) -> bool:
    return option in job.options and not flag(job.options, option)


def has_direction(options: Mapping[str, str], direction: str) -> bool:
    """Whether a section's rw= contains this direction. True also for unknown words, and for
    jobs that verify or report all directions as one."""
    rw = options.get("rw", options.get("readwrite", "read")).partition(":")[0]
    if "verify" in options or flag(options, "unified_rw_reporting"):
        return True
    kinds = {"rw": "read write", "readwrite": "read write", "trimwrite": "trim write"}
    directions = kinds.get(rw.removeprefix("rand"), rw)
    return direction in directions or not any(
        name in directions for name in ("read", "write", "trim")
    )


def _create_batches(expectation: Expectation) -> BatchMeans | None:
    if expectation.base is None or expectation.of_job:
        return None
    from iopstui.model.experiment.baseline import BatchMeans

    return BatchMeans(expectation.path)


WHY_IMPOSSIBLE_LATENCY = (
    "fio's latencies are impossible (at these IOPS they need many more I/Os in flight than "
    "iodepth × numjobs)"
)


WHY_NO_DRIVE = "it needs an NVMe drive that counts this, and root to read the count"


def _is_latency(path: Sequence[str]) -> bool:
    return path[0] == "fio" and len(path) > 3 and path[-2] in LATENCIES


class _Tally:
    """Counts the frames by which an expectation is judged."""

    def __init__(self, expectation: Expectation) -> None:
        self.meter = Meter(expectation.path)
        self._met_by = expectation.met_by
        self._met = self._seconds = 0.0

    @property
    def is_rate(self) -> bool:
        """Whether a rate of fio is expected, which is valid only in some frames
        (``Frame.holds``)."""
        path = self.meter.path
        return path[0] == "fio" and len(path) == 3 and path[-1] in (IOPS.name, BW.name)

    def add(self, frame: Frame) -> None:
        value = self.meter.add(frame)
        fio_s = frame.fio.seconds if frame.fio else None
        seconds = fio_s if self.meter.path[0] == "fio" else frame.seconds
        if value is not None and seconds:
            self._seconds += seconds
            self._met += seconds * self._met_by(value)

    @property
    def share(self) -> float | None:
        """The share of the time in which the expectation was met."""
        return self._met / self._seconds if self._seconds else None


class ExpectationChecker:
    """Follows one run and returns the outcome of each expectation at its end. A rate of fio is
    judged by the frames in which it is valid; if there is none, by all frames."""

    def __init__(self, expectations: Sequence[Expectation]) -> None:
        self.expectations = tuple(expectations)
        self._tallies = [
            None if expectation.of_job else (_Tally(expectation), _Tally(expectation))
            for expectation in expectations
        ]
        self._batches = [_create_batches(expectation) for expectation in expectations]
        self._wrong = False

    def add(self, frame: Frame) -> None:
        self._wrong |= WRONG_LATENCY in frame.flags
        for batches in self._batches:
            if batches is not None:
                batches.add(frame)
        for tallies in self._tallies:
            if tallies is not None:
                tally = tallies[0] if frame.holds or not tallies[0].is_rate else tallies[1]
                tally.add(frame)

    def outcomes(self, final: Mapping[tuple[str, ...], float] | None = None) -> list[Outcome]:
        """Judge all expectations. ``final`` has fio's own final figures by path, if the whole run
        is judged: their rates are more exact than the sum of our intervals."""
        results = []
        for tallies, batches, expectation in zip(
            self._tallies, self._batches, self.expectations, strict=True
        ):
            if self._wrong and _is_latency(expectation.path):
                results.append(Outcome(expectation, None, None, why=WHY_IMPOSSIBLE_LATENCY))
                continue
            tally = next((each for each in tallies or () if each.meter.value is not None), None)
            measured = tally.meter.value if tally is not None else None
            value = measured if final is None else final.get(expectation.path, measured)
            share = tally.share if tally is not None and value is not None else None
            low = high = None
            asks_drive = expectation.path[0] == NVME or expectation.path[1:2] == (AWS,)
            why = WHY_NO_DRIVE if value is None and asks_drive else ""
            if expectation.base is not None and batches is not None and value is not None:
                from iopstui.model.experiment.baseline import ratio_interval

                why = batches.why
                if not why:
                    low, high = ratio_interval(value, batches.spread, expectation.base) or (
                        None,
                        None,
                    )
            results.append(Outcome(expectation, value, share, low, high, why))
        return results
