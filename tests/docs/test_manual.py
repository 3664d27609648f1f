"""The man pages are up to date and valid."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from manual import manual
from reference import parsers


@pytest.mark.parametrize("name", manual())
def test_each_man_page_is_up_to_date(root: Path, name: str) -> None:
    assert (root / "docs" / "man" / name).read_text() == manual()[name], "write it anew: make docs"


def test_there_are_no_other_man_pages(root: Path) -> None:
    assert {path.name for path in (root / "docs" / "man").iterdir()} == set(manual())
    assert set(manual()) == {"iopstui.1", *(f"iopstui-{name}.1" for name in parsers())}


def test_every_option_is_in_its_command_s_page() -> None:
    for name, parser in parsers().items():
        page = manual()[f"iopstui-{name}.1"].replace("\\-", "-")
        assert all(option in page for option in parser._option_string_actions)


def test_no_text_is_a_roff_request() -> None:
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


def test_groff_has_no_warnings(root: Path) -> None:
    groff = shutil.which("groff")
    pages = sorted((root / "docs" / "man").glob("*.1"))
    if groff is None:
        assert pages
        return
    process = subprocess.run([groff, "-man", "-ww", "-Tutf8", "-z", *map(str, pages)],
                          capture_output=True, text=True)  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")
