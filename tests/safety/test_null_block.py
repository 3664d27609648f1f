"""The null_blk device of the self-test, in a directory like configfs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_journal import left_by_a_dead_one

from iopstui.linux.kernel_files import Roots
from iopstui.safety import journal, null_block
from iopstui.safety.leftovers import clean_up


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "iopstui"


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roots:
    """A directory that acts like configfs: new directories get attributes, and rmdir removes
    them."""
    base = Roots.under(tmp_path)
    nullb = base.sys / "kernel/config/nullb"
    nullb.mkdir(parents=True)
    make, remove = Path.mkdir, Path.rmdir

    def mkdir(path: Path, *arguments: Any, **options: Any) -> None:
        make(path, *arguments, **options)
        if path.parent == nullb:
            (path / "index").write_text("0\n")

    def rmdir(path: Path) -> None:
        if path.parent == nullb:
            for attribute in path.iterdir():
                attribute.unlink()
        remove(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    return base


def test_it_is_noted_before_it_is_made_and_removed_afterwards(state: Path, roots: Roots) -> None:
    configfs = roots.sys / "kernel/config"
    with null_block.null_block(configfs, 10):
        assert (configfs / "nullb" / null_block.NAME / "completion_nsec").read_text() == "10"
        assert [path.name.split("-")[0] for path in state.iterdir()] == ["null_blk"]
        assert clean_up(roots) == ([], [])
    assert not list((configfs / "nullb").iterdir()) and not list(state.iterdir())


def test_what_a_killed_process_has_left_is_removed(state: Path, roots: Roots) -> None:
    device = roots.sys / "kernel/config/nullb" / null_block.NAME
    journal.write_note("kind", {}).remove()
    device.mkdir()
    note = left_by_a_dead_one(state, "null_blk-1.json", {"module": False})
    assert clean_up(roots)[0] == [f"the null_blk device {null_block.NAME} is removed"]
    assert not device.exists() and not note.exists()


def test_another_process_s_device_stays(state: Path, roots: Roots) -> None:
    configfs = roots.sys / "kernel/config"
    device = configfs / "nullb" / null_block.NAME
    device.mkdir()
    with pytest.raises(FileExistsError), null_block.null_block(configfs, 10):
        pass
    assert device.is_dir() and not list(state.iterdir())


def test_one_that_is_in_use_is_reported_and_removed_later(
    state: Path, roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = roots.sys / "kernel/config/nullb" / null_block.NAME
    journal.write_note("kind", {}).remove()
    device.mkdir()
    note = left_by_a_dead_one(state, "null_blk-1.json", {"module": True})
    with monkeypatch.context() as busy:
        busy.setattr(Path, "rmdir", lambda path: (_ for _ in ()).throw(OSError(16, "busy")))
        assert "cannot remove the null_blk device" in clean_up(roots)[1][0]
    assert device.exists() and note.exists()
