"""Build the orders for each host of a fleet from the command line."""

from __future__ import annotations

import argparse
import math
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from iopstui.cli import values
from iopstui.cli.options import MAX_ROUNDS
from iopstui.errors import UsageError
from iopstui.features.fleet.hosts.conversation import LINES
from iopstui.features.fleet.hosts.nodes import Node
from iopstui.features.fleet.hosts.program_copy import remote_command
from iopstui.fio.job_text import read_job
from iopstui.fio.library import find_job, is_shipped
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio.jobfile import parse_override
from iopstui.text import printable

Object = dict[str, Any]
BY_ID = "/dev/disk/by-id/"
SSH = (
    "ssh", "-T", "-o", "BatchMode=yes", "-o", "Compression=yes", "-o", "ConnectTimeout=15",
    "-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=2",
)  # fmt: skip


class AgentOrders:
    """``order_for`` builds a host's order. Raises UsageError for an order that no host could
    execute. ``record``: the hosts' lines are recorded even if ``arguments`` have no --record."""

    def __init__(
        self, arguments: argparse.Namespace, nodes: Sequence[Node], record: bool = False
    ) -> None:
        self._record = record or bool(arguments.record)
        self._job = _job_for_agents(arguments.job) if arguments.job is not None else None
        self._targets = list(arguments.target)
        self._positions = {node.name: index for index, node in enumerate(nodes)}
        self._rotation = _check_rotation(arguments, len(nodes)) if arguments.split else None
        self._agent_options = _agent_options(arguments, self._job is None)
        self._interval = arguments.interval
        self._probe = ["--probe"] * arguments.probe
        self._destroyed_paths = _destroyed_paths(arguments.destroy_data, nodes)
        if arguments.job is None and self._destroyed_paths:
            raise UsageError("--destroy-data needs a --job.")

    def order_for(self, node: Node, hosts: int | None = None) -> Object:
        """The order for ``node`` if only the first ``hosts`` hosts run (``None``: all)."""
        destroyed = self._destroyed_paths.get(node.name, [])
        args = [arg for path in destroyed for arg in ("--destroy-data", path)]
        targets = self._targets or destroyed
        args += self._part_options(node, hosts or len(self._positions))
        order: Object = {"arguments": [*targets, *self._agent_options, *args], "job": self._job}
        # complete lines, because other programs may read a recorded file, too
        return {**order, "frames": LINES} if self._record else order

    def _part_options(self, node: Node, hosts: int) -> list[str]:
        if self._rotation is None:
            return []
        number = (self._positions[node.name] + self._rotation) % hosts + 1
        return ["--part", f"{number}/{hosts}"]

    def watch_order(self, node: Node, devices: Sequence[str]) -> Object:
        """The order for an agent between two runs: watch ``devices``, which are those of the last
        run or, before the first run, those of the next one."""
        paths = [f"/dev/{name}" for name in devices]
        targets = paths or self._targets or self._destroyed_paths.get(node.name) or ["."]
        options = ["--interval", f"{self._interval:g}", *self._probe]
        return {"arguments": [*targets, *options], "job": None}


def _check_rotation(arguments: argparse.Namespace, hosts: int) -> int:
    """By how many hosts the parts are shifted. Raises UsageError if each host would get its own
    part again."""
    rotation: int = arguments.rotate
    if arguments.job is None:
        raise UsageError("--split needs a --job.")
    if rotation and rotation % hosts == 0:
        raise UsageError(
            f"--rotate {rotation} with {hosts} hosts gives each host its own part.",
            f"Use a number below {hosts}.",
        )
    return rotation


def _job_for_agents(name: str) -> Object | str:
    """The name of a shipped job, or the name and text of a job file."""
    path = find_job(name)
    return path.stem if is_shipped(path) else {"name": path.name, "text": read_job(path)}


def _agent_options(arguments: argparse.Namespace, watching: bool) -> list[str]:
    request = RunRequest(interval_s=arguments.interval, probe=arguments.probe)
    if watching:
        return request.words()
    # limit the run time, so that the hosts end even if the total never becomes steady
    steady_s = arguments.until_steady
    runtime = {"runtime": str(math.ceil(MAX_ROUNDS * steady_s))} if steady_s else {}
    knobs = []
    for text in arguments.knob:
        try:
            knobs.append(values.knob(text))
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--knob {text!r}: {error}") from error
    return replace(
        request, overrides=runtime | dict(map(parse_override, arguments.set)), knobs=tuple(knobs),
        size=arguments.size, bind=arguments.bind == "queues", no_fence=arguments.no_fence,
    ).words()  # fmt: skip


def _destroyed_paths(texts: Sequence[str], nodes: Sequence[Node]) -> dict[str, list[str]]:
    paths_by_host: dict[str, list[str]] = {}
    names = {node.name for node in nodes}
    for text in texts:
        host, slash, path = text.partition(":/")
        path = f"/{path}"
        if not slash or host not in names:
            raise UsageError(
                f"--destroy-data {printable(text)!r} does not name one of these hosts and a path "
                "on it.",
                f"For each host: --destroy-data {nodes[0].name}:{BY_ID}...",
            )
        if path.startswith("/dev/") and not path.startswith(BY_ID):
            raise UsageError(
                f"--destroy-data {printable(text)!r}: such a name can mean another disk on "
                "another host, or after a reboot.",
                f"Name it as {BY_ID}... (on the host: ls -l {BY_ID})",
            )
        paths_by_host.setdefault(host, []).append(path)
    return paths_by_host


def launch_command(arguments: argparse.Namespace, node: Node) -> list[str]:
    """The command that runs the agent on a host."""
    remote, launcher = remote_command(arguments.bring, arguments.sudo), arguments.launcher
    if launcher:
        try:
            command = shlex.split(launcher)
        except ValueError as error:
            raise UsageError(f"--launcher {launcher!r}: {error}.") from error
        if not command:
            example = "--launcher 'kubectl exec -i {host} -- sh -c'"
            raise UsageError(f"--launcher {launcher!r} is not a command.", f"Such as: {example}")
        return [arg.replace("{host}", node.host) for arg in command] + [remote]
    port = ["-p", str(node.port)] if node.port is not None else []
    user = f"{node.user}@" if node.user is not None else ""
    return [*SSH, *port, f"{user}{node.host}", remote]


def new_record_path(name: str) -> Path:
    """The path of --record. Raises UsageError if it exists."""
    path = Path(name)
    if os.path.exists(path):
        raise UsageError(f"{printable(name)} exists already.", "--record does not overwrite files.")
    return path
