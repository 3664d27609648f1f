"""Jobs that send NVMe commands past the block layer (ioengine=io_uring_cmd).

They open the namespace's generic device (/dev/ng0n1) in place of its block device, which stays the
target: it is what is checked, locked, reserved and, as far as the kernel counts them, measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iopstui.errors import UsageError
from iopstui.fio.job_shape import engine
from iopstui.fio.job_text import join_paths
from iopstui.linux.devices.nvme_generic import generic_of
from iopstui.linux.roots import Roots
from iopstui.model.block.target import DEVICE, Target, TargetPath
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import PASSTHROUGH
from iopstui.text import printable

_DIRECT = sorted(jobfile.option_names("direct"))


def passthrough_options(text: str, target: Target, roots: Roots) -> Mapping[int, Mapping[str, str]]:
    """The options of each section of ``text`` by its index, if one passes commands through: that
    one opens the generic device, which can't be opened with O_DIRECT. UsageError where the target
    has no generic device, or is one and a section would do ordinary I/O on it."""
    per_section: dict[int, dict[str, str]] = {}
    jobs = jobfile.effective_sections(text)
    for index, job in enumerate(jobs):
        if engine(job.options) == PASSTHROUGH:
            per_section[index] = {
                "filename": join_paths(_nodes(target.places, roots)),
                "direct": "0",
            }
        else:
            _check_ordinary(job.name, engine(job.options), target.places)
    for index, job in enumerate(jobs if per_section else ()):
        # what is set for one section has to be set for all
        per_section.setdefault(
            index, {name: job.options[name] for name in _DIRECT if name in job.options}
        )
    return per_section


def _nodes(places: Sequence[TargetPath], roots: Roots) -> list[str]:
    return [place.path if place.passthrough else _generic_node(place, roots) for place in places]


def _generic_node(place: TargetPath, roots: Roots) -> str:
    node = generic_of(roots, place.device or "") if place.kind == DEVICE else None
    if node is None:
        raise UsageError(
            f"ioengine={PASSTHROUGH} sends NVMe commands, and {printable(place.path)} is no whole "
            "NVMe namespace with a generic device (/dev/ng0n1).",
            "Name a namespace (iopstui devices), or use ioengine=io_uring.",
        )
    return node


def _check_ordinary(section: str, name: str, places: Sequence[TargetPath]) -> None:
    for place in places:
        if place.passthrough:
            raise UsageError(
                f"{printable(place.path)} takes NVMe commands alone, and [{printable(section)}] "
                f"uses ioengine={printable(name)}.",
                f"Add --set ioengine={PASSTHROUGH}, or name the block device /dev/{place.device}.",
            )
