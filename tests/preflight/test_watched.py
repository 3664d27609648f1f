from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.linux.devices.target import MixedKinds
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.target import Target
from iopstui.preflight import targets
from iopstui.preflight.targets import choose_targets, choose_watch_target


def test_a_watch_of_what_is_not_there_is_offered_no_scratch_file(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(UsageError) as job:
        choose_targets((missing,), None, {}, Roots())
    assert "a scratch file is made in it" in job.value.hint
    with pytest.raises(UsageError) as watch:
        choose_watch_target((missing,), {}, Roots())
    assert watch.value.message == job.value.message
    assert "scratch" not in watch.value.hint
    assert f"{tmp_path} to watch the disk it is on" in watch.value.hint


def test_a_watch_of_mixed_kinds_is_told_which_disks_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [Target("device", "/dev/sda", "sda"), Target("directory", "/srv", "sdb")]
    kinds = "/dev/sda is a device and /srv a directory"

    def mixed(*_: object, **__: object) -> Target:
        raise MixedKinds(kinds, found)

    monkeypatch.setattr(targets, "resolve_targets", mixed)
    with pytest.raises(UsageError) as watch:
        choose_watch_target(("/dev/sda", "/srv"), {}, Roots())
    assert watch.value.message.startswith(f"{kinds}: targets watched")
    assert "job" not in watch.value.message and "scratch" not in watch.value.message
    assert watch.value.hint == "Give the disks: iopstui watch sda sdb"
    found[1] = Target("directory", "/run", None, no_device="it is in memory")
    with pytest.raises(UsageError) as nowhere:
        choose_watch_target(("/dev/sda", "/run"), {}, Roots())
    assert nowhere.value.hint == "Give only disks. List: iopstui devices"


def test_nfs_and_smb_mounts_are_watched_and_memory_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for fstype, watched in (("nfs", True), ("nfs4", True), ("cifs", True), ("tmpfs", False)):
        target = Target("directory", "/m", None, (), "why", fstype, "/m")
        monkeypatch.setattr(targets, "resolve_targets", lambda *_, to_read, t=target: t)
        if watched:
            assert choose_watch_target(("/m",), {}, Roots()).shares == ("/m",)
        else:
            with pytest.raises(UsageError, match="Nothing to watch at /m: why"):
                choose_watch_target(("/m",), {}, Roots())
