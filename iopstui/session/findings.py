"""Looks at the session's frames with the rules of model/findings/rules.py and says what is new."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from math import inf

from iopstui.fio.job_shape import comparable, shape_of
from iopstui.linux.process.affinity import allowed
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.evidence import (
    ENOUGH,
    LONG_ENOUGH,
    Evidence,
    Finding,
    JobShape,
    Steady,
    fio_iops,
    fio_latency,
    measured,
)
from iopstui.model.findings.rules import diagnose
from iopstui.model.findings.tunable_effect import MANY, TunableChange, around, tunable_effect
from iopstui.model.metrics.frame import FINAL, Frame

KEEP = 30
REPEAT_S = 30.0
# what a run leaves behind (its write-back, its file's removal) is not background I/O
SETTLE_FRAMES = 5


class Findings:
    """Fed with every frame; yields a finding when its rule begins to fire, and again every
    ``REPEAT_S`` seconds while it goes on; and what moved, some seconds after a tunable was changed.
    ``unseen`` says what the jobs work on besides devices.
    """

    def __init__(self, unseen: Sequence[str] = ()) -> None:
        self._unseen = tuple(unseen)
        self._frames: deque[Frame] = deque(maxlen=KEEP)
        self._before: deque[Frame] = deque(maxlen=LONG_ENOUGH)
        self._skip = 0
        self._quiet: tuple[Frame, ...] = ()
        self._shape = JobShape()
        self._job = ""
        self._earlier: list[Steady] = []
        self._said: dict[str, float] = {}
        self._change: TunableChange | None = None
        self._since = -inf

    def lay_out(self) -> None:
        """Files are laid out: what the run itself writes before it begins is not background I/O."""
        self._quiet = tuple(self._before)
        self._before.clear()
        self._skip = 1 << 30

    def begin(self, text: str) -> None:
        """A run of this job file begins. Earlier runs are comparable only if they differ in
        depth alone."""
        self._keep_steady()
        job = comparable(text)
        if job != self._job:
            self._earlier = []
        self._job, self._shape = job, shape_of(text)
        if self._skip <= SETTLE_FRAMES:
            self._quiet = tuple(self._before)
        self._before.clear()
        self._frames.clear()
        self._said = {}
        self._change, self._since = None, -inf

    def changed(self, t: float, device: str, name: str, before: str, now: str) -> None:
        """A tunable was changed at ``t``: what it moved is reported when enough seconds were
        measured, and runs before and after it are not compared with each other."""
        self._earlier = []
        if self._change is not None:
            self._since = self._change.t
        self._change = TunableChange(t, device, name, before, now)

    def feed(self, frame: Frame, devices: Sequence[BlockDevice]) -> Iterator[Finding]:
        """What this frame shows that was not reported yet. ``devices`` are those that the jobs work
        on."""
        if not frame.step:
            if self._skip:
                self._skip -= 1
            else:
                self._before.append(frame)
            return
        self._skip = SETTLE_FRAMES
        self._before.clear()
        self._frames.append(frame)
        if frame.fio is None:
            return
        yield from self._moved(frame, devices)
        for finding in diagnose(self._evidence(frame, devices)):
            said = self._said.get(finding.rule)
            if said is None or frame.t - said >= REPEAT_S:
                self._said[finding.rule] = frame.t
                yield finding

    def _evidence(self, frame: Frame, devices: Sequence[BlockDevice]) -> Evidence:
        online = tuple(sorted(set(frame.cpus) & allowed()))
        return Evidence(
            tuple(self._same_settings()),
            self._quiet,
            tuple(devices),
            self._shape,
            online,
            tuple(self._earlier),
            self._unseen,
        )

    def _moved(self, frame: Frame, devices: Sequence[BlockDevice]) -> Iterator[Finding]:
        change = self._change
        if change is None:
            return
        frames = tuple(self._frames)
        if len(around(frames, change)[1]) < MANY and FINAL not in frame.flags:
            return
        found = tunable_effect(change, frames, devices, self._since)
        self._since, self._change = change.t, None
        if found is not None:
            yield found

    def _same_settings(self) -> list[Frame]:
        """The run's frames since the last change."""
        since = self._since if self._change is None else self._change.t
        return [frame for frame in self._frames if frame.t > since]

    def _keep_steady(self) -> None:
        frames = measured(self._same_settings())[-LONG_ENOUGH:]
        latency = fio_latency(frames)
        if len(frames) >= ENOUGH and latency is not None:
            self._earlier.append(Steady(self._shape, fio_iops(frames), latency))
            del self._earlier[:-8]
