"""Show many hosts on the screen, live or from a recording."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from iopstui.cli.terminal import require_for_screen
from iopstui.features.fleet.hosts.host_tunables import HostTunables
from iopstui.features.fleet.hosts.nodes import Node
from iopstui.features.fleet.merging.figures import FleetExpectation
from iopstui.features.fleet.output.labelled_rows import file_rows
from iopstui.features.fleet.program.agent_orders import AgentOrders
from iopstui.features.fleet.program.run_planner import (
    LABEL,
    FleetRecorder,
    FleetRunPlanner,
    RunLimits,
)
from iopstui.features.fleet.replay import FleetReplay
from iopstui.features.fleet.session import FleetSession
from iopstui.fio.library import shipped_jobs
from iopstui.model.experiment.host_sweep import HostPlan
from iopstui.text import printable


def show_fleet(
    arguments: argparse.Namespace,
    nodes: Sequence[Node],
    expected: Sequence[FleetExpectation],
    min_hosts: int,
    plan: HostPlan | None,
) -> int:
    """Show the screen until the user quits. Returns the exit code. The screen begins with the sweep
    of ``plan``, if there is one."""
    require_for_screen(arguments)
    # report errors before the screen opens
    AgentOrders(arguments, nodes)
    RunLimits(arguments)
    recorder = FleetRecorder(arguments.record)
    settings = HostTunables()
    planner = FleetRunPlanner(arguments, nodes, expected, min_hosts, recorder, settings)
    session = FleetSession(
        planner, lambda row: recorder.write({**row, "host": LABEL}), planner.plan_watch, settings,
        [node.name for node in nodes],
    )  # fmt: skip
    recorder.on_warning = session.warn
    from iopstui.features.fleet.screen.app import run_fleet_screen

    return run_fleet_screen(
        session, printable(arguments.hosts), arguments.job, shipped_jobs(), arguments.theme,
        recorder.close, plan, Path(arguments.record) if arguments.record else None,
    )  # fmt: skip


def show_recording(path: Path, speed: float, theme: str) -> int:
    """Show a fleet's recording on the screen, until the user quits."""
    replay = FleetReplay(lambda: file_rows(path, "", lambda message: None), speed)
    from iopstui.features.fleet.screen.app import run_fleet_replay

    return run_fleet_replay(replay, printable(path.name), theme, path)
