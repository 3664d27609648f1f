"""Points of a sweep made by hand."""

from __future__ import annotations

from iopstui.events import PointFinished
from iopstui.model.experiment.plan import Plan, expand_plan, parse_axis
from iopstui.model.experiment.point import Point, littles_law

PLAN = Plan(("randread-4k",), {}, (parse_axis("iodepth=1,2,4..64"), parse_axis("numjobs=1,4")))


def device(depth: int, jobs: int, at_once: int = 12) -> Point:
    """A point of a device that serves ``at_once`` I/Os at the same time, each in 100 µs."""
    n = depth * jobs
    latency = 100_000 * max(1.0, n / at_once)
    iops = n / (latency / 1e9)
    return Point(8.0, int(8 * iops), iops, iops * 4096, iops, 0.0, latency, "lat", latency,
                 2 * latency, 3 * latency, aqu_sz=float(n), util=99.0)  # fmt: skip


def finished(plan: Plan = PLAN) -> list[PointFinished]:
    events = []
    for step in expand_plan(plan):
        values = {one.name: one.value for one in step.settings}
        point = device(int(values["iodepth"]), int(values.get("numjobs", "1")))
        asked = int(values["iodepth"]) * int(values.get("numjobs", "1"))
        law = littles_law(point, asked, paced=False)
        events.append(PointFinished(1.0, step.index, plan.points, step.label, step.job,
                                    tuple(values.items()), 0, step.repeat, point, law))  # fmt: skip
    return events
