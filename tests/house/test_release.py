"""`make release VERSION=x` makes a complete release or changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHANGES = "# Changelog\n\nWords.\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"
IDENTITY = ["-c", "user.name=a", "-c", "user.email=a@b"]


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *IDENTITY, *args], cwd=folder, check=True, capture_output=True,
                          text=True).stdout  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small checkout with the real script."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b")
    path = tmp_path / "checkout"
    for name in (".ci/release", "iopstui/__init__.py", "CITATION.cff"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, path / name)
    (path / "iopstui" / "__init__.py").write_text('"""Words."""\n\n__version__ = "0.1.0"\n')
    (path / "CHANGELOG.md").write_text(CHANGES)
    git(path, "init", "--quiet")
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "-m", "first")
    return path


def release(folder: Path, version: str, check: str = "true") -> subprocess.CompletedProcess[str]:
    args = [version, "--check", check, "--date", "2026-12-01"]
    return subprocess.run([sys.executable, str(folder / ".ci" / "release"), *args],
                          capture_output=True, text=True)  # fmt: skip


def test_version_changelog_citation_commit_and_tag(checkout: Path) -> None:
    check = "grep -q 0.2.0 iopstui/__init__.py CHANGELOG.md"
    process = release(checkout, "0.2.0", check)
    assert process.returncode == 0, process.stderr
    assert '__version__ = "0.2.0"' in (checkout / "iopstui" / "__init__.py").read_text()
    assert (checkout / "CHANGELOG.md").read_text() == CHANGES.replace(
        "## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n"
    )
    citation = (checkout / "CITATION.cff").read_text()
    assert citation.endswith("\nversion: 0.2.0\ndate-released: 2026-12-01\n")
    assert git(checkout, "log", "-1", "--format=%s") == "Release 0.2.0\n"
    assert git(checkout, "status", "--porcelain") == ""
    notes = git(checkout, "tag", "--list", "--format=%(contents)", "v0.2.0")
    assert notes.strip() == "iopstui 0.2.0\n\n### Added\n\n- A thing."
    # the notes of the next release have only new changes
    later_release = release(checkout, "0.3.0")
    assert later_release.returncode == 1 and "nothing under Unreleased" in later_release.stderr
    (checkout / "CHANGELOG.md").write_text(
        (checkout / "CHANGELOG.md").read_text().replace("## [0.2", "### Fixed\n\n- B.\n\n## [0.2")
    )
    git(checkout, "commit", "--quiet", "-am", "b")
    assert release(checkout, "0.3.0").returncode == 0
    notes = git(checkout, "tag", "--list", "--format=%(contents)", "v0.3.0")
    assert notes.strip() == "iopstui 0.3.0\n\n### Fixed\n\n- B."
    assert (checkout / "CITATION.cff").read_text().count("version: 0") == 1


def test_the_current_version_can_be_released_once(checkout: Path) -> None:
    assert release(checkout, "0.1.0").returncode == 0
    assert release(checkout, "0.1.0").returncode == 1


@pytest.mark.parametrize("version", ["0.0.9", "1", "v1.2.3", "1.2.3rc1", "01.2.3", "--help me", ""])
def test_an_invalid_or_older_version_is_refused(version: str, checkout: Path) -> None:
    assert release(checkout, version).returncode
    assert git(checkout, "tag") == "" and git(checkout, "status", "--porcelain") == ""


def test_an_unclean_checkout_is_refused(checkout: Path) -> None:
    (checkout / "new").write_text("")
    process = release(checkout, "0.2.0")
    assert process.returncode == 1 and "not committed" in process.stderr
    assert git(checkout, "tag") == ""


def test_failed_checks_leave_everything_unchanged(checkout: Path) -> None:
    process = release(checkout, "0.2.0", "false")
    assert process.returncode == 1 and "false failed" in process.stderr
    assert git(checkout, "tag") == "" and git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "rev-list", "--count", "HEAD") == "1\n"


def test_changelog_and_version_have_the_expected_form(root: Path) -> None:
    """The changelog has an Unreleased section, the code its version as hatchling reads it."""
    assert (root / "CHANGELOG.md").read_text().count("\n## [Unreleased]\n") == 1
    assert (root / "iopstui" / "__init__.py").read_text().count('\n__version__ = "') == 1
