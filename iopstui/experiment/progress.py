"""Save the results of an interrupted experiment so that it can be resumed.

One JSON object per line: first the experiment's key, then one for each point, which is on disk as
soon as the point is done. A line cut off by a crash is skipped."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iopstui.errors import UsageError
from iopstui.model.experiment.expectation import Outcome
from iopstui.model.experiment.point import Point, point_from_json, point_json
from iopstui.safety.journal import state_directory
from iopstui.untrusted import parse_json

VERSION = 2
MAX_STATE_BYTES = 64 << 20


class ProgressFile:
    """The results of an experiment so far, in the file ``path``; ``key`` names the experiment.

    ``environment`` (name: value) must be the same as in an earlier run: otherwise nothing is read
    from the file, and ``changed`` names the differences. ``seed`` is the seed of the random order.
    ``points`` were measured by an earlier run of the same experiment, at ``started_at`` (seconds
    since the epoch); ``judged`` has, for each expectation of a point, the measured value and the
    share of the seconds that met it. Raises UsageError if the file belongs to another experiment or
    is not a state file of iopstui."""

    def __init__(
        self,
        path: Path,
        key: str,
        environment: Mapping[str, str] | None = None,
        seed: int | None = None,
    ) -> None:
        self.path = path
        self.key = key
        self.environment = dict(environment or {})
        self.seed = seed
        self.changed = ""
        self.points: dict[int, Point] = {}
        self.judged: dict[int, list[tuple[float | None, float | None]]] = {}
        self.started_at = time.time()
        self._has_header = False
        self._load()

    def _load(self) -> None:
        try:
            with self.path.open("rb") as file:
                content = file.read(MAX_STATE_BYTES + 1)
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(f"Can't read {self.path}: {error.strerror}.") from error
        if len(content) > MAX_STATE_BYTES:
            raise UsageError(f"{self.path} is too large for a state file of iopstui.",
                             "Choose another file with --state.")  # fmt: skip
        lines = content.splitlines()
        if not lines:
            return
        header = _parse_line(lines[0])
        if header.get("iopstui") != "experiment":
            raise UsageError(f"{self.path} is not a state file of iopstui.",
                             "Choose another file with --state.")  # fmt: skip
        if header.get("version") != VERSION or header.get("key") != self.key:
            raise UsageError(
                f"{self.path} holds another experiment (its job, axes, times or target differ).",
                "Choose another file with --state, or remove this one.",
            )
        with contextlib.suppress(TypeError, ValueError):
            self.started_at = float(header.get("made", self.started_at))
        self._has_header = True
        self.changed = self._changes(header.get("same"))
        if self.changed:
            return
        seed = header.get("seed")
        self.seed = seed if isinstance(seed, int) else self.seed
        for line in lines[1:]:
            row = _parse_line(line)
            with contextlib.suppress(KeyError, TypeError, ValueError):
                index, point = int(row["index"]), point_from_json(row["point"])
                self.judged[index] = [(pair[0], pair[1]) for pair in row["judged"]]
                self.points[index] = point

    def _changes(self, before: object) -> str:
        recorded = before if isinstance(before, dict) else {}
        return "; ".join(
            f"{name} was {recorded.get(name, 'not known')}, is {now}"
            for name, now in self.environment.items()
            if recorded.get(name) != now
        )

    def add(self, index: int, point: Point, outcomes: Sequence[Outcome] = ()) -> None:
        """Save one point; it is on disk when this returns. Raises UsageError."""
        self.points[index] = point
        self.judged[index] = [(outcome.measured, outcome.share) for outcome in outcomes]
        row = {"index": index, "point": point_json(point), "judged": self.judged[index]}
        rows: list[dict[str, Any]] = [row]
        if not self._has_header:
            header = {"iopstui": "experiment", "version": VERSION, "key": self.key}
            more = {"made": self.started_at, "seed": self.seed, "same": self.environment}
            rows.insert(0, {**header, **more})
        text = "".join(json.dumps(row) + "\n" for row in rows)
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "r+b", buffering=0) as file:
                if self._has_header and not _ends_in_newline(file.fileno()):
                    text = "\n" + text
                file.write(text.encode())
                os.fsync(file.fileno())
        except OSError as error:
            raise UsageError(f"Can't write {self.path}: {error.strerror}.",
                             "Choose another file with --state.") from error  # fmt: skip
        self._has_header = True

    def remove(self) -> None:
        """Remove the file: the experiment is complete, or starts over."""
        self.path.unlink(missing_ok=True)
        self.points.clear()
        self.judged.clear()
        self._has_header = False
        self.changed = ""
        self.started_at = time.time()


def default_path(kind: str, key: str) -> Path:
    """Default path of an experiment's progress file (--state sets another). Raises OSError."""
    return state_directory() / f"{kind}-{key}.jsonl"


def _ends_in_newline(fd: int) -> bool:
    size = os.fstat(fd).st_size
    return size == 0 or os.pread(fd, 1, size - 1) == b"\n"


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        row = parse_json(line, is_large=False)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
