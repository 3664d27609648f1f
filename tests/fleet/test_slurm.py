"""Hosts of a Slurm allocation, without Slurm (tests/engines has the real one)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iopstui.errors import Missing, UsageError
from iopstui.features.fleet.engines.slurm import SLURM, queue_position_text, slurm_hosts

AROUND = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-4]"}
SALLOC = """#!/bin/sh
echo "$@" > {place}/words
{body}
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of commands in place of Slurm's."""
    for name in ("srun", "scancel", "squeue"):
        put(tmp_path / name, "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def put(path: Path, body: str) -> None:
    path.write_text(SALLOC.format(place=path.parent, body=body))
    path.chmod(0o755)


GRANTS = """
for last; do :; done
echo 'salloc: Granted job allocation 9' >&2
SLURM_JOB_ID=9 SLURM_JOB_NODELIST='n[2-3]' sh -c "$last"
echo released > {place}/released
"""


def test_an_allocation_is_released_at_the_end(programs: Path) -> None:
    put(programs / "salloc", GRANTS.replace("{place}", str(programs)))
    told: list[str] = []
    with slurm_hosts(SLURM, "-N 2 -p 'a b'", {}, told.append) as found:
        assert found.nodes == "n[2-3]"
        assert found.launcher.split()[:2] == ["srun", "--jobid=9"] and "{host}" in found.launcher
        assert not (programs / "released").exists()
    assert (programs / "released").exists()
    assert (programs / "words").read_text().startswith("--job-name=iopstui -N 2 -p a b sh -c")
    assert told == ["Slurm allocation 9: n[2-3]"]


def test_named_nodes_are_asked_for(programs: Path) -> None:
    put(programs / "salloc", GRANTS.replace("{place}", str(programs)))
    with slurm_hosts("n[2-3]", None, {}, lambda words: None):
        pass
    assert "--nodes=2 --nodelist=n2,n3" in (programs / "words").read_text()


def test_a_killed_salloc_s_job_is_cancelled(programs: Path) -> None:
    put(programs / "salloc", GRANTS.replace("{place}", str(programs)) + "kill -9 $$\n")
    with slurm_hosts(SLURM, "-N 2", {}, lambda words: None):
        pass
    put(programs / "salloc", "exit 0")
    assert (programs / "words").read_text() == "--quiet 9\n"


def test_slurm_s_refusal_is_told(programs: Path) -> None:
    put(programs / "salloc", "echo 'salloc: error: no such partition' >&2; exit 1")
    with (
        pytest.raises(UsageError, match="Slurm gives no nodes: no such partition"),
        slurm_hosts(SLURM, "-N 2", {}, lambda words: None),
    ):
        raise AssertionError


@pytest.mark.parametrize("hosts, options, around, says", [
    (SLURM, None, {}, "not inside a Slurm allocation"),
    (SLURM, "-N 2", AROUND, "already inside Slurm's allocation 7"),
    ("n[3-6]", None, AROUND, r"n5, n6: not in Slurm's allocation 7 \(n\[1-4\]\)"),
    (SLURM, "-N '2", {}, "No closing quotation"),
])  # fmt: skip
def test_what_is_refused(
    programs: Path, hosts: str, options: str | None, around: dict[str, str], says: str
) -> None:
    with (
        pytest.raises(UsageError, match=says),
        slurm_hosts(hosts, options, around, lambda words: None),
    ):
        raise AssertionError


@pytest.mark.parametrize("hosts, nodes", [(SLURM, "n[1-4]"), ("n[2,4]", "n[2,4]")])
def test_the_allocation_around_is_used(programs: Path, hosts: str, nodes: str) -> None:
    with slurm_hosts(hosts, None, AROUND, lambda words: None) as found:
        assert (found.nodes, "--jobid=7" in found.launcher) == (nodes, True)


def test_without_slurm_the_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(Missing, match="salloc is not installed"),
        slurm_hosts(SLURM, "-N 2", {}, lambda words: None),
    ):
        raise AssertionError


def test_the_place_in_the_queue() -> None:
    rows = [["4", "all", "Priority"], ["5", "fast", "Resources"], ["9", "all", "Resources"]]
    assert queue_position_text("9", rows) == (
        "Slurm job 9 waits (Resources): number 2 of 2 in partition all"
    )
    assert queue_position_text("8", rows) == ""
