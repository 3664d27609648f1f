"""The locked versions are those that pyproject.toml allows, whatever Python they are for: else
`make lock` finds none.
"""

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


def asked(root: Path, group: str | None) -> list[Requirement]:
    found = tomllib.loads((root / "pyproject.toml").read_text())
    lines = found["project"]["dependencies"] if group is None else found["dependency-groups"][group]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(
    ("lock", "group"),
    [("requirements.txt", None), ("requirements-dev.txt", None), ("requirements-dev.txt", "dev"),
     ("requirements-site.txt", "site")],
)  # fmt: skip
def test_every_locked_version_is_allowed(root: Path, lock: str, group: str | None) -> None:
    locked = LOCKED.findall((root / lock).read_text())
    for one in asked(root, group):
        versions = [
            v for name, v in locked if canonicalize_name(name) == canonicalize_name(one.name)
        ]
        assert versions, f"{one} is not in {lock}"
        assert all(one.specifier.contains(version) for version in versions), (one, versions)


def test_extras_are_what_the_tests_have(root: Path) -> None:
    """So that what is tried is what a user gets."""
    found = tomllib.loads((root / "pyproject.toml").read_text())
    tried = {str(one) for one in asked(root, "dev")}
    for lines in found["project"]["optional-dependencies"].values():
        assert {str(Requirement(line)) for line in lines} <= tried
