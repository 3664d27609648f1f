"""fio's last document, which it may write twice: as its last periodic document, and as its final
one.

Only the second says how long the jobs ran; before fio 3.30 the runtime of the first goes on after
their end. So the first is taken for the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iopstui.model.fio.interval_time import is_repetition
from iopstui.model.samples import FioStatus
from iopstui.session.fio.fio_run import LAST_FRAME_DELAY_S, NewDocument


def is_repeated(status: FioStatus, before: FioStatus) -> bool:
    """True if fio immediately repeats the document ``before``."""
    return status.timestamp_ms - before.timestamp_ms < LAST_FRAME_DELAY_S * 1000 and is_repetition(
        status, before
    )


def without_repeats(documents: Sequence[NewDocument]) -> list[NewDocument]:
    """The documents without those repeated after the last job has ended."""
    distinct: list[NewDocument] = []
    for document in documents:
        if (
            distinct
            and distinct[-1].maybe_final
            and is_repeated(document.status, distinct[-1].status)
        ):
            distinct.pop()
            document = replace(document, repeated=True)
        distinct.append(document)
    return distinct
