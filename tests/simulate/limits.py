"""How often does the interval of `iopstui limit` contain the limit that queueing theory gives?

The devices are simulated; the search and its statistics are the program's own."""

from __future__ import annotations

import math

from simulated_queue import Queue, search_on

TIME_S = 180
DEVICES = (
    Queue(1 / 2000, 0.01), Queue(1 / 2000, 0.05), Queue(1 / 10_000, 0.001), Queue(1 / 8000, 0.01),
    Queue(1 / 400, 0.05), Queue(1 / 1000, 0.02, True), Queue(1 / 2000, 0.01, True),
    Queue(1 / 2000, 0.05, True), Queue(1 / 500, 0.02, True, 0.003),
    Queue(1 / 2000, 0.01, floor=0.002),
)  # fmt: skip
LEAST_HELD = 0.9


def limits_table(trials: int) -> bool:
    """Print a row for each device. Returns whether intervals miss the limit too often."""
    print(f"\nlimit, {trials} searches of at most {TIME_S} s: device, p99, true limit, "
          "intervals that hold it, half of the width (median, 90 %), seconds")  # fmt: skip
    bad = False
    for device in DEVICES:
        held, widths, seconds = 0, [], 0.0
        for seed in range(trials):
            search, spent = search_on(device, seed, TIME_S)
            found = search.estimate()
            assert found is not None
            held += (found.low or 0) <= device.limit <= (found.high or math.inf)
            widths.append(found.half_width)
            seconds += spent
        widths.sort()
        kind = "M/D/1" if device.constant else "M/M/1"
        kind += f" and {100 * device.floor:g} % slow" if device.floor else ""
        print(f"{kind} {1 / device.mean_s:,.0f}/s, {1000 * device.bound_s:g} ms: "
              f"{device.limit:,.0f}/s, {100 * held / trials:.0f} %, "
              f"±{100 * widths[trials // 2]:.1f} %, ±{100 * widths[trials * 9 // 10]:.1f} %, "
              f"{seconds / trials:.0f} s", flush=True)  # fmt: skip
        bad |= held < LEAST_HELD * trials
    return bad
