"""Counters of SMB shares, read from what a kernel printed (Linux 6.12 with ksmbd: two shares on one
connection, two readings of a busy time; and a share on each of two connections)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.counters.smb_stats import SmbStats, parse_smb_stats, tree_name, why_incomplete
from iopstui.linux.kernel_files import Roots

PROC = Path(__file__).parent.parent / "fixtures" / "proc"
AFTER = (PROC / "smb-6.12-after.stats").read_bytes()
TWO = (PROC / "smb-6.12-two-connections.stats").read_bytes()
SHARE, OTHER = "//10.9.0.1/share", "//10.9.0.1/other"

SMB_1 = (
    rb"""Resources in use
CIFS Session: 1
Share (unique mount targets): 2
Operations (MIDs): 0

1 session 2 share reconnects
Total vfs operations: 16 maximum at one time: 2

1) \\nas\a b	DISCONNECTED """
    rb"""
SMBs: 9 Oplocks breaks: 1
Reads:  3 Bytes: 12288
Writes: 2 Bytes: 100
Flushes: 1
Locks: 0 HardLinks: 0 Symlinks: 0
Opens: 4 Closes: 5 Deletes: 0
Renames: 0 T2 Renames 7
FindFirst: 1 FNext 8 FClose 0
"""
)


def test_a_share_has_its_operations_and_those_of_its_connection() -> None:
    found = parse_smb_stats(AFTER, [SHARE])
    assert found is not None
    assert [found[f"read.{name}"] for name in ("ops", "errors", "bytes")] == [9410, 0, 154107904]
    assert [found[f"write.{name}"] for name in ("ops", "bytes")] == [4060, 83230720]
    assert "lock.ops" not in found, "operations that were never used are left out"
    # all writes on the connection, including those to the other share
    assert (found["server.write.count"], found["server.write.jiffies"]) == (4260, 2868)
    assert (found["server.shares"], found["server.hz"], found["server.slow"]) == (2, 250, 0)
    assert (found["smbs"], found["sessions"], found["in_flight"]) == (13534, 1, 4)
    assert found["since"] == 1795693194, "date -d '2026-11-26 11:39:54 UTC' +%s"


def test_shares_and_their_connections_are_added_up() -> None:
    one, other = (parse_smb_stats(TWO, [name]) for name in (SHARE, OTHER))
    both = parse_smb_stats(TWO, [SHARE, OTHER])
    assert one is not None and other is not None and both is not None
    for key in ("smbs", "create.ops", "server.create.count", "server.shares"):
        assert both[key] == one[key] + other[key], key
    assert both["server.hz"] == 250
    together = parse_smb_stats(AFTER, [SHARE, OTHER])
    assert together is not None
    assert together["server.write.count"] == 4260, "of the same connection, counted once"


def test_a_directory_of_a_share_and_its_name_in_other_letters_are_the_share() -> None:
    assert tree_name("//SRV/Data/a/b") == tree_name("\\\\srv\\data") == rb"\\srv\data"
    assert parse_smb_stats(AFTER, ["//10.9.0.1/SHARE/sub"]) == parse_smb_stats(AFTER, [SHARE])


def test_what_is_not_mounted_or_not_counted_is_none() -> None:
    assert parse_smb_stats(AFTER, [SHARE, "//10.9.0.1/gone"]) is None
    assert parse_smb_stats(AFTER, ["//10.9.0.1/shar"]) is None
    assert parse_smb_stats(AFTER, []) is None
    zeros = b"\n1) \\\\srv\\old\nSMBs: 20\nReads: 0 sent 0 failed\nWrites: 0 sent 0 failed\n"
    assert parse_smb_stats(zeros, ["//srv/old"]) is None, "kernels that count SMBs alone"


def test_kernels_without_times_and_without_a_date() -> None:
    """As Linux 5.4 without CONFIG_CIFS_STATS2 prints them (formats of cifs_debug.c)."""
    plain = re.sub(rb"Total time spent(.|\n)*?(?=\n\d+\))", b"", AFTER)
    plain = re.sub(rb" since .* UTC", b"", plain)
    assert b"jiffies" not in plain and b"since" not in plain
    found, whole = parse_smb_stats(plain, [SHARE]), parse_smb_stats(AFTER, [SHARE])
    assert found is not None and whole is not None
    assert found == {
        key: value for key, value in whole.items()
        if key == "server.shares" or (key != "since" and not key.startswith("server."))
    }  # fmt: skip


def test_smb_1_has_no_errors_and_no_times() -> None:
    found = parse_smb_stats(SMB_1, ["//nas/a b"])
    assert found == {
        "sessions": 1, "in_flight": 0, "reconnects": 1, "smbs": 9, "disconnected": 1,
        "read.ops": 3, "read.bytes": 12288, "write.ops": 2, "write.bytes": 100,
        "oplock_break.ops": 1, "flush.ops": 1, "open.ops": 4, "close.ops": 5,
        "t2_rename.ops": 7, "find_first.ops": 1, "fnext.ops": 8, "server.shares": 1,
    }  # fmt: skip


def test_a_connection_without_a_share_counts_for_none() -> None:
    begin = TWO.index(b"Max requests")
    empty = TWO[begin : TWO.index(b"\n1) \\")] + b"\n"
    found = parse_smb_stats(TWO[:begin] + empty + TWO[begin:] + empty, [SHARE, OTHER])
    assert found == parse_smb_stats(TWO, [SHARE, OTHER])


def test_slow_answers_and_lost_connections() -> None:
    slow = b"  3 slow responses from srv for command 8\n  2 slow responses from srv for command 9\n"
    data = TWO.replace(b"\n2) \\\\", slow + b"\n2) \\\\").replace(
        b"\\share\n", b"\\share\tDISCONNECTED \n"
    )
    found = parse_smb_stats(data, [SHARE])
    assert found is not None
    assert (found["server.slow"], found["disconnected"]) == (5, 1)
    other = parse_smb_stats(data, [OTHER])
    assert other is not None and (other["server.slow"], other["disconnected"]) == (0, 0)


def test_counters_of_32_bits_are_not_negative() -> None:
    data = AFTER.replace(b"Reads: 9410 total", b"Reads: -2 total")
    found = parse_smb_stats(data, [SHARE])
    assert found is not None and found["read.ops"] == (1 << 32) - 2


def test_what_cannot_be_measured_of_a_share_has_a_reason(tmp_path: Path) -> None:
    file, roots = tmp_path / "proc/fs/cifs/Stats", Roots.under(tmp_path)
    assert "No such file" in why_incomplete(SHARE, roots)
    file.parent.mkdir(parents=True)
    file.write_bytes(TWO)
    assert why_incomplete(SHARE, roots) == ""
    assert "does not list the share" in why_incomplete("//dfs/link", roots)
    file.write_bytes(SMB_1)
    assert "no latencies" in why_incomplete("//nas/a b", roots)


@given(st.integers(0, len(TWO)), st.binary(max_size=9))
def test_no_text_fails(cut: int, more: bytes) -> None:
    found = parse_smb_stats(TWO[:cut] + more, [SHARE])
    if cut + len(more) < TWO.index(b"\\share\n"):
        assert found is None, "the share is not listed yet"
    elif found is not None:
        assert found["smbs"] >= 0


@given(st.integers(0, len(TWO)))
def test_a_text_that_ends_early_has_no_other_figures(cut: int) -> None:
    """A number that is cut has the first digits of the whole one; a 0 may be left out where the
    whole text says that there was no such operation."""
    found, whole = parse_smb_stats(TWO[:cut], [SHARE]), parse_smb_stats(TWO, [SHARE])
    assert whole is not None and whole["smbs"] > 0
    if cut == len(TWO):
        assert found == whole
    for key, value in (found or {}).items():
        assert value == 0 or str(whole[key]).startswith(str(value)), key


@pytest.mark.parametrize("there", [True, False])
def test_the_file_is_read_anew_each_time(tmp_path: Path, there: bool) -> None:
    file = tmp_path / "proc/fs/cifs/Stats"
    if there:
        file.parent.mkdir(parents=True)
        file.write_bytes(AFTER)
    reader = SmbStats([SHARE], Roots.under(tmp_path))
    assert reader.read() == (parse_smb_stats(AFTER, [SHARE]) if there else None)
    if there:
        file.write_bytes(TWO)
        assert reader.read() == parse_smb_stats(TWO, [SHARE])
    reader.close()
