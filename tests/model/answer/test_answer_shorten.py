"""Answers shortened to the room there is, and the answer right after an option was changed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.answer.answer import short_who, shortened
from iopstui.model.answer.change import change_answer
from iopstui.model.answer.situation import Situation
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.model.answer.who import shares, who_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.metrics.run_history import RunRow

WHO = "fio --name=hog --rw=randrw --bs=16k (965) does at least 64 % of its bytes"
LONG = (
    "vda is busy: I/Os take 8.4 ms on average with 64 in flight, 6× its median at this load (last "
    "2 h); they are in vda, not in sda below it"
)
TEXTS = (
    LONG,
    "nvme0n1 is in use and quick: 0.21 ms on average, 1.20 GiB/s, 31 in flight, no long queue",
    "Queue is deep enough (0:12-0:15): iodepth 32 → 64: latency 490 → 919 µs, IOPS 65.2k → 69.7k",
    "md0: its counter says 3 in flight, but no task waits and the devices below have none",
    "Memory is short, and swap is on vda: tasks wait for memory 12 % of the time",
    "Not the disk: the CPUs are full (tasks wait 62 % of the time); vda is idle: no I/O for 5 s; "
    "the busiest program is stress-ng --cpu 2 (965) with 98 % of a CPU",
)


def test_the_least_telling_parts_go_first() -> None:
    found = ["{} · {}".format(*shortened(LONG, WHO, room, len)) for room in (250, 161, 146, 111)]
    assert found[0] == f"{LONG} · {WHO}"
    assert found[1] == f"{LONG.replace(' (last 2 h)', '')} · fio (965): ≥ 64 % of bytes"
    assert found[2].endswith(
        "with 64 in flight, 6× its median at this load (last 2 h) · fio (965): ≥ 64 % of bytes"
    )
    assert found[3] == (
        "vda is busy: I/Os take 8.4 ms on average with 64 in flight · fio (965): ≥ 64 % of bytes"
    )


def test_the_seconds_of_a_finding_stay_where_there_is_room_for_them() -> None:
    """They stay because the panels below the answer show later seconds."""
    text = ("The job waits for a CPU (0:12-0:15): 0.9 of 1.6 I/Os in flight wait for a CPU: jobs "
            "were ready to run 40 % of the time and had no CPU")  # fmt: skip
    begin = text.partition(": jobs")[0]
    assert shortened(text, "", 117, len)[0] == begin
    assert shortened(text, "", 70, len)[0] == begin.replace(" (0:12-0:15)", "")


def test_what_is_left_out_of_the_ios_in_flight_is_told_as_elsewhere() -> None:
    text = ("fio does 46.0k IOPS, 694 µs on average; in flight 32.0: vda 17.9, above the device "
            "13.0, waiting for a CPU 1.1")  # fmt: skip
    found = [shortened(text, "", room, len)[0] for room in (200, 100, 80, 65, 50)]
    assert found == [
        text,
        text.replace(", waiting for a CPU 1.1", ""),
        text.partition(", above")[0] + ", elsewhere 14.1",
        "fio does 46.0k IOPS, 694 µs on average; in flight 32.0",
        "fio does 46.0k IOPS, 694 µs on average",
    ]
    assert "elsewhere" not in shortened(f"{text}; each job uses 97 % of a CPU", "", 120, len)[0]


@given(st.sampled_from(TEXTS), st.sampled_from(("", WHO)), st.integers(30, 250))
def test_it_fits_and_no_word_is_cut(text: str, who: str, room: int) -> None:
    words, name = shortened(text, who, room, len)
    assert len(f"{words} · {name}" if name else words) <= room
    whole = set(re.split(r"[ ;:,.]+", text))
    assert set(re.split(r"[ ;:,.…]+", words)) - {""} <= whole
    if room >= 77:
        assert re.search(r" \d", words), "the number stays"
        assert "but" not in text or "but no task waits" in words, "and what takes it back"


def test_a_share_that_may_be_larger_is_at_least_so_much() -> None:
    def text(*devices: str) -> str:
        user = DiskUser(9, "fio", read_s=80.0, devices=frozenset(devices))
        disks = {"vda": (100.0, 0.0, 1.0), "vdb": (10.0, 0.0, 1.0)}
        return who_text(
            shares("vda", {"vda"}, DiskUse(5.0, 1.0, (user,), disks=disks)), None, "vda"
        )

    assert text("vda") == "fio (9) does 80 % of its bytes"
    # up to 10 bytes of it may be of the other disk
    assert text("vda", "vdb") == "fio (9) does at least 70 % of its bytes"


def test_a_reader_of_a_striped_array_reads_what_each_member_does() -> None:
    both = frozenset({"md7", "vda", "vdc"})
    disks = {"vda": (222.0, 222.0, 0.3), "vdc": (221.0, 221.0, 7.4)}
    reader = DiskUser(9, "fio", read_s=443.0, devices=both)
    use = DiskUse(5.0, 1.0, (reader,), disks=disks)
    (one,) = shares("vdc", {"vdc"}, replace(use, disks=disks | {"vdc": (221.0, 0.0, 7.4)}), {"md7"})
    assert (one.share, one.at_least) == (1.0, False)
    # what it writes may be in the page cache
    writer = replace(use, users=(replace(reader, read_s=0.0, write_s=443.0),))
    assert shares("vdc", {"vdc"}, writer, {"md7"}) == ()


def test_a_writer_of_a_mirror_writes_what_each_member_does() -> None:
    """The process reads 300 kB/s and writes as much, on a RAID 1 of two disks."""
    members = {"vda": (150.0, 300.0, 9.0), "vdc": (150.0, 300.0, 9.0)}
    hog = DiskUser(9, "fio", read_s=300.0, write_s=300.0, devices=frozenset({"md7", *members}))
    devices = {"md7": BlockDevice("md7", "/dev/md7", 9, 7, "md", None, layer="raid1")}
    for layer, share in (("raid1", 1.0), ("linear", 1 / 3)):
        of_layer = {"md7": replace(devices["md7"], layer=layer)}
        situation = Situation("vda", [], ("vda",), of_layer, {"md7": ("vda", "vdc")},
                              use=DiskUse(5.0, 1.0, (hog,), disks=members))  # fmt: skip
        (one,) = situation.shares
        assert one.share == pytest.approx(share)


@pytest.mark.parametrize("two, said", [
    ((50.0, 49.0), "fio (2 processes) does 99 % of its bytes"),
    ((64.0, 36.0), "fio (9) does 64 % of its bytes"),
    ((80.0, 5.0), "fio (9) does 80 % of its bytes"),
    ((30.0, 15.0), ""),
])  # fmt: skip
def test_a_program_of_several_processes_is_named_where_none_does_most(
    two: tuple[float, float], said: str
) -> None:
    users = tuple(DiskUser(9 + number, "fio", read_s=rate, devices=frozenset({"vda"}))
                  for number, rate in enumerate(two))  # fmt: skip
    use = DiskUse(5.0, 1.0, users, disks={"vda": (100.0, 0.0, 1.0)})
    assert who_text(shares("vda", {"vda"}, use), None, "vda") == said
    parents = replace(use, users=tuple(replace(user, children=True) for user in users))
    text = who_text(shares("vda", {"vda"}, parents), None, "vda")
    assert ("children" in text) is bool(said)


def test_a_process_with_a_command_of_its_own_that_does_half_stands_alone() -> None:
    """A batch job beside a web server, both of them fio."""
    both = ((9, "batch", 61.0), (10, "web", 39.0))
    users = tuple(DiskUser(pid, "fio", f"fio --name={name}", read_s=rate,
                           devices=frozenset({"vda"})) for pid, name, rate in both)  # fmt: skip
    use = DiskUse(5.0, 1.0, users, disks={"vda": (100.0, 0.0, 1.0)})
    found = shares("vda", {"vda"}, use)
    assert who_text(found, None, "vda") == "fio --name=batch (9) does 61 % of its bytes"


def test_many_small_ones_in_a_container_are_the_container() -> None:
    """Eight readers in a container, and one outside of it."""
    inside = "container docker 8c1d2f0a9b7e"
    users = tuple(DiskUser(9 + number, "fio", f"fio --name=w{number}", read_s=11.0,
                           devices=frozenset({"vda"}), group=inside * (number < 8))
                  for number in range(9))  # fmt: skip
    use = DiskUse(5.0, 1.0, users, disks={"vda": (99.0, 0.0, 1.0)})
    found = shares("vda", {"vda"}, use)
    assert who_text(found, None, "vda") == f"{inside} (8 processes) does 89 % of its bytes"


def test_a_changed_option_says_what_it_changed() -> None:
    before = RunRow(1, "job", "", None, "stopped", 20.0, 2300.0, p99_ns=5e5)
    now = RunRow(2, "job", "", ("iodepth 1 → 32",), seconds=None)
    assert change_answer(before, replace(now, changed=())) is None

    def text(seconds: float | None, iops: float | None = 14_100.0) -> str:
        answer = change_answer(before, replace(now, seconds=seconds, iops=iops, p99_ns=2.2e6))
        return answer.text if answer is not None else ""

    measuring = "iodepth 1 → 32: measuring; before it 2.30k IOPS, p99 500 µs"
    assert text(None, None) == text(1.0) == measuring
    first = change_answer(before, replace(now, seconds=None, iops=None), makes_file=True)
    assert first is not None and first.text.startswith("iodepth 1 → 32: its file is made first; ")
    assert text(2.0) == "iodepth 1 → 32: 2.30k → 14.1k IOPS, p99 500 µs → 2.20 ms"
    assert text(11.0) == ""


def test_who_uses_a_disk_tells_more_than_how_busy_it_is() -> None:
    text = "loop4 answers in 121 µs on average at 26 % busy; no queue (0.2 in flight)"
    who = "backupd --name=hog --rw=randread (11832) does at least 99 % of its bytes"
    assert shortened(text, who, 77, len) == (
        "loop4 answers in 121 µs on average; no queue", "backupd (11832): ≥ 99 %"
    )  # fmt: skip


@pytest.mark.parametrize(("waits", "room", "short"), [
    ("no queue (0.38 in flight)", 80, "; no queue"), ("nothing waits", 80, "; nothing waits"),
    ("tasks wait for I/O 2 % of the time", 80, "; tasks wait for I/O 2 %"),
    ("tasks wait for I/O 2 % of the time", 70, " on average"),
])  # fmt: skip
def test_whether_anything_waits_tells_more_than_how_busy_it_is(
    waits: str, room: int, short: str
) -> None:
    text = f"loop0 answers in 377 µs on average (device p99 2.77 ms) at 5.3 % busy; {waits}"
    who = "backupd --name=hog --filename=/dev/loop0 (16411) does 99 % of its bytes"
    words, person = shortened(text, who, room, len)
    assert words.endswith(short) and person.startswith("backupd (16411): 99 %")


@pytest.mark.parametrize(("text", "words", "person"), [
    ("loop4 is in use and quick: 108 µs on average, 94.5 MiB/s, 3.1 in flight, no long queue",
     "loop4 is in use and quick: 108 µs on average", "backupd (1183245): ≥ 99 %"),
    ("vda is busy: I/Os take 1.19 ms on average with 35 in flight, 6× its median at this load",
     "vda is busy: I/Os take 1.19 ms on average", "backupd (1183245): ≥ 99 %"),
    ("nvme10n1 (raid10) is busy: I/Os take 1.19 ms on average with 1.35k in flight",
     "nvme10n1 (raid10) is busy: I/Os take 1.19 ms", "backupd (1183245): ≥ 99 %"),
])  # fmt: skip
def test_further_figures_yield_to_who_it_is(text: str, words: str, person: str) -> None:
    who = "backupd --name=hog --rw=randread (1183245) does at least 99 % of its bytes"
    assert shortened(text, who, 77, len) == (words, person)


def test_the_device_on_the_way_yields_after_the_figures() -> None:
    text = "vda is in use and quick: 108 µs on average, 94.5 MiB/s, 3.1 in flight, no long queue"
    who = "backupd --rw=randread (11832) through loop4 does 99 % of its bytes"
    found = [shortened(text, who, room, len) for room in (200, 110, 81, 77, 58)]
    assert found == [
        (text, who), (text.partition(", 3.1")[0], short_who(who)),
        ("vda is in use and quick: 108 µs on average", "backupd (11832) through loop4: 99 %"),
        ("vda is in use and quick: 108 µs on average", "backupd (11832): 99 % of bytes"),
        ("vda is in use and quick: 108 µs", "backupd (11832): 99 %"),
    ]  # fmt: skip
