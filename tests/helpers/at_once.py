"""pytest --at-once N: so many tests at a time, in processes forked once all tests are collected.

To collect them takes four seconds of CPU, most of it imports: each worker of pytest-xdist does it
anew, and on two CPUs that is a tenth of the whole. A forked one has everything already. It asks
for work, a few tests of one file at a time, and tells what came of each; should it die, that test
has failed and another process goes on with the rest.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, cast

import pytest

Work = list[int]
"""Places of tests in the session's list, all in one file."""
AT_MOST = 32
"""Tests of one file that are given out together: they share what the module has made."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--at-once", type=int, default=1, metavar="N", help="N tests at a time")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    config = session.config
    count = config.getoption("at_once")
    if count < 2 or config.option.collectonly or config.option.usepdb or session.testsfailed:
        return None
    _Workers(session, count).run()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


def in_order(items: Sequence[pytest.Item]) -> list[Work]:
    """What waits for fio comes first, one by one, then the rest; the screen's, which take longest
    of these, come last. Some workers begin here and some there, so that while some wait the others
    have something to compute, and what is left for the end is short."""
    files: dict[Path, Work] = {}
    for number, item in enumerate(items):
        files.setdefault(item.path, []).append(number)
    found = []
    for path in sorted(files, key=_rank):
        size = 1 if _rank(path) == 0 and not _is_shared(items, files[path]) else AT_MOST
        found += [files[path][i : i + size] for i in range(0, len(files[path]), size)]
    return found


def _rank(path: Path) -> int:
    return {"system": 0, "ui": 2}.get(path.parent.name, 1)


def _is_shared(items: Sequence[pytest.Item], numbers: Work) -> bool:
    """Whether tests of a file share what one of them takes long to make."""
    return any(
        definition.scope == "module"
        for number in numbers
        for definitions in items[number]._fixtureinfo.name2fixturedefs.values()  # type: ignore
        for definition in definitions
        if definition.baseid.endswith(items[number].path.name)
    )


class _Workers:
    """The processes and what they have to do, as the first process sees them."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._hook = session.config.hook
        self._work = deque(in_order(session.items))
        self._count = min(count, len(self._work))
        self._born = 0
        # of each: its process, what it has been given and not ended, whether it takes the last
        self._given: dict[Connection, tuple[int, deque[int], bool]] = {}

    def run(self) -> None:
        session = self._session
        # made here: what is in it is looked after at the end by this process
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for number in range(self._count):
            self._fork(from_behind=number % 3 == 2)
        try:
            while self._given:
                for link in wait(list(self._given)):
                    self._hear(cast(Connection, link))
        finally:
            for pid, _, _ in self._given.values():  # interrupted, or something is wrong here
                os.kill(pid, signal.SIGINT)
                os.waitpid(pid, 0)

    def _fork(self, from_behind: bool) -> None:
        ours, theirs = Pipe()
        self._born += 1
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for link in (ours, *self._given):
                    link.close()
                code = _Worker(self._session, theirs, self._born).run()
            except KeyboardInterrupt:
                pass
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        theirs.close()
        self._given[ours] = pid, deque(), from_behind

    def _hear(self, link: Connection) -> None:
        _, given, from_behind = self._given[link]
        kind, what = "over", None
        with contextlib.suppress(EOFError, ConnectionError):
            kind, what = link.recv()
        if kind == "over":
            self._ended(link)
        elif kind == "next":
            work = self._next(from_behind)
            given += work
            with contextlib.suppress(OSError):  # it is dead: heard next
                link.send(work)
        elif kind == "ended":
            given.popleft()
        elif kind == "report":
            config = self._session.config
            report = self._hook.pytest_report_from_serializable(config=config, data=what)
            self._hook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            self._hook.pytest_warning_recorded.call_historic(kwargs=what)

    def _next(self, from_behind: bool) -> Work:
        """Nothing: there is no more to do."""
        if not self._work or self._session.shouldfail or self._session.shouldstop:
            return []
        return self._work.pop() if from_behind else self._work.popleft()

    def _ended(self, link: Connection) -> None:
        pid, given, from_behind = self._given.pop(link)
        link.close()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if not given:
            if code:
                raise RuntimeError(f"a process that tests were to be run in has ended: {how}")
            return
        item = self._session.items[given.popleft()]
        self._hook.pytest_runtest_logreport(
            report=pytest.TestReport(
                item.nodeid,
                item.location,
                {},
                "failed",
                f"the process that ran this test has ended: {how}",
                "call",
            )
        )
        if given:
            self._work.appendleft(list(given))
        self._fork(from_behind)


class _Colours:
    """All that is left of the terminal in a worker."""

    def __init__(self, writer: Any) -> None:
        self._tw = writer


class _Worker:
    """One of the processes, as it sees itself: runs what it is given."""

    def __init__(self, session: pytest.Session, link: Connection, number: int) -> None:
        self._session = session
        self._link = link
        # Python before 3.13 keeps the number that this thread had where it was forked
        threading.current_thread()._set_native_id()  # type: ignore[attr-defined]
        config = session.config
        factory = config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.getbasetemp() / f"worker{number}"
        factory._basetemp.mkdir(mode=0o700)
        # only the first process writes to the terminal; it is asked for its colours here, too
        reporter: Any = config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(_Colours(reporter._tw), "terminalreporter")
        # the file for what is caught has one position for all who inherit it
        capture: Any = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        self._begun = False  # what has been warned of before is told to each new plugin
        config.pluginmanager.register(self)
        self._begun = True

    def run(self) -> int:
        items = self._session.items
        work = self._next()
        while work:
            for place, number in enumerate(work):
                last = place + 1 == len(work)
                coming = self._next() if last else work[place + 1 :]
                item = items[number]
                item.config.hook.pytest_runtest_protocol(
                    item=item, nextitem=items[coming[0]] if coming else None
                )
                self._link.send(("ended", None))
            work = coming
        return 0

    def _next(self) -> Work:
        self._link.send(("next", None))
        return cast(Work, self._link.recv())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self._session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self._link.send(("report", data))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        said = warning_message
        if not self._begun:
            return
        # what belongs to it is of any kind and may be tied to this process
        told = warnings.WarningMessage(
            str(said.message), _known(said.category), said.filename, said.lineno
        )
        self._link.send(("warning", {"warning_message": told, "when": when, "nodeid": nodeid,
                                     "location": location}))  # fmt: skip


def _known(category: type[Warning]) -> type[Warning]:
    """One that the other process knows: the first that is Python's own."""
    return next(kind for kind in category.__mro__ if kind.__module__ == "builtins")
