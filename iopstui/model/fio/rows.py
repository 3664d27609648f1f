"""Map each row of fio's report to sections of the job file.

With group_reporting a row is the sum of all jobs of a group, but fio prints only the last section's
options beside it. Block size, depth and whether latencies are taken may differ between the
sections, so the meaning of a row's counters follows from the job file, not from that row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from iopstui.model.fio.jobfile import Section
from iopstui.model.fio.ramp import duration_s

Options = Mapping[str, str]
OFF_VALUES = ("0", "false", "no")
LONG_PAUSE_S = 0.1
"""A pause of this length is visible in the seconds and rounds of a run."""
_GROUP_STARTERS = ("stonewall", "wait_for_previous", "new_group")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the report, and the job sections it covers (with variables expanded)."""

    sections: tuple[Section, ...]

    @property
    def members(self) -> int:
        """Return its jobs."""
        return sum(_count(section.options, "numjobs") for section in self.sections)

    @property
    def in_flight(self) -> int:
        """The most I/Os that its jobs together can have in flight."""
        return sum(
            _count(s.options, "iodepth") * _count(s.options, "numjobs") for s in self.sections
        )


def flag(options: Options, name: str) -> bool:
    """A fio boolean option: present without a value means 1 (fio(1), "bool")."""
    value = options.get(name)
    return value is not None and value.strip() not in OFF_VALUES


def rows_of(sections: Sequence[Section], count: int) -> tuple[Row, ...] | None:
    """The ``count`` rows that fio prints for these sections, in its order (stat.c,
    __show_run_stats): without group_reporting a row for each job, with it one for each group.

    If that gives another number of rows, or only some sections are grouped, each row counts as the
    sum of all sections. ``None`` if there are none."""
    if not sections:
        return None
    grouped = {flag(section.options, "group_reporting") for section in sections}
    rows = list(_rows(sections))
    if len(rows) == count and len(grouped) == 1:
        return tuple(rows)
    return (Row(tuple(sections)),) * count


def changing_option(jobs: Sequence[Options]) -> str:
    """The option that makes the jobs of a row work at different rates over time; "" if none
    does."""
    for options in jobs:
        reads_back = "verify" in options and options.get("do_verify", "1") not in OFF_VALUES
        if reads_back and "write" in options.get("rw", options.get("readwrite", "read")):
            return "verify"
        if _pause_s(options.get("thinktime", "0")) >= LONG_PAUSE_S:
            return "thinktime"
        for name in ("flow", "latency_target", "read_iolog"):
            if options.get(name, "0").strip() != "0":
                return name
    # jobs of one row that begin or end at different times
    for name in ("startdelay", "runtime", "size", "io_size"):
        if len({options.get(name) for options in jobs}) > 1:
            return name
    return ""


def syncs_in_between(options: Options) -> bool:
    """Whether a job syncs after some of its writes."""
    counts = (options.get(name, "0").strip() for name in ("fsync", "fdatasync"))
    return any(count not in ("", "0") for count in counts) or "sync_file_range" in options


def _pause_s(text: str) -> float:
    """A thinktime in seconds; a plain number means microseconds."""
    return float(text) / 1e6 if text.strip().isdecimal() else duration_s(text) or 0.0


def _rows(sections: Sequence[Section]) -> Iterator[Row]:
    grouped: list[Section] = []
    for index, section in enumerate(sections):
        options = section.options
        begins = index > 0 and any(flag(options, name) for name in _GROUP_STARTERS)
        if grouped and (begins or not flag(options, "group_reporting")):
            yield Row(tuple(grouped))
            grouped = []
        if "stats" in options and not flag(options, "stats"):
            continue
        if flag(options, "group_reporting"):
            grouped.append(section)
            continue
        # jobs of one section share one object, so that it is examined only once
        alone = Row((Section(section.name, {**options, "numjobs": "1"}),))
        for _ in range(_count(options, "numjobs")):
            yield alone
    if grouped:
        yield Row(tuple(grouped))


def _count(options: Options, name: str) -> int:
    text = options.get(name, "1").strip()
    return max(1, int(text)) if text.isdecimal() else 1
