"""The status of a thin pool, from answers of Linux 6.12."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from iopstui.linux.devices.health import parse_pool_state, read_pool_state
from iopstui.linux.kernel_files import Roots
from iopstui.linux.machine.conditions import ConditionsFiles
from iopstui.model.block.device import BlockDevice

# the header up to the device's number, then the target
WORKS = (
    "040000003000000000000000a001000038010000010000000100000020080000000000000000000002fc",
    "0000000000000000000001000000000000000000680000007468696e2d706f6f6c0000000000000030203231"
    "342f3230343820302f353132202d20727720646973636172645f70617373646f776e2071756575655f69665f"
    "6e6f5f7370616365202d2035313220",
)
FULL = (
    "040000003000000000000000b101000038010000010000000100000020080000020000000000000002fc",
    "0000000000000000000001000000000000000000800000007468696e2d706f6f6c0000000000000030203231"
    "372f32303438203531322f353132202d206f75745f6f665f646174615f737061636520646973636172645f70"
    "617373646f776e2071756575655f69665f6e6f5f7370616365202d2035313220",
)
LINEAR = (
    "0400000030000000000000006101000038010000010000000100000020080000000000000000000001fc",
    "0000000000000000000001000000000000000000300000006c696e656172",
)


def reply(parts: tuple[str, str]) -> bytes:
    header, target = map(bytes.fromhex, parts)
    return (header.ljust(312, b"\0") + target).ljust(4096, b"\0")


@pytest.mark.parametrize(("parts", "state"), [
    (WORKS, ""), (FULL, "out_of_data_space"), (LINEAR, ""),
])  # fmt: skip
def test_the_state_of_a_pool(parts: tuple[str, str], state: str) -> None:
    assert parse_pool_state(reply(parts)) == state


def test_a_pool_that_failed_and_one_that_is_read_only() -> None:
    for word in ("ro", "Fail"):
        answer = reply(FULL).replace(b"out_of_data_space", word.encode())
        assert parse_pool_state(answer) == word


def test_an_answer_without_a_target_or_that_ends_early_says_nothing() -> None:
    none = bytearray(reply(FULL))
    none[20:24] = bytes(4)
    assert parse_pool_state(bytes(none)) == ""
    assert parse_pool_state(reply(FULL)[:330]) == ""


def test_without_device_mapper_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "dev/mapper").mkdir(parents=True)
    assert read_pool_state("pool", Roots.under(tmp_path)) == ""
    (tmp_path / "dev/mapper/control").touch()
    assert read_pool_state("pool", Roots.under(tmp_path)) == ""


@pytest.mark.parametrize(("name", "layer", "users", "state"), [
    ("vg-data-tpool", "LVM", 0, "unreadable"), ("pool", "device-mapper", 2, "unreadable"),
    ("pool", "device-mapper", 0, ""), ("vg-root", "LVM", 2, ""),
])  # fmt: skip
def test_a_user_who_may_not_ask_knows_what_may_be_a_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, layer: str, users: int, state: str
) -> None:
    def refuse(path: Path, flags: int) -> int:
        if str(path).endswith("/mapper/control"):
            raise PermissionError
        return opened(path, flags)

    opened = os.open
    roots = Roots.under(tmp_path)
    module = roots.sys / "module/dm_thin_pool"
    module.mkdir(parents=True)
    (module / "refcnt").write_text(f"{users}\n")
    monkeypatch.setattr(os, "open", refuse)
    pool = BlockDevice("dm-0", "/dev/dm-0", 254, 0, "dm", 1 << 30, holders=("dm-1",), dm_name=name,
                       layer=layer)  # fmt: skip
    devices = {"dm-0": pool, "dm-1": replace(pool, name="dm-1", holders=())}
    states = ConditionsFiles(roots).read(devices, ["dm-0", "dm-1"], 0.0).devices
    assert {one: states[one].pool for one in states} == {"dm-0": state, "dm-1": ""}
