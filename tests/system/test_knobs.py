"""Knobs and bindings as a user turns them. What needs root is tried on a loop device of our own
on a tmpfs: with a file on a disk under it, that disk's settings would be turned, too."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from program import WITHIN_S, events, iopstui, start
from screen import screen
from test_held_runs import heard, started, tell
from test_held_runs import until as heard_of

SIZE = 16 << 20


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "two.fio").write_text(
        "[global]\nioengine=libaio\nrw=randread\nbs=4k\niodepth=4\nnumjobs=2\nsize=8m\n"
        "time_based\nruntime=2\nthinktime=100ms\nthinktime_blocks=50\n[two]\n"
    )
    return directory


@pytest.fixture
def loop() -> Iterator[Path]:
    """A loop device that can be set; skipped where none can be made (no root, a container)."""
    losetup = shutil.which("losetup", path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin")
    if os.geteuid() != 0 or losetup is None:
        pytest.skip("only root can make a loop device")
    if "/dev/shm tmpfs" not in Path("/proc/mounts").read_text():
        pytest.skip("no tmpfs for its file")
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as image:
        image.write(os.urandom(1 << 20) * (SIZE >> 20))
        image.flush()
        made = subprocess.run([losetup, "--show", "-f", image.name], capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"no loop device can be made here: {made.stderr.strip()}")
        device = Path(made.stdout.strip())
        try:
            # a loop device keeps its settings when it is detached: a killed test may have left 2
            knob(device, "rq_affinity").write_text("1")
            if not os.access(knob(device, "rq_affinity"), os.W_OK):
                pytest.skip("/sys can't be written here")
            yield device
        finally:
            subprocess.run([losetup, "-d", str(device)], check=False)


def knob(device: Path, name: str) -> Path:
    return Path("/sys/block") / device.name / "queue" / name


def until(what: Any, within: float = 30.0) -> None:
    deadline = time.monotonic() + within
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


# -- without any right


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--knob", "rq_affinity=7"), "rq_affinity takes 0, 1, 2, not '7'"),
        (("--knob", "rq_affinity"), "is not NAME=VALUE"),
        (("--knob", "turbo=1"), "'turbo' is not a tunable; known are rq_affinity"),
        (("--knob", "nr_requests=1"), "nr_requests takes a whole number from 4 up"),
        (("--bind", "cores"), "invalid choice: 'cores'"),
    ],
)
def test_what_is_no_knob_is_said_at_once(here: Path, arguments: tuple[str, ...], says: str) -> None:
    done = iopstui("run", "--job", "two.fio", *arguments, cwd=here)
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr


def test_an_ordinary_user_or_a_container_is_told_what_is_missing(here: Path) -> None:
    # an interrupt number that no disk has, so that nothing is ever changed
    done = iopstui("run", "--job", "two.fio", "--size", "8m", "--knob", "irq/999999=0", cwd=here)
    assert done.returncode == 2
    assert "999999" in done.stderr and "Traceback" not in done.stderr


def test_devices_tell_every_setting_and_where_rq_affinity_is_idle(here: Path) -> None:
    done = iopstui("devices", "--all", "--format", "json", cwd=here)
    for device in json.loads(done.stdout)["devices"]:
        assert "rq_affinity_cannot_matter" in device
        for name, value in (device["queue"] or {}).items():
            path = Path("/sys/block") / (device["disk"] or device["name"]) / "queue" / name
            if name in ("nomerges", "read_ahead_kb", "max_sectors_kb") and path.exists():
                assert str(value) == path.read_text().strip()


# -- on a loop device


def test_a_knob_is_turned_in_mid_run_told_and_put_back(here: Path, loop: Path) -> None:
    before = knob(loop, "rq_affinity").read_text()
    done = iopstui(
        "run", str(loop), "--job", "two.fio", "--set", "runtime=15", "--format", "jsonl",
        # three measured seconds on both sides are enough: some more, if the machine is busy
        "--knob", "rq_affinity=2@7.5", "--knob", "nomerges=2", cwd=here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = events(done.stdout)
    changed = [(e["name"], e["now"]) for e in rows if e["event"] == "tunable_changed"]
    assert changed[:2] == [("nomerges", "2"), ("rq_affinity", "2")], done.stderr
    (moved,) = [e["finding"] for e in rows if e["event"] == "found" and
                e["finding"]["rule"] == "moved"]  # fmt: skip
    assert moved["text"].startswith(f"rq_affinity {before.strip()} → 2 on {loop.name}: ")
    assert "IOPS" in moved["text"]
    assert knob(loop, "rq_affinity").read_text() == before
    assert knob(loop, "nomerges").read_text() == "0\n"
    assert "restored" in done.stderr


def contents(device: Path) -> dict[str, str]:
    """Every file below its queue that can be read."""
    queue, found = knob(device, ""), {}
    for path in (*queue.iterdir(), *queue.glob("iosched/*")):
        if path.is_file():
            with contextlib.suppress(OSError):
                found[str(path.relative_to(queue))] = path.read_text()
    return found


@pytest.fixture
def tuned(loop: Path) -> Path:
    """The same with values that are nobody's defaults."""
    if "mq-deadline" in knob(loop, "scheduler").read_text():
        knob(loop, "scheduler").write_text("mq-deadline")
        knob(loop, "iosched/read_expire").write_text("123")
    knob(loop, "nr_requests").write_text("48")
    knob(loop, "read_ahead_kb").write_text("8")
    return loop


