"""One check of the self-test with its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OK, FAIL, MISSING = "OK", "FAIL", "–"


@dataclass(frozen=True, slots=True)
class Check:
    """``meaning`` is what a FAIL would mean, or why the check could not be made."""

    name: str
    expected: str
    measured: str
    verdict: str
    meaning: str


def any_failed(checks: Sequence[Check]) -> bool:
    """Whether a check failed."""
    return any(check.verdict == FAIL for check in checks)


def check_equal(name: str, expected: object, measured: object, meaning: str) -> Check:
    """Both must be the same."""
    verdict = OK if expected == measured else FAIL
    return Check(name, _text(expected), _text(measured), verdict, meaning)


def check_within(name: str, low: float, high: float, measured: float, meaning: str) -> Check:
    """It must lie between both."""
    verdict = OK if low <= measured <= high else FAIL
    limits = _text(low) if low == high else f"{_text(low)} to {_text(high)}"
    return Check(name, limits, _text(measured), verdict, meaning)


def unchecked(name: str, reason: str) -> Check:
    """It could not be made."""
    return Check(name, "–", "–", MISSING, reason)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
