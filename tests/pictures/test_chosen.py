"""Each picture in the documents is made from its recording, and shows what it is meant to show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from chosen import PICTURES, Picture

from iopstui import events
from iopstui import format as f
from iopstui.model.metrics.frame import Frame
from iopstui.recording.reader import Recording, recording_path
from iopstui.recording.replay import replay_events

ROOT = Path(__file__).resolve().parents[2]
AFFINITY, BUSY = (
    next(picture for picture in PICTURES if picture.out == f"docs/{name}.svg")
    for name in ("affinity", "busy")
)

RQ_AFFINITY = {0: (13, 19), 1: (22, 30), 2: (33, 45)}
"""Value of rq_affinity, and the seconds during which it is set."""


def recording(picture: Picture) -> Recording:
    return Recording(ROOT / recording_path(picture.recording))


def frames(picture: Picture) -> Iterator[Frame]:
    with recording(picture) as open_recording:
        yield from (
            e.frame for e in replay_events(open_recording) if isinstance(e, events.FrameReady)
        )


def share(picture: Picture, begin: float, end: float) -> dict[int, float]:
    """Each CPU's share of the completions in these seconds."""
    completions: Counter[int] = Counter()
    for frame in frames(picture):
        if begin < frame.t < end:
            completions.update({n: round(cpu.block_s or 0) for n, cpu in frame.cpus.items()})
    return {cpu: count / completions.total() for cpu, count in completions.items()}


def test_every_moving_picture_is_made_by_the_command_and_used_in_a_document() -> None:
    moving = {path for path in (ROOT / "docs").glob("*.svg") if "@keyframes" in path.read_text()}
    assert moving == {ROOT / picture.out for picture in PICTURES}
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    displayed = {
        (path.parent / name).resolve()
        for path in documents
        for name in re.findall(r"!\[[^]]*\]\(([^)]+\.svg)\)", path.read_text())
    }
    assert moving <= displayed


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: Path(picture.out).stem)
def test_a_picture_plays_to_the_end_of_its_recording(picture: Picture) -> None:
    with recording(picture) as open_recording:
        end, host = f.clock(open_recording.index().end), open_recording.header.host
    text = (ROOT / picture.out).read_text()
    assert host == "demo"
    assert re.findall(r"REPLAY (\d+:\d+)", text)[-1] == end
    assert f"plays the recording {Path(picture.recording).stem}<" in text


def test_completions_move_from_one_cpu_to_its_cache_and_to_all() -> None:
    shares = {value: share(AFFINITY, *within) for value, within in RQ_AFFINITY.items()}
    assert shares[0] == pytest.approx({0: 0, 1: 0, 2: 0, 3: 1}, abs=0.01)
    # CPU 2 shares its cache with CPU 3, which gets the interrupt; CPUs 0 and 1 do not
    assert shares[1] == pytest.approx({0: 0.25, 1: 0.25, 2: 0, 3: 0.5}, abs=0.05)
    assert shares[2] == pytest.approx({0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25}, abs=0.05)
    text = (ROOT / AFFINITY.out).read_text()
    assert "Completions by CPU" in text and "rq_affinity 1 → 2" in text


def test_other_readers_multiply_the_disk_s_await() -> None:
    awaits = {frame.t: frame.disks["vda"].r_await or 0 for frame in frames(BUSY) if frame.disks}
    calm = max(wait for t, wait in awaits.items() if 2 < t < 16 or t > 31)
    busy = min(wait for t, wait in awaits.items() if 19 < t < 29)
    assert busy > 20 * calm > 0
    text = (ROOT / BUSY.out).read_text()
    assert "no job running" in text and "r_await" in text
