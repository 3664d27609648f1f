"""A session reports stalls that its frames show, and a stall that continues at its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from disks import changed
from watch_frames import frame, rates

from iopstui.events import Event, StallFound
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.target import DEVICE, Target
from iopstui.model.experiment.run_request import RunRequest
from iopstui.session.tick.context import Viewer
from iopstui.session.tick.sampling import Sampling

TARGET = Target(DEVICE, "/dev/vda", "vda", ("vda",))
WAITS = changed(rates(), in_flight=7, util=100.0)


def test_stalls_are_events_of_the_session() -> None:
    told: list[Event] = []
    context: Any = SimpleNamespace(
        target=TARGET, devices={}, roots=Roots(), emit=told.append, now=lambda: 9.5
    )
    sampling = Sampling(context, SimpleNamespace(), RunRequest(), Viewer())  # type: ignore[arg-type]
    for n, disk in enumerate((rates(10), WAITS, WAITS, rates(10), WAITS), 1):
        told += sampling._conclusions(frame(float(n), {"vda": disk}), None)
    [event] = [one for one in told if isinstance(one, StallFound)]
    assert isinstance(event, StallFound) and event.t == 4.0
    assert (event.stall.start, event.stall.seconds, event.stall.in_flight) == (1.0, 2.0, 7)
    sampling.close()
    last = told[-1]
    assert isinstance(last, StallFound) and (last.t, last.stall.ended) == (9.5, False)
