"""Calls that may hang. The dead mount is made up: the tests look at whether a network mount is on
the path, and at the child process that makes the call."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from trees import Tree

from iopstui.errors import UsageError
from iopstui.linux import shares
from iopstui.linux.shares import call_with_timeout

LIMIT_S = 0.01


@pytest.fixture
def share(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.proc("self/mountinfo", "30 1 0:40 / /mnt/a rw - nfs4 server:/a rw\n")
    return tree


def silent(path: Path, _roots: object, _limit_s: float) -> None:
    raise UsageError(f"{path} is silent")


def test_what_ends_returns_and_raises(share: Tree) -> None:
    assert call_with_timeout([], lambda: 7, print, share.roots) == 7
    with pytest.raises(ZeroDivisionError):
        call_with_timeout([], lambda: 1 // 0, print, share.roots)


def test_no_thread_where_no_server_is(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.proc("self/mountinfo", "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    assert (
        call_with_timeout([], threading.current_thread, print, tree.roots)
        is threading.current_thread()
    )


def test_a_place_that_answers_is_waited_for(share: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, goes_on = [], threading.Event()

    def answers(path: Path, *_: object) -> None:
        asked.append(path)
        goes_on.set()

    monkeypatch.setattr(shares, "require_answer", answers)
    assert call_with_timeout([Path("/mnt/a")], goes_on.wait, print, share.roots, LIMIT_S)
    assert set(asked) == {Path("/mnt/a")}


def test_one_that_does_not_is_named_and_a_late_result_is_dropped(
    share: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "require_answer", silent)
    places, server_back, dropped = [Path("/mnt/a")], threading.Event(), threading.Event()

    def work() -> str:
        places.append(Path("/mnt/b"))
        server_back.wait()
        return "late"

    def discard(result: str) -> None:
        assert result == "late"
        dropped.set()

    with pytest.raises(UsageError, match="/mnt/a is silent"):
        call_with_timeout(places, work, discard, share.roots, LIMIT_S)
    server_back.set()
    assert dropped.wait(60)
