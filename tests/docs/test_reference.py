"""docs/reference is up to date, and every link in the documents has a target."""

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
GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def documents(root: Path) -> list[Path]:
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md")]


@pytest.mark.parametrize("name", pages())
def test_each_reference_page_is_up_to_date(root: Path, name: str) -> None:
    text = (root / "docs" / "reference" / name).read_text()
    assert text == pages()[name], "write it anew: make docs"


def test_there_are_no_other_reference_pages(root: Path) -> None:
    assert {path.name for path in (root / "docs" / "reference").iterdir()} == set(pages())


def test_each_option_is_in_its_command_s_section() -> None:
    text = pages()["commands.md"]
    shared = text.split("\n## Options of a run\n")[1]
    for name, parser in parsers().items():
        section = text.split(f"\n## iopstui {name}\n")[1].split("\n## ")[0]
        visible = section + shared if name in RUNS else section
        for option in parser._option_string_actions:
            assert option in ("-h", "--help") or re.search(rf"`(-\w, )?{option}[ `,]", visible), (
                option
            )


def test_every_field_and_every_help_line_is_in_the_reference() -> None:
    all_pages = pages()
    fields, keys = all_pages["fields.md"], all_pages["keys.md"]
    assert all(f"| `{field.id}` |" in fields for field in FIELDS)
    for title, rows in help_sections()[1:]:
        assert f"\n## {title}\n" in keys and all(f"| `{term}` |" in keys for term, _ in rows)


def test_each_exit_code_has_its_meaning() -> None:
    values = [getattr(errors, name) for name in dir(errors) if name.startswith("EXIT_")]
    codes = {code for code in values if isinstance(code, int)}
    assert codes == set(errors.EXIT_MEANINGS)
    # only `why` uses this code, and it is not a run
    codes.remove(errors.EXIT_UNKNOWN)
    epilog_codes = EPILOG.split("exit codes: ")[1]
    assert {int(code) for code in re.findall(r"\b(\d+) ", epilog_codes)} == codes


def test_a_bar_in_a_cell_is_escaped() -> None:
    assert table(("x",), [("a|b",)]) == ["| x |", "|---|", "| a\\|b |", ""]


def test_every_link_has_a_target(root: Path) -> None:
    for path in documents(root):
        for link in LINK.findall(re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)):
            file, _, anchor = link.partition("#")
            if link.startswith("http"):
                continue
            target = (path.parent / file).resolve() if file else path
            assert target.exists(), f"{path.name}: {link}"
            assert target.is_relative_to(root), f"{path.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{path.name}: {link}"


@pytest.mark.parametrize("name", [path.name for path in GUIDE.glob("*.md")])
def test_a_page_of_the_guide_begins_with_its_question_and_command(name: str) -> None:
    title, question, command = (GUIDE / name).read_text("utf-8").split("\n\n")[:3]
    assert title.startswith("# ")
    assert question.endswith("?") and len(question.split()) <= 25
    assert command.startswith("    ")


def test_every_page_is_in_the_navigation(root: Path) -> None:
    text = (root / "mkdocs.yml").read_text()
    placed = re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", text, flags=re.MULTILINE)
    pages_found = {str(path.relative_to(root / "docs")) for path in (root / "docs").rglob("*.md")}
    assert sorted(placed) == sorted(
        pages_found | {"index.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
    )


def anchors(path: Path) -> set[str]:
    """Anchors that Markdown renderers make of headings."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
