"""The kernel's types, from made-up BTF and from that of the running kernel."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.probe import bios
from iopstui.linux.probe.bios import bio_types
from iopstui.linux.probe.bpf import PTR, TYPEDEF, Types
from iopstui.linux.probe.counting import COMPLETE, EVENTS, INSERT, kernel_types
from iopstui.linux.probe.slowest import OriginTypes

INT, STRUCT, UNION, CONST, PROTO = 1, 4, 5, 10, 13


class Made:
    """Builds BTF type by type; each method returns the type's id."""

    def __init__(self) -> None:
        self._types = b""
        self._strings = b"\0"
        self._count = 0

    def add(self, kind: int, name: str = "", of: int = 0, rest: bytes = b"", count: int = 0,
            flag: bool = False) -> int:  # fmt: skip
        info = kind << 24 | count | flag << 31
        self._types += struct.pack("<III", self._string(name), info, of) + rest
        self._count += 1
        return self._count

    def struct(self, name: str, *members: tuple[str, int, int], kind: int = STRUCT,
               flag: bool = False) -> int:  # fmt: skip
        rows = [struct.pack("<III", self._string(n), of, at) for n, of, at in members]
        return self.add(kind, name, 64, b"".join(rows), len(rows), flag)

    def tracepoint(self, name: str, *parameters: int) -> int:
        rows = b"".join(struct.pack("<II", 0, of) for of in parameters)
        proto = self.add(PROTO, rest=rows, count=len(parameters))
        return self.add(TYPEDEF, name, self.add(PTR, of=proto))

    def data(self) -> bytes:
        length, size = len(self._types), len(self._strings)
        header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, length, length, size)
        return header + self._types + self._strings

    def _string(self, name: str) -> int:
        if not name:
            return 0
        at = self._strings.find(b"\0" + name.encode() + b"\0") + 1
        if not at:
            at = len(self._strings)
            self._strings += name.encode() + b"\0"
        return at


def kernel(old: bool = False, without: str = "", origin: bool = False) -> bytes:
    """A kernel's types. In an ``old`` kernel, tracepoints have the queue before the request. With
    ``origin``, the types show where requests come from."""
    made = Made()
    u32 = made.add(INT, "unsigned int", 4, bytes(4))
    void = made.add(PTR)
    hctx = made.struct("blk_mq_hw_ctx", ("queue_num", u32, 64))
    disk = made.struct("gendisk", ("major", u32, 0), ("first_minor", u32, 32))
    queue = made.struct("request_queue", ("disk", made.add(PTR, of=disk), 8 * 104))
    inner = made.struct("", ("__sector", u32, 0), kind=UNION)
    more_of = _origin(made, u32) if origin else ()
    request = made.struct(
        "request",
        ("q", made.add(PTR, of=queue), 0), ("mq_hctx", made.add(PTR, of=hctx), 128),
        # in structs with bit fields, the width is in the bits above the offset
        ("cmd_flags", u32, 192), ("some_bits", u32, 3 << 24 | 230), ("tag", u32, 256),
        ("internal_tag", u32, 288),
        ("__data_len", u32, 352), ("", inner, 384), *more_of, flag=True,
    )  # fmt: skip
    asked, of_queue = made.add(PTR, of=request), made.add(PTR, of=made.add(CONST, of=queue))
    before = (void, of_queue) if old else (void,)
    for event in (*EVENTS, INSERT) if origin else EVENTS:
        if event != without:
            more = (u32, u32) if event == COMPLETE else ()
            first = (void,) if event == COMPLETE else before
            made.tracepoint(f"btf_trace_{event}", *first, asked, *more)
    return made.data()


