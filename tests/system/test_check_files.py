"""--junit and --summary of real runs, good and bad."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from program import UNHURRIED, iopstui

RUN = ("run", ".", "--job", "randread-4k", "--size", "8m", "--set", "runtime=1", *UNHURRIED,
       "--junit", "junit.xml", "--summary", "summary.md")  # fmt: skip


def read_suite(directory: Path) -> ElementTree.Element:
    suite = ElementTree.parse(directory / "junit.xml").find("testsuite")
    assert suite is not None
    return suite


def test_outcomes_are_written_for_ci(tmp_path: Path) -> None:
    (tmp_path / "summary.md").write_text("from an earlier step\n")
    (tmp_path / "junit.xml").write_text("from an earlier run\n")
    result = iopstui(*RUN, "--expect", "iops>=1", "--expect", "iops<=1", cwd=tmp_path)
    assert result.returncode == 4, result.stderr
    suite = read_suite(tmp_path)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert [case.get("name") for case in suite] == ["iops>=1", "iops<=1"]
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("from an earlier step\n###")
    assert "| PASS | iops>=1 |" in summary and "| FAIL | iops\\<=1 |" in summary


def test_a_failed_run_is_an_error_in_both_files(tmp_path: Path) -> None:
    result = iopstui(*RUN, "--set", "bs=1000", "--expect", "iops>=1", cwd=tmp_path)
    assert result.returncode not in (0, 4)
    suite = read_suite(tmp_path)
    assert suite.get("errors") == "1"
    error = suite.find(".//error")
    assert error is not None and (error.text or "") in result.stderr.replace("\n", " ")
    assert ": ERROR" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize("option", ["--junit", "--summary"])
@pytest.mark.parametrize(
    ("name", "why"), [("missing/file", "no such directory"), ("directory", "not an ordinary file")]
)
def test_a_file_that_cannot_be_written_is_refused_at_once(
    tmp_path: Path, option: str, name: str, why: str
) -> None:
    (tmp_path / "directory").mkdir()
    result = iopstui("run", ".", "--job", "randread-4k", option, name, cwd=tmp_path)
    assert result.returncode == 2 and why in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]
