"""Convert a host's JSON lines back to events for the screen. An agent sends few fields; the others
are missing in the frame, too. Lines come from other machines, so ``None`` is returned for a line
that can't be understood."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from iopstui.events import (
    AnswerGiven,
    Event,
    FindingEnded,
    FindingReported,
    FrameReady,
    LayoutProgress,
    Mark,
    Notice,
    StallFound,
    SteadyState,
    StepFinished,
    StepStarted,
    TunableChanged,
)
from iopstui.features.fleet.merging.combined_frame import (
    direction_interval,
    disk_rates,
    fio_interval,
    probe_interval,
)
from iopstui.features.fleet.merging.encoded_frame import EncodedFrame
from iopstui.features.fleet.merging.sums import DirectionSum, Object, from_wire
from iopstui.model.answer.answer import NOTHING, SIGNS, UNKNOWN, WAITS, Answer
from iopstui.model.block.target import DEVICE, DIRECTORY, Target
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import DEVICE as PROBED
from iopstui.model.figures.figure import TOTAL, from_object
from iopstui.model.findings.finding import Finding
from iopstui.model.fio.interval import DirectionInterval, FioInterval
from iopstui.model.histogram import PERCENTILES, Bins, merge, percentile_name
from iopstui.model.metrics.cpus import CpuFrame
from iopstui.model.metrics.frame import Frame, JobFrame
from iopstui.model.metrics.probe import KINDS, ProbeInterval
from iopstui.model.metrics.slow.stalls import Stall
from iopstui.model.rates import CpuLoad
from iopstui.model.samples import DIRECTIONS
from iopstui.text import printable

PERCENTILE_NAMES = tuple(map(percentile_name, PERCENTILES))
_CPU_FIELDS = ("usr", "sys", "iowait", "irq", "soft", "idle", "steal")
TEXT_FIELDS = frozenset({
    "event", "host", "utc", "flags", "packed", "bins_of", "name", "device", "sums", "comm",
    "cgroup", "disk", "state",
})  # fmt: skip
_EVENT_TYPES: Mapping[str, type] = {
    event.kind: event for event in (
        FindingEnded, Mark, Notice, LayoutProgress, SteadyState, StepFinished, StepStarted,
        TunableChanged,
    )
}  # fmt: skip


def target_of(session: Object | None) -> Target:
    row = session or {}
    path = printable(str(row.get("target") or ""))
    devices = tuple(printable(str(value)) for value in row.get("devices") or ())
    device = row.get("device") or (devices[0] if devices else None)
    name = None if device is None else printable(str(device))
    kind = DEVICE if path.startswith("/dev/") and not path.startswith("/dev/shm") else DIRECTORY
    no_device = "" if name else "its lines name no block device"
    return Target(kind, path, name, devices or ((name,) if name else ()), no_device)


def event_of(row: Mapping[str, Any], devices: tuple[str, ...]) -> Event | None:
    """The event in a line; ``devices`` are those that the jobs work on."""
    try:
        kind = row.get("event")
        if kind == "frame":
            _check_numbers(row)
            frame = frame_of(row, devices) if "sums" not in row else _frame_of_sums(row, devices)
            return FrameReady(frame.t, frame)
        if kind == "found":
            return FindingReported(float(row["t"]), _finding(row["finding"]))
        if kind == "answer":
            answer = read_answer(row)
            return None if answer is None else AnswerGiven(float(row["t"]), answer)
        if kind == "stall":
            return StallFound(float(row["t"]), _stall(row["stall"]))
        event_type = _EVENT_TYPES.get(str(kind))
        return None if event_type is None else _event(event_type, row)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        return None


def _check_numbers(value: Any, name: str = "") -> None:
    """Raise TypeError for text in place of a figure."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            _check_numbers(part, key)
    elif isinstance(value, list):
        for part in value:
            _check_numbers(part, name)
    elif isinstance(value, str) and name not in TEXT_FIELDS:
        raise TypeError(f"{name} is not a number")


def _event(event_type: type, row: Mapping[str, Any]) -> Event:
    names = {field.name: field.type for field in dataclasses.fields(event_type)}
    values = {name: value for name, value in row.items() if name in names}
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value)
    if any(not isinstance(value, str) for name, value in values.items() if names[name] == "str"):
        raise TypeError("a text is none")
    if "options" in values:
        values["options"] = {name: str(value) for name, value in values["options"].items()}
    event: Event = event_type(**values)
    # raises if the time is not a number, because it is compared later
    float(event.t)
    return event


def _finding(row: Mapping[str, Any]) -> Finding:
    names = {field.name for field in dataclasses.fields(Finding)}
    values = {name: value for name, value in row.items() if name in names and name != "test"}
    test = tuple((str(name), str(value)) for name, value in row.get("test") or ())
    return Finding(**values, test=test)


def read_answer(row: Mapping[str, Any]) -> Answer | None:
    values = row.get("answer")
    if not isinstance(values, dict):
        return None
    names = [field.name for field in dataclasses.fields(Answer) if field.name != "over_s"]
    known = {name: values.get(name, "") for name in names}
    if not all(isinstance(value, str) for value in known.values()):
        return None
    if known["state"] not in SIGNS or known["verdict"] not in (WAITS, NOTHING, UNKNOWN):
        return None
    texts: dict[str, Any] = {name: printable(value) for name, value in known.items()}
    return Answer(**texts)


def _stall(row: Mapping[str, Any]) -> Stall:
    at_most, start, seconds = row["at_most"], float(row["start"]), float(row["seconds"])
    return Stall(
        printable(str(row["disk"])), start, seconds, None if at_most is None else float(at_most),
        int(row["in_flight"]), bool(row["ended"]), printable(str(row["by"])),
    )  # fmt: skip


