"""Who looks at a session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Viewer:
    """``idle_frames`` False: frames only while a job runs; True: also without one, and scratch
    files are kept until the session ends for runs that need the same ones.
    ``short_first_interval``: the first frame covers a shorter interval, for a user who waits at a
    screen. ``keep_s``: how many of the last seconds are kept for a later recording. ``on_screen``:
    while no job runs, latencies are counted if that is possible and cheap, and who uses the disks
    is read each second. ``judge_every``: while no job runs, answers and findings are computed once
    for this many samples together."""

    idle_frames: bool = True
    short_first_interval: bool = True
    keep_s: float = 0.0
    on_screen: bool = False
    judge_every: int = 1


NOBODY = Viewer(idle_frames=False)
"""Follow the runs only, not the time between them."""
