"""`iopstui replay FILE --format ...`: a recording as table, JSON lines or CSV."""

from __future__ import annotations

import sys

from iopstui.errors import EXIT_OK, UsageError
from iopstui.output.sinks import make_sink
from iopstui.session.recording import Recording, recording_path
from iopstui.session.replay import Fold, replayed
from iopstui.text import printable


def replay_headless(name: str, kind: str) -> int:
    """Everything that is in the recording, without waiting. Data on stdout, words on stderr."""
    with Recording(recording_path(name)) as recording:
        fold = Fold(recording.header)
        header = recording.header
        sink = make_sink(kind, sys.stdout, sys.stderr, header.target, header.host)
        shown = 0
        try:
            for event in replayed(recording, fold):
                sink.handle(event)
                shown += 1
        finally:
            sink.close()
    if not shown:
        raise UsageError(f"The recording {printable(name)} holds no sample: nothing to replay.")
    return EXIT_OK
