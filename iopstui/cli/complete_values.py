"""Complete the values of options and arguments that the machine or the program knows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from itertools import chain

from iopstui.cli.command import FILES, Candidate, CandidateSource
from iopstui.discovery import feature_modules
from iopstui.errors import IopstuiError


def devices() -> Iterator[Candidate]:
    """The machine's block devices that have a size."""
    from iopstui.linux.devices.sysfs import read_devices
    from iopstui.linux.roots import Roots

    for device in read_devices(Roots()).values():
        if device.size and not device.hidden:
            yield Candidate(device.path, device.model or device.kind)


def jobs() -> Iterator[Candidate]:
    """The shipped ones."""
    from iopstui.fio.library import shipped_jobs

    for job in shipped_jobs():
        yield Candidate(job.name, job.title)


def volumes() -> Iterator[Candidate]:
    """Classes of volumes, shipped ones and the user's."""
    from iopstui.catalog.library import read_catalog

    for volume in read_catalog().classes.values():
        yield Candidate(volume.id, volume.title)


def instances() -> Iterator[Candidate]:
    """Instance sizes."""
    from iopstui.catalog.library import read_catalog

    for instance in read_catalog().instances.values():
        yield Candidate(instance.id, "instance size")


def fields() -> Iterator[Candidate]:
    """The figures of a run for which there can be an expectation."""
    from iopstui.model.metrics.fields import FIELDS
    from iopstui.model.metrics.figures import is_measurable
    from iopstui.model.metrics.paths import ANY

    for field in FIELDS:
        if ANY not in field.path and is_measurable(field.path):
            short = field.id
            for before in ("kernel.total.", "fio.total.", "fio.", "kernel."):
                short = short.removeprefix(before)
            yield Candidate(short, field.meaning)


def tunables() -> Iterator[Candidate]:
    """Settings of a device's queue."""
    from iopstui.model.block.tunable import TUNABLES

    for tunable in TUNABLES.values():
        yield Candidate(f"{tunable.name}=", tunable.meaning)


def fio_options() -> Iterator[Candidate]:
    """Options of the installed fio, or common ones without it."""
    from iopstui.cli.parser import FIO_OPTIONS
    from iopstui.fio.inspect import find_fio
    from iopstui.fio.options import read_fio_options

    options: Mapping[str, str] = {}
    with contextlib.suppress(IopstuiError):
        options = read_fio_options(find_fio())
    for name, meaning in (options or dict.fromkeys(sorted(FIO_OPTIONS), "")).items():
        yield Candidate(f"{name}=", meaning)


def files() -> Iterator[Candidate]:
    """Whatever the shell finds."""
    yield Candidate(FILES)


def demo() -> Iterator[Candidate]:
    """The recording that comes along."""
    yield Candidate("demo", "comes with iopstui")


def _both(first: CandidateSource, then: CandidateSource) -> CandidateSource:
    return lambda: chain(first(), then())


VALUES: Mapping[str, CandidateSource] = {
    "TARGET": _both(devices, files),
    "DEVICE": devices,
    "--destroy-data": _both(devices, files),
    "--job": _both(jobs, files),
    "JOB": _both(jobs, files),
    "jobs NAME": jobs,
    "volumes NAME": volumes,
    "--volume": volumes,
    "--instance": instances,
    "DIR|PROGRAM": files,
    "--set": fio_options,
    "--axis": _both(tunables, fio_options),
    "--variant": _both(tunables, fio_options),
    "--knob": tunables,
    "--expect": fields,
    "--trigger": fields,
    "replay FILE": _both(demo, files),
    "report FILE": _both(demo, files),
    "FILE": files,
    "OUT": files,
    **{name: source for module in feature_modules("completion")
       for name, source in module.VALUES.items()},
}  # fmt: skip
"""The values by the command and the option or place, or by the option, or else by the name that the
help has for its value. If values are not listed here and the option has no ``choices``, nothing is
completed."""
