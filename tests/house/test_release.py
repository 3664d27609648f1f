"""`make release VERSION=x` makes all of a release or nothing of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHANGES = "# Changelog\n\nWords.\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"
WHO = ["-c", "user.name=a", "-c", "user.email=a@b"]


def git(where: Path, *words: str) -> str:
    return subprocess.run(["git", *WHO, *words], cwd=where, check=True, capture_output=True,
                          text=True).stdout  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small one, with the real script and the real files' forms."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@b")
    made = tmp_path / "checkout"
    for name in (".ci/release", "iopstui/__init__.py", "CITATION.cff"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, made / name)
    (made / "iopstui" / "__init__.py").write_text('"""Words."""\n\n__version__ = "0.1.0"\n')
    (made / "CHANGELOG.md").write_text(CHANGES)
    git(made, "init", "--quiet")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "-m", "first")
    return made


def release(where: Path, version: str, check: str = "true") -> subprocess.CompletedProcess[str]:
    words = [version, "--check", check, "--date", "2026-12-01"]
    return subprocess.run([sys.executable, str(where / ".ci" / "release"), *words],
                          capture_output=True, text=True)  # fmt: skip


def test_version_changelog_citation_commit_and_tag(checkout: Path) -> None:
    asked = "grep -q 0.2.0 iopstui/__init__.py CHANGELOG.md"  # tried with what is released
    done = release(checkout, "0.2.0", asked)
    assert done.returncode == 0, done.stderr
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
    # and the next one has only what is new
    again = release(checkout, "0.3.0")
    assert again.returncode == 1 and "nothing under Unreleased" in again.stderr
    (checkout / "CHANGELOG.md").write_text(
        (checkout / "CHANGELOG.md").read_text().replace("## [0.2", "### Fixed\n\n- B.\n\n## [0.2")
    )
    git(checkout, "commit", "--quiet", "-am", "b")
    assert release(checkout, "0.3.0").returncode == 0
    notes = git(checkout, "tag", "--list", "--format=%(contents)", "v0.3.0")
    assert notes.strip() == "iopstui 0.3.0\n\n### Fixed\n\n- B."
    assert (checkout / "CITATION.cff").read_text().count("version: 0") == 1


def test_the_version_that_the_code_has_can_be_the_first(checkout: Path) -> None:
    assert release(checkout, "0.1.0").returncode == 0
    assert release(checkout, "0.1.0").returncode == 1


@pytest.mark.parametrize("version", ["0.0.9", "1", "v1.2.3", "1.2.3rc1", "01.2.3", "--help me", ""])
def test_what_is_no_newer_version_is_refused(version: str, checkout: Path) -> None:
    assert release(checkout, version).returncode
    assert git(checkout, "tag") == "" and git(checkout, "status", "--porcelain") == ""


def test_an_unclean_checkout_is_refused(checkout: Path) -> None:
    (checkout / "new").write_text("")
    done = release(checkout, "0.2.0")
    assert done.returncode == 1 and "not committed" in done.stderr
    assert git(checkout, "tag") == ""


def test_checks_that_fail_leave_everything_as_it_was(checkout: Path) -> None:
    done = release(checkout, "0.2.0", "false")
    assert done.returncode == 1 and "false failed" in done.stderr
    assert git(checkout, "tag") == "" and git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "rev-list", "--count", "HEAD") == "1\n"


def test_the_real_files_have_the_form(root: Path) -> None:
    """Of the changelog: its Unreleased; of the code: its version, as hatchling finds it."""
    assert (root / "CHANGELOG.md").read_text().count("\n## [Unreleased]\n") == 1
    assert (root / "iopstui" / "__init__.py").read_text().count('\n__version__ = "') == 1
