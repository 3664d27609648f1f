"""What is changed, and which tests have to notice it: the one place that names paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_SAFETY = (
    "iopstui/session/experiment.py",
    "iopstui/session/journal.py",
    "iopstui/session/leftovers.py",
    "iopstui/session/locks.py",
    "iopstui/session/safety.py",
    "iopstui/session/scratch.py",
    "iopstui/session/scratch_sizes.py",
    "iopstui/session/write_guard.py",
    "iopstui/sources/fence.py",
    "iopstui/sources/limits.py",
    "iopstui/sources/private.py",
)
_LINUX = (
    "iopstui/session/own_cost.py",
    "iopstui/session/place.py",
    "iopstui/session/sampling.py",
    "iopstui/sources/affinity.py",
    "iopstui/sources/blkmq.py",
    "iopstui/sources/cgroup.py",
    "iopstui/sources/interrupts.py",
    "iopstui/sources/irqmap.py",
    "iopstui/sources/kernel.py",
    "iopstui/sources/mounts.py",
    "iopstui/sources/openers.py",
    "iopstui/sources/processes.py",
    "iopstui/sources/procfs.py",
    "iopstui/sources/rights.py",
    "iopstui/sources/roots.py",
    "iopstui/sources/signatures.py",
    "iopstui/sources/sysattr.py",
    "iopstui/sources/sysfs.py",
    "iopstui/sources/target.py",
    "iopstui/sources/topology.py",
    "iopstui/sources/udev.py",
)
_FIO = (
    "iopstui/session/fio_logs.py",
    "iopstui/session/fio_run.py",
    "iopstui/session/job_text.py",
    "iopstui/sources/fio_fence.py",
    "iopstui/sources/fio_guard.py",
    "iopstui/sources/fio_inspect.py",
    "iopstui/sources/fio_intruders.py",
    "iopstui/sources/fio_process.py",
    "iopstui/sources/fio_stream.py",
    "iopstui/sources/job_threads.py",
    "iopstui/sources/jobs.py",
)

# files or packages
PARTS = ("iopstui/model", *_SAFETY, *_LINUX, *_FIO)

_TESTS = ("tests/unit", "tests/session")
# They read the source itself, or take long to learn what others tell sooner.
_NOT_THESE = ("tests/unit/test_architecture.py",)


def files(root: Path) -> Iterator[Path]:
    """All that may be changed, relative to ``root``."""
    for name in PARTS:
        part = root / name
        if not part.exists():
            raise SystemExit(f"mutants: {name} in tests/mutants/parts.py is not there")
        for path in sorted(part.rglob("*.py")) if part.is_dir() else [part]:
            yield path.relative_to(root)


def tests(root: Path) -> Iterator[str]:
    """The test modules to ask, relative to ``root``."""
    for part in _TESTS:
        for path in sorted((root / part).rglob("test_*.py")):
            name = path.relative_to(root).as_posix()
            if name not in _NOT_THESE:
                yield name
