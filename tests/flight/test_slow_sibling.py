"""Which one of several similar disks became slow over days, according to a flight recording. `make
simulate` does the same many times."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from flight_weeks import Growths, WeeksWriter, together
from made_siblings import Night, frames_of, like_disks, minutes_of_weeks

from iopstui import events
from iopstui.cli.program import main
from iopstui.features.flight.directory import stored_files
from iopstui.features.flight.model.bad_times import SiblingDays, SlowedDisk
from iopstui.features.flight.past_answer import sibling_json, sibling_lines
from iopstui.features.flight.span import Span
from iopstui.features.flight.thinning import thin
from iopstui.model.block.device import BlockDevice
from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.rules.health import slow_sibling
from iopstui.model.findings.siblings import OddDisk, Windows
from iopstui.model.metrics.frame import Frame
from iopstui.model.samples import CpuTimes, DiskCounters, KernelSample, RawSample

DAY_S = 86400.0
START_S = 1_793_923_200.0
"""2026-11-06 00:00:00 UTC."""


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def four_days(odd: float, seed: str = "b") -> list[Growths]:
    """Minutes of eight disks with the same work; the first disk slows down evenly."""
    return [*minutes_of_weeks(random.Random(seed), 4, 8, odd, even=True)]


@pytest.fixture(scope="module")
def drifting() -> list[Growths]:
    """The first disk slows down to 1.8 times as long: by a fifth a day, so its second day begins at
    1.2."""
    return four_days(1.8)


def frame(growths: Growths, t: float, seconds: float = 60.0) -> Frame:
    return Frame(int(t), 0, t, 0.0, seconds, frozenset(), None, None, None, disks=dict(growths))


def judged(
    minutes: Iterable[Growths], same_since: dict[str, float] | None = None,
    disks: list[BlockDevice] | None = None,
) -> SlowedDisk | None:  # fmt: skip
    by_name = {device.name: device for device in disks or like_disks()}
    days = SiblingDays(by_name, lambda at: f"day {int(at // DAY_S)}", same_since or {})
    for number, growths in enumerate(minutes, 1):
        days.feed(60.0 * number, frame(growths, 60.0 * number))
    return days.slowed()


def test_a_disk_that_becomes_slower_is_named_with_its_day(drifting: list[Growths]) -> None:
    found = judged(drifting)
    assert found is not None and found.odd.disk == "d0" and found.since == "day 1"
    assert [day for day, _ in found.days] == ["day 0", "day 1", "day 2", "day 3"]
    for (_, times), truth in zip(found.days, (1.1, 1.3, 1.5, 1.7), strict=True):
        assert times == pytest.approx(truth, rel=0.1)
    assert found.odd.times == pytest.approx(1.7, rel=0.1)
    assert {*found.odd.siblings} <= {f"d{n}" for n in range(1, 8)}
    written = sibling_json(found)
    assert written is not None and written["since"] == "day 1"
    assert written["days"] == {day: round(times, 2) for day, times in found.days}


def test_members_of_an_array_are_compared_with_each_other(drifting: list[Growths]) -> None:
    array = BlockDevice("md0", "/dev/md0", 9, 0, "md", 1 << 42, layer="raid5")
    found = judged(drifting, disks=[*like_disks(8, holders=("md0",)), array])
    assert found is not None and found.odd.array == "md0"


def test_days_before_a_name_became_that_of_another_disk_do_not_count(
    drifting: list[Growths],
) -> None:
    since = dict.fromkeys(("d0", "d3"), DAY_S)
    found = judged(drifting, since)
    assert found is not None and found.since == found.days[0][0] == "day 1"
    # one remaining day is not enough
    assert judged(drifting, {"d0": 3 * DAY_S}) is None


def test_nothing_is_said_of_like_disks_and_of_one_that_is_slow_no_more(
    drifting: list[Growths],
) -> None:
    quiet = four_days(1.0)
    assert judged(quiet) is None
    assert judged([*drifting, *quiet[:1440]]) is None
    # a single day may be a scrub, or a job of that day
    assert judged([*quiet, *drifting[-1440:]]) is None
    assert judged([*quiet, *drifting[-2880:]]) is not None


def test_a_thinned_recording_has_the_same_windows() -> None:
    night = Night(random.Random(5))
    fine, coarse = Windows(1800.0), Windows(1800.0)
    names, minute, compared = frozenset(f"d{n}" for n in range(8)), [], 0
    for number, disks in enumerate(night.windows(2.0), 1):
        for second in frames_of(number, disks):
            minute.append(second.disks)
            one = fine.feed(second.t, second, names)
            other = None
            if len(minute) == 60:
                other = coarse.feed(second.t, frame(together(minute), second.t), names)
                minute = []
            assert (one is None) is (other is None)
            if one is not None and other is not None:
                compared += 1
                assert one[0] == other[0] and {*one[1]} == {*other[1]} == names
                for name, row in one[1].items():
                    # only the share of moments without a request in flight is sampled less often
                    seen = replace(other[1][name], seen=row.seen, seen_busy=row.seen_busy)
                    assert seen == row and other[1][name].seen == row.seen / 60
    assert compared == 4


def raw(t: float, monotonic_s: float, reads: dict[str, int]) -> RawSample:
    disks = {name: DiskCounters(name, 259, 0, count, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
             for name, count in reads.items()}  # fmt: skip
    kernel = KernelSample(int(1e9 * monotonic_s), 1e3 * t, 1, disks, {0: CpuTimes(*[0] * 8)}, {},
                          {}, None)  # fmt: skip
    return RawSample(0, int(1e9 * monotonic_s), 1e3 * t, kernel, None, False, 0)


@pytest.mark.parametrize(
    ("t", "monotonic_s", "reads", "changed"),
    [
        (60, 560, {"d0": 8, "d1": 5}, set()),
        (7260, 7760, {"d0": 7, "d1": 5}, set()),  # the recorder pauses
        (60, 560, {"d0": 8, "d1": 4}, {"d1"}),  # another disk in the same place
        (60, 560, {"d0": 8, "d1": 5, "d2": 9}, {"d2"}),
        # a boot, after which names may mean other disks
        (7260, 900, {"d0": 8, "d1": 5}, {"d0", "d1"}),
    ],
)
def test_when_a_name_may_be_another_disks(
    t: float, monotonic_s: float, reads: dict[str, int], changed: set[str]
) -> None:
    span = Span(0.0, 1.0)
    span.note_sample(raw(0, 500, {"d0": 7, "d1": 5}))
    span.note_sample(raw(t, monotonic_s, reads))
    assert span.same_since == dict.fromkeys(changed, float(t))


def test_why_names_the_disk_and_the_day(
    drifting: list[Growths], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = WeeksWriter(tmp_path, like_disks(), START_S, 300)
    writer.write(0, {})
    for first in range(0, len(drifting), 5):
        writer.write(300, together(drifting[first : first + 5]))
    writer.close()
    command = ["why", str(tmp_path), "--at", "2026-11-06", "--for", "4d"]
    main(command)
    out = " ".join(capsys.readouterr().out.split())
    assert "requests of d0 take 1.7 times as long as those of 7 like disks (d1, d2" in out
    assert "more than 1.2 times since 2026-11-07, and 1.08 times on" in out
    assert "on 2026-11-06, the first of 4 days compared; it is slow, or its requests" in out
    assert "next: if its requests are not harder" in out and "smartctl -x /dev/d0" in out
    main([*command[:-1], "1d", "--json"])
    assert json.loads(capsys.readouterr().out)["slow_sibling"] is None


def test_the_finding_of_then_stays_in_a_thinned_recording(
    drifting: list[Growths], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = OddDisk("d0", 1.4, tuple(f"d{n}" for n in range(1, 8)), 28, 30)
    finding = slow_sibling(Evidence([], odd_disk=odd))
    assert finding is not None
    writer = WeeksWriter(tmp_path, like_disks(), START_S, 0)
    writer.write(0, {})
    for number, minute in enumerate(drifting[:70]):
        writer.write(60, minute)
        if number == 30:
            writer.emit(events.FindingReported(31 * 60.0, finding))
    writer.close()
    for every_s in (0, 10, 60):
        for file in stored_files(tmp_path) if every_s else []:
            thin(file, every_s)
        main(["why", str(tmp_path), "--at", "2026-11-06 00:25", "--for", "10m"])
        assert f"  at 2026-11-06 00:31:00: {finding.text}" in capsys.readouterr().out.splitlines()
    page = tmp_path / "page.md"
    span = ["--from", "2026-11-06 00:05", "--to", "2026-11-06 01:05"]
    assert main(["report", str(tmp_path), *span, "-o", str(page)]) == 0
    assert "requests of d0 take 1.4 times as long" in page.read_text()


def test_a_slow_member_of_an_array_has_no_harder_requests() -> None:
    odd = OddDisk("d0", 1.4, ("d1", "d2", "d3", "d4"), 28, 30, array="md0")
    found = SlowedDisk(odd, (("2026-11-06", 1.3), ("2026-11-07", 1.4)), "2026-11-06")
    text, _ = sibling_lines(Span(0.0, 1.0), found)
    assert text.endswith("more than 1.2 times on all 2 days compared, the first 2026-11-06")
    assert "those of 4 other members of md0 with a similar" in text
