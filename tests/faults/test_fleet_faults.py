"""A fleet in which one host fails, in every way: its fio is gone within 7 s, the others
complete."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from machine import loop, mounted, needs, sh
from program import ROOT, events, iopstui, start

LAUNCHER = f"{sys.executable} {ROOT / 'tests' / 'helpers' / 'far_host.py'} {{host}}"
WITHIN_S = 7.0
MAX_MIB = 128
RUNTIME = 12


def fio_on(host: str, log: Path) -> bool:
    """Whether a measuring fio of this case runs on the host."""
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if words and words[0].endswith("fio"):
                marks = process.environ()
                if (marks.get("FAR_HOST"), marks.get("FAR_HOST_LOG")) == (host, str(log)):
                    return True
        except psutil.Error:
            continue
    return False


class Watch(threading.Thread):
    """When fio was last seen on h2 (monotonic), and the most memory (MiB) that the merging process
    ``pid`` has had."""

    def __init__(self, log: Path, pid: int) -> None:
        super().__init__(daemon=True)
        self.log = log
        self.status = Path(f"/proc/{pid}/status")
        self.last = 0.0
        self.peak_mib = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.1):
            if fio_on("h2", self.log):
                self.last = time.monotonic()
            for line in self._status():
                if line.startswith("VmHWM:"):  # a zombie has no such line
                    self.peak_mib = int(line.split()[1]) >> 10

    def _status(self) -> list[str]:
        try:
            return self.status.read_text().splitlines()
        except OSError:
            return []


def faulty(here: Path, fault: str, *more: str) -> tuple[int, list[dict[str, object]], str, float]:
    """Run a fleet with a fault of h2. Returns exit code, rows, messages, and how long fio ran on h2
    after the fault."""
    log = here.parent / "fault"
    process = start(
        "fleet", "h[1-3]", str(here), "--launcher", LAUNCHER, "--bring", "--job", "randread-4k",
        "--size", "4m", "--set", f"runtime={RUNTIME}", "--set", "rate_iops=500",
        "--format", "jsonl",
        *more, cwd=here, FAR_HOST_h2=fault, FAR_HOST_LOG=str(log),
    )  # fmt: skip
    watch = Watch(log, process.pid)
    watch.start()
    out, err = process.communicate(timeout=120)
    watch.over.set()
    watch.join()
    assert 0 < watch.peak_mib <= MAX_MIB
    return process.returncode, events(out), err, watch.last - float(log.read_text())


@pytest.mark.parametrize("fault", ["cut", "kill", "garbage", "long", "closed"])
def test_its_fio_is_gone_and_the_others_complete(fault: str, here: Path) -> None:
    code, rows, err, after_s = faulty(here, fault)
    assert code == 1, err
    assert after_s <= WITHIN_S, f"fio ran on for {after_s:.1f} s"
    *_, whole = rows
    assert whole["event"] == "merged"
    hosts, count = whole["hosts"], whole["count"]
    assert isinstance(hosts, dict) and isinstance(count, dict)
    assert hosts["total"] == 3 and hosts["finished"] == 2
    # on a busy machine another host's second may come in pieces, which is then reported
    said = [line for line in err.splitlines() if line.startswith("iopstui: ")]
    expected = ("are one machine", "waiting for the launcher")
    warned = [line for line in said if not any(text in line for text in expected)]
    assert count["exact"] >= 2 and not [line for line in warned if "h1" in line], err


def test_a_clock_that_jumps_moves_nothing(here: Path) -> None:
    code, rows, err, _ = faulty(here, "jump")
    assert code == 0, err
    whole = [row for row in rows if row["event"] == "total"]
    assert len(whole) <= RUNTIME + 3
    assert sum(row["hosts"]["counted"] == 3 for row in whole) >= RUNTIME - 2  # type: ignore[index]


def test_all_stop_when_one_is_lost_if_that_was_asked_for(here: Path) -> None:
    code, rows, err, _ = faulty(here, "kill", "--on-loss", "stop")
    assert code == 1 and "all hosts are stopped: h2 is lost" in err
    assert len([row for row in rows if row["event"] == "total"]) < RUNTIME


def test_an_abort_stops_all(here: Path) -> None:
    code, rows, err, _ = faulty(here, "jump", "--abort", "iops>1 for 2s")
    assert code == 1 and "all hosts are stopped: --abort iops>1 for 2s" in err
    assert len([row for row in rows if row["event"] == "total"]) < RUNTIME


def test_a_shared_disk_that_is_too_small_for_all_is_left_alone(here: Path, tmp_path: Path) -> None:
    needs("mkfs.ext4", "losetup")
    with loop(tmp_path / "disk", 96 << 20) as node:
        sh("mkfs.ext4", "-q", "-m", "0", node)
        with mounted(node, tmp_path / "shared") as place:
            done = iopstui(
                "fleet", "h[1-3]", str(place), "--launcher", LAUNCHER, "--bring", "--job",
                "randread-4k", "--size", "30m", cwd=here,
            )  # fmt: skip
            assert done.returncode == 3, done.stderr
            assert "h1, h2, h3 share /dev/loop" in done.stderr
            assert "together they would create 90 MiB of files there" in done.stderr
            assert [path.name for path in place.iterdir()] == ["lost+found"]


TWO_NAMES = """#!/bin/sh
# h2 has the same directory by another name: writing into the overlay writes below it
[ "$1" = h1 ] && exec {far} "$1" "$2"
export o=lowerdir={base}/low,upperdir={base}/{upper},workdir={base}/work
exec unshare -m sh -c 'mount -t overlay -o $o nas2:/a {base}/up && exec {far} h2 "$1"' sh "$2"
"""


@pytest.mark.parametrize("one", [True, False], ids=["one", "alike"])
def test_an_export_that_has_two_names_is_filled_once(one: bool, here: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=96m", "nas1:/a", str(base))
    try:
        for name in ("up", "other", "work", "low"):
            (base / name).mkdir()
        script = tmp_path / "launch"
        far = LAUNCHER.removesuffix(" {host}")
        upper = "up" if one else "other"
        script.write_text(TWO_NAMES.format(far=far, base=base, upper=upper))
        script.chmod(0o755)
        words = ("fleet", "h[1-2]", str(base / "up"), "--launcher", f"{script} {{host}}", "--bring",
                 "--job", "randread-4k", "--set", "runtime=1", "--size")  # fmt: skip
        done = iopstui(*words, "60m", cwd=here)
        assert done.returncode == 3, done.stderr
        assert ("h1, h2 share one" if one else "h1, h2 may share one") in done.stderr
        assert "together they would create 120 MiB of files there" in done.stderr
        assert ("--assume-apart" in done.stderr) is not one
        assert [*(base / "up").iterdir(), *(base / "other").iterdir()] == []
        if not one:
            # it can't be measured here, so the user's word counts
            done = iopstui(*words, "40m", "--assume-apart", cwd=here)
            assert done.returncode == 0, done.stderr
    finally:
        sh("umount", str(base))