def test_everything_of_the_queue_is_as_before(here: Path, tuned: Path) -> None:
    """The kernel computes read_ahead_kb anew whenever a limit is stored, and a scheduler that is
    set again begins with its defaults."""
    before = contents(tuned)
    done = iopstui(
        "run", str(tuned), "--job", "two.fio", "--set", "runtime=1", "--knob", "max_sectors_kb=64",
        "--knob", "iostats=0", "--knob", "scheduler=none", cwd=here,
    )  # fmt: skip
    assert done.returncode == 0 and "restored" in done.stderr, done.stderr
    assert contents(tuned) == before


def test_a_killed_one_s_whole_queue_is_restored_by_doctor(here: Path, tuned: Path) -> None:
    before = contents(tuned)
    process = start("run", str(tuned), "--job", "two.fio", "--set", "runtime=60",
                    "--knob", "scheduler=none", "--knob", "max_sectors_kb=64",
                    cwd=here)  # fmt: skip
    try:
        until(lambda: knob(tuned, "max_sectors_kb").read_text() == "64\n")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert contents(tuned) != before
    iopstui("doctor", cwd=here)
    assert contents(tuned) == before


def test_of_two_with_different_homes_the_second_changes_nothing(here: Path, loop: Path) -> None:
    before = contents(loop)
    other = here.parent / "other" / "work"
    other.mkdir(parents=True)
    with started(here, "agent") as first, started(other, "agent") as second:
        for agent, name, value in ((first, "nomerges", "2"), (second, "nomerges", "1")):
            with heard(agent):
                tell(agent, op="begin", host="n1", arguments=[str(loop)])
                heard_of(agent, "session")
                tell(agent, op="turn", id=7, name=name, value=value)
                error = heard_of(agent, "turned")["error"]
                assert bool(error) == (agent is second)
        assert error == (
            f"nomerges of {loop.name} is not changed: another iopstui (process {first.pid}) "
            "has changed settings of that queue and restores them when it ends."
        )
        for agent in (second, first):
            tell(agent, op="stop")
            assert agent.stdout is not None and b'"ended"' in agent.stdout.read()
    assert contents(loop) == before


