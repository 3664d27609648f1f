"""Devices that fail, stall or vanish under a run. Needs device-mapper or scsi_debug."""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from machine import loop, mapped, needs, scsi_debug, sectors, sh
from program import events, start, survivors
from program import wait_for_fio as _wait_for_fio

READ = ("--job", "randread-4k", "--set", "runtime=60", "--set", "iodepth=4")


def wait_for_fio(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Like program.wait_for_fio, with a longer timeout for a virtual machine; prints errors."""
    try:
        return _wait_for_fio(process.pid, within=60.0)
    except (AssertionError, psutil.Error):
        process.kill()
        raise AssertionError(process.communicate()) from None


def test_medium_errors_end_the_run_with_the_kernel_s_words(here: Path) -> None:
    # scsi_debug(4): opts=2 fails reads of sectors 0x1234 to 0x123d
    with scsi_debug(opts=2) as node:
        process = start("run", node, "--job", "seqread-1m", "--set", "bs=4k", cwd=here)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1, err
        assert "errno" in err


def test_a_scsi_disk_that_is_pulled(here: Path) -> None:
    with scsi_debug() as node:
        process = start("run", node, *READ, cwd=here)
        fio = wait_for_fio(process)
        time.sleep(2.0)
        Path("/sys/block", Path(node).name, "device/delete").write_text("1")
        _, err = process.communicate(timeout=30)
        assert process.returncode == 1, err
        assert survivors(fio, 2.0) == []


@pytest.mark.parametrize("job", ["randread-4k", "randwrite-4k"])
def test_a_pci_disk_that_is_pulled(job: str, here: Path) -> None:
    """A removed virtio disk refuses I/O without an error: fio's IOPS rise, and it exits with 0."""
    node = _spare_virtio_disk()
    process = start("run", node, "--job", job, "--set", "runtime=60", "--destroy-data", node,
                    cwd=here)  # fmt: skip
    fio = wait_for_fio(process)
    time.sleep(2.0)
    pci = Path("/sys/block", Path(node).name).resolve().parents[2]
    (pci / "remove").write_text("1")
    try:
        _, err = process.communicate(timeout=30)
    finally:
        (Path("/sys/bus/pci/rescan")).write_text("1")
        time.sleep(1.0)
    assert process.returncode == 1, err
    assert "gone" in err or "errno" in err or "No space" in err
    assert survivors(fio, 2.0) == []


def _spare_virtio_disk() -> str:
    """The lab's disk with this serial number, which no real disk has."""
    for serial in Path("/sys/block").glob("vd*/serial"):
        if serial.read_text().strip() == "VBLK1Q":
            return f"/dev/{serial.parent.name}"
    pytest.skip("no disk to pull: runs in the lab")


def test_errors_of_the_mapper_end_the_run(here: Path) -> None:
    needs("dmsetup", modules=("dm-mod",))
    with mapped("iopstui-bad", "0 65536 error") as node:
        process = start("run", node, *READ, cwd=here)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 1, err
        assert "errno 5" in err


def test_a_flaky_device(here: Path) -> None:
    needs("dmsetup", modules=("dm-flakey",))
    with loop(here / "disk.img") as below:
        table = f"0 {sectors(below)} flakey {below} 0 3 2"
        with mapped("iopstui-flaky", table) as node:
            process = start("run", node, *READ, cwd=here)
            out, err = process.communicate(timeout=30)
            assert process.returncode == 1, err
            assert "errno 5" in err and "fio's final figures" in out


def test_a_slow_device_is_shown_slow(here: Path) -> None:
    needs("dmsetup", modules=("dm-delay",))
    with contextlib.ExitStack() as made:
        below = made.enter_context(loop(here / "disk.img"))
        table = f"0 {sectors(below)} delay {below} 0 200"
        node = made.enter_context(mapped("iopstui-slow", table))
        process = start("run", node, "--job", "randread-4k", "--set", "runtime=4", "--set",
                        "iodepth=4", "--format", "jsonl", cwd=here)  # fmt: skip
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        frames = [e for e in events(out) if e["event"] == "frame" and e["fio"]]
        assert frames and all(frame["fio"]["total"]["iops"] < 30 for frame in frames)


def test_a_suspended_device_stalls_nothing_but_fio(here: Path) -> None:
    needs("dmsetup", modules=("dm-mod",))
    with loop(here / "disk.img") as below:
        table = f"0 {sectors(below)} linear {below} 0"
        with mapped("iopstui-stuck", table) as node:
            process = start("run", node, *READ, "--format", "jsonl", cwd=here)
            fio = wait_for_fio(process)
            time.sleep(2.0)
            sh("dmsetup", "suspend", "--nolockfs", "iopstui-stuck")
            time.sleep(4.0)
            asked = time.monotonic()
            process.terminate()
            out, err = process.communicate(timeout=20)
            took = time.monotonic() - asked
            sh("dmsetup", "resume", "iopstui-stuck")
            assert took < 6.0
            assert process.returncode in (1, 130), err
            late = [e for e in events(out) if e["event"] == "frame" and e["fio"] is None]
            assert len(late) >= 2 and late[-1]["fio_age_s"] > 2
            assert survivors(fio, 3.0) == []
