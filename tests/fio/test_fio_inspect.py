from __future__ import annotations

import errno
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from iopstui.errors import Missing, UsageError
from iopstui.fio import fence
from iopstui.fio import inspect as fio_inspect
from iopstui.fio.fence import Fence
from iopstui.fio.inspect import Fio, JobFacts, SectionFiles, error_line, find_fio
from iopstui.linux.process import processes


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio_inspect, "IDLE_S", 0.4)
    monkeypatch.setattr(fio_inspect, "POLL_S", 0.05)


def program(path: Path, *lines: str) -> str:
    path.write_text("\n".join([f"#!{sys.executable} -S", "import time", *lines]) + "\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.usefixtures("hurried")
def test_a_fio_that_works_is_waited_for(tmp_path: Path) -> None:
    """The fio is slow, as on an overloaded machine."""
    slow = program(tmp_path / "fio", "while time.process_time() < 1.2: pass", "print('fio-3.39')")
    assert find_fio(slow).version == (3, 39)


@pytest.mark.usefixtures("hurried")
def test_a_fio_that_does_nothing_is_not(tmp_path: Path) -> None:
    stuck = program(tmp_path / "fio", "time.sleep(60)")
    with pytest.raises(Missing, match="does not respond"):
        find_fio(stuck)


@pytest.mark.usefixtures("hurried")
def test_a_fio_that_works_for_ever_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio_inspect, "MAX_ANSWER_S", 0.3)
    with pytest.raises(Missing, match="did not answer within"):
        find_fio(program(tmp_path / "fio", "while True: pass"))


