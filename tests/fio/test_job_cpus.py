"""CPUs that a job names: missing ones, and texts that name no CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.fio.job_shape import check_cpus, cpu_list
from iopstui.linux.kernel_files import Roots


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    directory = tmp_path / "sys/devices/system/cpu"
    directory.mkdir(parents=True)
    (directory / "online").write_text("0-3,6\n")
    return Roots(sys=tmp_path / "sys")


@pytest.mark.parametrize("value", ["0", "0,6", "1-3", "0-3,6", "0:2", " 1 , 2", ""])
def test_those_that_are_there(value: str, roots: Roots) -> None:
    check_cpus(f"[a]\ncpus_allowed={value}\n", "the job x", roots)


@pytest.mark.parametrize(
    ("value", "said"),
    [("4", "CPU 4 does not exist"), ("0-6", "CPU 4 does not exist"), ("6,7", "CPU 7 does not"),
     ("x", "'x' is not a CPU"), ("-1", "'-1' is not a CPU"), ("0,", "'' is not a CPU")],
)  # fmt: skip
def test_those_that_are_not(value: str, said: str, roots: Roots) -> None:
    with pytest.raises(UsageError, match=said) as error:
        check_cpus(f"[global]\ncpus_allowed={value}\n[a]\nrw=read\n", "the job x", roots)
    assert "is not a CPU" in said or "There are 0-3,6" in error.value.hint


def test_where_it_is_not_known_nothing_is_refused(tmp_path: Path) -> None:
    check_cpus("[a]\ncpus_allowed=99\n", "the job x", Roots(sys=tmp_path))
    assert cpu_list({7, 0, 1, 2, 5, 6}) == "0-2,5-7"
