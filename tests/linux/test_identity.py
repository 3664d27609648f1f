"""Which device, directory or file a target is, whatever its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iopstui.linux.devices.identity import target_identity
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, DIRECTORY, FILE, Target


def disk(name: str = "sda", **more: object) -> BlockDevice:
    found = BlockDevice(name, f"/dev/{name}", 8, 0, "scsi", 1 << 30)
    return replace(found, **more)  # type: ignore[arg-type]


def attribute(base: Path, path: str, text: str) -> None:
    file = base / "sys/class/block" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


def test_another_directory_or_file_of_that_name_is_another_target(tmp_path: Path) -> None:
    roots, place = Roots.under(tmp_path), tmp_path / "data"
    place.mkdir()
    where = Target(DIRECTORY, str(place), "sda", ("sda",))
    first = target_identity(where, {"sda": disk()}, roots)
    assert first == target_identity(where, {"sda": disk()}, roots)
    place.rename(tmp_path / "old")
    place.mkdir()
    assert target_identity(where, {"sda": disk()}, roots) != first
    file = Target(FILE, str(place / "f"), "sda", ("sda",))
    before = [target_identity(file, {}, roots, made) for made in (True, False)]
    (place / "f").touch()
    after = [target_identity(file, {}, roots, made) for made in (True, False)]
    assert before[0] == after[0], "a job makes it: that is no other target"
    assert before[1] != after[1]


@pytest.mark.parametrize("missing", ["sda", "dm-0"])
def test_a_device_that_is_not_seen_is_left_out(missing: str, tmp_path: Path) -> None:
    where = Target(DEVICE, "/dev/sda", missing, (missing,))
    assert target_identity(where, {}, Roots.under(tmp_path)) == "/dev/sda"