def test_a_fio_that_prints_for_ever_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fio_inspect, "MAX_ANSWER_BYTES", 1 << 20)
    with pytest.raises(Missing, match="does not stop printing") as told:
        find_fio(program(tmp_path / "fio", "while True: print('fio-3.39', flush=False)"))
    assert told.value.hint == f"Try it: {tmp_path}/fio --version"


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("last", ["wait", "echo fio-3.39"])
def test_what_a_fio_has_started_ends_with_it(
    last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two scripts that start fio: one waits for it, one leaves it running."""
    outputs: list[int] = []

    def started(*words: object) -> object:
        process = fence.start_fenced(*words)  # type: ignore[arg-type]
        assert process.stdout is not None
        outputs.append(os.dup(process.stdout.fileno()))
        return process

    monkeypatch.setattr(fio_inspect, "start_fenced", started)
    script = tmp_path / "fio"
    script.write_text(f"#!/bin/sh\nsleep 600 &\n{last}\n")
    script.chmod(0o755)
    with pytest.raises(Missing, match="does not respond"):
        find_fio(str(script))
    with open(outputs[0], "rb", buffering=0) as output:
        # end of file: no process can write to it any more
        assert select.select([output], [], [], 60)[0]
        assert output.read(99) == b""


def test_what_can_not_be_executed_is_not_called_absent(tmp_path: Path) -> None:
    script = program(tmp_path / "fio")
    Path(script).write_text("#!/none/such\n")
    with pytest.raises(Missing, match="its interpreter or loader does not exist") as told:
        find_fio(script)
    assert f"head -1 {script}" in told.value.hint
    Path(script).chmod(0o644)
    with pytest.raises(Missing, match="is not an executable program") as told:
        find_fio(script)
    assert f"ls -lL {script}" in told.value.hint


def test_what_a_process_has_used() -> None:
    busy = processes.cpu_s(os.getpid())
    assert busy is not None and busy > 0
    assert processes.waits_for_cpu(os.getpid())
    assert processes.start_time(os.getpid())


def test_a_process_that_is_gone() -> None:
    none = 2**22 + 1  # above the highest PID possible
    assert processes.cpu_s(none) is None
    assert not processes.waits_for_cpu(none)
    assert processes.start_time(none) is None


def test_a_limit_is_not_a_missing_fio(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fio: str
) -> None:
    # a path that no other test has asked
    own = tmp_path / "fio"
    own.symlink_to(fio)

    def full(*words: object, **more: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(Missing, match="Too many open files") as told:
        find_fio(str(own))
    assert "ulimit -n" in told.value.hint


def test_a_fio_that_crashes_is_not_one_that_is_missing(tmp_path: Path) -> None:
    crashes = program(tmp_path / "fio", "import os, signal, sys",
                      "sys.stderr.write('smalloc: failed adding pool\\n')",
                      "sys.stderr.flush()", "os.kill(os.getpid(), signal.SIGSEGV)")  # fmt: skip
    with pytest.raises(Missing, match="killed by signal 11, smalloc: failed") as told:
        find_fio(crashes)
    assert "ulimit" in told.value.hint


def counted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """All questions to fio from now on."""
    ask, asked = fio_inspect.run_fio, []

    def noted(*words: object) -> object:
        asked.append(words)
        return ask(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(fio_inspect, "run_fio", noted)
    return asked


def test_a_fio_is_asked_for_its_version_once_and_a_new_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counted(monkeypatch)
    path = program(tmp_path / "fio", "print('fio-3.39')")
    assert find_fio(path) == find_fio(path) and len(asked) == 1
    program(tmp_path / "fio", "print('fio-3.42')")
    os.utime(path, ns=(0, 0))
    assert find_fio(path).version == (3, 42) and len(asked) == 2


# -- fio's answers, made by hand


Answer = subprocess.CompletedProcess[str]


def answering(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> list[list[str]]:
    asked: list[list[str]] = []
    left = list(answers)

    def ask(command: list[str], cwd: Path | None, fence: Fence) -> Answer:
        asked.append([str(word) for word in command])
        assert fence == (Fence() if command[1] == "--version" else Fence(open=("/jobs",)))
        return left.pop(0)

    monkeypatch.setattr(fio_inspect, "run_fio", ask)
    fio_inspect._version.cache_clear()
    return asked


def refusal(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> UsageError:
    """The refusal of a job for which fio gives these answers."""
    answering(monkeypatch, *answers)
    with pytest.raises(UsageError) as caught:
        fio_inspect.inspect(FIO, Path("/jobs/a.fio"), "the job")
    return caught.value


def answer(out: str = "", said: str = "", code: int = 0) -> Answer:
    return subprocess.CompletedProcess([], code, out, said)


LIMIT = "Try it: {} --version; a shell limit may be the cause: ulimit -a"
INSTALL = (
    "Install it: apt install fio | dnf install fio | zypper install fio | pacman -S fio | "
    "apk add fio"
)


@pytest.mark.parametrize(
    ("found", "says", "hint"),
    [
        (answer("fio-3.0\n"), "is fio-3.0; iopstui needs fio 3.1 or newer.", INSTALL),
        (answer("fio-2.99\n"), "is fio-2.99; iopstui needs fio 3.1 or newer.", INSTALL),
        (answer("hello\x1b\n"), "is not fio. Instead of a version it printed: hello?.", INSTALL),
        (answer("x" * 300), f"is not fio. Instead of a version it printed: {'x' * 200}.", INSTALL),
        (answer("", "fio: oops.\n"), "is not fio. Instead of a version it printed: oops.", INSTALL),
        (answer(), "is not fio. Instead of a version it printed: nothing.", INSTALL),
        (answer("", "a\nb\n", 3), "exits with an error: exit code 3, b.", LIMIT),
        (answer("", "", -9), "exits with an error: killed by signal 9.", LIMIT),
    ],
)
def test_a_program_that_is_no_fio_of_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: Answer, says: str, hint: str
) -> None:
    path = program(tmp_path / "fio")
    asked = answering(monkeypatch, found)
    with pytest.raises(Missing) as caught:
        find_fio(path)
    assert (caught.value.message, caught.value.hint) == (f"{path} {says}", hint.format(path))
    assert asked == [[path, "--version"]]


def test_which_fio_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own, other = program(tmp_path / "own"), program(tmp_path / "fio")
    answering(monkeypatch, answer("fio-3.1"), answer("fio-4.0-rc1"), answer("fio-3.36\n"))
    assert find_fio(own) == Fio(own, (3, 1), "fio-3.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("IOPSTUI_FIO", raising=False)
    assert find_fio() == Fio(other, (4, 0), "fio-4.0-rc1")
    monkeypatch.setenv("IOPSTUI_FIO", own)
    fio_inspect._version.cache_clear()
    assert find_fio() == Fio(own, (3, 36), "fio-3.36")
    nothing = "none-such was not found. iopstui needs it to run jobs.", INSTALL
    wrong = (
        "none-such, which IOPSTUI_FIO names, was not found.",
        "To use the fio in PATH: unset IOPSTUI_FIO",
    )
    monkeypatch.setenv("IOPSTUI_FIO", "none-such")
    for path, told in ((None, wrong), ("none-such", nothing)):
        with pytest.raises(Missing) as caught:
            find_fio(path)
        assert (caught.value.message, caught.value.hint) == told


FIO = Fio("/fio", (3, 36), "fio-3.36")
PARSED = """\
parse    7 Parsing section [one]
parse    7 handle_option=rw, ptr=randread
parse    7 handle_option=time_based, ptr=(null)
file     7 file 0x7f00 "/x" added at 0
"""
END = "parse    7 Parsing section [iopstui-end]\n"


@pytest.mark.parametrize("writes", [True, False])
def test_how_fio_reads_a_job(monkeypatch: pytest.MonkeyPatch, writes: bool) -> None:
    """If the job writes, fio's read-only switch stops it early."""
    answers = [answer("")] if writes else []
    asked = answering(monkeypatch, *answers, answer(PARSED + END))
    found = fio_inspect.inspect(FIO, Path("/jobs/a.fio"), "the job")
    assert found == JobFacts((SectionFiles("one", ("/x",), 1),), writes,
                             (("rw", "randread"), ("time_based", "")))  # fmt: skip
    assert found.jobs == ("one",) and found.paths == ("/x",)
    words = ["--debug=file,parse", "/jobs/a.fio"]
    assert asked == [["/fio", "--readonly", *words], ["/fio", *words]][: 1 + writes]


@pytest.mark.parametrize(
    ("out", "said", "says"),
    [
        (PARSED, "fio: bad option foo=1.\nfio: file:init.c:1, func=x\n",
         "fio rejects the job: bad option foo=1 ("),
        (PARSED + "no such engine found\nodd\n", "", "fio rejects the job: no such engine found ("),
        (PARSED, "", "fio rejects the job, but gives no reason ("),
        (PARSED, "fio: file:init.c:12, error=Invalid argument\n",
         "fio rejects the job: file:init.c:12, error=Invalid argument ("),
    ],
)  # fmt: skip
def test_a_job_that_fio_does_not_accept(
    monkeypatch: pytest.MonkeyPatch, out: str, said: str, says: str
) -> None:
    error = refusal(monkeypatch, answer(""), answer(out, said))
    assert error.message == f"{says}the job)."


@pytest.mark.parametrize(
    ("said", "why", "hint"),
    [
        ("error: maximum number of jobs reached.\nerror: failed to setup shm segment\n",
         "more jobs than fio can run", "numjobs="),
        ("smalloc: OOM. Consider using --alloc-size to increase the shared memory available.\n"
         "fio: filesetup.c:1749: alloc_new_file: Assertion `0' failed.\n",
         "more files than fio has memory for", "nrfiles="),
    ],
)  # fmt: skip
def test_limits_of_fio_are_named_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, said: str, why: str, hint: str
) -> None:
    error = refusal(monkeypatch, answer(""), answer(PARSED, said))
    assert why in error.message and hint in (error.hint or "")


