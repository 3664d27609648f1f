"""`iopstui volumes` as a user starts it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from program import iopstui as started


def iopstui(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return started(*words, cwd=cwd, XDG_CONFIG_HOME=str(cwd))


def test_the_list_names_every_provider(tmp_path: Path) -> None:
    found = iopstui("volumes", cwd=tmp_path)
    assert found.returncode == 0
    for name in ("aliyun/essd-pl1", "aws/gp2", "azure/p30", "google/pd-ssd", "vng/nvme-5000"):
        assert name in found.stdout


def test_one_explained_at_a_size(tmp_path: Path) -> None:
    found = iopstui("volumes", "gp2", "--size", "100g", cwd=tmp_path)
    assert "300 IOPS" in found.stdout and "33 min 20 s" in found.stdout
    assert "[general] Amazon EC2 User Guide" in found.stdout


def test_what_was_bought_in_one_word(tmp_path: Path) -> None:
    found = iopstui("volumes", "gp2,size=100g", cwd=tmp_path)
    assert found.stdout == iopstui("volumes", "gp2", "--size", "100g", cwd=tmp_path).stdout
    both = iopstui("volumes", "gp2,size=100g", "--size", "5g", cwd=tmp_path)
    assert both.returncode == 2 and "give the same" in both.stderr


def test_the_classes_of_one_provider(tmp_path: Path) -> None:
    found = iopstui("volumes", "aws", cwd=tmp_path).stdout
    assert "aws/gp2" in found and "aws/sc1" in found and "azure/" not in found
    data = json.loads(iopstui("volumes", "AWS", "--json", cwd=tmp_path).stdout)
    assert {one["id"].split("/")[0] for one in data["volumes"]} == {"aws"}


def test_instances_that_begin_like_a_name(tmp_path: Path) -> None:
    found = iopstui("volumes", "--instances", "m5.", cwd=tmp_path)
    assert found.stdout.splitlines()[1].split()[:3] == ["aws/m5.large", "3,600", "IOPS,"]
    assert all(line.startswith("aws/m5.") for line in found.stdout.splitlines()[1:])
    words = ("volumes", "--instances", "M5.LARGE", "--json")
    [one] = json.loads(iopstui(*words, cwd=tmp_path).stdout)["instances"]
    assert one["burst"] == {"iops": 18750, "bytes_s": 593.75e6}
    assert "No instance size" in iopstui("volumes", "--instances", "x9", cwd=tmp_path).stderr


def test_old_figures_are_said_to_be_old(tmp_path: Path) -> None:
    assert "2023-03-16 and may have changed" in iopstui("volumes", "azure/p60", cwd=tmp_path).stdout
    assert "may have changed" not in iopstui("volumes", "vng/nvme-5000", cwd=tmp_path).stdout


def test_json_has_figures_and_sources(tmp_path: Path) -> None:
    words = ("volumes", "azure/p60", "--instance", "Standard_D8ds_v4", "--json")
    data = json.loads(iopstui(*words, cwd=tmp_path).stdout)
    assert data["volume"]["iops"] == {"read": 16000, "write": 16000}
    assert data["volume"]["limits"][0] == {"name": "instance IOPS", "random_reads_s": 12800}
    assert data["sources"]["premium"]["date"] == "2023-03-16"
    everything = json.loads(iopstui("volumes", "--json", cwd=tmp_path).stdout)
    assert len(everything["volumes"]) > 40 and everything["problems"] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("gp4",), "Did you mean"),
        (("gp2", "--size", "many"), "is not a size"),
        (("gp3", "--iops", "x"), "is not a number of IOPS"),
        (("gp3", "--throughput", "fast"), "is not a throughput"),
        (("--size", "1g"), "describe one volume"),
        (("aws/gp2", "--iops", "100"), "depend on the size"),
        (("azure/p30", "--instance", "Standard_D9"), "No instance size"),
        (("aliyun/essd-pl2", "--size", "20g"), "cannot be smaller"),
    ],
)
def test_what_cannot_be_answered(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    found = iopstui("volumes", *words, cwd=tmp_path)
    assert found.returncode == 2 and told in found.stderr and not found.stdout


def test_a_bad_file_of_the_user_is_named(tmp_path: Path) -> None:
    own = tmp_path / "iopstui/volumes"
    own.mkdir(parents=True)
    (own / "mine.toml").write_text("nonsense")
    found = iopstui("volumes", "gp2", cwd=tmp_path)
    assert found.returncode == 0 and "mine.toml is not used" in found.stderr
