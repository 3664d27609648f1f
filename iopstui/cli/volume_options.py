"""Options that name the purchased volume, and the promised figures they select."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import TYPE_CHECKING

from iopstui.errors import UsageError
from iopstui.text import printable

if TYPE_CHECKING:
    from iopstui.catalog.library import Catalog
    from iopstui.model.volumes.promised import PromisedFigures
    from iopstui.model.volumes.volume import VolumeClass

GIB = 1 << 30
_MB = {"mb/s": 1e6, "mib/s": float(1 << 20), "gb/s": 1e9, "gib/s": float(1 << 30)}


def gibibytes(text: str) -> float:
    """The size of a volume."""
    from iopstui.model.fio.sizes import size_bytes

    size = size_bytes(text)
    if not size:
        raise ArgumentTypeError(f"{text!r} is not a size such as 500g or 2t")
    return size / GIB


def iops(text: str) -> float:
    """A number of IOPS, also 16k."""
    cleaned = text.strip().lower().replace(",", "")
    factor = {"k": 1e3, "m": 1e6}.get(cleaned[-1:], 1.0)
    number = cleaned if factor == 1.0 else cleaned[:-1]
    try:
        value = float(number) * factor
    except ValueError:
        value = 0.0
    if not 0 < value < 1e12:
        raise ArgumentTypeError(f"{text!r} is not a number of IOPS such as 5000 or 16k")
    return value


def bytes_per_second(text: str) -> float:
    """A throughput; without a unit in MB/s."""
    cleaned = text.strip().lower().replace(" ", "")
    unit = next((unit for unit in _MB if cleaned.endswith(unit)), "")
    try:
        value = float(cleaned.removesuffix(unit)) * _MB.get(unit, 1e6)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e15:
        raise ArgumentTypeError(f"{text!r} is not a throughput such as 350MB/s or 125MiB/s")
    return value


def add_volume_details(command: argparse.ArgumentParser, default_size: str = "") -> None:
    """Add what was bought. ``read_promised_figures`` reads it. ``default_size``: its text."""
    command.add_argument("--size", type=gibibytes, metavar="SIZE",
                         help=f"size of the volume, e.g. 500g{default_size}")  # fmt: skip
    command.add_argument("--iops", type=iops, metavar="N",
                         help="provisioned IOPS, where the class sells them")  # fmt: skip
    command.add_argument("--throughput", type=bytes_per_second, metavar="RATE",
                         help="provisioned throughput, e.g. 500MB/s or 250MiB/s")  # fmt: skip
    command.add_argument("--instance", metavar="NAME",
                         help="instance size whose limits count, too "
                              "(`iopstui volumes --instances`)")  # fmt: skip
    command.add_argument("--cached", action="store_true",
                         help="the volume uses the host's cache: the instance's cached limits "
                              "count")  # fmt: skip


def add_volume(
    command: argparse.ArgumentParser,
    help_text: str = "the volume that was bought, e.g. aws/gp2,size=500g (options: size, iops, "
    "throughput, instance, cached): its limits and burst credits are shown, and findings name them",
) -> None:
    """Add the option for the bought volume whose limits are compared. ``read_volume_option`` reads
    it."""
    command.add_argument("--volume", metavar="NAME[,OPTION=VALUE]", help=help_text)


def read_volume_option(arguments: argparse.Namespace) -> PromisedFigures | None:
    """The figures of --volume, if it was given. Raises UsageError."""
    text = getattr(arguments, "volume", None)
    return None if text is None else parse_volume(text)


def parse_volume(text: str, option: str = "--volume") -> PromisedFigures:
    """The figures of a volume that is given in one word, as with ``option``:
    "aws/gp3,size=500g,iops=6000". Raises UsageError."""
    from iopstui.catalog.library import read_catalog

    name, values = _name_and_options(text, option)
    catalog = read_catalog()
    volume = catalog.volume(name)
    if volume.needs_size and values["size"] is None:
        raise UsageError(f"The figures of {volume.id} depend on the size of the volume.",
                         f"Name it: {option} {volume.id},size=500g")  # fmt: skip
    try:
        return read_promised_figures(argparse.Namespace(**values), catalog, volume)
    except UsageError as error:
        # the error's hint would name options of other commands
        raise UsageError(str(error), f"Correct the options of {option}: size=, iops=, "
                         "throughput=, instance=, cached") from error  # fmt: skip


def apply_volume_options(arguments: argparse.Namespace, text: str, option: str) -> str:
    """The class that ``text`` ("aws/gp3,size=500g") names; the options in it count like those of
    ``add_volume_details``. Raises UsageError for an option that is given both ways."""
    name, values = _name_and_options(text, option)
    for key, value in values.items():
        if value and getattr(arguments, key):
            raise UsageError(f"{option} {printable(text)!r} and --{key} give the same.",
                             "Leave one of them out.")  # fmt: skip
        if value:
            setattr(arguments, key, value)
    return name


def _name_and_options(text: str, option: str) -> tuple[str, dict[str, object]]:
    name, *assignments = text.split(",")
    pairs = [assignment.partition("=")[::2] for assignment in assignments]
    options = dict(pairs)
    if len(options) < len(pairs):
        raise UsageError(f"{option} {printable(text)!r}: an option is given twice.",
                         "Give each one once.")  # fmt: skip
    readers: dict[str, Callable[[str], object]] = {
        "size": gibibytes, "iops": iops, "throughput": bytes_per_second, "instance": str,
        "cached": bool,
    }  # fmt: skip
    values: dict[str, object] = dict.fromkeys(readers) | {"cached": False}
    for key, value in options.items():
        if key not in readers or (key == "cached" and value):
            raise UsageError(f"{option} {printable(text)!r}: {printable(key)!r} is not one of "
                             f"its options.", f"For example: {option} aws/gp3,size=500g,iops=6000 "
                             "(also throughput=, instance=, cached)")  # fmt: skip
        try:
            values[key] = True if key == "cached" else readers[key](value)
        except ArgumentTypeError as error:
            raise UsageError(f"{option} {printable(text)!r}: {error}.") from error
    if not name:
        raise UsageError(f"{option} names no class.", "To list them: iopstui volumes")
    return name, values


def read_promised_figures(
    arguments: argparse.Namespace, catalog: Catalog, volume: VolumeClass,
    size_gib: float | None = None,
) -> PromisedFigures:  # fmt: skip
    """The promised figures. ``size_gib`` is used if there is no --size. Raises UsageError."""
    from iopstui.model.volumes.promised import promised_figures

    instance = catalog.instance(arguments.instance) if arguments.instance else None
    return promised_figures(
        volume, arguments.size if arguments.size is not None else size_gib, arguments.iops,
        arguments.throughput, instance, arguments.cached,
    )  # fmt: skip
