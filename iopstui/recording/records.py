"""Parts of a recording besides samples and events. Not in ``layout``, which knows the classes of
everything that there can be in one: most sessions never write a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iopstui.model.block.binding import Binding
from iopstui.model.block.device import BlockDevice


@dataclass(frozen=True, slots=True)
class JobRun:
    """The job of a step: as it was asked for (``job`` with ``overrides``, ``size``, ``bind``, and
    ``knobs`` of this run alone), and as fio got it (``text``, whose ``files`` it opens; surrogates
    stand for odd bytes). ``binding`` says which of its jobs ran on which CPU, if that was chosen.
    """

    step: int
    job: str
    overrides: Mapping[str, str]
    size: str | None
    bind: bool
    text: str
    files: tuple[str, ...] = ()
    knobs: tuple[tuple[str, str], ...] = ()
    binding: Binding | None = None


@dataclass(frozen=True, slots=True)
class RecordedDevices:
    """The target's device and those below it, as they are from here on (serial numbers are
    left out)."""

    devices: tuple[BlockDevice, ...]


@dataclass(frozen=True, slots=True)
class RecordingEnd:
    """The recording was stopped properly: it is complete."""

    t: float