def test_a_killed_iopstui_leaves_a_note_and_doctor_undoes_it(here: Path, loop: Path) -> None:
    before = knob(loop, "rq_affinity").read_text()
    process = start("run", str(loop), "--job", "two.fio", "--set", "runtime=60",
                    "--knob", "rq_affinity=2", cwd=here)  # fmt: skip
    try:
        until(lambda: knob(loop, "rq_affinity").read_text() == "2\n")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert knob(loop, "rq_affinity").read_text() == "2\n"
    done = iopstui("doctor", cwd=here)
    assert f"rq_affinity is {before.strip()} again" in " ".join(done.stdout.split())
    assert knob(loop, "rq_affinity").read_text() == before


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, signal.SIGINT, signal.SIGUSR2, signal.SIGRTMIN + 2],
)
def test_a_signal_puts_it_back(here: Path, loop: Path, number: signal.Signals) -> None:
    before = knob(loop, "rq_affinity").read_text()
    process = start("run", str(loop), "--job", "two.fio", "--set", "runtime=60",
                    "--knob", "rq_affinity=2", cwd=here)  # fmt: skip
    until(lambda: knob(loop, "rq_affinity").read_text() == "2\n")
    process.send_signal(number)
    process.communicate(timeout=WITHIN_S)
    assert knob(loop, "rq_affinity").read_text() == before


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("scheduler=bogus", "The kernel refuses scheduler=bogus"),
        ("nr_requests=100000000", "The kernel refuses nr_requests=100000000"),
    ],
)
def test_the_kernel_s_refusal_is_told(here: Path, loop: Path, setting: str, says: str) -> None:
    done = iopstui("run", str(loop), "--job", "two.fio", "--knob", setting, cwd=here)
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr


def test_jobs_are_bound_to_the_cpus_that_were_said(here: Path, loop: Path) -> None:
    done = iopstui("run", str(loop), "--job", "two.fio", "--bind", "queues",
                   "--format", "jsonl", cwd=here)  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = events(done.stdout)
    (said,) = [e["text"] for e in rows if e["event"] == "notice" and "bound to" in e["text"]]
    jobs = {(j["index"], j["cpu"]) for e in rows if e["event"] == "frame" for j in e["jobs"]}
    assert jobs and all(f"job {index} → CPU {cpu} (" in said for index, cpu in jobs)
    assert all(j["pinned"] for e in rows if e["event"] == "frame" for j in e["jobs"])


def test_a_signal_to_the_screen_puts_it_back(here: Path, loop: Path) -> None:
    before = knob(loop, "rq_affinity").read_text()
    words = ("live", str(loop), "--job", "two.fio", "--set", "runtime=60")
    with screen(here, *words, "--knob", "rq_affinity=2") as one:
        until(lambda: knob(loop, "rq_affinity").read_text() == "2\n")
        one.shows("Device (iostat)")
        one.process.send_signal(signal.SIGTERM)
        assert one.end() == 130
        assert one.given_back
        assert knob(loop, "rq_affinity").read_text() == before


# -- as a fleet's agent


@pytest.mark.parametrize("link", ["silent", "closed", "told"])
def test_a_host_of_a_fleet_turns_one_and_restores_it_when_nobody_is_there(
    here: Path, loop: Path, link: str
) -> None:
    before = knob(loop, "scheduler").read_text()
    with started(here, "agent") as agent:
        with heard(agent):
            tell(agent, op="begin", host="n1", arguments=[str(loop)],
                 tunables=[["nomerges", "2"]])  # fmt: skip
            # what was changed before is set again
            assert heard_of(agent, "tunable_changed")["name"] == "nomerges"
            assert knob(loop, "nomerges").read_text() == "2\n"
            tell(agent, op="turn", id=7, name="scheduler", value="bogus")
            refused = heard_of(agent, "turned")
            assert refused["id"] == 7 and "refuses scheduler=bogus" in refused["error"]
            tell(agent, op="turn", id=8, name="read_ahead_kb", value="64")
            (change,) = heard_of(agent, "turned")["each"]
            assert change[0] == loop.name and change[2] == "64"
            states = {one["name"]: one["each"] for one in heard_of(agent, "tunables")["states"]}
            assert states["read_ahead_kb"] == [[loop.name, "64"]]
            assert knob(loop, "read_ahead_kb").read_text() == "64\n"
        if link == "told":
            tell(agent, op="stop")
        elif link == "closed" and agent.stdin is not None:
            agent.stdin.close()
        assert agent.stdout is not None and b'"ended"' in agent.stdout.read()
        assert knob(loop, "read_ahead_kb").read_text() == change[1] + "\n"
        assert knob(loop, "nomerges").read_text() == "0\n"
        assert knob(loop, "scheduler").read_text() == before
