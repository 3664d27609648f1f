"""Look over a whole flight recording: its answers and highest seconds, without its samples."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from iopstui import events
from iopstui.errors import IopstuiError
from iopstui.features.flight.directory import StoredFile, stored_files, unread_part
from iopstui.features.flight.model.bad_times import BadTime, bad_times
from iopstui.features.flight.model.stretches import stretches
from iopstui.model.answer.answer import Answer
from iopstui.model.block.device import BlockDevice
from iopstui.recording.reader import Recording, RecordingTooShort
from iopstui.recording.records import Peaks, RecordedDevices

MOST = 10


@dataclass
class History:
    """What happened, by time since the epoch; ``unreadable`` names files that were passed over, or
    read in part."""

    answers: list[tuple[float, Answer | None]] = field(default_factory=list)
    peaks: list[tuple[float, Peaks]] = field(default_factory=list)
    seconds: float = 0.0
    unreadable: list[str] = field(default_factory=list)
    devices: dict[str, BlockDevice] = field(default_factory=dict)

    def worst(self, most: int = MOST) -> list[BadTime]:
        """The worst times, the worst first."""
        return bad_times(stretches(self.answers), self.peaks, most)


def read_history(place: Path, began_s: float = 0.0, ended_s: float = float("inf")) -> History:
    """All that was concluded in this time."""
    history = History()
    files = stored_files(place)
    for file in files:
        if file.name.began_s <= ended_s and file.ended_s >= began_s:
            try:
                # removed meanwhile, or its writer was killed before the first sample
                with contextlib.suppress(FileNotFoundError, RecordingTooShort):
                    _read(file, history, began_s, ended_s, is_last=file is files[-1])
            except IopstuiError as error:
                history.unreadable.append(f"{file.path.name}: {error.message}")
    return history


def _read(
    file: StoredFile, history: History, began_s: float, ended_s: float, is_last: bool
) -> None:
    with Recording(file.path) as recording:
        recording.pass_over("Use")
        base_s = recording.header.started_ms / 1e3
        index = recording.index()
        # samples from before its beginning are only subtracted from
        began_t = max(0.0, file.name.began_s - base_s)
        history.seconds += index.end - began_t
        if text := unread_part(file, recording.damage, is_last):
            history.unreadable.append(text)
        for _, record in index.events:
            at = base_s + max(record.t, began_t)
            if not began_s <= at <= ended_s and not isinstance(record.value, RecordedDevices):
                continue
            match record.value:
                case events.AnswerGiven():
                    history.answers.append((at, record.value.answer))
                case Peaks():
                    history.peaks.append((at, record.value))
                case RecordedDevices():
                    history.devices |= {device.name: device for device in record.value.devices}
        history.answers.append((min(base_s + index.end, ended_s), None))