def _origin(made: Made, u32: int) -> Sequence[tuple[str, int, int]]:
    """The members of a request that show where it comes from."""
    node = made.struct("kernfs_node", ("id", u32, 8 * 96))
    group = made.struct("cgroup", ("kn", made.add(PTR, of=node), 8 * 256))
    state = made.struct("cgroup_subsys_state", ("cgroup", made.add(PTR, of=group), 8 * 8))
    blkcg = made.struct("blkcg", ("css", state, 8 * 16))
    blkg = made.struct("blkcg_gq", ("blkcg", made.add(PTR, of=blkcg), 8 * 40))
    device = made.struct("block_device", ("bd_dev", u32, 8 * 52))
    place = made.struct("bvec_iter", ("bi_sector", u32, 0), ("bi_size", u32, 64))
    bio = made.struct(
        "bio", ("bi_bdev", made.add(PTR, of=device), 8 * 8), ("bi_opf", u32, 8 * 16),
        ("bi_iter", place, 8 * 32), ("bi_blkg", made.add(PTR, of=blkg), 8 * 72),
    )  # fmt: skip
    void, one = made.add(PTR), made.add(PTR, of=bio)
    made.tracepoint(f"btf_trace_{bios.QUEUE}", void, one)
    made.tracepoint(f"btf_trace_{bios.COMPLETE}", void, void, one)
    made.struct("task_struct", ("pid", u32, 8 * 16), ("comm", u32, 8 * 32))
    ctx = made.struct("blk_mq_ctx", ("cpu", u32, 8 * 64))
    return (
        ("mq_ctx", made.add(PTR, of=ctx), 8 * 8), ("bio", made.add(PTR, of=bio), 8 * 56),
        ("start_time_ns", u32, 8 * 104),
    )  # fmt: skip


def test_members_are_found_where_they_are() -> None:
    found = kernel_types(kernel())
    assert (found.queue, found.hctx, found.flags, found.tag) == (0, 16, 24, 32)
    assert (found.bytes_left, found.sector, found.disk) == (44, 48, 104)
    assert (found.major, found.first_minor, found.number) == (0, 4, 8)
    assert len(set(found.tracepoints.values())) == 3 and set(found.request_at.values()) == {0}


def test_bios_are_found_where_they_are() -> None:
    found = bio_types(kernel(origin=True))
    assert (found.device, found.dev, found.flags, found.size) == (8, 52, 16, 32 + 8)
    assert found.bio_at == {bios.QUEUE: 0, bios.COMPLETE: 1}
    assert len(set(found.tracepoints.values())) == 2
    with pytest.raises((KeyError, ValueError)):
        bio_types(kernel())


def test_where_a_request_comes_from_is_found_if_all_of_it_is_there() -> None:
    assert kernel_types(kernel()).origin is None
    found = kernel_types(kernel(origin=True))
    assert found.origin == OriginTypes(
        start_time=104, ctx=8, cpu=64, pid=16, comm=32, bio=56, group=(72, 40, 16 + 8, 256, 96)
    )
    assert found.request_at[INSERT] == 0 and found.tracepoints[INSERT] > 0
    assert kernel_types(kernel(origin=True, without=INSERT)).origin is None
    # a kernel without cgroups; a kernel that keeps no start time
    without = kernel_types(kernel(origin=True).replace(b"bi_blkg", b"bi_none")).origin
    assert without is not None and without.group == () and without.start_time == 104
    assert kernel_types(kernel(origin=True).replace(b"start_time", b"ztart_time")).origin is None


def test_bit_fields_are_no_members() -> None:
    assert "some_bits" not in Types(kernel(), ["request"]).members("request")


def test_the_request_is_found_among_the_arguments() -> None:
    assert kernel_types(kernel(old=True)).request_at == {
        "block_rq_issue": 1, "block_rq_complete": 0, "block_rq_requeue": 1,
    }  # fmt: skip


def test_a_kernel_that_lacks_something_is_told_from_one_that_has_all() -> None:
    for event in EVENTS:
        with pytest.raises(KeyError):
            kernel_types(kernel(without=event))
    with pytest.raises(KeyError):
        kernel_types(kernel().replace(b"gendisk", b"gendist"))
    for none in (b"", b"\x7fELF", kernel()[:-200], b"\xeb\x9f" + kernel()[2:]):
        with pytest.raises((ValueError, KeyError)):
            kernel_types(none)


@given(st.binary(max_size=200), st.integers(24, 700))
def test_damage_is_told_as_damage(rubbish: bytes, at: int) -> None:
    data = kernel()
    with contextlib.suppress(ValueError, KeyError, RecursionError):
        kernel_types(data[:at] + rubbish + data[at + len(rubbish) :])


def test_the_kernel_below_us() -> None:
    place = Path("/sys/kernel/btf/vmlinux")
    try:
        data = place.read_bytes()
    except OSError:
        pytest.skip("this kernel does not describe its types")
    found = kernel_types(data)
    assert len({found.flags, found.tag, found.bytes_left, found.sector}) == 4
    assert all(number > 0 for number in found.tracepoints.values())
