"""Counters of NFS mounts, read from what a kernel printed (Linux 6.12: NFS 4.2 with nconnect=4 on
/mnt/n4, NFS 3 on /mnt/n3; two readings of a busy time)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.counters.mountstats import parse_mountstats, until_found
from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.roots import Roots

PROC = Path(__file__).parent.parent / "fixtures" / "proc"
AFTER = (PROC / "nfs-6.12-after.mountstats").read_bytes()


def test_operations_and_connections_of_one_mount() -> None:
    found = parse_mountstats(AFTER, ["/mnt/n4"])
    assert found is not None
    write = {key: value for key, value in found.items() if key.startswith("write.")}
    assert write == {
        "write.ops": 2110, "write.transmissions": 2110, "write.timeouts": 0,
        "write.sent": 107699608, "write.received": 254824, "write.queue_ms": 373933,
        "write.rtt_ms": 184963, "write.exe_ms": 559988, "write.errors": 0,
    }  # fmt: skip
    assert [found[f"connection.{n}.sends"] for n in range(4)] == [1574, 1521, 1572, 1574]
    assert found["connection.3.backlog"] == 0
    assert not any(key.startswith("read.") for key in found), "READ_PLUS was used instead"


def test_mounts_are_added_up_and_one_export_counts_once() -> None:
    four, three = (parse_mountstats(AFTER, [name]) for name in ("/mnt/n4", "/mnt/n3"))
    assert four is not None and three is not None
    both = parse_mountstats(AFTER, ["/mnt/n4", "/mnt/n3"])
    assert both is not None
    assert both["write.ops"] == four["write.ops"] + three["write.ops"]
    assert both["connection.4.sends"] == three["connection.0.sends"]
    twice = AFTER + AFTER[AFTER.index(b"device 10.9.0.2:/run") :].replace(b"/mnt/n3", b"/mnt/x")
    assert parse_mountstats(twice, ["/mnt/n3", "/mnt/x"]) == three


def test_a_name_with_a_blank_and_a_mount_that_is_hidden() -> None:
    old = b"device s:/a mounted on /mnt/a\\040b with fstype nfs statvers=1.1\n"
    counters = b"\tper-op statistics\n\t READ: %d 7 0 1 2 3 4 5\n"
    data = old + counters % 1 + old + counters % 6 + b"device proc mounted on /proc\n"
    found = parse_mountstats(data, ["/mnt/a b"])
    assert found is not None
    assert found["read.ops"] == 6, "the last mount hides the first"
    assert "read.errors" not in found, "kernels before 5.3 count none"


def test_what_is_no_nfs_mount_is_none() -> None:
    assert parse_mountstats(AFTER, ["/proc"]) is None
    assert parse_mountstats(AFTER, ["/mnt"]) is None
    assert parse_mountstats(AFTER, ["/mnt/n3", "/elsewhere"]) is None


@given(st.binary(max_size=200))
def test_damaged_text_gives_counters_or_a_named_error(junk: bytes) -> None:
    data = b"device s:/a mounted on /m with fstype nfs \nper-op\n" + junk
    with contextlib.suppress(ValueError, IndexError):
        parse_mountstats(data, ["/m"])


@pytest.mark.parametrize("shares", [(), ("/mnt/n3",), ("/gone",)])
def test_a_sample_has_the_counters_of_its_shares(tmp_path: Path, shares: tuple[str, ...]) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountstats").write_bytes(AFTER)
    sampler = KernelSampler(Roots.under(tmp_path), [], [], shares=shares)
    more = sampler.sample().more
    sampler.close()
    assert more.get("nfs") == (parse_mountstats(AFTER, shares) if shares else None)
    assert ("nfs" in more) == (shares == ("/mnt/n3",))


def many(count: int) -> list[bytes]:
    """The file of so many mounts, in the pieces that the kernel gives."""
    section = AFTER[AFTER.index(b"device 10.9.0.2:/run") :]
    return [b"device proc mounted on /proc with fstype proc\n",
            *(section.replace(b"/mnt/n3", b"/m/%d" % n) for n in range(count))]  # fmt: skip


@pytest.mark.parametrize(("wanted", "read"), [((0,), 3), ((3,), 6), ((3, 1), 6), ((9,), 11)])
def test_no_more_is_read_than_up_to_the_mount(wanted: tuple[int, ...], read: int) -> None:
    pieces = many(10)
    places = [f"/m/{n}" for n in wanted]
    asked = iter(pieces)
    found = until_found(asked, places)
    assert len(pieces) - len(list(asked)) == min(read, len(pieces))
    assert parse_mountstats(found, places) == parse_mountstats(b"".join(pieces), places)


@given(st.integers(1, 999))
def test_pieces_may_be_cut_anywhere(size: int) -> None:
    data = b"".join(many(4))
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = until_found(iter(pieces), ["/m/2"])
    assert parse_mountstats(found, ["/m/2"]) == parse_mountstats(data, ["/m/2"])
    assert len(found) < len(data)


def test_a_mount_on_top_of_another_is_found(tmp_path: Path) -> None:
    first, *_, last = many(3)
    top = last.replace(b"/m/2", b"/m/0").replace(b" 2110 ", b" 2111 ")
    (tmp_path / "proc/self").mkdir(parents=True)
    file = tmp_path / "proc/self/mountstats"
    file.write_bytes(b"".join(many(3)) + top)
    sampler = KernelSampler(Roots.under(tmp_path), [], [], shares=["/m/0"])
    both = [sampler.sample().more["nfs"] for _ in range(3)]
    sampler.close()
    assert both == [parse_mountstats(first + top, ["/m/0"])] * 3
