"""`iopstui volumes`: list the volume classes and their promised figures."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iopstui.cli.command import Command
from iopstui.cli.options import add_volume_details, apply_volume_options, read_promised_figures
from iopstui.cli.terminal import print_message, show, width
from iopstui.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from iopstui.catalog import Catalog


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME",
                        help="a class such as aliyun/essd-pl1 or aws/gp2,size=100g, a drive, or "
                             "a provider; with --instances the beginning of a name, such as "
                             "m5")  # fmt: skip
    add_volume_details(parser)
    parser.add_argument("--instances", action="store_true", help="list instance sizes instead")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    from iopstui.catalog import read_catalog

    if arguments.name and not arguments.instances:
        arguments.name = apply_volume_options(arguments, arguments.name, "NAME")
    volume_options = (arguments.size, arguments.iops, arguments.throughput, arguments.instance)
    has_options = any(value is not None for value in volume_options)
    if not arguments.name and has_options:
        raise UsageError("--size, --iops, --throughput and --instance describe one volume, and "
                         "none is named.",
                         "Name it: iopstui volumes NAME --size 500g")  # fmt: skip
    catalog = read_catalog()
    if not arguments.json:
        for problem in catalog.problems:
            print_message(problem)
    provider = catalog.select_provider(arguments.name or "")
    if arguments.instances and (arguments.name or not arguments.json):
        text = _instances_text(arguments, catalog)
    elif arguments.name and (has_options or not provider.classes):
        text = _volume_text(arguments, catalog, has_options)
    else:
        text = _classes_text(arguments, provider if arguments.name else catalog)
    show(text)
    return EXIT_OK


def _instances_text(arguments: argparse.Namespace, catalog: Catalog) -> str:
    import json

    from iopstui.output.pages.volumes import instance_json, instances_table

    instances = catalog.find_instances(arguments.name or "")
    if arguments.json:
        return json.dumps(
            {"instances": [instance_json(instance) for instance in instances]}, indent=2
        )
    return instances_table(instances)


def _volume_text(arguments: argparse.Namespace, catalog: Catalog, has_options: bool) -> str:
    import json

    from iopstui.output.pages.volumes import explain_volume, volume_json

    volume = catalog.volume(arguments.name)
    # a class has only formulas, without figures, if its size or the bought IOPS are missing
    needs = volume.needs_size or (volume.provision is not None and volume.provision.required)
    figures = has_options or arguments.cached or not needs
    promised = read_promised_figures(arguments, catalog, volume) if figures else None
    if arguments.json:
        return json.dumps(volume_json(volume, promised), indent=2)
    return explain_volume(volume, promised, width())


def _classes_text(arguments: argparse.Namespace, catalog: Catalog) -> str:
    import json

    from iopstui.output.pages.volumes import catalog_json, volumes_table

    if arguments.json:
        return json.dumps(catalog_json(catalog), indent=2)
    return volumes_table(catalog, width())


COMMAND = Command(
    "volumes",
    95,
    "list what cloud volumes and drives promise, or explain NAME",
    add_arguments,
    run,
    without_directory=True,
)
