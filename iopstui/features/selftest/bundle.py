"""The evidence as a file that can be attached to a bug report."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import UsageError
from iopstui.features.selftest.evidence import Evidence, parse_evidence
from iopstui.safety.output_files import write_whole
from iopstui.untrusted import TooLarge, parse_json

MAX_BYTES = 64 << 20


def write_bundle(evidence: Evidence, path: Path) -> None:
    """Write gzipped JSON. UsageError if the file exists or cannot be written."""
    data = gzip.compress(json.dumps(evidence.as_object()).encode(), mtime=0)
    try:
        write_whole(path, lambda file: file.write(data))
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror}.",
                         "Give another path with -o.") from error  # fmt: skip


def check_writable(path: Path) -> None:
    """Raises UsageError if ``write_bundle`` would fail with this path."""
    if path.exists():
        raise UsageError(f"{path} exists already.", "Give another path with -o.")
    if not os.access(path.parent, os.W_OK):
        reason = "you may not write there" if path.parent.is_dir() else "there is no such directory"
        raise UsageError(f"Cannot write {path}: {reason}.", "Give another path with -o.")


def read_bundle(path: Path) -> Evidence:
    """Read the evidence of a bundle. Raises UsageError for any other file."""
    try:
        # opening a pipe might wait forever
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path} is not a file.", "iopstui selftest --read FILE")
        with gzip.open(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or "it is not gzipped"
        raise UsageError(f"Cannot read {path}: {reason}.") from error
    except (EOFError, zlib.error) as error:
        raise UsageError(f"{path} is cut off or damaged.") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is too large for a bundle.")
    try:
        return parse_evidence(parse_json(data))
    except TooLarge as error:
        raise UsageError(f"{path} is too large for a bundle.") from error
    except ValueError as error:
        raise UsageError(f"{path} is not a bundle of `iopstui selftest`.") from error


# One check of the self-test, with its verdict.


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
    return any(check.verdict == FAIL for check in checks)


def check_equal(name: str, expected: object, measured: object, meaning: str) -> Check:
    """Both must be the same."""
    verdict = OK if expected == measured else FAIL
    return Check(name, _text(expected), _text(measured), verdict, meaning)


def check_within(name: str, low: float, high: float, measured: float, meaning: str) -> Check:
    """A check that ``measured`` lies between ``low`` and ``high``."""
    verdict = OK if low <= measured <= high else FAIL
    limits = _text(low) if low == high else f"{_text(low)} to {_text(high)}"
    return Check(name, limits, _text(measured), verdict, meaning)


def unchecked(name: str, reason: str) -> Check:
    """A check that could not be made."""
    return Check(name, "–", "–", MISSING, reason)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