def frame_of(row: Mapping[str, Any], devices: tuple[str, ...]) -> Frame:
    """The frame in a line. For an impossible frame, it raises one of the errors that ``event_of``
    catches."""
    flag_names = frozenset(str(flag) for flag in row.get("flags") or ())
    seconds = row.get("seconds")
    kernel = row.get("kernel") or {}
    disks = {
        str(name): from_object(DiskRates, disk, seconds or 1.0)
        for name, disk in (kernel.get("disks") or {}).items()
    }
    total = kernel.get(TOTAL)
    if total and not disks and len(devices) == 1:
        disks = {devices[0]: from_object(DiskRates, total, seconds or 1.0)}
    return Frame(
        seq=int(row.get("seq") or 0),
        step=int(row.get("step") or 0),
        t=float(row["t"]),
        wall_ms=float(row["wall_ms"]),
        seconds=seconds,
        flags=flag_names,
        fio=_fio(row["fio"], flag_names) if row.get("fio") else None,
        fio_age_s=row.get("fio_age_s"),
        skew_ms=row.get("skew_ms"),
        disks=disks,
        cpus={int(cpu): _cpu(load) for cpu, load in (kernel.get("cpus") or {}).items()},
        own_cpu=row.get("own_cpu"),
        jobs=tuple(JobFrame(**job) for job in row.get("jobs") or ()),
        throttled=row.get("throttled"),
        opened=devices,
        probe=_probe(row[PROBED], devices) if row.get(PROBED) else None,
    )


def _probe(row: Mapping[str, Any], devices: tuple[str, ...]) -> ProbeInterval | None:
    """A probe interval that has only latencies; ``None`` if the lines don't say to which of several
    devices they belong."""
    disks = row.get("disks") or {}
    if not disks and len(devices) == 1 and all(row.get(kind) for kind in KINDS):
        disks = {devices[0]: row}
    bins = {
        str(name): {kind: _bins(kinds[kind]) for kind in KINDS if kinds.get(kind)}
        for name, kinds in disks.items()
    }
    counts = {name: int(row.get(name) or 0) for name in ("skipped", "lost", "full")}
    return probe_interval(float(row["seconds"]), bins, counts, row.get("missed")) if bins else None


def _bins(row: Mapping[str, Any]) -> Bins:
    packed = row.get("packed")
    if packed:
        return from_wire(packed)
    return {int(key): int(count) for key, count in (row.get("bins") or {}).items()}


def _frame_of_sums(row: Mapping[str, Any], devices: tuple[str, ...]) -> Frame:
    """A frame that was sent only as sums; figures that can't be summed are unknown."""
    sums = EncodedFrame(row["sums"]).sums("")
    seconds = float(row["seconds"])
    bare = frame_of({**row, "sums": None}, devices)
    disk = disk_rates(sums.kernel, seconds, row.get("util"))
    disks = {devices[0]: disk} if disk is not None and len(devices) == 1 else {}
    if TOTAL not in sums.fio:
        return dataclasses.replace(bare, disks=disks)
    parts = {name: _direction_interval(sums.fio[name]) for name in DIRECTIONS if name in sums.fio}
    total = _direction_interval(sums.total or DirectionSum())
    fio = fio_interval({"seconds": seconds}, bare.flags, parts, total)
    return dataclasses.replace(bare, disks=disks, fio=fio)


def _direction_interval(part: DirectionSum) -> DirectionInterval:
    return dataclasses.replace(direction_interval(part), max_ns=part.main.max_ns or None)


def _fio(row: Mapping[str, Any], flag_names: Collection[str]) -> FioInterval:
    parts = {name: _direction(row[name]) for name in DIRECTIONS if row.get(name)}
    # lines have no histogram of the total, so add up those of the directions
    added = (part.bins for name, part in parts.items() if name != "mixed" or len(parts) == 1)
    total = dataclasses.replace(_direction(row[TOTAL]), bins=merge(added))
    interval = fio_interval(row, flag_names, parts, total)
    return dataclasses.replace(interval, sync=_sync(row.get("sync")))


def _sync(row: Mapping[str, Any] | None) -> DirectionInterval | None:
    if not row:
        return None
    # the line of syncs has its latencies at the top, not in "clat"
    return _direction({**row, "bytes": 0, "bw": 0.0, "clat": row})


def _direction(row: Mapping[str, Any]) -> DirectionInterval:
    kind = str(row.get("bins_of") or "clat")
    latencies = row.get(kind) or {}
    return DirectionInterval(
        ios=int(row["ios"]),
        bytes=int(row["bytes"]),
        iops=row.get("iops"),
        bw=row.get("bw"),
        slat_ns=(row.get("slat") or {}).get("mean"),
        clat_ns=(row.get("clat") or {}).get("mean"),
        lat_ns=(row.get("lat") or {}).get("mean"),
        percentiles={
            name: latencies[name] for name in PERCENTILE_NAMES if latencies.get(name) is not None
        },
        max_ns=latencies.get("max"),
        bins=_bins(row),
        bins_of=kind,
    )


def _cpu(row: Mapping[str, Any]) -> CpuFrame:
    is_complete = all(row.get(name) is not None for name in _CPU_FIELDS)
    load = CpuLoad(**{name: float(row[name]) for name in _CPU_FIELDS}) if is_complete else None
    return CpuFrame(load, row.get("block/s"), row.get("irq/s"), row.get("ipi/s"))
