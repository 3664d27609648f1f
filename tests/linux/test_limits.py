from __future__ import annotations

import errno

import pytest

from iopstui.linux.process.limits import hint_for_limit


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
