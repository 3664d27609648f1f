"""The guests' results compared with the truth: tables, and whether too much is wrong."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from simulated_queue import Queue

RIGHT = {"below": "PASS", "above": "FAIL", "disturbed": "can't tell"}
LEAST_HELD = 0.9
ALLOWED = 0.01


def _read(file: Path) -> Any:
    """The JSON in a file; ``None`` if it was not measured, or failed."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def fit_table(out: Path) -> bool:
    """Print how often `fit` was right about etcd's bound. Returns whether it ever gave the opposite
    answer."""
    print(
        "\nfit, etcd's p99 of at most 10 ms: disk, its p99 by fio alone, right, can't tell, wrong"
    )
    bad = False
    for side, right in RIGHT.items():
        found = Counter(
            _read(file)["programs"][0]["rows"][0]["result"]
            for file in sorted(out.glob(f"fit-{side}-*.json")) if _read(file)
        )  # fmt: skip
        truth = _read(out / f"sync-{side}.json")
        p99 = (
            "-"
            if truth is None
            else (f"{truth['jobs'][0]['sync']['lat_ns']['percentile']['99.000000'] / 1e6:.2f} ms")
        )
        unsure = found["can't tell"] if right != "can't tell" else 0
        wrong = sum(found.values()) - found[right] - unsure
        print(f"{side}: {p99}, {found[right]} of {sum(found.values())}, {unsure}, {wrong}")
        bad |= wrong > 0 or not found
    return bad


def limit_table(out: Path, queues: Sequence[Queue], around: Sequence[float]) -> bool:
    """Print how many intervals of `limit` contain the limit found with fio alone. Returns whether
    too few do."""
    print("\nlimit: requests a second, p99, limit by theory, by fio alone, intervals that hold it, "
          "half of the width (median, most), seconds measured")  # fmt: skip
    held = count = unsure = 0
    for place, queue in enumerate(queues):
        truth = true_limit(out, place, queue, around)
        widths, seconds, here = [], [], 0
        for file in sorted(out.glob(f"limit-{place}-*.json")):
            found = _read(file)
            if found is None or truth is None:
                continue
            if found["result"] != "found":
                unsure += 1
                continue
            low, high = found["low"], found["high"]
            here += low <= truth <= high
            widths.append((high - low) / (high + low))
            seconds.append(sum(run["seconds"] for run in found["runs"]))
        if truth is None or not widths:
            continue
        held, count, widths = held + here, count + len(widths), sorted(widths)
        print(f"{1 / queue.mean_s:,.0f}/s, {1000 * queue.bound_s:g} ms: {queue.limit:,.0f}/s, "
              f"{truth:,.0f}/s, {here} of {len(widths)}, ±{100 * widths[len(widths) // 2]:.1f} %, "
              f"±{100 * widths[-1]:.1f} %, {sum(seconds) / len(seconds):.0f} s")  # fmt: skip
    print(f"in all: {held} of {count}, and {unsure} can't tell")
    return held < LEAST_HELD * count or not count


def true_limit(out: Path, place: int, queue: Queue, around: Sequence[float]) -> float | None:
    """The rate at which 1 % of fio's I/Os are too slow. Between two of fio's rates, the logit of
    the share is interpolated linearly over the logarithm of the rate."""
    points = []
    for share in around:
        result = _read(out / f"rate-{place}-{round(100 * share)}.json")
        if result is None:
            return None
        read = result["jobs"][0]["read"]
        slow = slow_share({int(ns): n for ns, n in read["clat_ns"]["bins"].items()}, queue.bound_s)
        points.append((math.log(read["iops"]), math.log(slow / (1 - slow))))
    wanted = math.log(ALLOWED / (1 - ALLOWED))
    pairs = list(pairwise(points))
    (x, y), (to_x, to_y) = next((p for p in pairs if p[1][1] >= wanted), pairs[-1])
    return math.exp(x + (wanted - y) * (to_x - x) / (to_y - y))


def slow_share(bins: dict[int, int], bound_s: float) -> float:
    """The share of I/Os above the bound, counting at least half an I/O."""
    slow = sum(count for ns, count in bins.items() if ns > 1e9 * bound_s)
    return max(slow, 0.5) / sum(bins.values())
