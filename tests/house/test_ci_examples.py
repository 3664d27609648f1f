"""The pipelines of docs/guide/ci.md are valid YAML of the form that CI systems take."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from iopstui.cli.program import parse_command_line

GUIDE = Path(__file__).parents[2] / "docs/guide/ci.md"


def example_under(heading: str) -> Any:
    """The indented block that follows a heading of the guide, parsed."""
    section = GUIDE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    block = "\n".join(line for line in section.splitlines() if line.startswith("    "))
    return yaml.safe_load(textwrap.dedent(block))


def commands_of(script: str) -> list[list[str]]:
    """The iopstui command lines of a shell script."""
    lines = (shlex.split(line, comments=True) for line in script.splitlines())
    return [args[1:] for args in lines if args[:1] == ["iopstui"]]


def test_the_github_workflow_is_valid() -> None:
    workflow = example_under("Add it to GitHub Actions")
    # YAML 1.1 reads the key `on` as true
    assert set(workflow) == {"name", True, "jobs"}
    commands = []
    for job in workflow["jobs"].values():
        assert "self-hosted" in job["runs-on"]
        for step in job["steps"]:
            assert len({"run", "uses"} & set(step)) == 1, step
            assert set(step) <= {"name", "if", "run", "uses", "with"}, step
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1")), step
            commands += commands_of(step.get("run", ""))
    assert_valid(commands, {"doctor", "run", "report"})


def test_the_gitlab_job_is_valid() -> None:
    (job,) = example_under("Add it to GitLab").values()
    assert set(job) == {"tags", "script", "after_script", "artifacts"}
    assert job["artifacts"]["reports"]["junit"] in " ".join(job["script"])
    assert_valid(commands_of("\n".join(job["script"] + job["after_script"])), {"run", "report"})


def assert_valid(commands: list[list[str]], expected: set[str]) -> None:
    for args in commands:
        parse_command_line(args)
    assert {args[0] for args in commands} == expected


@pytest.mark.parametrize("heading", ["Add it to GitHub Actions", "Add it to GitLab"])
def test_each_heading_has_an_example(heading: str) -> None:
    assert example_under(heading)
