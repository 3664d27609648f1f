"""The judgement of guests' results, on made-up results."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import judged
from simulated_queue import Queue

AROUND = (0.95, 1.0, 1.05)
QUEUE = Queue(1 / 1000, 0.01)
"""M/M/1: the share above b is exp(-(mu - rate) b)."""


def truths(out: Path, faster: float) -> None:
    """Write results of fio alone, at rates that are ``faster`` times the requested ones."""
    for share in AROUND:
        rate = share * QUEUE.limit * faster
        slow = math.exp(-(1000 - rate) * QUEUE.bound_s)
        bins = {"5000000": round(1e6 * (1 - slow)), "11000000": round(1e6 * slow)}
        read = {"iops": rate, "clat_ns": {"bins": bins}}
        (out / f"rate-0-{round(100 * share)}.json").write_text(
            json.dumps({"jobs": [{"read": read}]})
        )


@pytest.mark.parametrize("faster", [0.97, 1.0, 1.03])
def test_the_true_limit_is_where_one_percent_is_slow(tmp_path: Path, faster: float) -> None:
    truths(tmp_path, faster)
    found = judged.true_limit(tmp_path, 0, QUEUE, AROUND)
    assert found is not None and math.isclose(found, QUEUE.limit, rel_tol=0.003)


@pytest.mark.parametrize(("low", "high", "bad"), [(500, 560, False), (545, 600, True)])
def test_an_interval_beside_the_limit_is_counted(
    tmp_path: Path, low: float, high: float, bad: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged.limit_table(tmp_path, [QUEUE], AROUND), "nothing was measured"
    truths(tmp_path, 1.0)
    result = {"result": "found", "low": low, "high": high, "runs": [{"seconds": 60}]}
    unsure = {"result": "unsure", "low": None, "high": 600, "runs": []}
    (tmp_path / "limit-0-1.json").write_text(json.dumps(unsure))
    (tmp_path / "limit-0-0.json").write_text(json.dumps(result))
    assert judged.limit_table(tmp_path, [QUEUE], AROUND) == bad
    assert f"in all: {1 - bad} of 1, and 1 can't tell" in capsys.readouterr().out


def test_cannot_tell_is_no_error_but_the_opposite_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(side: str, number: int, result: str) -> None:
        program = {"rows": [{"result": result}]}
        file = tmp_path / f"fit-{side}-{number}.json"
        file.write_text(json.dumps({"programs": [program]}))

    for side, right in judged.RIGHT.items():
        write(side, 0, right)
        write(side, 1, "can't tell")
    assert not judged.fit_table(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert "below: -, 1 of 2, 1, 0" in lines and "disturbed: -, 2 of 2, 0, 0" in lines
    write("above", 2, "PASS")
    assert judged.fit_table(tmp_path)
