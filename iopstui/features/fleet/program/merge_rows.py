"""Merge the rows of many hosts until their streams end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_OK, UsageError
from iopstui.features.fleet.deduplication import Deduplicator, without_repeats
from iopstui.features.fleet.merging.host_timeline import CLOCK_JUMP_MS
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.merging.sums import MalformedRow
from iopstui.features.fleet.output.labelled_rows import (
    Labelled,
    file_rows,
    line_rows,
    merged_streams,
)
from iopstui.features.fleet.output.sinks import totals_sink
from iopstui.output.replay import checking_figures

LABEL = "stdin"
LATE_ROWS_S = 3.0


def merge_files(
    files: Sequence[str], labels: Sequence[str], interval_s: float, name: str, kind: str
) -> int:
    """Merge the files: print totals on standard output and messages on standard error. Returns the
    exit code."""
    if len(labels) > max(1, len(files)):
        raise UsageError(f"There are {len(labels)} labels for {len(files)} files.",
                         "Give --label once for each FILE, in their order.")  # fmt: skip
    if not files and sys.stdin.isatty():
        raise UsageError("There is nothing to merge: no FILE, and standard input is a terminal.",
                         "For example: iopstui merge node1.iops node2.iops")  # fmt: skip
    merger = Merger(interval_s)
    sink = totals_sink(kind, sys.stdout, sys.stderr, name)
    inputs = _distinct_files([Path(file) for file in files], labels)
    paths = [path for path, _ in inputs]
    deduplicator = Deduplicator()
    with checking_figures(paths):
        is_late = None
        for labelled in _labelled_rows(inputs, labels, deduplicator):
            _feed(merger, *labelled)
            if is_late is None and not files:
                is_late = _arrives_late(*labelled)
            for second in () if is_late else merger.close_seconds(early=not files):
                sink.second(second)
    for second in merger.finish():
        sink.second(second)
    has_frames = any(host.frames for host in merger.hosts.values())
    if not (has_frames or merger.merged_rows or merger.sub_mergers):
        raise UsageError(
            "The input to merge contains no frames.",
            "To create JSON lines: iopstui run --job JOB --format jsonl",
        )
    sink.end(merger)
    _warn_of_odd_inputs(merger)
    for host, count in deduplicator.repeat_counts.items():
        print_message(f"{host}: {count} duplicate seconds, counted once")
    return EXIT_OK


def _distinct_files(paths: Sequence[Path], labels: Sequence[str]) -> list[tuple[Path, str]]:
    """Each file with its label ("": none); a file that is named twice occurs once."""
    by_identity: dict[object, tuple[Path, str]] = {}
    for path, label in zip_longest(paths, labels[: len(paths)], fillvalue=""):
        file = Path(path)
        try:
            status = file.stat()
            identity: object = status.st_dev, status.st_ino
        except OSError:
            identity = file  # a file that cannot be read is reported later, when it is opened
        if identity in by_identity:
            print_message(f"{file} is the same file as {by_identity[identity][0]}, counted once")
        by_identity.setdefault(identity, (file, str(label)))
    return list(by_identity.values())


def _labelled_rows(
    files: Sequence[tuple[Path, str]], labels: Sequence[str], deduplicator: Deduplicator
) -> Iterable[Labelled]:
    if not files:
        lines = line_rows(sys.stdin.buffer, labels[0] if labels else LABEL, print_message)
        return without_repeats(lines, deduplicator)
    return merged_streams(
        [file_rows(path, label, print_message) for path, label in files],
        print_message,
        deduplicator,
    )


_malformed_hosts: set[str] = set()


def _feed(merger: Merger, name: str, row: dict[str, object]) -> None:
    try:
        merger.feed(name, row)
    except MalformedRow as error:
        if name not in _malformed_hosts:
            _malformed_hosts.add(name)
            print_message(f"{name}: skipping rows such as this one: {error}")


def _arrives_late(name: str, row: dict[str, object]) -> bool | None:
    """Whether a stream brings lines long after they were written, as `clush -L` does, which sorts
    them by host. Seconds then stay open until the stream's end. ``None`` if this row does not show
    it."""
    wall = row.get("wall_ms")
    if row.get("event") not in ("frame", "total") or not isinstance(wall, int | float):
        return None
    behind_s = time.time() - wall / 1000
    if behind_s <= LATE_ROWS_S:
        return False
    print_message(
        f"{name}: its first second arrives {behind_s:.0f} s late, so all rows are shown at the end"
    )
    return True


def _warn_of_odd_inputs(merger: Merger) -> None:
    for name, host in merger.hosts.items():
        if host.long_frames * 2 > host.frames:
            print_message(f"{name}: its samples are {host.longest_s:.3g} s long, longer than a "
                "row; set --interval to that length")  # fmt: skip
        if abs(host.jumped_ms) > CLOCK_JUMP_MS:
            print_message(f"{name}: its clock jumped by {host.jumped_ms / 1000:+.1f} s; its "
                "monotonic clock is used from then on")  # fmt: skip
    for name, sub_merger in merger.sub_mergers.items():
        if not sub_merger.has_ended:
            print_message(f"{name}: its last line (\"merged\") is missing, so its hosts are in the "
                "rows but not in the totals")  # fmt: skip
    for name, count in merger.late_frames.items():
        print_message(
            f"{name}: {count} of its seconds came too late for their rows and count only in the "
            "totals"
        )
