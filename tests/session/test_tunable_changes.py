"""A tunable of several disks: all are changed or none, and all are restored."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees import VIRTUAL, Tree

from iopstui import events
from iopstui.errors import IopstuiError
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.own_threads import Clock
from iopstui.model.block.target import DEVICE, Target, combine_targets
from iopstui.recording.writer import RecordingBuffer
from iopstui.safety import queue_snapshot
from iopstui.session.tick.context import Context
from iopstui.session.tick.outcomes import OutcomeTracker
from iopstui.session.tunable_changes import TunableChanges

BOTH = combine_targets([Target(DEVICE, f"/dev/{name}", name, (name,)) for name in ("sda", "sdb")])


class Watcher:
    """What the sampling thread is told."""

    def __init__(self) -> None:
        self.turned: list[tuple[str, ...]] = []

    def note_tunable_change(self, *told: str) -> None:
        self.turned.append(told)


class Turns:
    def __init__(self, base: Path) -> None:
        tree = self.tree = Tree(base)
        (tree.roots.sys / "block").mkdir()
        for minor, name in enumerate(("sda", "sdb")):
            disk = tree.disk(
                name, VIRTUAL, f"8:{16 * minor}", queue__rq_affinity="1",
                queue__scheduler="[none] mq-deadline", queue__nr_requests="64",
            )  # fmt: skip
            (tree.roots.sys / "block" / name).symlink_to(disk)
            tree.hctx(disk, 0, "0, 1")
        tape = RecordingBuffer(BOTH, dict, 1.0, True)
        self.context = Context(
            BOTH, read_devices(tree.roots), tree.roots, Clock(), tape, OutcomeTracker(())
        )
        self.told: list[events.Event] = []
        self.context.listen(self.told.append)
        self.watcher = Watcher()
        self.knobs = TunableChanges(self.context, self.watcher, ())  # type: ignore[arg-type]

    def now(self, name: str) -> list[str]:
        places = [self.tree.roots.sys / "block" / disk / "queue" / name for disk in ("sda", "sdb")]
        return [place.read_text().strip() for place in places]

    def notices(self) -> list[str]:
        return [one.text for one in self.told if isinstance(one, events.Notice)]


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Turns:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Turns(tmp_path)


def test_all_disks_get_it_and_are_put_back(turns: Turns) -> None:
    turns.knobs.change("rq_affinity", "2")
    assert turns.now("rq_affinity") == ["2", "2"]
    changed = [one.device for one in turns.told if isinstance(one, events.TunableChanged)]
    assert changed == ["sda", "sdb"]
    assert "rq_affinity 1 → 2 on all of them: sda, sdb" in turns.notices()
    assert len([one for one in turns.told if isinstance(one, events.Mark)]) == 1
    assert turns.watcher.turned == [("sda, sdb", "rq_affinity", "1", "2")]
    turns.knobs.restore()
    assert turns.now("rq_affinity") == ["1", "1"]


def test_what_one_disk_refuses_none_keeps(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    real = queue_snapshot.write_current

    def write(path: Path, value: str) -> None:
        if "sdb" in str(path.resolve()) and value == "2":
            raise OSError(22, "Invalid argument")
        real(path, value)

    monkeypatch.setattr(queue_snapshot, "write_current", write)
    with pytest.raises(IopstuiError) as caught:
        turns.knobs.change("rq_affinity", "2")
    assert "sdb" in caught.value.message
    assert turns.now("rq_affinity") == ["1", "1"] and turns.watcher.turned == []


def test_disks_that_differed_are_told_with_both_values(turns: Turns) -> None:
    (turns.tree.roots.sys / "block/sdb/queue/rq_affinity").write_text("0\n")
    turns.knobs.change("rq_affinity", "2")
    assert "rq_affinity 1/0 → 2 on all of them: sda, sdb" in turns.notices()
    turns.knobs.restore()
    assert turns.now("rq_affinity") == ["1", "0"]
