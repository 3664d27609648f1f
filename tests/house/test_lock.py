"""The locked versions satisfy pyproject.toml."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOCKED = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


def requirements(root: Path, group: str | None) -> list[Requirement]:
    pyproject = tomllib.loads((root / "pyproject.toml").read_text())
    lines = (
        pyproject["project"]["dependencies"]
        if group is None
        else pyproject["dependency-groups"][group]
    )
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(
    ("lock", "group"),
    [("requirements.txt", None), ("requirements-dev.txt", None), ("requirements-dev.txt", "dev"),
     ("requirements-site.txt", "site")],
)  # fmt: skip
def test_every_locked_version_is_allowed(root: Path, lock: str, group: str | None) -> None:
    locked = LOCKED.findall((root / lock).read_text())
    for requirement in requirements(root, group):
        versions = [
            v
            for name, v in locked
            if canonicalize_name(name) == canonicalize_name(requirement.name)
        ]
        assert versions, f"{requirement} is not in {lock}"
        assert all(requirement.specifier.contains(version) for version in versions), (
            requirement,
            versions,
        )


def test_extras_are_tested(root: Path) -> None:
    """Users must get the versions that are tested."""
    pyproject = tomllib.loads((root / "pyproject.toml").read_text())
    tested = {str(requirement) for requirement in requirements(root, "dev")}
    for lines in pyproject["project"]["optional-dependencies"].values():
        assert {str(Requirement(line)) for line in lines} <= tested
