"""The result of a merge: finished and lost hosts, and whether fio's totals match the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from iopstui.features.fleet.merging.merger import FAILED, FINISHED, INTERRUPTED, Merger
from iopstui.features.fleet.merging.sums import Object, get_object, scaled_integer
from iopstui.model.metrics.summary import DIFFERS, EXACT, UNCHECKED

_OF_HOSTS = ("finished", "failed", "interrupted", "unseen")
_COUNT = ("ios", "bytes", "fio_ios", "fio_bytes", "exact", "differs", "unchecked", "ramp")


@dataclass(slots=True)
class MergeCertificate:
    """Counts of hosts and their names. ``ios`` and ``bytes`` are the sums of all frames,
    ``fio_ios`` and ``fio_bytes`` those of fio's final reports (``None``: there are none, or I/Os of
    several sizes). ``unseen`` are the ``lost`` hosts that sent no frame at all. ``exact`` hosts
    agree with fio, ``differs`` don't, ``unchecked`` have no final report. ``ramp`` hosts differ by
    no more than was in flight when their ramp ended. ``shared_seconds`` of the ``seconds`` have
    figures of all hosts; a merger above counts its own."""

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
    seconds: int = 0
    shared_seconds: int = 0

    def as_object(self) -> Object:
        """Its parts in a merger's row."""
        values = {name: [*value] if isinstance(value, tuple) else value
                  for name, value in asdict(self).items()}  # fmt: skip
        return {
            "hosts": {"total": self.hosts, **{name: values[name] for name in _OF_HOSTS}},
            "lost": values["lost"], "count": {name: values[name] for name in _COUNT},
        }  # fmt: skip

    def add(self, other: MergeCertificate) -> None:
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
    """Certificate of all hosts of a merger and of the mergers below it. If a merger was cut off,
    only its own name is known."""
    certificate = MergeCertificate()
    for name, host in merger.hosts.items():
        totals = host.io_totals
        ios, byte_count = totals.finals or (None, None)
        lost = not host.has_ended
        reasons = {
            "failed": host.outcome == FAILED, "interrupted": host.outcome == INTERRUPTED,
            "lost": lost, "unseen": lost and host.first is None, "ramp": totals.ramp,
            "differs": totals.verdict == DIFFERS, "unchecked": totals.verdict == UNCHECKED,
        }  # fmt: skip
        named: dict[str, Any] = {reason: (name,) for reason, is_so in reasons.items() if is_so}
        certificate.add(MergeCertificate(
            1, int(host.outcome == FINISHED or (host.has_ended and not host.outcome)),
            ios=totals.ios, bytes=totals.bytes, fio_ios=ios, fio_bytes=byte_count,
            exact=int(totals.verdict == EXACT), **named,
        ))  # fmt: skip
    for row in merger.merged_rows.values():
        certificate.add(_parse_certificate(row))
    for name, sub_merger in merger.sub_mergers.items():
        if not sub_merger.has_ended:
            certificate.add(MergeCertificate(sub_merger.expected, lost=(name,), unchecked=(name,)))
    seen = certificate.hosts - len(certificate.unseen)
    certificate.seconds = merger.seconds_by_hosts.total()
    certificate.shared_seconds = merger.seconds_by_hosts[seen]
    return certificate


def _parse_certificate(row: Mapping[str, Any]) -> MergeCertificate:
    hosts, count = get_object(row, "hosts"), get_object(row, "count")
    values = {**hosts, **count, "hosts": hosts.get("total"), "lost": row.get("lost")}
    certificate = MergeCertificate()
    for name, default in asdict(certificate).items():
        value = values.get(name)
        if default == ():
            setattr(certificate, name, tuple(map(str, value or ())))
        elif value is not None:
            setattr(certificate, name, scaled_integer(value))
    return certificate
