"""Other programs that use a disk before or after a run of `iopstui fit`, with made-up rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from iopstui.features.fit import run
from iopstui.features.fit.run import Neighbours
from iopstui.model.figures.disk import DiskRates

RUN = DiskRates(24.0, reads=0, writes=24 * 400, read_bytes=0, write_bytes=24 * 400 * 4096)
QUIET = DiskRates(1.5, reads=0, writes=9, read_bytes=0, write_bytes=9 * 4096)
SYNCS = DiskRates(1.5, reads=0, writes=60, read_bytes=0, write_bytes=60 * 4096)
READS = DiskRates(1.5, reads=12, writes=0, read_bytes=12 << 20, write_bytes=0)


def around(before: DiskRates, after: DiskRates, name: str = "sda") -> list[str]:
    """The reasons found if others do this before and after the run. The counters are only read at
    the ends of the two waits and of the run."""
    rates: Iterator[Mapping[str, DiskRates]] = iter(
        [{}, {name: before}, {name: RUN}, {}, {name: after}]
    )
    watched = Neighbours(lambda names: next(rates), ("sda",), lambda: True)
    watched.watch("before")
    watched.watch("after")
    return watched.reasons


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (QUIET, QUIET, []),
        (SYNCS, QUIET, ["sda did 40.0 I/Os a second for other programs before the run"]),
        (QUIET, SYNCS, ["sda did 40.0 I/Os a second for other programs after the run"]),
        (READS, SYNCS, ["sda did 8 MiB a second for other programs before the run"]),
    ],
)
def test_the_most_that_others_did_is_named(
    before: DiskRates, after: DiskRates, text: list[str]
) -> None:
    assert around(before, after) == text


def test_another_disk_is_none_of_its_business() -> None:
    assert around(SYNCS, SYNCS, "sdb") == []


def test_without_a_disk_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.time, "sleep", lambda seconds: pytest.fail("it waits"))
    watched = Neighbours(lambda names: {}, (), lambda: False)
    watched.watch("before")
    watched.watch("after")
    assert watched.reasons == []
