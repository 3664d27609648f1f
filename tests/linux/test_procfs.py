from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.counters.interrupts import parse_per_cpu_count
from iopstui.linux.counters.procfs import (
    parse_cpu_header,
    parse_diskstats,
    parse_function_calls,
    parse_interrupts,
    parse_softirqs_block,
    parse_stat_cpus,
)
from iopstui.model.samples import CpuTimes, DiskCounters

PROC = Path(__file__).parent.parent / "fixtures" / "proc"
TWO = "2cpu-6.18"
OFFLINE = "4cpu-6.12-cpu3-offline"

DISKSTATS = b"""\
 259       0 nvme0n1 255999 814 12369153 47919 996852 81 36123024 425995 2 301795 580470 1 2 3 4 60602 106555
   8       0 sda 10 20 30 40 50 60 70 80 90 100 110 120 130 140 150
   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11
   3       1 hda1 35486 38030 38030 38030
   8      16 sdb 1 2 3 4 5 6 7 8 9 10 x
   8      32 sdc 1 2 3
 104       0 cciss/c0d0 1 2 3 4 5 6 7 8 9 10 11
nonsense
   8      48 sdd -1 2 3 4 5 6 7 8 9 10 11

 253       0 dm-0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19
"""  # noqa: E501


def proc(machine: str, name: str) -> bytes:
    return (PROC / f"{machine}.{name}").read_bytes()


def test_all_forms_of_a_row() -> None:
    rows = parse_diskstats(DISKSTATS)
    assert list(rows) == ["nvme0n1", "sda", "sda1", "hda1", "cciss/c0d0", "dm-0"]
    assert rows["nvme0n1"] == DiskCounters(
        "nvme0n1", 259, 0, 255999, 814, 12369153, 47919, 996852, 81, 36123024, 425995,
        2, 301795, 580470, 1, 2, 3, 4, 60602, 106555,
    )  # fmt: skip
    assert rows["sda"] == DiskCounters(
        "sda", 8, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150
    )
    assert rows["sda1"] == DiskCounters("sda1", 8, 1, *range(1, 12))
    assert rows["hda1"] == DiskCounters(
        "hda1", 3, 1,
        reads=35486, read_merges=None, read_sectors=38030, read_ms=None,
        writes=38030, write_merges=None, write_sectors=38030, write_ms=None,
        in_flight=None, io_ms=None, weighted_ms=None,
    )  # fmt: skip


def test_columns_of_the_future_are_ignored() -> None:
    assert parse_diskstats(DISKSTATS)["dm-0"].flush_ms == 17


def test_only_the_wanted_rows() -> None:
    assert list(parse_diskstats(DISKSTATS, {"sda1", "sdb", "absent"})) == ["sda1"]
    assert parse_diskstats(DISKSTATS, ()) == {}


def test_real_diskstats() -> None:
    vda = parse_diskstats(proc(OFFLINE, "diskstats"), ["vda"])["vda"]
    assert (vda.major, vda.minor, vda.reads, vda.read_sectors) == (254, 0, 2203, 17624)
    assert (vda.io_ms, vda.weighted_ms, vda.flushes) == (224, 232, 0)


numbers = st.integers(0, (1 << 64) - 1)
names = st.from_regex(r"[a-z][a-z0-9/!._-]{0,30}", fullmatch=True)


@given(names, st.lists(numbers, min_size=2, max_size=2), st.lists(numbers, max_size=25))
def test_a_row_is_read_as_written_or_not_at_all(
    name: str, device: list[int], counts: list[int]
) -> None:
    line = " ".join([*map(str, device), name, *map(str, counts)]).encode()
    row = parse_diskstats(line).get(name)
    if len(counts) == 4:
        assert row is not None
        assert [row.reads, row.read_sectors, row.writes, row.write_sectors] == counts
    elif len(counts) < 11:
        assert row is None
    else:
        assert row is not None
        assert (row.reads, row.weighted_ms) == (counts[0], counts[10])
        assert row.discard_ms == (counts[14] if len(counts) >= 15 else None)
        assert row.flush_ms == (counts[16] if len(counts) >= 17 else None)


@given(st.binary(max_size=300))
def test_no_bytes_make_a_parser_fail(data: bytes) -> None:
    parse_diskstats(data)
    parse_stat_cpus(data)
    parse_stat_cpus(b"cpu" + data)
    parse_softirqs_block(data)
    parse_interrupts(data, [1, 2])


@given(st.integers(0, 600), st.integers(0, 600))
def test_a_file_torn_anywhere_gives_nothing_wrong(start: int, length: int) -> None:
    whole = parse_diskstats(DISKSTATS)
    torn = parse_diskstats(DISKSTATS[start : start + length])
    ends = b"\n" + DISKSTATS[start : start + length].split(b"\n")[-1]
    for name, row in torn.items():
        if name.encode() not in ends and start == 0:
            assert row == whole[name]


