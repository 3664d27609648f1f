"""Looks at the session's frames with the rules of model/diagnosis.py and says what is new."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator

from iopstui.model import jobfile
from iopstui.model.device import BlockDevice
from iopstui.model.diagnosis import (
    LONG_ENOUGH,
    Evidence,
    Finding,
    JobShape,
    Steady,
    diagnose,
    fio_iops,
    fio_latency,
    measured,
)
from iopstui.model.frame import Frame
from iopstui.session.prepare import expand
from iopstui.sources.fio_stream import flag

KEEP = 30
REPEAT_S = 30.0


def shape_of(text: str) -> JobShape:
    """What a job file asks for, over all its sections that run at once."""
    jobs = [job.options for job in jobfile.effective(text)]
    if not jobs:
        return JobShape()
    numbers = [_number(options.get("numjobs")) for options in jobs]
    engines = {expand(options.get("ioengine", "psync")) for options in jobs}
    direct = {
        not flag(options, "buffered") if "buffered" in options else flag(options, "direct")
        for options in jobs
    }
    rates = [_number(o.get("rate_iops")) * n for o, n in zip(jobs, numbers, strict=True)
             if "rate_iops" in o]  # fmt: skip
    staged = any("stonewall" in o or "wait_for_previous" in o for o in jobs)
    return JobShape(
        jobs=max(numbers) if staged else sum(numbers),
        iodepth=max(_number(options.get("iodepth")) for options in jobs),
        engine=engines.pop() if len(engines) == 1 else None,
        direct=direct.pop() if len(direct) == 1 else None,
        rate_iops=sum(rates) if rates else None,
    )


def _number(text: str | None) -> int:
    digits = expand(text or "1").split(",")[0]
    return max(1, int(digits)) if digits.isdecimal() else 1


class Findings:
    """Fed with every frame; yields a finding when its rule begins to fire, and again every
    ``REPEAT_S`` seconds while it goes on."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque(maxlen=KEEP)
        self._before: deque[Frame] = deque(maxlen=LONG_ENOUGH)
        self._quiet: tuple[Frame, ...] = ()
        self._shape = JobShape()
        self._name = ""
        self._earlier: list[Steady] = []
        self._said: dict[str, float] = {}

    def begin(self, name: str, text: str) -> None:
        """A run begins. Earlier runs are comparable only if they were of the same job."""
        self._keep_steady()
        if name != self._name:
            self._earlier = []
        self._name, self._shape = name, shape_of(text)
        self._quiet = tuple(self._before)
        self._frames.clear()
        self._said = {}

    def feed(self, frame: Frame, device: BlockDevice | None) -> Iterator[Finding]:
        """What this frame shows that was not said yet."""
        if not frame.step:
            self._before.append(frame)
            return
        self._before.clear()
        self._frames.append(frame)
        if frame.fio is None:
            return
        online = tuple(sorted(set(frame.cpus) & os.sched_getaffinity(0)))
        evidence = Evidence(
            tuple(self._frames), self._quiet, device, self._shape, online, tuple(self._earlier)
        )
        for finding in diagnose(evidence):
            said = self._said.get(finding.rule)
            if said is None or frame.t - said >= REPEAT_S:
                self._said[finding.rule] = frame.t
                yield finding

    def _keep_steady(self) -> None:
        frames = measured(self._frames)[-LONG_ENOUGH:]
        latency = fio_latency(frames)
        if len(frames) >= 3 and latency is not None:
            self._earlier.append(Steady(self._shape, fio_iops(frames), latency))
            del self._earlier[:-8]
