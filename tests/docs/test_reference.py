"""docs/reference is what the program says, and no link in the documents is dead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reference import RUNS, pages, parsers, table

import iopstui.errors as errors
from iopstui.cli.options import EPILOG
from iopstui.model.metrics.fields import FIELDS
from iopstui.ui.help import help_sections

LINK = re.compile(r"\]\(([^)\s]+)\)")


def documents(root: Path) -> list[Path]:
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md")]


@pytest.mark.parametrize("name", pages())
def test_it_is_what_the_program_says(root: Path, name: str) -> None:
    written = (root / "docs" / "reference" / name).read_text()
    assert written == pages()[name], "write it anew: make docs"


def test_nothing_else_is_there(root: Path) -> None:
    assert {path.name for path in (root / "docs" / "reference").iterdir()} == set(pages())


def test_each_option_is_in_its_command_s_section() -> None:
    text = pages()["commands.md"]
    shared = text.split("\n## Options of a run\n")[1]
    for name, one in parsers().items():
        section = text.split(f"\n## iopstui {name}\n")[1].split("\n## ")[0]
        known = section + shared if name in RUNS else section
        for option in one._option_string_actions:
            assert option in ("-h", "--help") or re.search(rf"`(-\w, )?{option}[ `,]", known), (
                option
            )


def test_each_field_and_each_line_of_the_help_is_there() -> None:
    found = pages()
    fields, keys = found["fields.md"], found["keys.md"]
    assert all(f"| `{field.id}` |" in fields for field in FIELDS)
    for title, rows in help_sections()[1:]:
        assert f"\n## {title}\n" in keys and all(f"| `{term}` |" in keys for term, _ in rows)


def test_each_exit_code_has_its_meaning() -> None:
    named = [getattr(errors, name) for name in dir(errors) if name.startswith("EXIT_")]
    codes = {code for code in named if isinstance(code, int)}
    assert codes == set(errors.EXIT_MEANINGS)
    told = EPILOG.split("exit codes: ")[1]
    assert {int(code) for code in re.findall(r"\b(\d+) ", told)} == codes


def test_a_bar_in_a_cell_is_no_border() -> None:
    assert table(("x",), [("a|b",)]) == ["| x |", "|---|", "| a\\|b |", ""]


def test_no_link_is_dead(root: Path) -> None:
    for path in documents(root):
        for link in LINK.findall(re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)):
            file, _, anchor = link.partition("#")
            if link.startswith("http"):
                continue
            there = (path.parent / file).resolve() if file else path
            assert there.exists(), f"{path.name}: {link}"
            assert there.is_relative_to(root), f"{path.name}: {link}"
            assert not anchor or anchor in anchors(there), f"{path.name}: {link}"


def test_every_page_has_its_place_in_the_site(root: Path) -> None:
    text = (root / "mkdocs.yml").read_text()
    placed = re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", text, flags=re.MULTILINE)
    there = {str(path.relative_to(root / "docs")) for path in (root / "docs").rglob("*.md")}
    assert sorted(placed) == sorted(
        there | {"index.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
    )


def anchors(path: Path) -> set[str]:
    """As Markdown's usual renderers make them of headings."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