def test_cpu_times_without_the_long_rest() -> None:
    data = proc(TWO, "stat")
    cpus = parse_stat_cpus(data)
    assert list(cpus) == [0, 1]
    assert cpus[0] == CpuTimes(17782, 0, 6818, 277591, 725, 0, 135, 5)


def test_offline_cpus_have_no_times() -> None:
    assert list(parse_stat_cpus(proc(OFFLINE, "stat"))) == [0, 1, 2]


def test_cpu_times_of_old_kernels_and_torn_lines() -> None:
    assert parse_stat_cpus(b"cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu7 1 2 x 4\ncpu9 1 2\nintr 1\n") == {
        0: CpuTimes(1, 2, 3, 4, 0, 0, 0, 0)
    }
    assert parse_stat_cpus(b"cpu0 1 2 3 4 5 6 7 8 9 10") == {0: CpuTimes(1, 2, 3, 4, 5, 6, 7, 8)}


def test_block_softirqs_are_of_possible_cpus() -> None:
    assert parse_softirqs_block(proc(OFFLINE, "softirqs")) == {0: 22, 1: 0, 2: 0, 3: 0}
    assert list(parse_softirqs_block(proc(TWO, "softirqs"))) == [0, 1]


def test_block_softirqs_without_header_or_line() -> None:
    assert parse_softirqs_block(b"") == {}
    assert parse_softirqs_block(b"   CPU0\n  TIMER:  3\n") == {}
    assert parse_softirqs_block(b"   CPU0 CPU1\n  BLOCK:  3\n") == {}


def test_interrupts_of_online_cpus() -> None:
    irqs, ipi = parse_interrupts(proc(OFFLINE, "interrupts"), [35, 38, 999])
    assert irqs == {35: {0: 0, 1: 200, 2: 0}, 38: {0: 16, 1: 0, 2: 0}}
    assert ipi == {0: 3182, 1: 2096, 2: 2931}


def test_the_count_of_an_offline_cpu_is_only_in_per_cpu_count() -> None:
    irqs, _ = parse_interrupts(proc(OFFLINE, "interrupts"), [37])
    assert irqs == {37: {0: 0, 1: 0, 2: 0}}
    possible = parse_cpu_header(proc(OFFLINE, "softirqs"))
    assert parse_per_cpu_count(b"0,0,0,2003\n", possible) == {0: 0, 1: 0, 2: 0, 3: 2003}


def test_columns_are_the_header_cpus_not_their_position() -> None:
    data = (
        b"      CPU0  CPU2  CPU63\n 24:  1  2  3  MSI  x\nCAL:  4  5  6  Function call interrupts\n"
    )
    irqs, ipi = parse_interrupts(data, [24])
    assert irqs == {24: {0: 1, 2: 2, 63: 3}}
    assert ipi == {0: 4, 2: 5, 63: 6}


ARM64 = b"""\
           CPU0       CPU1
 11:       1000       2000     GICv3  27 Level     arch_timer
 48:          7          9  ITS-MSI 524289 Edge      nvme0q1
IPI0:       500        600       Rescheduling interrupts
IPI1:        41         42       Function call interrupts
IPI2:         0          0       CPU stop interrupts
Err:          0
"""


def test_arm_names_its_ipis_by_number() -> None:
    irqs, ipi = parse_interrupts(ARM64, [48, 11])
    assert irqs == {11: {0: 1000, 1: 2000}, 48: {0: 7, 1: 9}}
    assert ipi == {0: 41, 1: 42}


def test_old_arm_has_two_lines_of_them() -> None:
    data = ARM64.replace(b"CPU stop", b"Single function call").replace(
        b"IPI2:         0          0", b"IPI2:         3          4"
    )
    assert parse_interrupts(data, [])[1] == {0: 44, 1: 46}


def test_a_machine_without_function_call_interrupts() -> None:
    data = b"      CPU0\n  5:  1  x\nDBL:  0  Doorbell interrupts\n"
    assert parse_interrupts(data, [5]) == ({5: {0: 1}}, None)


def test_a_device_may_call_itself_anything() -> None:
    data = b"      CPU0\n 5:  1  MSI  function call interrupts\nCAL: 2  Function call interrupts\n"
    assert parse_interrupts(data, []) == ({}, {0: 2})


def test_a_cpu_that_comes_while_the_file_is_read() -> None:
    data = b"      CPU0  CPU1\n 24:  1  MSI  x\nCAL:  4  Function call interrupts\n"
    assert parse_interrupts(data, [24]) == ({}, None)