@pytest.mark.parametrize(("said", "hint"), [
    ("fio: failed parsing rate_iops=,,\n", "What it may be: fio --cmdhelp=rate_iops"),
    ("Bad option <zoned=1>\n", "List fio's options: fio --cmdhelp=all"),
    ("fio: size too small\n", ""),
])  # fmt: skip
def test_where_fio_explains_an_option(
    monkeypatch: pytest.MonkeyPatch, said: str, hint: str
) -> None:
    error = refusal(monkeypatch, answer(""), answer(PARSED, said))
    assert error.hint == hint


def test_a_job_without_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refusal(monkeypatch, answer("parse    7 Parsing section [global]\n" + END))
    assert error.message == "the job has no job section: nothing to run."
    hint = "A job file needs at least one [name] section; see `iopstui jobs`."
    assert error.hint == hint


def test_noise_is_no_complaint() -> None:
    noise = ["parse 7 x failed", "file 7 error", "fio: set debug option x", "fio: job a dropped",
             "  must", "Correct format is x", "...", "", "  : too", "valid values: unknown",
             "a: (g=0): rw=read, error"]  # fmt: skip
    assert error_line(noise) == ""
    assert error_line([*noise, "fio: it is odd..", "z unable \x07"]) == "z unable ?"
    assert error_line([*noise, "fio: it is odd.."]) == "it is odd"
    assert error_line(["x" * 400]) == "x" * 300
    for word in ("fail", "bad option", "UNABLE", "not found", "error", "outside", "invalid",
                 "unknown", "too", "must", "not loadable"):  # fmt: skip
        assert error_line(["first", f"a {word} b"]) == f"a {word} b"


@pytest.mark.parametrize(
    ("line", "writes", "questions"),
    [("rw=read", False, 1), ("rw=randrw", True, 2), ("rw=randtrim", True, 2)],
)
def test_only_a_job_that_fio_s_own_switch_stops_is_asked_about_again(
    line: str, writes: bool, questions: int, tmp_path: Path, fio: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    found = find_fio(fio)
    asked = counted(monkeypatch)
    job = tmp_path / "job.fio"
    job.write_text(f"[global]\nsize=1m\n[a]\nfilename=x:y\n{line}\n" + fio_inspect.END)
    facts = fio_inspect.inspect(found, job, "it", tmp_path)
    assert (facts.writes, len(asked)) == (writes, questions)
    assert (facts.jobs, facts.paths) == (("a",), ("x", "y"))
    assert {("size", "1m"), ("filename", "x:y")} <= set(facts.options)


def test_what_a_fio_and_its_children_have_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the children may be gone by now."""
    used = {7: 1.5, 8: 0.25, 9: None}
    monkeypatch.setattr(fio_inspect, "cpu_s", used.__getitem__)
    monkeypatch.setattr(fio_inspect, "children", lambda pid: {7: [8, 9]}[pid])
    assert fio_inspect._busy_s(7) == 1.75
