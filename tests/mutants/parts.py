"""Which files are changed, and which tests have to notice it. Only this file names paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

# files or packages
PARTS = (
    "iopstui/model", "iopstui/safety", "iopstui/linux", "iopstui/fio",
    "iopstui/features/lessons/model",
)  # fmt: skip

TESTS = tuple(f"tests/{ring}" for ring in (
    "model", "linux", "fio", "safety", "recording", "preflight", "session", "experiment", "lesson",
    "output", "report", "house", "docs",
))  # fmt: skip
# these read the source itself, or take long to find what other tests find sooner
_NOT_THESE = ("tests/house/test_architecture.py",)


def files(root: Path, names: Sequence[str] = PARTS) -> Iterator[Path]:
    """All files that may be changed, relative to ``root``."""
    for name in names:
        part = root / name
        if not part.exists():
            raise SystemExit(f"mutants: {name} is not there")
        for path in sorted(part.rglob("*.py")) if part.is_dir() else [part]:
            yield path.relative_to(root)


def tests(root: Path, folders: Sequence[str] = TESTS) -> Iterator[str]:
    """The test modules to run, relative to ``root``."""
    for part in folders:
        for path in sorted((root / part).rglob("test_*.py")):
            name = path.relative_to(root).as_posix()
            if name not in _NOT_THESE:
                yield name
