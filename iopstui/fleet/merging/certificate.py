"""The result of a merge: finished and lost hosts, and whether fio's totals match the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iopstui.fleet.merging.merger import FAILED, FINISHED, INTERRUPTED, Merger
from iopstui.fleet.merging.sums import get_object, scaled_integer
from iopstui.model.metrics.summary import DIFFERS, EXACT, UNCHECKED


@dataclass(slots=True)
class MergeCertificate:
    """Counts of hosts and their names. ``ios`` and ``bytes`` are those of all frames, ``fio_ios``
    and ``fio_bytes`` what fio's finals say of the hosts that have any (``None``: of none, or
    I/Os of several sizes). ``unseen`` are those of the ``lost`` that sent no frame at all.
    ``exact`` hosts agree, ``differs`` don't, ``unchecked`` have no final. ``ramp`` are those that
    differ by no more than was under way when their ramp ended.
    """

    hosts: int = 0
    finished: int = 0
    failed: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    ios: int = 0
    bytes: int = 0
    fio_ios: int | None = None
    fio_bytes: int | None = None
    exact: int = 0
    differs: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    ramp: tuple[str, ...] = ()

    def add(self, other: MergeCertificate) -> None:
        """Add other hosts'."""
        both_sized = self.fio_bytes is not None and other.fio_bytes is not None
        if self.fio_ios is None or other.fio_ios is None:
            self.fio_bytes = other.fio_bytes if self.fio_ios is None else self.fio_bytes
            self.fio_ios = other.fio_ios if self.fio_ios is None else self.fio_ios
        else:
            self.fio_bytes = self.fio_bytes + other.fio_bytes if both_sized else None  # type: ignore[operator]
            self.fio_ios += other.fio_ios
        for name in ("hosts", "finished", "ios", "bytes", "exact"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("failed", "interrupted", "lost", "unseen", "differs", "unchecked", "ramp"):
            setattr(self, name, tuple(sorted((*getattr(self, name), *getattr(other, name)))))


def certify_merge(merger: Merger) -> MergeCertificate:
    """Certificate of all hosts of a merger and of the mergers below it."""
    certificate = MergeCertificate()
    for name, host in merger.hosts.items():
        io_totals = host.io_totals
        ios, byte_count = io_totals.finals or (None, None)
        part = MergeCertificate(
            1, ios=io_totals.ios, bytes=io_totals.bytes, fio_ios=ios, fio_bytes=byte_count
        )
        part.finished = int(host.outcome == FINISHED or (host.has_ended and not host.outcome))
        part.failed = (name,) if host.outcome == FAILED else ()
        part.interrupted = (name,) if host.outcome == INTERRUPTED else ()
        part.exact = int(io_totals.verdict == EXACT)
        part.differs = (name,) if io_totals.verdict == DIFFERS else ()
        part.unchecked = (name,) if io_totals.verdict == UNCHECKED else ()
        part.ramp = (name,) if io_totals.ramp else ()
        part.lost = () if host.has_ended else (name,)
        part.unseen = part.lost if host.first is None else ()
        certificate.add(part)
    for sub_merger in merger.lost_sub_mergers().values():
        hosts = sub_merger.hosts
        total = sub_merger.sums.total
        certificate.add(MergeCertificate(
            len(hosts), lost=hosts, unchecked=hosts, ios=total.ios if total else 0,
            bytes=total.bytes if total else 0, unseen=() if sub_merger.first else hosts,
        ))  # fmt: skip
    for row in merger.merged_rows.values():
        certificate.add(_parse_certificate(row))
    return certificate


def _parse_certificate(row: Mapping[str, Any]) -> MergeCertificate:
    hosts, count = get_object(row, "hosts"), get_object(row, "count")
    fio_counts = {name: count.get(name) for name in ("fio_ios", "fio_bytes")}
    return MergeCertificate(
        hosts=scaled_integer(hosts.get("total")),
        finished=scaled_integer(hosts.get("finished")),
        ios=scaled_integer(count.get("ios")),
        bytes=scaled_integer(count.get("bytes")),
        exact=scaled_integer(count.get("exact")),
        fio_ios=None if fio_counts["fio_ios"] is None else scaled_integer(fio_counts["fio_ios"]),
        fio_bytes=None
        if fio_counts["fio_bytes"] is None
        else scaled_integer(fio_counts["fio_bytes"]),
        failed=parse_names(hosts, "failed"),
        interrupted=parse_names(hosts, "interrupted"),
        lost=parse_names(row, "lost"),
        unseen=parse_names(hosts, "unseen"),
        differs=parse_names(count, "differs"),
        unchecked=parse_names(count, "unchecked"),
        ramp=parse_names(count, "ramp"),
    )


def parse_names(row: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Names in a merger's row."""
    return tuple(str(name) for name in row.get(key) or ())
