"""(m) The report of a day with a job at 1 Hz: made-up hours are recorded and reported. CPU time of
all processes for each sample, and elapsed time. A program of its own, which prints JSON."""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import day

from iopstui import events
from iopstui.features.reports.files import rendered
from iopstui.model.metrics.summary import fio_summary
from iopstui.model.samples import FioStatus
from iopstui.recording.writer import Recorder, RecordingBuffer


def record(path: Path, seconds: int) -> None:
    """The first ``seconds`` of the day of day.py."""
    controller, recorder = day.Controller(), Recorder(path)
    tape = RecordingBuffer(
        controller.target, lambda: controller.devices, 1.0, True, recorder=recorder,
        topology=controller.topology,
    )  # fmt: skip
    last: FioStatus | None = None
    for raw in itertools.islice(day.raws(), seconds):
        tape.sample(raw)
        last = raw.fio
        if raw.seq == 1:
            tape.event(events.StepStarted(0.0, 1, "day", "randread 4k", ("fio",), True))
        while recorder.waiting > 200:
            time.sleep(0.001)
    assert last is not None
    tape.event(events.StepFinished(seconds - 1.0, 1, 0, "", False, fio_summary(last)))
    tape.close(events.SessionEnded(seconds - 1.0, 0))


def cpu_s() -> float:
    """CPU seconds of this process and of the processes it has waited for."""
    return sum(os.times()[:4])


def measure(seconds: int) -> dict[str, Any]:
    """µs for each sample: of CPU time and of elapsed time, by format; and bytes of the
    recording."""
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        path = Path(place) / "day.iops"
        record(path, seconds)
        found: dict[str, Any] = {"seconds": seconds, "bytes": path.stat().st_size / seconds}
        for kind in ("html", "csv"):
            before, began = cpu_s(), time.monotonic()
            rendered([path], kind)
            found[kind] = (cpu_s() - before) / seconds * 1e6
            found[f"{kind}_time"] = (time.monotonic() - began) / seconds * 1e6
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
