"""The screen of one viewer: a recording is played, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.model.volumes.promised import PromisedFigures


@dataclass(frozen=True, slots=True)
class ViewerOptions:
    """How viewers see the ``recording``: from its start, or ``follow`` it as it is written."""

    recording: Path
    follow: bool = True
    speed: float = 1.0
    theme: str = ""
    volume: PromisedFigures | None = None


def show_viewer(options: ViewerOptions, fds: Sequence[int]) -> int:
    """Play the recording, which is open as two descriptors, until the page is closed."""
    from iopstui.recording.follow import FollowSession
    from iopstui.recording.replay import ReplaySession
    from iopstui.ui.replay import show_session

    play, newest = (os.fdopen(fd, "rb") for fd in fds)
    # viewers must not see the directory
    path = Path(options.recording.name)
    if options.follow:
        session: ReplaySession = FollowSession(path, options.speed, files=(play, newest))
    else:
        newest.close()
        session = ReplaySession(path, options.speed, play)
    return show_session(session, options.theme, options.volume)
