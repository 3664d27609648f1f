"""Jobs bound to hardware queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from iopstui.errors import UsageError
from iopstui.fio.job_text import count_of
from iopstui.linux.process.affinity import initial_cpus
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.topology import Binding, bind_to_queues
from iopstui.model.fio import jobfile


def bind_jobs(
    text: str,
    overrides: Mapping[str, str],
    target: Target | None,
    devices: Mapping[str, BlockDevice],
) -> Binding:
    """The CPUs that give each fio job another hardware queue; UsageError where there is none. Of
    several devices the first one's queues decide, because every job uses all of them."""
    stacks = target.stacks if target is not None else {}
    device_stacks = ([devices[name] for name in (top, *below)] for top, below in stacks.items())
    first_queued = (
        next((device for device in stack if device.hctxs), None) for stack in device_stacks
    )
    queued = [device for device in first_queued if device is not None]
    queues = queued[0].hctxs if queued else ()
    jobs = jobfile.effective_sections(jobfile.with_overrides(text, overrides))
    count = sum(count_of(job.options.get("numjobs")) for job in jobs)
    binding = bind_to_queues(queues, count, initial_cpus())
    if binding is None:
        subject = (
            ", ".join(target.devices_below)
            if target is not None and target.devices_below
            else "this target"
        )
        raise UsageError(
            f"Cannot bind jobs to hardware queues: {subject} has no visible hardware queue.",
            "Remove --bind queues. `iopstui devices` shows each device's queues.",
        )
    different = [device.name for device in queued if _cpus_of(device) != _cpus_of(queued[0])]
    if different:
        note = (
            f"the queues are {queued[0].name}'s; those of {', '.join(different)} serve other CPUs"
        )
        return replace(binding, notes=(*binding.notes, note))
    return binding


def _cpus_of(device: BlockDevice) -> tuple[tuple[int, ...], ...]:
    return tuple(hctx.cpus for hctx in device.hctxs)
