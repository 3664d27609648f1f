"""Health of a SATA or SAS disk, as smartctl (smartmontools) reads it.

Source: smartctl(8). It is called with ``--nocheck=standby``, so a sleeping disk is not woken. Only
``iopstui devices DEVICE`` calls it, never a run: a SATA disk first finishes all queued commands."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iopstui.linux.process.programs import which
from iopstui.text import printable
from iopstui.untrusted import parse_json

PROGRAM = "smartctl"
_PATH = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin:/usr/local/bin"
OPTIONS = ("--json=c", "--nocheck=standby", "-i", "-H", "-A", "-l", "error")
MIN_VERSION = (7, 2)
"""The first version that honours --nocheck for SAS disks as well."""
TIMEOUT_S = 30.0
MAX_ATTRIBUTES = 64
# smartctl(8), "EXIT STATUS": bit 1 is a device that could not be opened, or that sleeps
_NOT_READ = 1 << 1
_ASLEEP = re.compile(r"\b(standby|sleep|low.power)\b", re.IGNORECASE)
_VERSION = re.compile(r"smartctl ([0-9]{1,4})\.([0-9]{1,4})")
UNCORRECTED = ("read", "write", "verify")

Run = Callable[[Sequence[str]], "tuple[int, str]"]
"""Runs a command and returns its exit code and output. Raises OSError or SubprocessError."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An SMART attribute of a SATA disk: normalised ``value`` and ``worst`` (higher is better),
    ``limit`` below which it fails, ``raw`` in the maker's terms. ``failed``: "now", "past" or
    ""."""

    number: int
    name: str
    value: int | None
    worst: int | None
    limit: int | None
    raw: str
    failed: str


@dataclass(frozen=True, slots=True)
class DiskHealth:
    """What a disk reports about itself; unknown is ``None``. ``degrees`` Celsius, ``hours`` powered
    on. ``grown_defects`` is the size of the list of defects found in use, as smartctl counts it
    (some versions count its bytes: 0 means none). ``uncorrected`` are errors by direction (SAS).
    ``problem`` is a sentence that says why it could not be read ("": it was)."""

    passed: bool | None = None
    degrees: int | None = None
    hours: int | None = None
    attributes: tuple[Attribute, ...] = ()
    grown_defects: int | None = None
    uncorrected: Mapping[str, int] | None = None
    problem: str = ""


def read_disk_health(node: str, run: Run | None = None) -> DiskHealth:
    """Ask smartctl for the disk at this node. Never fails."""
    program = which(PROGRAM, _PATH)
    if program is None:
        return _unreadable("SMART needs smartctl: install smartmontools.")
    if os.geteuid() != 0:
        return _unreadable("SMART needs root: run with sudo.")
    ask = run or _run
    try:
        version = _VERSION.search(ask((program, "--version"))[1])
        if version is None or (int(version[1]), int(version[2])) < MIN_VERSION:
            return _unreadable("SMART needs smartctl 7.2 or newer, which lets disks sleep.")
        code, text = ask((program, *OPTIONS, node))
    except subprocess.TimeoutExpired:
        return _unreadable(f"The disk did not answer smartctl within {TIMEOUT_S:.0f} s.")
    except (OSError, subprocess.SubprocessError) as error:
        return _unreadable(f"Cannot run smartctl: {error}.")
    return parse_disk_health(text, code)


def _unreadable(problem: str) -> DiskHealth:
    return DiskHealth(problem=printable(problem))


def _run(command: Sequence[str]) -> tuple[int, str]:
    process = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_S, check=False, env={"LC_ALL": "C", "PATH": _PATH},
    )  # fmt: skip
    return process.returncode, process.stdout.decode("utf-8", "replace")


def parse_disk_health(text: str, code: int = 0) -> DiskHealth:
    """smartctl's JSON, with its exit code. Missing values and those of a wrong type are unknown."""
    try:
        document = parse_json(text.encode(), is_large=False)
    except ValueError:
        return _unreadable("smartctl's answer is no JSON.")
    if not isinstance(document, dict):
        return _unreadable("smartctl's answer is no JSON object.")
    if code & _NOT_READ or code & 1:
        return _unreadable(_error_text(document))
    log = _object(document, "scsi_error_counter_log")
    errors = {
        operation: _count(_object(log, operation).get("total_uncorrected_errors"))
        for operation in UNCORRECTED
    }
    passed = _object(document, "smart_status").get("passed")
    degrees = _degrees(_object(document, "temperature").get("current"))
    return DiskHealth(
        passed=passed if isinstance(passed, bool) else None,
        # smartctl reports 0 for a SCSI disk without a sensor
        degrees=degrees or None,
        hours=_count(_object(document, "power_on_time").get("hours")),
        attributes=_attributes(_object(document, "ata_smart_attributes").get("table")),
        grown_defects=_count(document.get("scsi_grown_defect_list")),
        uncorrected={operation: n for operation, n in errors.items() if n is not None} or None,
    )


def _error_text(document: Mapping[str, Any]) -> str:
    messages = _object(document, "smartctl").get("messages")
    texts = [
        message["string"]
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict) and isinstance(message.get("string"), str)
    ]
    if any(map(_ASLEEP.search, texts)) or "power_mode" in document:
        return "The disk sleeps (standby), and it is not woken for this."
    reason = texts[0].rstrip(".") if texts else "it says no reason"
    return f"smartctl could not read the disk: {reason[:200]}."


def _object(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, dict) else {}


def _count(value: object) -> int | None:
    """Check a count; it is unknown if no counter of a disk can hold the value."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and 0 <= value < 1 << 64 else None  # type: ignore[operator, return-value]


def _degrees(value: object) -> int | None:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and -60 <= value <= 200 else None  # type: ignore[operator, return-value]


def _attributes(table: object) -> tuple[Attribute, ...]:
    rows = table if isinstance(table, list) else []
    return tuple(_attribute(row) for row in rows[:MAX_ATTRIBUTES] if _is_attribute(row))


def _is_attribute(row: object) -> bool:
    return isinstance(row, dict) and _count(row.get("id")) is not None


def _attribute(row: Mapping[str, Any]) -> Attribute:
    raw = _object(row, "raw")
    text = raw.get("string")
    name = row.get("name")
    failed = row.get("when_failed")
    return Attribute(
        number=int(row["id"]),
        name=printable(name)[:40] if isinstance(name, str) else "",
        value=_count(row.get("value")),
        worst=_count(row.get("worst")),
        limit=_count(row.get("thresh")),
        raw=printable(text)[:40] if isinstance(text, str) else "",
        failed=printable(failed)[:8] if isinstance(failed, str) else "",
    )
