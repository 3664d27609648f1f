"""Hosts whose CLOCK_MONOTONIC really differs: time namespaces (Linux 5.6)."""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from program import ROOT

from iopstui.features.fleet.fleet import Fleet, FleetCallbacks, FleetOptions, start_spread_ms
from iopstui.features.fleet.hosts.nodes import parse_nodes
from iopstui.features.fleet.merging.merger import Merger
from iopstui.features.fleet.program.agent_orders import launch_command

FAR = f"{sys.executable} {ROOT / 'tests' / 'helpers' / 'far_host.py'}"
AHEAD_S = {"h1": 0, "h2": 100_000, "h3": -7}
WITHIN_MS = 20.0
IN_ITS_OWN = """#!/bin/sh
case $1 in {cases} esac
[ $ahead = 0 ] && exec {far} "$1" "$2"
exec unshare --fork --time --monotonic $ahead {far} "$1" "$2"
"""


@pytest.fixture
def launcher(tmp_path: Path) -> str:
    tried = subprocess.run(["unshare", "--fork", "--time", "--monotonic", "5", "true"],
                           capture_output=True)  # fmt: skip
    if tried.returncode:
        pytest.skip("this kernel, or unshare, has no time namespaces")
    cases = " ".join(f"{name}) ahead={ahead};;" for name, ahead in AHEAD_S.items())
    script = tmp_path / "launch"
    script.write_text(IN_ITS_OWN.format(cases=cases, far=FAR))
    script.chmod(0o755)
    return f"{script} {{host}}"


@pytest.mark.alone
def test_clocks_that_are_far_apart_are_known_and_all_start_together(
    here: Path, launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("XDG_STATE_HOME", str(here.parent / "state"))
    rows: list[tuple[str, dict[str, Any]]] = []
    words = ["--size", "4m", "--set", "runtime=2", "--set", "thinktime=20000",
             "--set", "thinktime_blocks=4", "--set", "clocksource=clock_gettime"]  # fmt: skip
    fleet = Fleet(
        parse_nodes(",".join(AHEAD_S)),
        partial(launch_command, argparse.Namespace(launcher=launcher, bring=True, sudo=False)),
        lambda node: {"job": "randread-4k", "arguments": [str(here), *words]},
        Merger(),
        FleetOptions(len(AHEAD_S)),
        FleetCallbacks(lambda words: None, lambda second: None, lambda *row: rows.append(row),
               lambda second: ""),
    )  # fmt: skip
    fleet.run()
    executed = {name: row for name, row in rows if row["event"] == "executed"}
    assert {*executed} == {*AHEAD_S}
    for name, ahead_s in AHEAD_S.items():
        offset = fleet.members[name].offset
        assert abs(offset.mono_ns - ahead_s * 10**9) <= offset.error_ns, name
        assert offset.error_ns <= WITHIN_MS * 1e6
        # all time namespaces share the wall clock, so the reported offset must be about 0
        assert abs(executed[name]["offset_ms"]) <= executed[name]["error_ms"] + 1
    # by the wall clock, which is independent of these offsets: the intended instant, and when fio
    # started
    errors_ms = max(row["error_ms"] for row in executed.values())
    meant = [row["wall_ms"] - row["late_ms"] for row in executed.values()]
    assert max(meant) - min(meant) <= 2 * errors_ms + 1
    walls = [row["wall_ms"] for row in executed.values()]
    assert max(walls) - min(walls) <= WITHIN_MS
    found = start_spread_ms(fleet.members)
    assert found is not None
    within_ms, error_ms = found
    assert within_ms == pytest.approx(max(walls) - min(walls), abs=2 * error_ms + 1)
    assert [*here.iterdir()] == []
