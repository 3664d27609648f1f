from __future__ import annotations

import errno
import resource
import sys

import pytest

from iopstui.cli import program
from iopstui.errors import EXIT_MISSING
from iopstui.linux.process.limits import ensure_descriptors, exhausted_limit, hint_for_limit
from iopstui.safety.crash import crash_sentence


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EFBIG, "ulimit -f"),  # setrlimit(2): RLIMIT_FSIZE
        (errno.EMFILE, "ulimit -n"),  # open(2): the per-process limit
        (errno.ENFILE, "fs.file-max"),  # open(2): the system-wide limit
        (errno.EAGAIN, "ulimit -u"),  # fork(2): RLIMIT_NPROC, pids.max
        (errno.ENOMEM, "ulimit -v"),
    ],
)
def test_each_limit_has_its_own_mend(number: int, words: str) -> None:
    assert words in hint_for_limit(OSError(number, "x"), "otherwise")


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "x"), OSError(), OSError("only words")])
def test_what_no_limit_has_caused(error: OSError) -> None:
    assert hint_for_limit(error, "otherwise") == "otherwise"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EMFILE, "x"), "Too many open files. This shell limits the number"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (MemoryError(), "ulimit -v"),
        (ImportError("fcntl.so: failed to map segment from shared object"), "ulimit -v"),
        (ImportError("fcntl.so: invalid ELF header"), ""),
        (RuntimeError("something else"), ""),
        (OSError(errno.ENOENT, "x"), ""),
    ],
)
def test_an_exhausted_limit_is_named(error: Exception, words: str) -> None:
    assert words in exhausted_limit(error) and bool(exhausted_limit(error)) == bool(words)
    assert ("internal error" in crash_sentence(error)) == (not words)


def test_without_memory_nothing_more_is_imported_to_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(argv: object, writable: bool) -> int:
        raise MemoryError

    monkeypatch.setattr(program, "_main", fail)
    for name in ("iopstui.safety.crash", "iopstui.text"):
        monkeypatch.setitem(sys.modules, name, None)
    assert program.main(["devices"]) == EXIT_MISSING
    assert capsys.readouterr().err.startswith("iopstui: Cannot allocate memory")


@pytest.mark.parametrize(("soft", "hard", "raised", "refused"), [
    (9, 9, None, True), (20, 20, None, True), (9, 30, 30, True), (20, 4096, 1024, False),
    (20, 500, 500, False), (20, -1, 1024, False), (48, 48, None, False), (-1, -1, None, False),
    (1024, 4096, None, False),
])  # fmt: skip
def test_few_descriptors_are_refused_before_anything_is_opened(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int | None, refused: bool
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, values: limits.append(values))
    assert ("ulimit -n 1024" in ensure_descriptors()) == refused
    assert limits == ([] if raised is None else [(raised, hard)])


def test_a_crash_that_cannot_be_reported_names_the_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Short:
        """An importer that lacks memory for the modules of a crash report."""

        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "iopstui.safety.crash":
                raise MemoryError

    def fails(*_: object) -> int:
        raise SystemError("error return without exception set")

    monkeypatch.delitem(sys.modules, "iopstui.safety.crash")
    monkeypatch.setattr(sys, "meta_path", [Short, *sys.meta_path])
    monkeypatch.setattr(program, "_main", fails)
    assert program.main(["devices"]) == EXIT_MISSING
    err = capsys.readouterr().err
    assert err.startswith("iopstui: Cannot allocate memory.") and "Traceback" not in err
