"""The Containerfile, checked without building an image."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from iopstui.cli.program import build_parser

Stage = list[tuple[str, str]]
VENV = "/opt/iopstui"


@pytest.fixture(scope="module")
def stages(root: Path) -> list[Stage]:
    """Instructions with their arguments, by stage."""
    parsed: list[Stage] = []
    text = (root / "Containerfile").read_text()
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        instruction, _, arguments = line.partition(" ")
        if instruction == "FROM":
            parsed.append([])
        if line.strip() and not line.startswith("#"):
            parsed[-1].append((instruction, arguments))
    return parsed


def arguments_of(stage: Stage, instruction: str) -> list[str]:
    return [arguments for name, arguments in stage if name == instruction]


def commands(stage: Stage) -> list[list[str]]:
    """The commands of the RUN instructions, split into arguments."""
    return [shlex.split(part) for run in arguments_of(stage, "RUN") for part in run.split("&&")]


def test_both_stages_have_the_same_python(stages: list[Stage]) -> None:
    """A venv links to the Python that made it, so both stages need the same base."""
    first, last = (arguments_of(stage, "FROM")[0].split() for stage in stages)
    assert first[0] == last[0] and first[1:] == ["AS", "build"]
    assert last[1:] == []


def test_locked_versions_are_installed(stages: list[Stage], root: Path) -> None:
    build, _ = stages
    assert arguments_of(build, "COPY") == [". /src"]
    packages, project = (command for command in commands(build) if command[0].endswith("/pip"))
    assert packages[0] == project[0] == f"{VENV}/bin/pip"
    assert "--require-hashes" in packages
    lock = packages[packages.index("-r") + 1]
    text = (root / lock.removeprefix("/src/")).read_text()
    # the build backend is locked, too: nothing else is downloaded
    assert {"--no-deps", "--no-build-isolation"} <= set(project) and project[-1] == "/src"
    assert re.search(r"^hatchling==", text, re.MULTILINE)


def test_the_program_is_in_the_image_and_in_path(stages: list[Stage]) -> None:
    build, image = stages
    assert ["python3", "-m", "venv", VENV] in commands(build)
    assert arguments_of(image, "COPY") == [f"--from=build {VENV} {VENV}"], (
        "its scripts name this place"
    )
    (paths,) = arguments_of(image, "ENV")
    assert shlex.split(paths)[0] == f"PATH={VENV}/bin:$PATH"
    (installed,) = (command for command in commands(image) if "install" in command)
    assert {"python3", "fio"} <= set(installed)
    assert ["rm", "-rf", "/var/lib/apt/lists/*"] in commands(image)


def test_the_entrypoint_is_a_valid_command(stages: list[Stage]) -> None:
    *_, image = stages
    assert json.loads(arguments_of(image, "ENTRYPOINT")[0]) == ["iopstui"]
    build_parser().parse_args(json.loads(arguments_of(image, "CMD")[0]))


def test_files_of_this_machine_are_ignored(root: Path) -> None:
    ignored = (root / ".containerignore").read_text().split()
    assert {".venv", ".git", "dist", "build", "**/__pycache__"} <= set(ignored)


def test_the_guide_s_container_commands_are_valid(root: Path) -> None:
    guide = (root / "docs" / "guide" / "install.md").read_text()
    run = [shlex.split(line) for line in re.findall(r"^ +\$ (podman run .*)$", guide, re.MULTILINE)]
    assert len(run) >= 2
    for command in run:
        build_parser().parse_args(command[command.index("iopstui") + 1 :])
    privileged = next(command for command in run if "--privileged" in command)
    assert "--pid=host" in privileged and {"/dev:/dev", "/sys:/sys"} <= set(privileged)
