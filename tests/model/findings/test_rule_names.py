"""The names of rules are exactly those of findings, and exactly those that are explained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from iopstui.model.findings import finding
from iopstui.model.findings.excluded import EXCLUDED_CAUSES
from iopstui.model.findings.finding import HEADLINES

ROOT = Path(__file__).resolve().parents[3]


def said() -> Iterator[str]:
    """The first argument of each ``Finding(...)`` in the package."""
    for path in Path(finding.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding":
                assert isinstance(node.args[0], ast.Constant), ast.unparse(node)
                yield str(node.args[0].value)


def test_every_finding_has_a_name_and_every_name_a_finding() -> None:
    assert sorted({*said()}) == sorted(HEADLINES)


def test_the_page_explains_them_in_this_order() -> None:
    page = (ROOT / "docs" / "rules.md").read_text()
    assert tuple(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == tuple(HEADLINES)


def test_what_is_excluded_is_the_same_on_the_page_and_in_the_list() -> None:
    page = (ROOT / "docs" / "rules.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| .*? \| ?([^|]*?) ?\|$", page, re.MULTILINE)
    assert len(rows) == len(HEADLINES)
    assert {rule: words.replace("`", "") for rule, words in rows if words} == EXCLUDED_CAUSES
