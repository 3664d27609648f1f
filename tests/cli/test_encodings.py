"""Terminals whose encoding lacks some of our characters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iopstui import format as formats
from iopstui.cli.program import command_parsers
from iopstui.safety import streams

ENCODINGS = ("ascii", "koi8-r", "gb2312", "euc-jp", "cp437", "shift_jis")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_all_help_can_be_printed(encoding: str) -> None:
    for parser in command_parsers().values():
        text = parser.format_help()
        printed = text.encode(encoding, streams.LOOK_ALIKES).decode(encoding)
        assert "\\x" not in printed and "\\u" not in printed
        assert len(printed.splitlines()) == len(text.splitlines())


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_all_signs_of_ours_have_a_look_alike(encoding: str) -> None:
    for sign in formats.ASCII:
        printed = sign.encode(encoding, streams.LOOK_ALIKES).decode(encoding)
        assert printed == sign or (printed.isascii() and "\\" not in printed)


def test_other_characters_are_printed_as_numbers() -> None:
    text = "Жµ日\udcff"
    assert text.encode("ascii", streams.LOOK_ALIKES) == b"\\u0416u\\u65e5\\udcff"
    assert text.encode("koi8-r", streams.LOOK_ALIKES) == b"\xf6u\\u65e5\\udcff"


@pytest.mark.parametrize("words", [("compare", "--help"), ("devices", "/dev/no√such")])
def test_commands_print_what_the_encoding_can_express(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "iopstui", *words], cwd=tmp_path, capture_output=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "koi8-r", "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert b"error" not in result.stderr and result.returncode in (0, 2)
    assert (result.stdout + result.stderr).decode("koi8-r")
