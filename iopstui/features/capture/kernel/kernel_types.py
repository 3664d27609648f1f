"""The offsets of the struct members that the capture's programs read, found in the kernel's own
type data (BTF)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from iopstui.linux.probe.bpf import TYPEDEF, Types

GETRQ, ISSUE, COMPLETE, REQUEUE = (
    "block_getrq", "block_rq_issue", "block_rq_complete", "block_rq_requeue",
)  # fmt: skip
BIO_QUEUE, BIO_COMPLETE = "block_bio_queue", "block_bio_complete"
OF_REQUESTS, OF_BIOS = (GETRQ, ISSUE, COMPLETE, REQUEUE), (BIO_QUEUE, BIO_COMPLETE)
STRUCTS = ("request", "request_queue", "gendisk", "blk_mq_hw_ctx", "bio", "bvec_iter",
           "block_device")  # fmt: skip
# the path from a bio to the number of its cgroup; all steps are pointers, except that css is the
# first member of blkcg
_CGROUP = ("blkcg_gq", "blkcg", "cgroup_subsys_state", "cgroup", "kernfs_node")
_CGROUP_PATH = (("bio", "bi_blkg"), ("blkcg_gq", "blkcg"), ("cgroup_subsys_state", "cgroup"),
                ("cgroup", "kn"), ("kernfs_node", "id"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class CaptureTypes:
    """The offsets (bytes) of members by "struct.member", the tracepoints' numbers, and which of a
    tracepoint's arguments is the request or bio. ``cgroup`` are the offsets of the pointers from a
    bio to its cgroup; it is empty if this kernel does not account I/O to cgroups."""

    at: dict[str, int]
    tracepoints: dict[str, int]
    argument: dict[str, int]
    cgroup: tuple[int, ...]


def capture_types(data: bytes, events: Sequence[str]) -> CaptureTypes:
    """The types for the tracepoints ``events``. Raises ValueError or KeyError if the kernel's types
    are not as expected."""
    try:
        return _capture_types(data, events)
    except (struct.error, IndexError):
        raise ValueError("BTF that is not understood") from None


def _capture_types(data: bytes, events: Sequence[str]) -> CaptureTypes:
    types = Types(data, (*STRUCTS, *_CGROUP, *(f"btf_trace_{event}" for event in events)))
    at = {f"{name}.{member}": offset for name in STRUCTS
          for member, offset in types.members(name).items()}  # fmt: skip
    argument = {}
    for event in events:
        # without the first parameter, which is the tracepoint's own
        parameters = types.parameters(f"btf_trace_{event}")[1:]
        argument[event] = parameters.index("request" if "_rq_" in event else "bio")
    return CaptureTypes(
        at=at,
        tracepoints={event: types.number(f"btf_trace_{event}", TYPEDEF) for event in events},
        argument=argument,
        cgroup=_path_to_cgroup(types),
    )


def _path_to_cgroup(types: Types) -> tuple[int, ...]:
    try:
        path = [types.members(name)[member] for name, member in _CGROUP_PATH]
        path[2] += types.members("blkcg")["css"]
    except KeyError:
        return ()
    return tuple(path)
