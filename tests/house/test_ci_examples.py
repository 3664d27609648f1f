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
    return [words[1:] for words in lines if words[:1] == ["iopstui"]]


def test_the_github_workflow_has_the_form_of_one() -> None:
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


def test_the_gitlab_job_has_the_form_of_one() -> None:
    (job,) = example_under("Add it to GitLab").values()
    assert set(job) == {"tags", "script", "after_script", "artifacts"}
    assert job["artifacts"]["reports"]["junit"] in " ".join(job["script"])
    assert_valid(commands_of("\n".join(job["script"] + job["after_script"])), {"run", "report"})


def assert_valid(commands: list[list[str]], expected: set[str]) -> None:
    for words in commands:
        parse_command_line(words)
    assert {words[0] for words in commands} == expected


@pytest.mark.parametrize("heading", ["Add it to GitHub Actions", "Add it to GitLab"])
def test_an_example_is_found(heading: str) -> None:
    assert example_under(heading)
