"""The evidence of a self-test: plain values for JSON, the file for a bug report, and the checks as
text."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import textwrap
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from iopstui.errors import NoFile, UsageError
from iopstui.safety.output_files import write_whole
from iopstui.tables import aligned
from iopstui.text import printable
from iopstui.untrusted import TooLarge, parse_json

FORMAT = 1
ADDED_FIELDS = {"probe_frames", "probe_counters", "iostat"}
"""Fields that the first bundles did not have."""
Row = list[Any]


@dataclass(slots=True)
class Evidence:
    """The evidence. ``machine`` has versions and facts, without names. ``job``, ``stream`` and
    ``log`` belong to a job that the self-test runs with fio itself: its text, fio's JSON with a
    document for each second, and a row for each I/O (direction 0 or 1, latency in ns, bytes).
    ``frames`` are iopstui's own seconds of a run on the directory, ``counters`` what the kernel
    counted meanwhile (CounterLog). ``queues`` and ``vectors`` are iopstui's queue map;
    ``queue_text``, ``vector_names`` and ``affinity`` are the kernel's own text. ``probe_frames``
    are the probe's seconds of a second run, ``probe_counters`` what the kernel counted during it;
    ``iostat`` is what iostat printed during the first run (IostatLog). ``missing`` says why a check
    could not be made, by the check."""

    machine: dict[str, Any] = field(default_factory=dict)
    job: str = ""
    stream: str = ""
    log: list[Row] = field(default_factory=list)
    disk: str = ""
    frames: list[dict[str, Any]] = field(default_factory=list)
    counters: list[Row] = field(default_factory=list)
    queues: dict[str, list[int]] = field(default_factory=dict)
    vectors: list[dict[str, Any]] = field(default_factory=list)
    queue_text: dict[str, str] = field(default_factory=dict)
    vector_names: dict[str, str] = field(default_factory=dict)
    affinity: dict[str, str] = field(default_factory=dict)
    probe_frames: list[dict[str, Any]] = field(default_factory=list)
    probe_counters: list[Row] = field(default_factory=list)
    iostat: list[Row] = field(default_factory=list)
    fence: dict[str, Any] = field(default_factory=dict)
    restore: dict[str, Any] = field(default_factory=dict)
    known_latency: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    missing: dict[str, str] = field(default_factory=dict)

    def as_object(self) -> dict[str, Any]:
        """The evidence, ready for ``json.dumps``."""
        return {"format": FORMAT, **asdict(self)}


def parse_evidence(data: Any) -> Evidence:
    """The evidence in the JSON of a bundle. Raises UsageError for anything else."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UsageError("This is not a bundle of `iopstui selftest` that this version can read.",
                         "Make one with: iopstui selftest -o FILE")  # fmt: skip
    empty = Evidence()
    values: dict[str, Any] = {}
    for name in Evidence.__dataclass_fields__:
        default = getattr(empty, name)
        value = data.get(name, default if name in ADDED_FIELDS else None)
        if default is not None and type(value) is not type(default) and not (
            isinstance(default, float) and isinstance(value, int)
        ):  # fmt: skip
            raise UsageError(f"The bundle is damaged: {name} is missing or of another kind.")
        values[name] = value
    return Evidence(**values)


MAX_BYTES = 64 << 20


def write_bundle(evidence: Evidence, path: Path) -> None:
    """Write the evidence as gzipped JSON. Raises UsageError if the file exists or cannot be
    written."""
    data = gzip.compress(json.dumps(evidence.as_object()).encode(), mtime=0)
    try:
        write_whole(path, lambda file: file.write(data))
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror}.",
                         "Give another path with -o.") from error  # fmt: skip


def check_writable(path: Path) -> None:
    """Raise UsageError if ``write_bundle`` would fail with this path."""
    if path.exists():
        raise UsageError(f"{path} exists already.", "Give another path with -o.")
    if not os.access(path.parent, os.W_OK):
        reason = "you may not write there" if path.parent.is_dir() else "there is no such directory"
        raise UsageError(f"Cannot write {path}: {reason}.", "Give another path with -o.")


def read_bundle(path: Path) -> Evidence:
    """Read the evidence of a bundle. Raises UsageError for any other file."""
    try:
        # opening a pipe might block forever
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path} is not a file.", "iopstui selftest --read FILE")
        with gzip.open(path) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise NoFile(str(path)) from error
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


# A check of the self-test, with its verdict.


OK, FAIL, MISSING = "OK", "FAIL", "–"


@dataclass(frozen=True, slots=True)
class Check:
    """A check. ``meaning`` is what a FAIL would mean, or why the check could not be made."""

    name: str
    expected: str
    measured: str
    verdict: str
    meaning: str


def any_failed(checks: Sequence[Check]) -> bool:
    return any(check.verdict == FAIL for check in checks)


def check_equal(name: str, expected: object, measured: object, meaning: str) -> Check:
    """A check that the two values are equal."""
    verdict = OK if expected == measured else FAIL
    return Check(name, _text(expected), _text(measured), verdict, meaning)


def check_within(name: str, low: float, high: float, measured: float, meaning: str) -> Check:
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


HEAD = ("CHECK", "EXPECTED", "MEASURED", "RESULT")
LONGEST = 24
MIN_TOGETHER = 9
_NUMBER = re.compile(r"\d+$")
NARROWEST = 40


def selftest_text(checks: Sequence[Check], evidence: Evidence, width: int) -> str:
    """The table, the failed checks, the checks that could not be made, and the verdict."""
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
    """Join the passed checks of one kind, of which there is one for each CPU, to one."""
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
    """The checks for programs; ``result`` is "OK" or "FAIL"."""
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
