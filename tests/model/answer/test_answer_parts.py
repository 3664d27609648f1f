"""The work of kernel threads in words, and the answer on an NFS mount."""

from __future__ import annotations

import pytest
from watch_frames import frame

from iopstui.model.answer.answer import CRITICAL, GOOD, WARNING
from iopstui.model.answer.judge import Seen, _below, judge_share
from iopstui.model.answer.who import role
from iopstui.model.block.device import BlockDevice, Mount
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.shares import OperationRates, Share

DEVICES = {
    "vda": BlockDevice("vda", "/dev/vda", 254, 0, "virtio-blk", 1 << 30,
                       mounts=(Mount("/srv", "ext4"),)),
    "md0": BlockDevice("md0", "/dev/md0", 9, 0, "md", 1 << 30),
}  # fmt: skip
NUMBERS = {"254:0": "vda"}


@pytest.mark.parametrize(("comm", "text"), [
    ("jbd2/vda-8", "the journal of /srv (jbd2)"),
    ("kworker/u8:3+flush-254:0", "write-back of the page cache on /srv"),
    ("kworker/u8:3-flush-254:0", "write-back of the page cache on /srv"),
    ("md0_resync", "resync of md0 (md)"), ("loop7", "I/O of loop7"),
    ("kworker/0:1-events", None), ("migration/0", None),
])  # fmt: skip
def test_a_kernel_thread_is_named_by_what_it_does(comm: str, text: str | None) -> None:
    found = role(comm, NUMBERS)
    assert (None if found is None else found.text(DEVICES)) == text


def seconds(ops: int, exe_ms: int, unanswered: int = 0) -> list[Frame]:
    from dataclasses import replace

    read = OperationRates(1.0, ops, 4096 * ops, 0, 0, exe_ms, exe_ms, 0)
    share = Share(1.0, ops, 0, operations={"READ": read}, unanswered=unanswered)
    return [replace(frame(n, {}), share=share) for n in (1.0, 2.0, 3.0, 4.0)]


@pytest.mark.parametrize(("frames", "state", "text"), [
    (seconds(100, 200), GOOD, "nas:/export answers in 2.00 ms on average, 400 requests"),
    (seconds(100, 9000), WARNING, "nas:/export answers in 90.0 ms on average, 400 requests"),
    (seconds(0, 0), GOOD, "nas:/export is idle: no request; nothing waits"),
    (seconds(0, 0, 3), CRITICAL, "nas:/export answers nothing; 3 requests are unanswered"),
])  # fmt: skip
def test_an_nfs_mount(frames: list[Frame], state: str, text: str) -> None:
    target = Target(DIRECTORY, "/mnt", None, fstype="nfs4", mountpoint="/mnt", share="nas:/export")
    [(_, answer)] = judge_share(Seen(target, frames, {}))
    assert (answer.state, answer.text) == (state, text)


def test_a_device_below_two_others_counts_once() -> None:
    lower = {"md0": ("dm-0", "sdb"), "dm-0": ("sda", "sdb"), "sdc": ("sdd",)}
    assert _below("md0", lower) == ["md0", "dm-0", "sdb", "sda"]
