"""The checks of a self-test: a table for people, and JSON."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from iopstui.features.selftest.bundle import FAIL, MISSING, OK, Check
from iopstui.features.selftest.evidence import Evidence
from iopstui.tables import aligned
from iopstui.text import printable

HEAD = ("CHECK", "EXPECTED", "MEASURED", "RESULT")
LONGEST = 24
MIN_TOGETHER = 9
_NUMBER = re.compile(r"\d+$")
NARROWEST = 40


def selftest_text(checks: Sequence[Check], evidence: Evidence, width: int) -> str:
    """The table, what failed, what could not be checked, and the verdict."""
    groups = list(_together(checks))
    rows = [
        HEAD,
        *((group.name, group.expected, group.measured, group.verdict) for group in groups),
    ]
    cells = [tuple(_short(printable(cell)) if n else cell for n, cell in enumerate(row))
             for row in rows]  # fmt: skip
    lines = [*aligned(cells)]
    for verdict, head in ((FAIL, "Failed"), (MISSING, "Not checked")):
        of_verdict = [check for check in checks if check.verdict == verdict]
        if of_verdict:
            lines += ["", f"{head}:"]
        for unmet in of_verdict:
            more = f" (expected {unmet.expected}, measured {unmet.measured})" * (verdict == FAIL)
            lines += textwrap.wrap(
                printable(f"{unmet.name}: {unmet.meaning}{more}."), max(width, NARROWEST),
                initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False,
            )  # fmt: skip
    count = {verdict: sum(check.verdict == verdict for check in checks)
             for verdict in (OK, FAIL, MISSING)}  # fmt: skip
    result = "FAIL" if count[FAIL] else "OK"
    lines += ["", f"{result}: {count[OK]} passed, {count[FAIL]} failed, {count[MISSING]} not "
              f"checked ({evidence.seconds:.0f} s)."]  # fmt: skip
    return "\n".join(lines)


def _together(checks: Sequence[Check]) -> Iterator[Check]:
    """Join the many passed checks of one kind, one for each CPU, into one."""
    for _, group in itertools.groupby(
        checks, lambda check: (_NUMBER.sub("", check.name), check.verdict)
    ):
        equal = list(group)
        if equal[0].verdict != OK or len(equal) < MIN_TOGETHER:
            yield from equal
            continue
        numbers = [match[0] for check in equal if (match := _NUMBER.search(check.name))]
        name = f"{_NUMBER.sub('', equal[0].name)}{numbers[0]} to {numbers[-1]}"
        yield Check(name, f"{len(equal)} ranges", "each within its range", OK, "")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def selftest_json(checks: Sequence[Check], evidence: Evidence) -> dict[str, Any]:
    """For programs; ``result`` is "OK" or "FAIL"."""
    return {
        "result": FAIL if any(check.verdict == FAIL for check in checks) else OK,
        "seconds": evidence.seconds,
        "machine": evidence.machine,
        "checks": [
            {"check": check.name, "expected": check.expected, "measured": check.measured,
             "result": None if check.verdict == MISSING else check.verdict,
             "meaning": check.meaning}
            for check in checks
        ],
    }  # fmt: skip
