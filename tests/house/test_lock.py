"""The locked versions satisfy pyproject.toml."""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions
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


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_a_lock_names_what_its_packages_need(root: Path, lock: str) -> None:
    """.ci/setup installs exactly the locked packages, without their requirements."""
    locked = {canonicalize_name(name) for name, _ in LOCKED.findall((root / lock).read_text())}
    needed = {
        canonicalize_name(need.name)
        for package in distributions()
        if canonicalize_name(package.name) in locked
        for need in map(Requirement, package.requires or ())
        if need.marker is None or need.marker.evaluate({"extra": ""})
    }
    assert needed and needed <= locked


def test_extras_are_tested(root: Path) -> None:
    """Users must get the versions that are tested."""
    pyproject = tomllib.loads((root / "pyproject.toml").read_text())
    tested = {str(requirement) for requirement in requirements(root, "dev")}
    for lines in pyproject["project"]["optional-dependencies"].values():
        assert {str(Requirement(line)) for line in lines} <= tested
