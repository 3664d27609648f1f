"""Parse the bytes of an attribute."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iopstui.linux.kernel_files import read_bytes, read_count, read_flag, read_int, read_text


@pytest.mark.parametrize(
    ("data", "text", "number", "count", "flag"),
    [
        (b"12\n", "12", 12, 12, True), (b" 0 \n", "0", 0, 0, False),
        (b"-1\n", "-1", -1, None, True),
        (b"a\0b\0\n", "ab", None, None, None), (b"\0\n", None, None, None, None),
        (b"\xff", "\udcff", None, None, None), (b"1_0", "1_0", None, None, None),
        (b"", None, None, None, None),
    ],
)  # fmt: skip
def test_an_attribute(
    tmp_path: Path, data: bytes, text: str | None, number: int | None, count: int | None,
    flag: bool | None,
) -> None:  # fmt: skip
    path = tmp_path / "a"
    path.write_bytes(data)
    assert (read_text(path), read_int(path), read_count(path), read_flag(path)) == (
        text, number, count, flag
    )  # fmt: skip
    assert read_text(tmp_path / "none") is None and read_text(tmp_path) is None


@pytest.mark.parametrize("size", [0, 1, 8192, 8193, 300_000])
def test_a_file_of_any_length_is_read_whole(size: int, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(n % 251 for n in range(size)))
    assert read_bytes(tmp_path / "f") == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize("name", [".", "nothing", "with\0nul"])
def test_what_is_no_file_is_none(name: str, tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    assert read_bytes(f"{tmp_path}/{name}") is None
    assert len(os.listdir("/proc/self/fd")) == len(before)
