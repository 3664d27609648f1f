"""The slowest I/Os from fio's own log of each I/O."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from iopstui.model.metrics.slow.slow_ios import SlowIos, slow_ios, slow_ios_object
from iopstui.output.summary import slow_ios_text

MIB = 1 << 20


def log(ios: int, seed: int = 1, region: tuple[int, int] = (0, 0), slower: int = 0) -> list[bytes]:
    """Random reads of 1 GiB, one per ms; those in ``region`` (MiB) take ``slower`` ns longer."""
    chance, lines = Random(seed), []
    for n in range(ios):
        place = chance.randrange(1 << 18) * 4096
        took = 200_000 + int(100_000 * chance.expovariate(1))
        took += slower if region[0] * MIB <= place < region[1] * MIB else 0
        lines.append(b"%d, %d, 0, 4096, %d, 0\n" % (n, took, place))
    return lines


def test_they_are_those_with_the_largest_latencies_of_all_jobs(root: Path) -> None:
    found, lines = SlowIos(), []
    for job in (1, 2):
        own = (
            (root / f"tests/fixtures/fiologs/raw_clat.{job}.log")
            .read_bytes()
            .splitlines(keepends=True)
        )
        found.read(job, own)
        lines += [[int(cell) for cell in line.split(b",")[:4]] for line in own]
    assert found.count == len(lines)
    for number, direction in enumerate(("read", "write")):
        largest = sorted((line[1] for line in lines if line[2] == number), reverse=True)[:10]
        ours = [one for one in found.slowest() if one.direction == direction]
        assert [one.latency_ns for one in ours] == largest
        assert all([round(one.t * 1000), one.latency_ns, number, one.size] in lines for one in ours)


def test_a_slow_region_is_found_and_nothing_without_one() -> None:
    found = SlowIos()
    found.read(1, log(20_000, region=(512, 640), slower=5_000_000))
    [claim] = found.claims(one_file=True)
    assert "of the 50 slowest reads lie at " in claim and "of its file" in claim
    # the log doesn't say which of several files an offset is of
    assert found.claims(one_file=False) == []
    quiet = 0
    for seed in range(40):
        found = SlowIos()
        found.read(1, log(2_000, seed))
        quiet += bool(found.claims(one_file=True))
    assert quiet <= 1


def test_the_sample_is_random() -> None:
    firsts = 0
    for seed in range(20):
        found = SlowIos()
        found._random = Random(seed)
        found.read(1, log(2_000, seed))
        firsts += sum(number < 500 for number, _, _ in found._selections[b"0"].sample)
    # a quarter of 20 times 50
    assert 200 < firsts < 300


def test_lines_that_are_none_are_left_out() -> None:
    found = SlowIos()
    found.read(1, [b"", b"x\n", b"1, 2\n", b"1, 5000, 7, 4096, 0\n", b"9, 7000, 1, 4096\n"])
    [one] = found.slowest()
    assert (one.direction, one.t, one.latency_ns, one.offset) == ("write", 0.009, 7000, None)


@pytest.mark.parametrize("width", [80])
def test_the_summary_names_them(width: int) -> None:
    found = SlowIos()
    found.read(3, log(20_000, region=(512, 640), slower=5_000_000))
    data = slow_ios_object(found, True)
    assert [one.job for one in slow_ios(data)] == [3] * 10
    text = slow_ios_text({"slowest_ios": data})
    assert "slowest of 20,000 I/Os, from fio's own log (clat: no kernel side):" in text
    assert text.count("  read ") == 3 and "s into job 3" in text and "slowest reads lie at" in text
    assert max(map(len, text.splitlines())) <= width
    assert slow_ios_text({}) == ""
