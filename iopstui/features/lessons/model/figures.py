"""Names that lesson formulas and texts can use: figures of runs, facts of the target.

For a run named ``deep`` there are ``deep.iops`` and all other names in ``RUN``, and
``deep.fio.PATH`` for any value in the first row of fio's own final report
(``deep.fio.read.clat_ns.stddev``). Facts are in ``FACTS``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from iopstui.features.lessons.model.formula import Value
from iopstui.model.experiment.point import POINT, Point
from iopstui.model.findings.evidence import JobShape

FIO = "fio"
Figures = dict[str, "Value | None"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure or fact. ``unit`` is a form of text.py; ``meaning`` describes it in words."""

    unit: str
    meaning: str
    read: Callable[[Point], Value | None] | None = None


def _busiest_cpu(point: Point) -> float | None:
    shares = point.completions
    return float(max(shares, key=lambda cpu: shares[cpu])) if shares else None


_FORMS = {"1/s": "n", "I/Os": "n", "B/s": "b/s", "B": "b", "ns": "t", "share": "%", "%": "pct"}


def _figures(names: str) -> Mapping[str, Figure]:
    """Rows of a point (model/experiment/point.py), each as NAME or as NAME=FIELD."""
    pairs = [(name, of or name) for name, _, of in (word.partition("=") for word in names.split())]
    return {
        name: Figure(_FORMS.get(POINT[of].unit, "1"), POINT[of].meaning, attrgetter(of))
        for name, of in pairs
    }


RUN: Mapping[str, Figure] = {
    **_figures("iops iops_low iops_high read_iops write_iops bw"),
    "block": Figure("b", "mean size of an I/O", lambda p: p.bw / p.iops if p.iops else None),
    **_figures("ios seconds"),
    "latency": Figure("t", "mean latency as fio sees it", lambda p: _fio_value(p, p.latency_ns)),
    **_figures("slat=slat_ns clat=clat_ns p50=p50_ns p99=p99_ns p999=p999_ns max=max_ns slower"),
    "in_flight": Figure("1", "I/Os in flight: IOPS x mean latency",
                        lambda p: _fio_value(p, p.in_flight)),
    **_figures("device_iops device_bw request=request_bytes merges wait=await_ns aqu_sz util"),
    "cpu": Figure("t", "CPU time of the whole machine for each I/O",
                  lambda p: None if p.cpu_us is None else 1000 * p.cpu_us),
    **_figures("fio_cpu switches=ctx_s most=most_completions"),
    "most_on": Figure("0", "number of that CPU", _busiest_cpu),
    **_figures("device_p50=device_p50_ns device_p99=device_p99_ns stayed"),
    "completed_as": Figure("", "what shows where they ran: softirqs or interrupts",
                           lambda p: p.completions_of or None),
    **_figures("wait_cpu wait_above wait_devices wait_unknown"),
    # what the job demands; known before it runs
    "asked": Figure("0", "I/Os the jobs keep in flight: iodepth x jobs"),
    "iodepth": Figure("0", "iodepth of each job"),
    "jobs": Figure("0", "fio jobs at once"),
    "engine": Figure("", "its ioengine"),
    "on_own": Figure("%", "completions on the job's own CPUs (cpus_allowed)"),
}  # fmt: skip

