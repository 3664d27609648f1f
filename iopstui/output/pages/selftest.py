"""The checks of a self-test: a table for people, and JSON."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from iopstui.selftest.check import FAIL, MISSING, OK, Check
from iopstui.selftest.evidence import Evidence
from iopstui.text import printable

HEAD = ("CHECK", "EXPECTED", "MEASURED", "RESULT")
LONGEST = 24
MIN_TOGETHER = 9
_NUMBER = re.compile(r"\d+$")
NARROWEST = 40


def selftest_text(checks: Sequence[Check], found: Evidence, width: int) -> str:
    """The table, what failed, what could not be checked, and the verdict."""
    shown = list(_together(checks))
    rows = [HEAD, *((one.name, one.expected, one.measured, one.verdict) for one in shown)]
    cells = [tuple(_short(printable(cell)) if n else cell for n, cell in enumerate(row))
             for row in rows]  # fmt: skip
    widths = [max(len(row[n]) for row in cells) for n in range(len(HEAD))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
             for row in cells]  # fmt: skip
    for verdict, head in ((FAIL, "Failed"), (MISSING, "Not checked")):
        those = [one for one in checks if one.verdict == verdict]
        if those:
            lines += ["", f"{head}:"]
        for one in those:
            more = f" (expected {one.expected}, measured {one.measured})" * (verdict == FAIL)
            lines += textwrap.wrap(
                printable(f"{one.name}: {one.meaning}{more}."), max(width, NARROWEST),
                initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False,
            )  # fmt: skip
    count = {verdict: sum(one.verdict == verdict for one in checks)
             for verdict in (OK, FAIL, MISSING)}  # fmt: skip
    word = "FAIL" if count[FAIL] else "OK"
    lines += ["", f"{word}: {count[OK]} passed, {count[FAIL]} failed, {count[MISSING]} not "
              f"checked ({found.seconds:.0f} s)."]  # fmt: skip
    return "\n".join(lines)


def _together(checks: Sequence[Check]) -> Iterator[Check]:
    """Many passed checks of one kind, one for each CPU, as one."""
    for _, group in itertools.groupby(checks, lambda one: (_NUMBER.sub("", one.name), one.verdict)):
        same = list(group)
        if same[0].verdict != OK or len(same) < MIN_TOGETHER:
            yield from same
            continue
        numbers = [match[0] for one in same if (match := _NUMBER.search(one.name))]
        name = f"{_NUMBER.sub('', same[0].name)}{numbers[0]} to {numbers[-1]}"
        yield Check(name, f"{len(same)} ranges", "each within its range", OK, "")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def selftest_json(checks: Sequence[Check], found: Evidence) -> dict[str, Any]:
    """For programs; ``result`` is "OK" or "FAIL"."""
    return {
        "result": FAIL if any(one.verdict == FAIL for one in checks) else OK,
        "seconds": found.seconds,
        "machine": found.machine,
        "checks": [
            {"check": one.name, "expected": one.expected, "measured": one.measured,
             "result": None if one.verdict == MISSING else one.verdict, "meaning": one.meaning}
            for one in checks
        ],
    }  # fmt: skip
