"""How often is a comparison, a gate or a limit wrong? `make simulate`: made-up runs, real tests.

Prints the tables of docs/statistics.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from comparisons import false_claims_table, power_table, sequential_table
from gates import gates_table
from limits import limits_table
from siblings import siblings_table

ONLY = ("claims", "power", "until", "gates", "limits", "siblings")


def main() -> int:
    """Returns exit code 0, or 1 if more is wrong than docs/statistics.md says."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--only", choices=ONLY)
    arguments = parser.parse_args()
    trials, only = arguments.trials, arguments.only
    bad = False
    if only in (None, "claims"):
        bad |= false_claims_table(trials)
    if only in (None, "power"):
        power_table(trials)
    if only in (None, "until"):
        bad |= sequential_table(trials)
    if only in (None, "gates"):
        bad |= gates_table(max(1, trials // 4))
    if only in (None, "limits"):
        bad |= limits_table(max(1, trials // 100))
    if only in (None, "siblings"):
        # a night takes seconds
        bad |= siblings_table(max(1, trials // (200 if only is None else 2)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
