"""Made-up hosts: the JSON lines of a run, as `run --format jsonl` writes them."""

from __future__ import annotations

import random
from typing import Any

from iopstui.model.histogram import bucket_key, merge, percentile_name, percentiles

Row = dict[str, Any]
START_MS = 1_800_000_000_000.0


def direction(chance: random.Random, ios: int, block: int = 4096) -> Row:
    bins: dict[int, int] = {}
    for _ in range(min(ios, 8)):
        key = bucket_key(chance.randint(50_000, 5_000_000))
        bins[key] = bins.get(key, 0) + 1
    if ios > 8:
        key = bucket_key(100_000)
        bins[key] = bins.get(key, 0) + ios - 8
    ranks = {percentile_name(p): value for p, value in percentiles(bins).items()}
    mean = round(sum(key * count for key, count in bins.items()) / ios, 6) if ios else None
    return {
        "iops": float(ios), "bw": float(ios * block), "ios": ios, "bytes": ios * block,
        "slat": {"mean": None, "n": None},
        "clat": {"mean": mean, "n": ios, **ranks, "max": max(bins, default=None)},
        "lat": {"mean": mean, "n": ios},
        "bins_of": "clat", "bins": {str(key): count for key, count in bins.items()},
    }  # fmt: skip


def frame(host: str, chance: random.Random, t: float, wall_ms: float, seconds: float = 1.0,
          ios: int | None = None, flags: tuple[str, ...] = ()) -> Row:  # fmt: skip
    read = direction(chance, chance.randint(0, 5000) if ios is None else ios)
    write = direction(chance, chance.randint(0, 500) if ios is None else 0)
    bins = merge([{int(k): n for k, n in part["bins"].items()} for part in (read, write)])
    total = direction(chance, 0)
    total |= {"ios": read["ios"] + write["ios"], "bytes": read["bytes"] + write["bytes"]}
    ranks = {percentile_name(p): value for p, value in percentiles(bins).items()}
    total["clat"] = {**read["clat"], "n": total["ios"], **ranks}
    del total["bins"]
    return {
        "event": "frame", "host": host, "seq": 1, "step": 1, "t": t, "wall_ms": wall_ms,
        "seconds": seconds, "flags": [*flags],
        "fio": {"seconds": seconds, "read": read, "write": write, "total": total},
        "kernel": {"total": {"r/s": float(read["ios"]), "w/s": 1.5, "rMB/s": 2.25, "wMB/s": 0.0,
                             "aqu-sz": 1.5, "in-flight": 2, "reads": read["ios"], "writes": 2,
                             "r_await": 0.125, "w_await": None}},
    }  # fmt: skip


def finals(host: str, rows: list[Row], more: int = 0) -> Row:
    """The end of a run: fio's totals are those of the frames (plus ``more``)."""
    directions = {
        name: {"total_ios": sum(row["fio"][name]["ios"] for row in rows) + more * (name == "read"),
               "counted_by": "samples"}
        for name in ("read", "write")
    }  # fmt: skip
    return {
        "event": "step_finished", "host": host, "t": 0.0, "step": 1, "exit_code": 0, "error": "",
        "interrupted": False,
        "summary": {"rows": [{"failed": 0, "block_size": 4096, "directions": directions}]},
    }  # fmt: skip


def stream(host: str, seed: int, seconds: int = 5, begin_ms: float = START_MS,
           last: float = 0.4, more: int = 0) -> list[Row]:  # fmt: skip
    """The lines of a whole run: ``seconds`` frames, a short last one, and the end."""
    chance = random.Random(seed)
    rows = [frame(host, chance, n + 1.0, begin_ms + (n + 1) * 1000) for n in range(seconds)]
    if last:
        rows.append(frame(host, chance, seconds + last, begin_ms + (seconds + last) * 1000, last,
                          flags=("FINAL", "PARTIAL")))  # fmt: skip
    return [{"event": "session", "host": host}, *rows, finals(host, rows, more),
            {"event": "ended", "host": host, "t": 0.0, "exit_code": 0}]  # fmt: skip


def frames(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["event"] == "frame"]
