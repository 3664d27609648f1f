"""`iopstui devices`: list the block devices."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command
from iopstui.cli.terminal import show, width
from iopstui.errors import EXIT_OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--all", action="store_true", help="include empty and hidden devices")


def run(arguments: argparse.Namespace) -> int:
    """List the block devices."""
    import json

    from iopstui.linux.devices.sysfs import read_devices
    from iopstui.linux.machine.topology import online_cpus
    from iopstui.linux.roots import Roots
    from iopstui.output.devices import devices_json, devices_table

    devices = read_devices(Roots())
    if arguments.format == "json":
        print(json.dumps(devices_json(devices, online_cpus(Roots())), indent=2))
    else:
        show(devices_table(devices, width(), all=arguments.all))
    return EXIT_OK


COMMAND = Command(
    "devices",
    80,
    "list block devices with queues, CPUs, IRQs and use",
    add_arguments,
    run,
    anywhere=True,
    kernel=True,
)
