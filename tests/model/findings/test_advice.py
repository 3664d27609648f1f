"""The tables of advice."""

import re
from pathlib import Path

from iopstui.cli.program import build_parser
from iopstui.model.findings import advice
from iopstui.model.findings.advice import HINTS, PROMISES, advise

POSSIBLE = re.compile(r"\b(may|see|look|compare|find|check|ask|shows?|likely|can't)\b")
PACKAGE = Path(advice.__file__).parents[2]


def test_a_hint_promises_no_change() -> None:
    assert not set(HINTS) & set(PROMISES)
    assert [text for text in HINTS.values() if not POSSIBLE.search(text)] == []


def test_each_advice_is_given_by_somebody() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path != Path(advice.__file__)]
    source = "".join(path.read_text() for path in files)
    kinds = {*HINTS, *PROMISES}
    assert {kind for kind in kinds if f'"{kind}"' not in source} == set()


def test_the_commands_of_advice_are_ours() -> None:
    texts = [advise(kind, "/dev/vda") for kind, text in HINTS.items()
             if re.search("iopstui (why|live|watch .)", text)]  # fmt: skip
    assert len(texts) == 6
    for text in texts:
        build_parser().parse_args(text.partition("iopstui ")[2].split())