@given(
    st.lists(st.integers(0, 511), min_size=1, max_size=64, unique=True).map(sorted),
    st.dictionaries(st.integers(0, 3000), st.integers(0, 1 << 40), min_size=1, max_size=30),
)
def test_any_table_is_read_as_written(cpus: list[int], counts: dict[int, int]) -> None:
    header = "      " + " ".join(f"CPU{cpu:<8}" for cpu in cpus)
    lines = [
        f"{irq:>4}: " + " ".join(f"{count + cpu:>10}" for cpu in cpus) + "  PCI-MSIX  1-edge  q"
        for irq, count in counts.items()
    ]
    table = "\n".join([header, *lines, "ERR:  0", ""]).encode()
    irqs, ipi = parse_interrupts(table, list(counts))
    assert irqs == {irq: {cpu: n + cpu for cpu in cpus} for irq, n in counts.items()}
    assert ipi is None


@pytest.mark.parametrize("machine", [TWO, OFFLINE])
def test_function_calls_from_the_end_alone(machine: str) -> None:
    data = proc(machine, "interrupts")
    header, _, rest = data.partition(b"\n")
    whole = parse_interrupts(data, [])[1]
    assert whole is not None
    assert parse_function_calls(header, data) == whole
    # cut in the middle of a numbered line
    assert parse_function_calls(header, rest[20:]) == whole
    assert parse_function_calls(header, b"") is None


def test_function_calls_of_arm_from_the_end_alone() -> None:
    header = ARM64.partition(b"\n")[0]
    assert parse_function_calls(header, ARM64) == {0: 41, 1: 42}


def test_a_device_of_any_name_is_no_function_call() -> None:
    data = b"      CPU0\n 5:  1  MSI  function call interrupts\nERR:  0\n"
    assert parse_function_calls(data.partition(b"\n")[0], data) is None


@given(st.binary(max_size=60), st.binary(max_size=300))
def test_no_bytes_make_function_calls_fail(header: bytes, tail: bytes) -> None:
    parse_function_calls(header, tail)


def test_cpu_times_of_uneven_lines() -> None:
    data = proc(TWO, "stat")
    lines = data.split(b"\n")
    uneven = b"\n".join([*lines[:2], lines[2] + b" 0", *lines[3:]])
    assert parse_stat_cpus(uneven) == parse_stat_cpus(data)
    assert parse_stat_cpus(b"cpu  1 2 3 4 5 6 7 8 9 x\ncpu0 1 2 3 4 5 6 7 8 9 0\n") == {
        0: CpuTimes(1, 2, 3, 4, 5, 6, 7, 8)
    }


NUMBERS = st.text("0123456789", min_size=1, max_size=12).map(str.encode)
ODD = [b"", b" ", b"  ", b"x", b"cpu", b"-1", b"\n", b"\ncpu7", b"9" * 700, b"9" * 5000]


def naive_table(
    data: bytes, wanted: list[int]
) -> tuple[dict[int, dict[int, int]], dict[int, int] | None]:
    """/proc/interrupts line by line and word by word."""
    first, *lines = data.decode().split("\n")
    cpus = [int(word[3:]) for word in first.split()]
    irqs, calls = {}, None
    for line in lines:
        label, colon, rest = line.partition(":")
        words = rest.split()[: len(cpus)]
        if not colon or len(words) < len(cpus) or not all(word.isdigit() for word in words):
            continue
        counts = {cpu: int(word) for cpu, word in zip(cpus, words, strict=True)}
        if label.strip() == "CAL":
            calls = counts
        elif label.strip().isdigit() and int(label) in wanted:
            irqs[int(label)] = counts
    return irqs, calls


NAMES = st.sampled_from(
    ["", "  IR-PCI-MSIX-0000:01:00.0  3-edge  nvme0q3", "  PCI-MSI 12-edge  my disk: 7 of 9",
     "  Function call interrupts", "  1 2 3"]
)  # fmt: skip


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=20, unique=True).map(sorted),
    st.lists(
        st.tuples(
            st.sampled_from(["NMI", "LOC", "ERR", "MIS", "Err", *map(str, range(9))]),
            st.integers(-3, 3), NAMES,
        ),
        max_size=12, unique_by=lambda line: line[0],
    ),
    st.lists(st.integers(0, 9), max_size=5, unique=True),
)  # fmt: skip
def test_a_table_is_what_a_naive_reader_finds(
    cpus: list[int], lines: list[tuple[str, int, str]], wanted: list[int]
) -> None:
    """Lines with fewer or more counts than CPUs; offline CPUs; names with blanks."""
    text = ["      " + " ".join(f"CPU{cpu:<8}" for cpu in cpus)]
    for label, more, name in [*lines, ("CAL", 0, "  Function call interrupts")]:
        counts = range(5, 5 + max(0, len(cpus) + more))
        name = name if label == "CAL" or "unction" not in name else "  a disk"
        text.append(f"{label:>4}: " + " ".join(f"{count:>10}" for count in counts) + name)
    data = "\n".join([*text, ""]).encode()
    assert parse_interrupts(data, wanted) == naive_table(data, wanted)
