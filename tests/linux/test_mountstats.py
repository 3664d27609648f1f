"""Counters of NFS mounts, read from what a kernel printed (Linux 6.12: NFS 4.2 with nconnect=4 on
/mnt/n4, NFS 3 on /mnt/n3; two readings of a busy time)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_mountstats import parse_mountstats

from iopstui.linux.counters.mountstats import FULL_READ_EVERY, NfsCounters
from iopstui.linux.counters.sampler import KernelSampler
from iopstui.linux.kernel_files import Roots

PROC = Path(__file__).parent.parent / "fixtures" / "proc"
BEFORE, AFTER = (
    (PROC / f"nfs-6.12-{name}.mountstats").read_bytes() for name in ("before", "after")
)


def read(data: bytes, mountpoints: Sequence[str]) -> dict[str, int] | None:
    return NfsCounters(mountpoints).read([data])


def test_operations_and_connections_of_one_mount() -> None:
    found = read(AFTER, ["/mnt/n4"])
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


@pytest.mark.parametrize("places", [["/mnt/n3"], ["/mnt/n4"], ["/mnt/n4", "/mnt/n3"]])
def test_readings_one_after_the_other_are_those_of_the_plain_parser(places: list[str]) -> None:
    reader = NfsCounters(places)
    for data in (BEFORE, AFTER, AFTER, BEFORE):
        assert reader.read([data]) == parse_mountstats(data, places)


def test_mounts_are_added_up_and_those_of_one_server_share_its_connections() -> None:
    four, three = (read(AFTER, [name]) for name in ("/mnt/n4", "/mnt/n3"))
    both = read(AFTER, ["/mnt/n4", "/mnt/n3"])
    assert four is not None and three is not None and both is not None
    assert both["write.ops"] == four["write.ops"] + three["write.ops"]
    assert both["connection.4.sends"] == three["connection.0.sends"]
    other = AFTER[AFTER.index(b"device 10.9.0.2:/run") :].replace(b"/mnt/n3", b"/mnt/x")
    twice = read(AFTER + other.replace(b":/run/exp", b":/run/other"), ["/mnt/n3", "/mnt/x"])
    assert twice is not None
    assert twice["write.ops"] == 2 * three["write.ops"]
    assert [key for key in twice if key.endswith(".sends")] == ["connection.0.sends"]
    elsewhere = read(AFTER + other.replace(b"10.9.0.2", b"10.9.0.3"), ["/mnt/n3", "/mnt/x"])
    assert elsewhere is not None
    assert elsewhere["connection.1.sends"] == elsewhere["connection.0.sends"]


def test_a_name_with_a_blank_and_a_mount_that_is_hidden() -> None:
    old = b"device s:/a mounted on /mnt/a\\040b with fstype nfs statvers=1.1\n"
    counters = b"\tper-op statistics\n\t READ: %d 7 0 1 2 3 4 5\n\n"
    data = old + counters % 1 + old + counters % 6 + b"no device mounted on /x with fstype x\n"
    reader = NfsCounters(["/mnt/a b"])
    assert [reader.read([data]) for _ in range(3)][1:] == [
        read(old + counters % 6, ["/mnt/a b"])
    ] * 2
    found = reader.read([data])
    assert found is not None
    assert found["read.ops"] == 6, "the last mount hides the first"
    assert "read.errors" not in found, "kernels before 5.3 count none"


def test_what_is_no_nfs_mount_is_none() -> None:
    assert read(AFTER, ["/proc"]) is None
    assert read(AFTER, ["/mnt"]) is None
    assert read(AFTER, ["/mnt/n3", "/elsewhere"]) is None


@given(st.binary(max_size=200))
def test_damaged_text_is_no_counters_and_is_forgotten(junk: bytes) -> None:
    reader = NfsCounters(["/mnt/n3"])
    at = AFTER.rindex(b"per-op statistics\n") + 40
    reader.read([AFTER])
    reader.read([AFTER[:at] + junk])
    assert reader.read([AFTER]) == parse_mountstats(AFTER, ["/mnt/n3"])


VERSIONS: Mapping[str, Sequence[str]] = {
    "3": ("NULL", "GETATTR", "READ", "WRITE"),
    "4.2": ("NULL", "READ", "WRITE", "COMMIT", "SETCLIENTID_CONFIRM"),
}
NUMBERS = st.lists(st.integers(0, 1 << 40), min_size=9, max_size=9)


@st.composite
def mounts(draw: st.DrawFn) -> bytes:
    """The file with up to four mounts of two servers. Operations have few different counters, so
    that many are the same as in the previous reading."""
    text = "device proc mounted on /proc with fstype proc\n"
    for place in draw(st.lists(st.sampled_from(("/a", "/b\\040c", "/d", "/a")), max_size=4)):
        version, server = draw(st.sampled_from(list(VERSIONS))), draw(st.sampled_from("xy"))
        text += (
            f"device {server}:/e{place} mounted on {place} with fstype nfs statvers=1.1\n"
            f"\topts:\trw,vers={version},proto=tcp,timeo=600\n"
        )
        for _ in range(draw(st.integers(1, 2))):
            text += f"\txprt:\ttcp 0 0 2 0 {' '.join(map(str, draw(NUMBERS)))}\n"
        text += "\tper-op statistics\n"
        for name in VERSIONS[version]:
            numbers = draw(st.sampled_from(([0] * 9, [1] * 9, draw(NUMBERS))))
            text += f"\t{name:>12}: {' '.join(map(str, numbers))}\n"
        text += "\n"
    return text.encode()


@given(st.lists(mounts(), min_size=1, max_size=4), st.sampled_from((["/a"], ["/b c", "/d"])))
def test_any_readings_are_those_of_the_plain_parser(
    readings: Sequence[bytes], places: list[str]
) -> None:
    reader = NfsCounters(places)
    # reading 1 is of the whole file, and the loop repeats that one
    reader.read([])
    for data in readings:
        reader._readings = 1
        assert reader.read([data]) == parse_mountstats(data, places)


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
    """The file with ``count`` mounts, in the pieces in which the kernel gives it."""
    section = AFTER[AFTER.index(b"device 10.9.0.2:/run") :]
    return [b"device proc mounted on /proc with fstype proc\n",
            *(section.replace(b"/mnt/n3", b"/m/%d" % n) for n in range(count))]  # fmt: skip


@pytest.mark.parametrize(("wanted", "pieces"), [((0,), 3), ((3,), 6), ((3, 1), 6), ((9,), 11)])
def test_no_more_is_read_than_up_to_the_mount(wanted: tuple[int, ...], pieces: int) -> None:
    file = many(10)
    places = [f"/m/{n}" for n in wanted]
    asked = iter(file)
    found = NfsCounters(places).read(asked)
    assert len(file) - len(list(asked)) == pieces
    assert found == parse_mountstats(b"".join(file), places)


@given(st.integers(1, 999))
def test_pieces_may_be_cut_anywhere(size: int) -> None:
    data = b"".join(many(4))
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    assert NfsCounters(["/m/2"]).read(pieces) == parse_mountstats(data, ["/m/2"])
    assert next(pieces, None) is not None


def test_a_mount_on_top_of_another_is_found() -> None:
    top = many(3)[-1].replace(b"/m/2", b"/m/0").replace(b" 2110 ", b" 2111 ")
    reader = NfsCounters(["/m/0"])
    below, both = (parse_mountstats(b"".join(many(3)) + more, ["/m/0"]) for more in (b"", top))
    assert [reader.read(many(3)) for _ in range(3)] == [below] * 3
    found = [reader.read([*many(3), top]) for _ in range(FULL_READ_EVERY)]
    assert found[-1] == both
    assert [reader.read([*many(3), top]) for _ in range(3)] == [both] * 3
