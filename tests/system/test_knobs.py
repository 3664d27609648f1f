"""Tunables and CPU bindings as a user sets them. Tests that need root use a loop device on a
tmpfs: on a file of a disk, the settings of that disk would change, too."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from program import WITHIN_S, events, iopstui, start
from screen import screen
from test_held_runs import heartbeats, send_order, start_with_pipes, wait_for_event


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "two.fio").write_text(
        "[global]\nioengine=libaio\nrw=randread\nbs=4k\niodepth=4\nnumjobs=2\nsize=8m\n"
        "time_based\nruntime=2\nthinktime=100ms\nthinktime_blocks=50\n[two]\n"
    )
    return directory


def knob(device: Path, name: str) -> Path:
    return Path("/sys/block") / device.name / "queue" / name


def wait_until(condition: Any, within: float = 30.0) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


# -- without privileges


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
def test_bad_tunables_are_refused_at_once(
    workdir: Path, arguments: tuple[str, ...], says: str
) -> None:
    result = iopstui("run", "--job", "two.fio", *arguments, cwd=workdir)
    assert result.returncode == 2
    assert says in result.stderr and "Traceback" not in result.stderr


def test_a_missing_tunable_is_reported_to_an_ordinary_user(workdir: Path) -> None:
    # an interrupt number that no disk has, so that nothing is ever changed
    result = iopstui(
        "run", "--job", "two.fio", "--size", "8m", "--knob", "irq/999999=0", cwd=workdir
    )
    assert result.returncode == 2
    assert "999999" in result.stderr and "Traceback" not in result.stderr


def test_devices_lists_every_setting_and_where_rq_affinity_is_idle(workdir: Path) -> None:
    result = iopstui("devices", "--all", "--format", "json", cwd=workdir)
    for device in json.loads(result.stdout)["devices"]:
        assert "rq_affinity_cannot_matter" in device
        for name, value in (device["queue"] or {}).items():
            path = Path("/sys/block") / (device["disk"] or device["name"]) / "queue" / name
            if name in ("nomerges", "read_ahead_kb", "max_sectors_kb") and path.exists():
                assert str(value) == path.read_text().strip()


# -- on a loop device


def test_a_tunable_changed_during_a_run_is_reported_and_restored(workdir: Path, loop: Path) -> None:
    before = knob(loop, "rq_affinity").read_text()
    result = iopstui(
        "run", str(loop), "--job", "two.fio", "--set", "runtime=15", "--format", "jsonl",
        # three measured seconds before and after the change are enough; a busy machine needs some
        # more
        "--knob", "rq_affinity=2@7.5", "--knob", "nomerges=2", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = events(result.stdout)
    changed = [(e["name"], e["now"]) for e in rows if e["event"] == "tunable_changed"]
    assert changed[:2] == [("nomerges", "2"), ("rq_affinity", "2")], result.stderr
    (moved,) = [e["finding"] for e in rows if e["event"] == "found" and
                e["finding"]["rule"] == "moved"]  # fmt: skip
    assert moved["text"].startswith(f"rq_affinity {before.strip()} → 2 on {loop.name}: ")
    assert "IOPS" in moved["text"]
    assert knob(loop, "rq_affinity").read_text() == before
    assert knob(loop, "nomerges").read_text() == "0\n"
    assert "restored" in result.stderr


def queue_settings(device: Path) -> dict[str, str]:
    """Contents of all readable files of the queue directory."""
    queue, texts = knob(device, ""), {}
    for path in (*queue.iterdir(), *queue.glob("iosched/*")):
        if path.is_file():
            with contextlib.suppress(OSError):
                texts[str(path.relative_to(queue))] = path.read_text()
    return texts


@pytest.fixture
def tuned(loop: Path) -> Path:
    """The loop device with settings that differ from all defaults."""
    if "mq-deadline" in knob(loop, "scheduler").read_text():
        knob(loop, "scheduler").write_text("mq-deadline")
        knob(loop, "iosched/read_expire").write_text("123")
    knob(loop, "nr_requests").write_text("48")
    knob(loop, "read_ahead_kb").write_text("8")
    return loop


def test_all_queue_settings_are_restored(workdir: Path, tuned: Path) -> None:
    """The kernel recomputes read_ahead_kb whenever a limit is written, and a scheduler that is set
    again starts with its defaults."""
    before = queue_settings(tuned)
    result = iopstui(
        "run", str(tuned), "--job", "two.fio", "--set", "runtime=1", "--knob", "max_sectors_kb=64",
        "--knob", "iostats=0", "--knob", "scheduler=none", cwd=workdir,
    )  # fmt: skip
    assert result.returncode == 0 and "restored" in result.stderr, result.stderr
    assert queue_settings(tuned) == before


def test_doctor_restores_the_queue_after_a_kill(workdir: Path, tuned: Path) -> None:
    before = queue_settings(tuned)
    process = start("run", str(tuned), "--job", "two.fio", "--set", "runtime=60",
                    "--knob", "scheduler=none", "--knob", "max_sectors_kb=64",
                    cwd=workdir)  # fmt: skip
    try:
        wait_until(lambda: knob(tuned, "max_sectors_kb").read_text() == "64\n")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert queue_settings(tuned) != before
    iopstui("doctor", cwd=workdir)
    assert queue_settings(tuned) == before


def test_a_second_agent_with_another_home_changes_nothing(workdir: Path, loop: Path) -> None:
    before = queue_settings(loop)
    other_dir = workdir.parent / "other" / "work"
    other_dir.mkdir(parents=True)
    with (
        start_with_pipes(workdir, "agent") as first,
        start_with_pipes(other_dir, "agent") as second,
    ):
        for agent, name, value in ((first, "nomerges", "2"), (second, "nomerges", "1")):
            with heartbeats(agent):
                send_order(agent, op="begin", host="n1", arguments=[str(loop)])
                wait_for_event(agent, "session")
                send_order(agent, op="turn", id=7, name=name, value=value)
                error = wait_for_event(agent, "turned")["error"]
                assert bool(error) == (agent is second)
        assert error == (
            f"nomerges of {loop.name} is not changed: another iopstui (process {first.pid}) "
            "has changed settings of that queue and restores them when it ends."
        )
        for agent in (second, first):
            send_order(agent, op="stop")
            assert agent.stdout is not None and b'"ended"' in agent.stdout.read()
    assert queue_settings(loop) == before


def test_doctor_undoes_the_changes_of_a_killed_run(workdir: Path, loop: Path) -> None:
    before = knob(loop, "rq_affinity").read_text()
    process = start("run", str(loop), "--job", "two.fio", "--set", "runtime=60",
                    "--knob", "rq_affinity=2", cwd=workdir)  # fmt: skip
    try:
        wait_until(lambda: knob(loop, "rq_affinity").read_text() == "2\n")
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert knob(loop, "rq_affinity").read_text() == "2\n"
    result = iopstui("doctor", cwd=workdir)
    assert f"rq_affinity is {before.strip()} again" in " ".join(result.stdout.split())
    assert knob(loop, "rq_affinity").read_text() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGRTMIN + 2])
def test_a_signal_restores_the_tunable(workdir: Path, loop: Path, number: signal.Signals) -> None:
    before = knob(loop, "rq_affinity").read_text()
    process = start("run", str(loop), "--job", "two.fio", "--set", "runtime=60",
                    "--knob", "rq_affinity=2", cwd=workdir)  # fmt: skip
    wait_until(lambda: knob(loop, "rq_affinity").read_text() == "2\n")
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
def test_the_kernel_s_refusal_is_reported(
    workdir: Path, loop: Path, setting: str, says: str
) -> None:
    result = iopstui("run", str(loop), "--job", "two.fio", "--knob", setting, cwd=workdir)
    assert result.returncode == 2
    assert says in result.stderr and "Traceback" not in result.stderr


def test_jobs_are_bound_to_the_reported_cpus(workdir: Path, loop: Path) -> None:
    result = iopstui("run", str(loop), "--job", "two.fio", "--bind", "queues",
                   "--format", "jsonl", cwd=workdir)  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = events(result.stdout)
    (notice,) = [e["text"] for e in rows if e["event"] == "notice" and "bound to" in e["text"]]
    jobs = {(j["index"], j["cpu"]) for e in rows if e["event"] == "frame" for j in e["jobs"]}
    assert jobs and all(f"job {index} → CPU {cpu} (" in notice for index, cpu in jobs)
    assert all(j["pinned"] for e in rows if e["event"] == "frame" for j in e["jobs"])


def test_a_signal_to_the_screen_restores_the_tunable(workdir: Path, loop: Path) -> None:
    before = knob(loop, "rq_affinity").read_text()
    args = ("live", str(loop), "--job", "two.fio", "--set", "runtime=60")
    with screen(workdir, *args, "--knob", "rq_affinity=2") as terminal:
        wait_until(lambda: knob(loop, "rq_affinity").read_text() == "2\n")
        terminal.wait_for_text("Device (iostat)")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 130
        assert terminal.is_restored
        assert knob(loop, "rq_affinity").read_text() == before


# -- as a fleet's agent


@pytest.mark.parametrize("link", ["silent", "closed", "told"])
def test_a_fleet_host_restores_its_tunables_when_the_link_ends(
    workdir: Path, loop: Path, link: str
) -> None:
    before = knob(loop, "scheduler").read_text()
    with start_with_pipes(workdir, "agent") as agent:
        with heartbeats(agent):
            send_order(agent, op="begin", host="n1", arguments=[str(loop)],
                 tunables=[["nomerges", "2"]])  # fmt: skip
            # the new process sets the change again
            assert wait_for_event(agent, "tunable_changed")["name"] == "nomerges"
            assert knob(loop, "nomerges").read_text() == "2\n"
            send_order(agent, op="turn", id=7, name="scheduler", value="bogus")
            refused = wait_for_event(agent, "turned")
            assert refused["id"] == 7 and "refuses scheduler=bogus" in refused["error"]
            send_order(agent, op="turn", id=8, name="read_ahead_kb", value="64")
            (change,) = wait_for_event(agent, "turned")["each"]
            assert change[0] == loop.name and change[2] == "64"
            states = {
                state["name"]: state["each"]
                for state in wait_for_event(agent, "tunables")["states"]
            }
            assert states["read_ahead_kb"] == [[loop.name, "64"]]
            assert knob(loop, "read_ahead_kb").read_text() == "64\n"
        if link == "told":
            send_order(agent, op="stop")
        elif link == "closed" and agent.stdin is not None:
            agent.stdin.close()
        assert agent.stdout is not None and b'"ended"' in agent.stdout.read()
        assert knob(loop, "read_ahead_kb").read_text() == change[1] + "\n"
        assert knob(loop, "nomerges").read_text() == "0\n"
        assert knob(loop, "scheduler").read_text() == before
