"""The Containerfile: what can be known of it where no image can be built."""

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
    """Its instructions with their arguments, by stage."""
    found: list[Stage] = []
    text = (root / "Containerfile").read_text()
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        if line.strip() and not line.startswith("#"):
            found[-1].append((word, rest))
    return found


def of(stage: Stage, word: str) -> list[str]:
    return [rest for one, rest in stage if one == word]


def commands(stage: Stage) -> list[list[str]]:
    """Of its RUN lines, each in its words."""
    return [shlex.split(part) for run in of(stage, "RUN") for part in run.split("&&")]


def test_both_stages_have_the_same_python(stages: list[Stage]) -> None:
    """A venv is a link to the Python that made it: another base would have another."""
    first, last = (of(stage, "FROM")[0].split() for stage in stages)
    assert first[0] == last[0] and first[1:] == ["AS", "build"]
    assert last[1:] == []


def test_what_is_installed_is_what_the_lock_says(stages: list[Stage], root: Path) -> None:
    build, _ = stages
    assert of(build, "COPY") == [". /src"]
    packages, own = (words for words in commands(build) if words[0].endswith("/pip"))
    assert packages[0] == own[0] == f"{VENV}/bin/pip"
    assert "--require-hashes" in packages
    lock = packages[packages.index("-r") + 1]
    text = (root / lock.removeprefix("/src/")).read_text()
    # the lock has the backend, too: nothing else is downloaded
    assert {"--no-deps", "--no-build-isolation"} <= set(own) and own[-1] == "/src"
    assert re.search(r"^hatchling==", text, re.MULTILINE)


def test_the_program_is_where_it_was_built_and_is_found(stages: list[Stage]) -> None:
    build, image = stages
    assert ["python3", "-m", "venv", VENV] in commands(build)
    assert of(image, "COPY") == [f"--from=build {VENV} {VENV}"], "its scripts name this place"
    (paths,) = of(image, "ENV")
    assert shlex.split(paths)[0] == f"PATH={VENV}/bin:$PATH"
    (installed,) = (words for words in commands(image) if "install" in words)
    assert {"python3", "fio"} <= set(installed)
    assert ["rm", "-rf", "/var/lib/apt/lists/*"] in commands(image)


def test_what_it_runs_is_a_command(stages: list[Stage]) -> None:
    *_, image = stages
    assert json.loads(of(image, "ENTRYPOINT")[0]) == ["iopstui"]
    build_parser().parse_args(json.loads(of(image, "CMD")[0]))


def test_nothing_of_this_machine_is_copied(root: Path) -> None:
    ignored = (root / ".containerignore").read_text().split()
    assert {".venv", ".git", "dist", "build", "**/__pycache__"} <= set(ignored)


def test_the_guide_s_commands_are_the_program_s(root: Path) -> None:
    guide = (root / "docs" / "guide" / "install.md").read_text()
    run = [shlex.split(line) for line in re.findall(r"^ +\$ (podman run .*)$", guide, re.MULTILINE)]
    assert len(run) >= 2
    for words in run:
        build_parser().parse_args(words[words.index("iopstui") + 1 :])
    seen = next(words for words in run if "--privileged" in words)
    assert "--pid=host" in seen and {"/dev:/dev", "/sys:/sys"} <= set(seen)
