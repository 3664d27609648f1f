"""The device panel of a target on NFS."""

from __future__ import annotations

from dataclasses import replace

import pytest
from session_frames import whole_frames

from iopstui.events import FrameReady
from iopstui.model.block.target import DIRECTORY, Target
from iopstui.model.metrics.shares import OperationRates, Share, SmbClient
from iopstui.ui.dashboard import bars
from iopstui.ui.dashboard.panels import kernel_panel
from iopstui.ui.draw.style import ASCII, UTF8, WARNING
from iopstui.ui.state.live import LiveState

TARGET = Target(
    DIRECTORY, "/mnt/n", None, (), "nfs4 files are on another machine", "nfs4", "/mnt/n",
    share="srv:/export", mount_options="vers=4.2,rsize=262144,nconnect=4,hard",
)  # fmt: skip
READ = OperationRates(1.0, 120, 120 * 65536, 3, 240, 600, 900, 0)
SHARE = Share(1.0, 130, 0, (65, 65), {"read": READ, "getattr": replace(READ, ops=10, errors=2)})


SMB_TARGET = replace(TARGET, fstype="cifs", share="//srv/data", mount_options="vers=3.1.1")
SMB_READ = OperationRates(
    1.0, 120, 120 * 65536, None, None, None, None, 0, answers=240, answers_ms=600.0
)
CLIENT = SmbClient(1, 4, 0, 0, 2, 480, 0, 4.0)
SMB_SHARE = Share(1.0, 130, None, operations={"read": SMB_READ}, smb=CLIENT)


def state(share: Share | None) -> LiveState:
    live_state = LiveState()
    for frame in whole_frames("3.42-p-both")[:3]:
        live_state.apply(FrameReady(frame.t, replace(frame, share=share)))
    return live_state


def lines(
    share: Share | None, width: int = 100, height: int = 8, target: Target = TARGET
) -> list[str]:
    rows = kernel_panel.rows(state(share), target, width, height, UTF8)
    return ["".join(text for text, _ in row).rstrip() for row in rows]


def test_operations_have_nfsiostat_s_figures_with_the_mount_below() -> None:
    title, head, reads, write, others, mount, *_ = lines(SHARE)
    assert "/proc/self/mountstats" in title
    names = ["op", "ops/s", "kB/s", "kB/op", "retrans", "avg", "RTT", "avg", "exe", "avg", "queue"]
    assert head.split() == [*names, "errors"]
    assert reads.split() == ["read", "120", "7.68k", "64.0", "3", "5.00ms", "7.50ms", "2.00ms", "0"]
    assert write.split() == ["write", "0", "0", "–", "0", "–", "–", "–", "0"]
    assert others.split()[0] == "other" and others.split()[-1] == "2"
    assert mount.strip() == "srv:/export · vers=4.2,rsize=262144,nconnect=4,hard"
    assert kernel_panel.box_title(TARGET) == "Share (nfsiostat)"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_panel_keeps_the_times(width: int) -> None:
    rows = kernel_panel.rows(state(SHARE), TARGET, width, 6, ASCII)
    assert {sum(len(text) for text, _ in row) for row in rows} == {width}
    if width >= 60:
        assert "avg RTT" in "".join(text for text, _ in rows[1])


def test_the_summary_of_a_small_terminal_names_the_mount() -> None:
    for share, summary in (
        (SHARE, "NFS 120 r/s  0 w/s  RTT 5.00ms"),
        (None, "NFS not measured now"),
    ):
        row = bars.summary_line(state(share), TARGET, 80, UTF8)
        assert "".join(text for text, _ in row).rstrip().endswith(summary)


def test_smb_shows_its_client_s_counts_and_names_the_latency() -> None:
    title, head, reads, write, _, client, mount, *_ = lines(SMB_SHARE, target=SMB_TARGET)
    assert "/proc/fs/cifs/Stats" in title
    assert head.split() == ["op", "ops/s", "kB/s", "kB/op", "errors", "latency"]
    assert reads.split() == ["read", "120", "7.68k", "64.0", "0", "2.50ms"]
    assert write.split() == ["write", "0", "0", "–", "0", "–"]
    assert client.strip() == (
        "in flight 4 · reconnects 0 · latency of the connection's 2 shares, clock 4 ms"
    )
    assert client.strip() in lines(SMB_SHARE, width=78, target=SMB_TARGET)[5]
    alone = replace(SMB_SHARE, smb=replace(CLIENT, shares=1))
    assert "· latency of the connection, clock 4 ms" in lines(alone, target=SMB_TARGET)[5]
    assert mount.strip() == "//srv/data · vers=3.1.1"
    assert kernel_panel.box_title(SMB_TARGET) == "Share (SMB)"
    row = bars.summary_line(state(SMB_SHARE), SMB_TARGET, 80, UTF8)
    assert "".join(text for text, _ in row).rstrip().endswith("SMB 120 r/s  0 w/s  lat 2.50ms")


def test_smb_reports_lost_and_missing_figures() -> None:
    lost = replace(CLIENT, disconnected=1, slow=3, reconnects=None)
    client = lines(replace(SMB_SHARE, smb=lost), target=SMB_TARGET)[5]
    assert client.strip().startswith("1 disconnected · in flight 4 · reconnects – · 3 slow · ")
    plain = replace(SMB_SHARE, smb=replace(CLIENT, clock_ms=None, slow=None))
    assert "no latency: kernel without CIFS_STATS2" in lines(plain, target=SMB_TARGET)[5]
    assert "counters began" in " ".join(lines(None, target=SMB_TARGET)[1:3])


def test_retransmissions_are_highlighted() -> None:
    rows = kernel_panel.rows(state(SHARE), TARGET, 100, 8, UTF8)
    assert [text.strip() for text, style in rows[2] if style == WARNING] == ["3"]


def test_a_second_without_the_mount_is_explained() -> None:
    assert "The mount was not measured in this second." in lines(None)[1]


def test_a_target_on_a_local_disk_keeps_the_device_panel() -> None:
    assert not replace(TARGET, device="vda", tree=("vda",)).only_shares
    assert kernel_panel.row_count(replace(TARGET, device="vda", tree=("vda",))) == 1
