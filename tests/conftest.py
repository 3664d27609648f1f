"""Fixtures and hooks shared by all tests."""

from __future__ import annotations

import fcntl
import gc
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from iopstui.errors import pop_incomplete_messages

ROOT = Path(__file__).resolve().parent.parent

# Collecting the tests creates a million lasting objects; scanning them for garbage takes longer
# than creating them, so the collector is off until they are frozen.
gc.disable()

_ANY_ALONE = pytest.StashKey[bool]()
LONGEST_ID = 60


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten long parameters in test names: the largest has 34 million characters, which every
    worker would send with each step of the test."""
    if isinstance(val, (str, bytes)) and len(val) > LONGEST_ID:
        return f"{str(val[:LONGEST_ID])!r} and so on, {len(val)}"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests so that each worker's share starts with tests that wait for fio, and no long
    test starts last. xdist gives each worker a consecutive part of this order."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1:
        return
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [f for f in files if f.parent.name == "system"]
    rest = [item for f in files if f not in set(waiting) for item in files[f]]
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for file in sorted(waiting, key=lambda f: (-len(files[f]), f.name)):
        min(shares, key=len).extend(files[file])
    size = -(-len(items) // workers)
    for share in shares:
        more = size - len(share)
        share += rest[:more]
        del rest[:more]
    items[:] = [item for share in shares for item in share] + rest


def pytest_collection_finish(session: pytest.Session) -> None:
    session.stash[_ANY_ALONE] = any(map(_is_alone, session.items))
    gc.freeze()
    # tests make little garbage: collecting after every 700 objects took 5 % of the time
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def _no_incomplete_files() -> None:
    """Forget incomplete recordings of earlier tests, which would change this test's exit code."""
    pop_incomplete_messages()


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """From a worker, send a test's setup and teardown reports only if they failed: serializing all
    three reports took as long as many a test."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


# No deadline: a slow machine is not a failure. CI uses fixed examples; other runs try new ones, so
# few examples a run find as much over time.
settings.register_profile("iopstui", deadline=None, derandomize="CI" in os.environ, max_examples=30)
settings.load_profile("iopstui")


@pytest.fixture(autouse=True)
def the_machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Lock the machine: shared for most tests, exclusive for a test marked ``alone``."""
    if "PYTEST_XDIST_WORKER" not in os.environ or not request.session.stash[_ANY_ALONE]:
        yield
        return
    alone = _is_alone(request.node)
    shared = tmp_path_factory.getbasetemp().parent
    with open(shared / "door", "w") as door, open(shared / "room", "w") as room:
        # a test that waits for exclusive access keeps the door locked, so no other overtakes it
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield
        fcntl.flock(
            room, fcntl.LOCK_UN
        )  # explicitly, because a forked child may still have it open


_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def own_state(
    the_machine: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give each test its own state and configuration directories."""
    # not tmp_path: pytest scans all earlier directories for a free number, which takes longer than
    # most tests; the directory itself is created on demand
    own = tmp_path_factory.getbasetemp() / "own" / str(next(_NUMBERS))
    monkeypatch.setenv("XDG_STATE_HOME", str(own / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own / "config"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def fio() -> str:
    """The real fio. `make test` has installed it: without it a test fails, it is not skipped."""
    found = shutil.which("fio")
    assert found, "fio is not installed; `make test` installs it"
    return found
