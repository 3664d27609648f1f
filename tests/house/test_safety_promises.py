"""Every promise in docs/safety.md names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_promise_names_an_existing_test(root: Path) -> None:
    text = (root / "docs" / "safety.md").read_text()
    section = text.split("\n## Promises\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 22
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert tests, row
        for file, name in tests:
            assert f"def {name}(" in (root / file).read_text(), row
