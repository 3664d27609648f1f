"""`iopstui capture` with a fake of the kernel's part."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from iopstui.cli.program import main
from iopstui.features.capture import capture_disk
from iopstui.features.capture.kernel.bpf_capture import CaptureUnusable
from iopstui.features.capture.kernel.workload_capture import ProcessFilter
from iopstui.features.capture.model.phases import Distance
from iopstui.features.capture.model.trace import TraceBuffer
from iopstui.features.capture.model.workload import Arrivals, Stream, Workload
from iopstui.linux.kernel_files import Roots
from iopstui.linux.probe.regions import Region
from iopstui.model.block.target import DEVICE, Target
from tests.helpers.packed_requests import pack_shape

READS = Stream("db", "read", 10.0, 1000, 4_096_000, 0, sizes={4096: 1000}, depths={2: 1000},
               regions={1: 1000}, arrivals=Arrivals(100, 11_000, 20, 900, 9))  # fmt: skip
WORKLOAD = Workload("vda", 10.0, (READS,), {"read": replace(READS, process="")}, 2.0)
VDA, DM = Region("vda", 254, 0), Region("dm-0", 253, 0, bios=True)


class FakeCapture:
    """A capture whose result is ``workload``."""

    workload = WORKLOAD
    vanishes = signals = False
    unusable = ""
    closed = 0
    choice = ProcessFilter()

    def __init__(
        self, name: str, regions: Sequence[Region], choice: ProcessFilter, roots: Roots,
        trace: TraceBuffer | None = None,
    ) -> None:  # fmt: skip
        if FakeCapture.unusable:
            raise CaptureUnusable(FakeCapture.unusable)
        if trace is not None:
            trace.add([10**6, 10**6 + 7000], [8, 0], [pack_shape(5, 0, 8), pack_shape(5, 2, 8)])
        FakeCapture.choice = choice

    def poll(self) -> int:
        if FakeCapture.signals:
            signal.raise_signal(signal.SIGTERM)
        return 1

    def gone(self) -> bool:
        return FakeCapture.vanishes

    def result(self) -> Workload:
        return FakeCapture.workload

    def cut(self) -> Workload:
        return FakeCapture.workload

    def disk_counted(self) -> int:
        return 1000

    def close(self) -> None:
        FakeCapture.closed += 1


@pytest.fixture(autouse=True)
def fake_capture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (("workload", WORKLOAD), ("vanishes", False), ("signals", False),
                        ("unusable", ""), ("closed", 0)):  # fmt: skip
        monkeypatch.setattr(FakeCapture, name, value)
    monkeypatch.setattr(capture_disk, "WorkloadCapture", FakeCapture)
    target = Target(DEVICE, "/dev/vda", "vda", ("vda",))
    monkeypatch.setattr(capture_disk, "choose_watch_target", lambda texts, devices, roots: target)
    monkeypatch.setattr(capture_disk, "disk_regions", lambda of: ([VDA], "vda: the layer"))
    monkeypatch.setattr(capture_disk, "_CHECK_INTERVAL_S", 0.0)
    monkeypatch.setattr(capture_disk, "POLL_S", 0.001)
    monkeypatch.chdir(tmp_path)


def test_both_jobs_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "vda", "--for", "0.01s", "-o", "app.fio"]) == 0
    out = capsys.readouterr()
    assert "Captured on vda in 10 s" in out.out and "app.closed.fio: closed loop" in out.out
    assert "vda: the layer" in out.err
    text = (tmp_path / "app.fio").read_text()
    assert "rate_iops=100" in text and "iodepth=2" in (tmp_path / "app.closed.fio").read_text()
    assert FakeCapture.closed == 1 and FakeCapture.choice.everything
    # files are never overwritten
    assert main(["capture", "vda", "--for", "0.01s", "-o", "app.fio"]) == 2


def test_a_trace_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "vda", "--for", "0.01s", "--trace", "app.trace"]) == 0
    err = capsys.readouterr().err
    assert "1 requests written to app.trace, without 1 discards" in err and "--replay" in err
    lines = (tmp_path / "app.trace").read_text().splitlines()
    assert "0 replay.scratch read 4096 4096" in lines and "vda" not in "".join(lines)
    assert main(["capture", "vda", "--for", "0.01s", "--trace", "app.trace"]) == 2
    assert main(["capture", "vda", "--for", "0.01s", "--trace", "none/app.trace"]) == 2


def test_invalid_phases_and_loops_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "vda", "--for", "1s", "--phases", "0.5s"]) == 2
    assert "at least 1 s" in capsys.readouterr().err
    assert main(["capture", "vda", "--for", "1s", "--loop", "closed"]) == 2
    assert "Add --check DIR" in capsys.readouterr().err


def test_phases_are_written_until_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_disk, "MIN_SPAN_S", 0.0)
    fewer_reads = replace(READS, ios=100, sizes={4096: 100})
    spans = iter([WORKLOAD, Workload("vda", 5.0, (fewer_reads,), {"read": fewer_reads})])
    monkeypatch.setattr(FakeCapture, "cut", lambda self: next(spans))
    assert main(["capture", "vda", "--for", "0.02s", "--phases", "0.015s", "-o", "app.fio"]) == 0
    out = capsys.readouterr().out
    assert "phases:\n  0 s to 10 s: 100 reads/s" in out and "  10 s to 15 s: " in out
    assert "1,100 requests" in out and "# Phase 2 of 2" in Path("app.fio").read_text()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "vda", "--for", "0.01s", "--json", "--pid", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"] == 1000 and FakeCapture.choice.pids == (
        1,
    )


@pytest.mark.parametrize(
    ("options", "hint"), [([], "page cache do not reach"), (["--pid", "1"], "use --cgroup")]
)
def test_a_capture_without_requests_fails(
    options: list[str], hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(FakeCapture, "workload", Workload("vda", 10.0, (), {}))
    assert main(["capture", "vda", "--for", "0.01s", "-o", "app.fio", *options]) == 1
    err = capsys.readouterr().err
    assert "No request was seen on vda in 10 s" in err and hint in err
    assert list(tmp_path.iterdir()) == [] and FakeCapture.closed == 1


def test_no_job_is_written_for_too_few_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    rare = replace(READS, ios=1, seconds=10.0)
    monkeypatch.setattr(FakeCapture, "workload", Workload("vda", 10.0, (rare,), {"read": rare}))
    assert main(["capture", "vda", "--for", "0.01s", "-o", "app.fio"]) == 0
    assert "No job was written" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_a_removed_disk_keeps_the_captured_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeCapture, "vanishes", True)
    assert main(["capture", "vda", "--for", "1h", "-o", "app.fio"]) == 1
    assert "The disk has vanished" in capsys.readouterr().err and (tmp_path / "app.fio").exists()


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--for", "1h"], 130)])
def test_a_signal_ends_the_capture(options: list[str], code: int, tmp_path: Path,
                          monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(FakeCapture, "signals", True)
    assert main(["capture", "vda", "-o", "app.fio", *options]) == code
    assert (tmp_path / "app.fio").exists()


@pytest.mark.parametrize(("root", "hint"), [(False, "sudo iopstui capture"), (True, "doctor")])
def test_a_kernel_without_capture_gets_a_hint(
    root: bool, hint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeCapture, "unusable", "the kernel refuses the programs")
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    assert main(["capture", "vda"]) == 5
    err = capsys.readouterr().err
    assert "cannot work here: the kernel refuses" in err and hint in err


@pytest.mark.parametrize(("distance", "code"), [(0.01, 0), (0.3, 4), (None, 0)])
def test_a_different_figure_is_exit_code_4(
    distance: float | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    distances = [Distance("read sizes", "4 KiB", "8 KiB", distance, 0.05)]
    monkeypatch.setattr(capture_disk, "replay_and_compare", lambda *args: distances)
    assert main(["capture", "vda", "--for", "0.01s", "--check", str(tmp_path)]) == code
    assert "read sizes" in capsys.readouterr().out


def test_the_captured_layer_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    from iopstui.errors import UsageError

    stacked = Target(DEVICE, "/dev/dm-0", "dm-0", ("dm-0", "nvme0n1"))
    monkeypatch.setattr(capture_disk, "read_devices", lambda roots: {"dm-0": 1, "vda": 2})
    for regions, text in (([DM], "nvme0n1 below may see other sizes"), ([VDA], "after merging")):
        monkeypatch.setattr(capture_disk, "regions", lambda *args, result=regions: result)
        of = stacked if regions == [DM] else Target(DEVICE, "/dev/vda", "vda", ("vda",))
        assert text in capture_disk.disk_regions(of)[1]
    monkeypatch.setattr(capture_disk, "regions", lambda *args: [])
    with pytest.raises(UsageError, match="No block device"):
        capture_disk.disk_regions(stacked)
