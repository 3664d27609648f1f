"""The evidence as a file that can be attached to a bug report."""

from __future__ import annotations

import gzip
import json
import os
import zlib
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
    """UsageError if ``write_bundle`` would fail with this path."""
    if path.exists():
        raise UsageError(f"{path} exists already.", "Give another path with -o.")
    if not os.access(path.parent, os.W_OK):
        reason = "you may not write there" if path.parent.is_dir() else "there is no such directory"
        raise UsageError(f"Cannot write {path}: {reason}.", "Give another path with -o.")


def read_bundle(path: Path) -> Evidence:
    """Read the evidence of a bundle. Raises UsageError for any other file."""
    try:
        # a pipe would be waited for, maybe forever
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
