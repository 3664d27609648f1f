"""`iopstui volumes` as a user starts it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from program import iopstui as run_iopstui


def iopstui(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_iopstui(*args, cwd=cwd, XDG_CONFIG_HOME=str(cwd))


def test_the_list_names_every_provider(tmp_path: Path) -> None:
    result = iopstui("volumes", cwd=tmp_path)
    assert result.returncode == 0
    for name in ("aliyun/essd-pl1", "aws/gp2", "azure/p30", "google/pd-ssd", "vng/nvme-5000"):
        assert name in result.stdout


def test_a_class_is_explained_at_a_size(tmp_path: Path) -> None:
    result = iopstui("volumes", "gp2", "--size", "100g", cwd=tmp_path)
    assert "300 IOPS" in result.stdout and "33 min 20 s" in result.stdout
    assert "[general] Amazon EC2 User Guide" in result.stdout


def test_a_volume_is_described_in_one_argument(tmp_path: Path) -> None:
    result = iopstui("volumes", "gp2,size=100g", cwd=tmp_path)
    assert result.stdout == iopstui("volumes", "gp2", "--size", "100g", cwd=tmp_path).stdout
    conflict = iopstui("volumes", "gp2,size=100g", "--size", "5g", cwd=tmp_path)
    assert conflict.returncode == 2 and "both set size" in conflict.stderr


def test_the_classes_of_one_provider_are_listed(tmp_path: Path) -> None:
    output = iopstui("volumes", "aws", cwd=tmp_path).stdout
    assert "aws/gp2" in output and "aws/sc1" in output and "azure/" not in output
    data = json.loads(iopstui("volumes", "AWS", "--json", cwd=tmp_path).stdout)
    assert {volume["id"].split("/")[0] for volume in data["volumes"]} == {"aws"}


def test_instances_are_listed_by_prefix(tmp_path: Path) -> None:
    result = iopstui("volumes", "--instances", "m5.", cwd=tmp_path)
    assert result.stdout.splitlines()[1].split()[:3] == ["aws/m5.large", "3,600", "IOPS,"]
    assert all(line.startswith("aws/m5.") for line in result.stdout.splitlines()[1:])
    args = ("volumes", "--instances", "M5.LARGE", "--json")
    [instance] = json.loads(iopstui(*args, cwd=tmp_path).stdout)["instances"]
    assert instance["burst"] == {"iops": 18750, "bytes_s": 593.75e6}
    assert "No instance size" in iopstui("volumes", "--instances", "x9", cwd=tmp_path).stderr


def test_old_figures_are_marked_as_old(tmp_path: Path) -> None:
    assert "2023-03-16 and may have changed" in iopstui("volumes", "azure/p60", cwd=tmp_path).stdout
    assert "may have changed" not in iopstui("volumes", "vng/nvme-5000", cwd=tmp_path).stdout


def test_json_contains_figures_and_sources(tmp_path: Path) -> None:
    args = ("volumes", "azure/p60", "--instance", "Standard_D8ds_v4", "--json")
    data = json.loads(iopstui(*args, cwd=tmp_path).stdout)
    assert data["volume"]["iops"] == {"read": 16000, "write": 16000}
    assert data["volume"]["limits"][0] == {"name": "instance IOPS", "random_reads_s": 12800}
    assert data["sources"]["premium"]["date"] == "2023-03-16"
    everything = json.loads(iopstui("volumes", "--json", cwd=tmp_path).stdout)
    assert len(everything["volumes"]) > 40 and everything["problems"] == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("gp4",), "Did you mean"),
        (("gp2", "--size", "many"), "is not a size"),
        (("gp3", "--iops", "x"), "is not a number of IOPS"),
        (("gp3", "--throughput", "fast"), "is not a throughput"),
        (("--size", "1g"), "describe one volume, and none is named"),
        (("aws/gp2", "--iops", "100"), "depend on the size"),
        (("azure/p30", "--instance", "Standard_D9"), "No instance size"),
        (("aliyun/essd-pl2", "--size", "20g"), "cannot be smaller"),
    ],
)
def test_bad_questions_are_refused(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    result = iopstui("volumes", *args, cwd=tmp_path)
    assert result.returncode == 2 and message in result.stderr and not result.stdout


def test_a_bad_volume_file_of_the_user_is_named(tmp_path: Path) -> None:
    volumes_dir = tmp_path / "iopstui/volumes"
    volumes_dir.mkdir(parents=True)
    (volumes_dir / "mine.toml").write_text("nonsense")
    result = iopstui("volumes", "gp2", cwd=tmp_path)
    assert result.returncode == 0 and "mine.toml is not used" in result.stderr
