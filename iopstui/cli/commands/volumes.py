"""`iopstui volumes`: list the volume classes and their promised figures."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command
from iopstui.cli.terminal import say, show, width
from iopstui.cli.volume_options import add_bought, promised_by
from iopstui.errors import EXIT_OK, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME",
                        help="a class such as aliyun/essd-pl1, or a drive; with --instances the "
                             "beginning of a name, such as m5")  # fmt: skip
    add_bought(parser)
    parser.add_argument("--instances", action="store_true", help="list instance sizes instead")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """List the classes, or explain one."""
    import json

    from iopstui.catalog.library import read_catalog
    from iopstui.output.volumes import (
        catalog_json,
        explain_volume,
        instance_json,
        instances_table,
        volume_json,
        volumes_table,
    )

    bought = (arguments.size, arguments.iops, arguments.throughput, arguments.instance)
    if not arguments.name and any(one is not None for one in bought):
        raise UsageError("--size, --iops, --throughput and --instance describe one volume.",
                         "Name it: iopstui volumes NAME --size 500g")  # fmt: skip
    catalog = read_catalog()
    if not arguments.json:
        for problem in catalog.problems:
            say(problem)
    if arguments.instances and (arguments.name or not arguments.json):
        listed = catalog.instances_like(arguments.name or "")
        found_json = {"instances": [instance_json(one) for one in listed]}
        text = json.dumps(found_json, indent=2) if arguments.json else instances_table(listed)
    elif arguments.name:
        volume = catalog.volume(arguments.name)
        # a class without its size or its bought IOPS has formulas, and no figures yet
        asked = any(one is not None for one in bought)
        needs = volume.needs_size or (volume.provision is not None and volume.provision.required)
        found = promised_by(arguments, catalog, volume) if asked or not needs else None
        text = json.dumps(volume_json(volume, found), indent=2) if arguments.json else (
            explain_volume(volume, found, width()))  # fmt: skip
    elif arguments.json:
        text = json.dumps(catalog_json(catalog), indent=2)
    else:
        text = volumes_table(catalog, width())
    show(text)
    return EXIT_OK


COMMAND = Command(
    "volumes",
    95,
    "list what cloud volumes and drives promise, or explain NAME",
    add_arguments,
    run,
    anywhere=True,
)
