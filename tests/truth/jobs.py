"""Short fio jobs that between them use what changes the meaning of fio's counters."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SIZE = 16 << 20
FILE = "truth.data"
ENGINES = ("sync", "psync", "libaio", "io_uring", "null")
WAYS = ("read", "write", "randread", "randwrite", "rw", "randrw")
SIZES = ({"bs": "4k"}, {"bs": "16k"}, {"bs": "64k"}, {"bsrange": "4k-16k"},
         {"bssplit": "4k/60:8k/40"})  # fmt: skip
# what a job may have, and how often
EXTRAS: Mapping[str, tuple[float, Mapping[str, str]]] = {
    "group_reporting": (0.5, {"group_reporting": "1"}),
    "gtod_reduce": (0.2, {"gtod_reduce": "1"}),
    "ramp_time": (0.2, {"ramp_time": "1"}),
    "lat_percentiles": (0.15, {"lat_percentiles": "1"}),
    "lat only": (0.1, {"lat_percentiles": "1", "clat_percentiles": "0"}),
    "unified": (0.15, {"unified_rw_reporting": "1"}),
    "disable_clat": (0.1, {"disable_clat": "1"}),
    "rate_iops": (0.3, {"rate_iops": "3000"}),
}


@dataclass(frozen=True, slots=True)
class Job:
    """A job file and the names of what is special about it."""

    number: int
    text: str
    traits: tuple[str, ...]


def jobs(count: int, seed: int, engines: Sequence[str], direct: bool) -> Iterator[Job]:
    """``count`` jobs, the same for the same ``seed``. Every engine, way and trait comes soon."""
    rng = random.Random(seed)
    for number in range(count):
        yield _job(number, rng, engines, direct)


def _job(number: int, rng: random.Random, engines: Sequence[str], direct: bool) -> Job:
    engine = engines[number % len(engines)]
    verify = rng.random() < 0.12 and engine != "null"
    chosen = [name for name, (share, _) in EXTRAS.items() if rng.random() < share]
    if verify:
        chosen = [name for name in chosen if name in ("group_reporting", "lat_percentiles")]
    common = {
        "ioengine": engine,
        "iodepth": str(rng.choice((1, 4, 16))) if engine in ("libaio", "io_uring", "null") else "1",
        "size": str(SIZE),
        "filename": FILE,
        "direct": str(int(direct and engine != "null")),
    }
    for name in chosen:
        common |= EXTRAS[name][1]
    # a log line for every I/O: not millions of them
    if engine == "null":
        common.setdefault("rate_iops", "20000")
    sections = _verifying(rng) if verify else _plain(rng)
    traits = [engine, *chosen, *(["verify"] if verify else [])]
    traits += [name for name in ("stonewall", "numjobs") if any(name in s for s in sections)]
    if len({str(s.get("bs", s)) for s in sections}) > 1:
        traits.append("two sizes")
    lines = ["[global]", *_lines(common)]
    for place, section in enumerate(sections):
        lines += [f"[s{place}]", *_lines(section)]
    return Job(number, "\n".join(lines) + "\n", tuple(traits))


def _plain(rng: random.Random) -> list[dict[str, str]]:
    """One or two sections that run for a time."""
    sections = []
    staged = rng.random() < 0.3
    for place in range(rng.choice((1, 1, 2))):
        section = {"rw": rng.choice(WAYS), **rng.choice(SIZES)}
        section |= {"time_based": "1", "runtime": f"{rng.choice((1100, 1400, 1800))}ms"}
        if rng.random() < 0.4:
            section["numjobs"] = str(rng.choice((2, 3)))
        if staged and place:
            section["stonewall"] = "1"
        sections.append(section)
    return sections


def _verifying(rng: random.Random) -> list[dict[str, str]]:
    """Write a part of the file, then read it again."""
    size = {"rw": rng.choice(("write", "randwrite")), "bs": rng.choice(("4k", "16k"))}
    return [{**size, "verify": "crc32c", "rate_iops": "3000", "io_size": str(SIZE)}]


def _lines(options: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in options.items()]
