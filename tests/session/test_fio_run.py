"""Starting one fio run."""

from __future__ import annotations

import errno
import os
import resource
import select
from dataclasses import replace
from pathlib import Path

import pytest

from iopstui.errors import Refused
from iopstui.fio.inspect import Fio, JobFacts
from iopstui.fio.process import FioProcess
from iopstui.linux.process.private import private_directory
from iopstui.preflight.prepared_job import PreparedJob
from iopstui.safety.scratch import Scratch
from iopstui.session.fio import fio_run
from iopstui.session.fio.fio_run import FioRun, PhaseFinished

FACTS = JobFacts((), False)


def test_a_refusal_right_before_the_start_leaves_no_private_directory(tmp_path: Path) -> None:
    made: list[Path] = []

    def private() -> Path:
        made.append(private_directory())
        return made[-1]

    def refuse() -> None:
        raise Refused("It is mounted by now.")

    run = FioRun(Fio("/bin/false", (3, 33), "fio-3.33"), job(tmp_path), private, 1.0, refuse)
    with pytest.raises(Refused):
        run.start_phase()
    assert made == []


HANGS = """#!/bin/sh
for word in "$@"; do case "$word" in --output=*) out="${word#--output=}";; esac; done
printf '\\nfio: terminating on signal 15\\nfio: job startup hung? exiting.\\n' > "$out"
exec sleep 1000
"""


def test_a_fio_that_hangs_after_somebody_s_signal_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fio_run, "CUT_SHORT_TIMEOUT_S", 0.0)
    hangs = tmp_path / "fio"
    hangs.write_text(HANGS)
    hangs.chmod(0o755)
    over = to_its_end(FioRun(Fio(str(hangs), (3, 33), "fio-3.33"), job(tmp_path),
                             private_directory, 1.0, lambda: None))  # fmt: skip
    assert "processes received SIGTERM" in over.error


ENDS = HANGS.replace("job startup hung? exiting.", "").replace("exec sleep 1000", "exit 0")


@pytest.mark.parametrize(("options", "cut"), [
    ((), True), ((("exitall", "0"),), True), ((("exitall", "1"),), False),
    ((("exitall_on_error", "1"),), False), ((("exit_what", "stonewall"),), False),
])  # fmt: skip
def test_a_job_that_ends_others_was_not_cut_short(
    options: tuple[tuple[str, str], ...], cut: bool, tmp_path: Path
) -> None:
    fio = tmp_path / "fio"
    fio.write_text(ENDS)
    fio.chmod(0o755)
    asked = replace(job(tmp_path), facts=replace(FACTS, options=options))
    over = to_its_end(FioRun(Fio(str(fio), (3, 33), "fio-3.33"), asked, private_directory, 1.0,
                             lambda: None))  # fmt: skip
    assert ("cut short" in over.error) == cut


SLEEPS = """#!/bin/sh
exec sleep 1000
"""


def test_a_fio_that_nobody_watches_any_more_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if this process were stopped: no heartbeat reaches the guard
    monkeypatch.setattr(FioProcess, "send_heartbeat", lambda self: None)
    fio = tmp_path / "fio"
    fio.write_text(SLEEPS)
    fio.chmod(0o755)
    over = to_its_end(FioRun(Fio(str(fio), (3, 33), "fio-3.33"), job(tmp_path), private_directory,
                             1.0, lambda: None, deadline_s=0.2))  # fmt: skip
    assert over.error == (
        "fio was stopped, because iopstui was stopped or hung for 0.2 s and could not watch "
        "it; the figures cover the time until then"
    )


def failing(tmp_path: Path, error: int, options: tuple[tuple[str, str], ...]) -> str:
    """The message for a run whose fio reports ``error`` for a job and exits."""
    job_row = f'{{"jobname": "a", "groupid": 0, "error": {error}}}'
    text = f'{{\n"fio version": "fio-3.33", "timestamp_ms": 1, "jobs": [{job_row}]\n}}'
    fio = tmp_path / "fio"
    fio.write_text(HANGS.partition("printf")[0] + f"echo '{text}' > \"$out\"\nexit 1\n")
    fio.chmod(0o755)
    asked = replace(job(tmp_path), facts=replace(FACTS, options=options))
    asked.scratch = Scratch(tmp_path / ".iopstui-aaaaaaaa", None)
    return to_its_end(FioRun(Fio(str(fio), (3, 33), "fio-3.33"), asked, private_directory, 1.0,
                             lambda: None)).error  # fmt: skip


def test_a_cause_that_the_options_show_is_named(tmp_path: Path) -> None:
    trims = failing(tmp_path, errno.ENOTTY, (("rw", "randtrim"),))
    assert "trims block devices, not files" in trims
    assert "leave out uid=" in failing(tmp_path, errno.EACCES, (("rw", "read"), ("uid", "1000")))
    assert failing(tmp_path, errno.EACCES, (("rw", "trim"),)).endswith("(errno 13)")


def job(here: Path) -> PreparedJob:
    return PreparedJob("a", "a", "[a]\n", FACTS, (), here)


def to_its_end(run: FioRun) -> PhaseFinished:
    run.start_phase()
    try:
        while True:
            for news in run.poll():
                if isinstance(news, PhaseFinished):
                    return news
            select.select(run.fds, [], [], 0.1)
    finally:
        run.close()


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        (51200, "(this shell limits files to 51200 bytes: ulimit -f)"),
        (0, "(this shell limits files to 0 bytes: ulimit -f)"),
        (1 << 24, "(a file may grow to 16 MiB here: 5 % of the file system stays free)"),
        (resource.RLIM_INFINITY, "(a file may grow to 16 MiB here: 5 % of the file system stays "
         "free)"),
    ],
)  # fmt: skip
def test_whose_limit_keeps_a_file_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, says: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (limit, resource.RLIM_INFINITY))
    prepared = replace(job(tmp_path), max_file_bytes=1 << 24)
    run = FioRun(Fio("/bin/false", (3, 33), "fio-3.33"), prepared, private_directory, 1.0,
                 lambda: None)  # fmt: skip
    run.messages.append("fio: pid=0, err=27/file:filesetup.c:240, error=File too large")
    assert run._reason_from_log().endswith(f"error=File too large {says}")


def test_messages_that_differ_in_numbers_alone_are_shown_five_times(tmp_path: Path) -> None:
    run = FioRun(Fio("/bin/false", (3, 33), "fio-3.33"), job(tmp_path), private_directory, 1.0,
                 lambda: None)  # fmt: skip
    for offset in range(9):
        run._handle_message(f"fio: io_u error on file a: read offset={offset}")
    assert run._handle_message("fio: another error")
    assert run.messages == [
        *(f"fio: io_u error on file a: read offset={offset}" for offset in range(5)),
        "more such messages, with other numbers", "fio: another error",
    ]  # fmt: skip


def test_a_full_place_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fstatvfs

    def full(fd: int) -> os.statvfs_result:
        words = list(real(fd))
        words[1:5] = [4096, 1000, 0, 0]
        return os.statvfs_result(words)

    monkeypatch.setattr(os, "fstatvfs", full)
    places: list[Path] = []

    def private() -> Path:
        places.append(private_directory())
        return places[-1]

    over = to_its_end(FioRun(Fio("/bin/true", (3, 33), "fio-3.33"), job(tmp_path),
                             private, 1.0, lambda: None))  # fmt: skip
    assert over.error.startswith(
        f"fio's figures could not be written: no space left in {places[-1].parent}"
    )
