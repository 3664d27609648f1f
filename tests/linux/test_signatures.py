from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.devices import signatures
from iopstui.linux.devices.signatures import known_magics, parse_blkid, read_signatures

MIB = 1 << 20


@pytest.fixture
def without_blkid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "which", lambda *_, **__: None)


def image(path: Path, *patches: tuple[int, bytes], size: int = 4 * MIB) -> str:
    with path.open("wb") as file:
        file.truncate(size)
        for offset, data in patches:
            file.seek(offset % size)
            file.write(data)
    return str(path)


@pytest.mark.parametrize(
    ("offset", "magic", "word"),
    [
        (0x438, b"\x53\xef", "ext"),
        (0, b"XFSB", "XFS"),
        (0x10040, b"_BHRfS_M", "btrfs"),
        (4086, b"SWAPSPACE2", "swap"),
        (65526, b"SWAPSPACE2", "swap"),
        (512, b"LABELONE", "LVM"),
        (0, b"LUKS\xba\xbe", "LUKS"),
        (512, b"EFI PART", "GPT"),
        (4096, b"EFI PART", "GPT"),
        (-512, b"EFI PART", "GPT"),
        (510, b"\x55\xaa", "MBR"),
        (4096, bytes.fromhex("fc4e2ba9"), "md"),
        (4 * MIB - 65536, bytes.fromhex("fc4e2ba9"), "md"),
        (4 * MIB - 8192, bytes.fromhex("fc4e2ba9"), "md"),
        (0x20000 + 3 * 1024, (0x00BAB10C).to_bytes(8, "little"), "ZFS"),
    ],
)
def test_own_check(
    tmp_path: Path, without_blkid: None, offset: int, magic: bytes, word: str
) -> None:
    found = read_signatures(image(tmp_path / "disk", (offset, magic)))
    assert len(found.contents) == 1 and word in found.contents[0]
    assert not found.error


def test_a_blank_disk_is_blank_with_and_without_blkid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = image(tmp_path / "disk")
    assert read_signatures(path) == signatures.Signatures()
    monkeypatch.setattr(signatures, "which", lambda *_, **__: None)
    assert read_signatures(path) == signatures.Signatures()


@pytest.mark.parametrize("size", [0, 1, 511, 512, 4096, 70000])
def test_tiny_disks(tmp_path: Path, without_blkid: None, size: int) -> None:
    assert read_signatures(image(tmp_path / "disk", size=size)).contents == ()


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    assert read_signatures(str(tmp_path / "none")).error == "No such file or directory"
    assert read_signatures(str(tmp_path)).error


def fake_blkid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = tmp_path / "bin/blkid"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_blkid_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_blkid(tmp_path, monkeypatch, 'printf "TYPE=zfs_member\\nUSAGE=raid\\n"; echo "$@" >&2')
    found = read_signatures(image(tmp_path / "disk"))
    assert found.types == ("zfs_member",)


@pytest.mark.parametrize("script", ["exit 2", "exit 4", "exit 127", "kill -9 $$"])
def test_a_blkid_that_finds_nothing_or_fails_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    fake_blkid(tmp_path, monkeypatch, script)
    found = read_signatures(image(tmp_path / "disk", (0, b"XFSB")))
    assert found.contents == ("an XFS file system",)


def test_ambivalent_signatures_are_signatures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_blkid(tmp_path, monkeypatch, "exit 8")
    assert read_signatures(image(tmp_path / "disk")).contents


def test_blkid_output() -> None:
    text = "DEVNAME=/dev/x\nLABEL=my\x1b disk\nUUID=1\nTYPE=ext4\nUSAGE=filesystem\nPTTYPE=gpt\n"
    found = parse_blkid(text).contents
    assert found == ('a file system (ext4, label "my? disk")', "a partition table (gpt)")
    # a blank partition: blkid only reports its place in the table
    assert parse_blkid("PART_ENTRY_SCHEME=gpt\nPART_ENTRY_NUMBER=3\n").contents == ()


@given(st.binary(max_size=8192), st.binary(max_size=8192), st.integers(0, 1 << 50))
def test_any_bytes_are_survived(head: bytes, tail: bytes, size: int) -> None:
    list(known_magics(head, tail, size))


@given(st.text())
def test_any_blkid_output_is_survived(text: str) -> None:
    parse_blkid(text)
