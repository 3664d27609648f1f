from __future__ import annotations

import re
from pathlib import Path

from iopstui.model import findings
from iopstui.model.findings.finding import (
    HEADLINES,
    MAX_HEADLINE_LENGTH,
    Finding,
    headline_of,
    severity_of,
)

NAMED = re.compile(r'(?:Finding\(|Finding, )\s*"([a-z-]+)"')


def test_every_rule_has_a_headline() -> None:
    folder = Path(str(findings.__file__)).parent
    named = {rule for path in folder.rglob("*.py") for rule in NAMED.findall(path.read_text())}
    assert len(named) > 20 and named <= set(HEADLINES)


def test_headlines_are_short_labels() -> None:
    for _, headline in HEADLINES.values():
        assert len(headline) <= MAX_HEADLINE_LENGTH
        assert headline[0].isupper() or headline.startswith("fio")
        assert not headline.endswith(".") and not any(char.isdigit() for char in headline)


def test_an_unknown_rule_has_the_beginning_of_its_sentence() -> None:
    assert headline_of(Finding("new", "tags are used up: 64 of 64")) == "tags are used up"
    long = headline_of(Finding("new", "word " * 30))
    assert len(long) <= MAX_HEADLINE_LENGTH and long.endswith("…")
    assert severity_of(Finding("new", "x")) == "info"
