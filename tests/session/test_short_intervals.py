"""Samples less than a second apart are judged by whole seconds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recordings import VDA

from iopstui.events import AnswerGiven, Event, FrameReady
from iopstui.linux.kernel_files import Roots
from iopstui.model.answer.judge import AnswerTracker
from iopstui.model.block.target import DEVICE, DeviceLinks, Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.findings.evidence import JobShape
from iopstui.model.samples import DiskCounters, KernelSample
from iopstui.session.tick.context import Viewer
from iopstui.session.tick.sampling import Reading, Sampling

TARGET = Target(DEVICE, "/dev/vda", "vda", ("vda",), links=(DeviceLinks("vda"),))


def reading(number: int, interval_s: float) -> Reading:
    """A reading of a disk with five writes in flight all the time, each of which takes 50 ms."""
    at_ns, writes = 10**12 + int(number * interval_s * 1e9), int(100 * number * interval_s)
    counts = {"writes": writes, "write_ms": 50 * writes, "weighted_ms": 50 * writes,
              "io_ms": int(1000 * number * interval_s), "in_flight": 5}  # fmt: skip
    disk = DiskCounters(
        **{**dict.fromkeys(DiskCounters.__annotations__, 0), "name": "vda", **counts}
    )
    more = {"pressure": {"some": int(9e5 * number * interval_s), "full": 0}}
    kernel = KernelSample(at_ns, at_ns / 1e6, 1000, {"vda": disk}, {}, {}, {}, None, more=more)
    return Reading(None, kernel, at_ns, at_ns / 1e6, ())


def made(tmp_path: Path, interval_s: float, told: list[Event]) -> Sampling:
    recording = SimpleNamespace(sample=lambda raw: None, problems=lambda: ())
    context: Any = SimpleNamespace(
        target=TARGET, devices={"vda": VDA}, roots=Roots.under(tmp_path), emit=told.append,
        now=lambda: 0.0, clock=SimpleNamespace(own_busy_s=lambda: 0.0), recording=recording,
        count_from=lambda ns: None, warn=told.append,
    )  # fmt: skip
    current: Any = SimpleNamespace(fio=None, step=0)
    return Sampling(context, current, RunRequest(interval_s=interval_s), Viewer())


def test_the_answer_knows_what_the_job_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[JobShape] = []
    monkeypatch.setattr(AnswerTracker, "feed", lambda self, *given: shapes.append(given[-1]))
    sampling = made(tmp_path, 1.0, [])
    sampling.findings.begin_run("[a]\nrate_iops=5\n")
    for number in range(3):
        sampling.sample(reading(number, 1.0), final=False)
    sampling.close()
    assert shapes[-1].pace == "rate_iops=5"


@pytest.mark.parametrize("interval_s", [0.25, 0.5, 1.0])
def test_the_answer_does_not_depend_on_the_interval(tmp_path: Path, interval_s: float) -> None:
    told: list[Event] = []
    sampling = made(tmp_path, interval_s, told)
    count = round(4 / interval_s)
    for number in range(count + 1):
        sampling.sample(reading(number, interval_s), final=False)
    sampling.close()
    assert sum(isinstance(event, FrameReady) for event in told) == count + 1
    answers = [event for event in told if isinstance(event, AnswerGiven)]
    assert answers[0].t == 3.0 and answers[0].answer.rule == "queue"
    assert answers[0].answer.text.startswith("vda is busy: I/Os take 50.0 ms")
