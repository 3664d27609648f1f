"""The man pages are what the program says, and man(1) takes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from manual import manual
from reference import parsers


@pytest.mark.parametrize("name", manual())
def test_it_is_what_the_program_says(root: Path, name: str) -> None:
    assert (root / "docs" / "man" / name).read_text() == manual()[name], "write it anew: make docs"


def test_nothing_else_is_there(root: Path) -> None:
    assert {path.name for path in (root / "docs" / "man").iterdir()} == set(manual())
    assert set(manual()) == {"iopstui.1", *(f"iopstui-{name}.1" for name in parsers())}


def test_every_option_is_in_its_command_s_page() -> None:
    for name, one in parsers().items():
        page = manual()[f"iopstui-{name}.1"].replace("\\-", "-")
        assert all(option in page for option in one._option_string_actions)


def test_no_line_is_a_request_by_accident() -> None:
    for page in manual().values():
        for line in page.splitlines():
            if line.startswith((".", "'")):
                assert line.split()[0] in (
                    ".SH",
                    ".PP",
                    ".TH",
                    ".TP",
                    ".B",
                    ".nf",
                    ".fi",
                    '.\\"',
                ), line


def test_groff_has_nothing_to_complain_of(root: Path) -> None:
    groff = shutil.which("groff")
    pages = sorted((root / "docs" / "man").glob("*.1"))
    if groff is None:  # what is left is that there are some
        assert pages
        return
    done = subprocess.run([groff, "-man", "-ww", "-Tutf8", "-z", *map(str, pages)],
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