FACTS: Mapping[str, Figure] = {
    "device.name": Figure("", "the device under the target"),
    "device.kind": Figure("", "nvme, virtio-blk, scsi, loop, dm ..."),
    "device.queues": Figure("0", "hardware queues (hctx); 0: it has no request queue"),
    "device.cpus_per_queue": Figure("1", "CPUs that share a hardware queue"),
    "device.rotational": Figure("", "whether it reports that it rotates"),
    "device.scheduler": Figure("", "its I/O scheduler"),
    "device.other_scheduler": Figure("", "another scheduler that it has"),
    "device.nomerges": Figure("0", "0: merging is on"),
    "device.nr_requests": Figure("0", "requests that each queue can hold"),
    "device.max_request": Figure("b", "largest request (max_sectors_kb)"),
    "device.read_ahead": Figure("b", "read-ahead of buffered reads"),
    "device.rq_affinity": Figure("0", "its rq_affinity"),
    "device.irq_cpu": Figure("0", "CPU that serves the interrupt of device.far_cpu's queue"),
    "device.far_cpu": Figure("0", "a CPU that does not get its queue's interrupt"),
    "host.cpus": Figure("0", "CPUs online"),
    "host.memory": Figure("b", "memory"),
    "target.kind": Figure("", "device, file or directory"),
    "target.fstype": Figure("", "its file system"),
    "target.direct": Figure("", "whether O_DIRECT works there"),
    "can.rq_affinity": Figure("", "whether it can be changed here"),
    "can.scheduler": Figure("", "the same"),
    "can.nomerges": Figure("", "the same"),
    "can.read_ahead_kb": Figure("", "the same"),
    "can.passthrough": Figure("", "whether NVMe commands can be sent past the block layer"),
    "why.passthrough": Figure("", "why they can't"),
    "why.device": Figure("", "why no device is seen under the target"),
    "why.rq_affinity": Figure("", "why changing it would move nothing, or is not possible"),
    "why.scheduler": Figure("", "why it can't be changed"),
    "why.nomerges": Figure("", "the same"),
    "why.read_ahead_kb": Figure("", "the same"),
    "matters.rq_affinity": Figure("", "whether it can move completions here"),
}
FACT_NAMESPACES = frozenset(name.partition(".")[0] for name in FACTS)


def _fio_value(point: Point, value: float | None) -> float | None:
    """``value``, or ``None`` if fio measured no latency: the kernel's await is a figure of its
    own."""
    return None if point.latency_of == "await" else value


def unit_of(name: str) -> str:
    """The form in which a figure is shown, in whichever run."""
    if name in FACTS:
        return FACTS[name].unit or "n"
    last = name.partition(".")[2]
    if last.startswith(f"{FIO}."):
        return _fio_unit(last.split(".")[1:])
    return RUN[last].unit or "n" if last in RUN else "n"


def _fio_unit(path: list[str]) -> str:
    if any(part.endswith("_ns") for part in path) and path[-1] != "N":
        return "t"
    return {"io_bytes": "b", "bw_bytes": "b/s"}.get(path[-1], "n")


def requested_figures(job_shape: JobShape) -> Figures:
    return {
        "asked": None if job_shape.in_flight is None else float(job_shape.in_flight),
        "iodepth": None if job_shape.iodepth is None else float(job_shape.iodepth),
        "jobs": float(job_shape.jobs),
        "engine": job_shape.engine,
    }


def run_figures(point: Point, document: Mapping[str, Any], own_cpus: frozenset[int]) -> Figures:
    """The measured figures of a run. ``document`` is fio's final one ({}: unknown)."""
    figures: Figures = {
        name: figure.read(point) for name, figure in RUN.items() if figure.read is not None
    }
    if own_cpus and point.completions:
        figures["on_own"] = sum(point.completions.get(cpu, 0.0) for cpu in own_cpus)
    figures |= {f"{FIO}.{path}": value for path, value in flatten_document(document).items()}
    return figures


def flatten_document(document: Mapping[str, Any]) -> Figures:
    """The numbers and words of fio's first row (and ``disk`` for its first device) by path."""
    out: Figures = {}
    for key, target in (("jobs", ""), ("disk_util", "disk.")):
        rows = document.get(key)
        if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
            _flatten(rows[0], target, out)
    return out


def _flatten(data: Mapping[str, Any], prefix: str, out: Figures) -> None:
    for key, value in data.items():
        name = re.sub(r"\W", "_", str(key))
        name = f"_{name}" if name[:1].isdigit() else name
        if isinstance(value, Mapping):
            if name != "bins":
                _flatten(value, f"{prefix}{name}.", out)
        elif isinstance(value, (int, float, str)):
            out[prefix + name] = value
