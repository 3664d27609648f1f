"""What the shells offer, asked of the shells themselves where they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from program_words import SHELLS, answers

from iopstui.cli.commands.completion import SHELLS as OFFERED
from iopstui.cli.complete import FILES, complete
from iopstui.cli.program import COMMAND_LINE, command_parsers, main
from iopstui.cli.registry import commands
from iopstui.fio.library import shipped_jobs
from iopstui.lesson.library import find_lesson


def words(*so_far: str) -> list[str]:
    return [one.word for one in complete(so_far, COMMAND_LINE)]


def test_commands_and_options_are_the_parsers_own() -> None:
    assert words("") == [*(one.name for one in commands()), "--help", "--version"]
    assert words("re") == ["replay", "report"]
    for name, parser in command_parsers().items():
        own = {one for one in parser._option_string_actions if one.startswith("--")}
        assert set(words(name, "--")) == own
    assert words("nothing", "") == []


def test_an_option_that_is_there_is_not_offered_again_unless_it_may_be_repeated() -> None:
    found = words("run", "--job", "x", "--set", "y=1", "--")
    assert "--job" not in found and "--set" in found
    assert words("run", "--", "--jo") == words("run", "--", "--jo")
    assert FILES in words("run", "--", "--jo"), "a TARGET that looks like an option"


@pytest.mark.parametrize("so_far, some", [
    (("run", "--job", "randread-4"), ["randread-4k", FILES]),
    (("run", "--job=randread-4"), ["--job=randread-4k", FILES]),
    (("run", "--format", ""), ["table", "jsonl", "csv", "influx"]),
    (("run", "--set", "iodepth_batch_complete_mi"), ["iodepth_batch_complete_min="]),
    (("run", "--knob", "rq_"), ["rq_affinity="]),
    (("sweep", "--axis", "nr_req"), ["nr_requests="]),
    (("run", "--expect", "'read.clat.p99"), ["read.clat.p99", "read.clat.p99.9"]),
    (("watch", "--trigger", "r_aw"), ["r_await"]),
    (("watch", "--probe-with", "way,mat"), ["way,matrix"]),
    (("replay", "de"), ["demo", FILES]),
    (("report", "a.iops", "de"), ["demo", FILES]),
    (("lesson", "litt"), ["littles-law"]),
    (("completion", "z"), ["zsh"]),
    (("run", "--record", ""), [FILES]),
    (("run", "--interval", ""), []),
    (("jobs", "randread-4k", ""), []),
])  # fmt: skip
def test_values(so_far: tuple[str, ...], some: list[str]) -> None:
    found = words(*so_far)
    assert set(some) <= set(found) and bool(found) == bool(some)
    if some in (["zsh"], ["littles-law"]):
        assert found == some


def test_jobs_and_devices_are_those_that_there_are() -> None:
    assert words("jobs", "") == [job.name for job in shipped_jobs()]
    assert words("live", "/dev/") == words("live", "--job", "x", "/dev/")
    assert all(find_lesson(one) for one in words("lesson", ""))
    assert all(one == FILES or Path(one).exists() for one in words("live", ""))


def test_without_a_fio_what_is_typed_by_habit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOPSTUI_FIO", "/nowhere/fio")
    assert words("run", "--set", "iode") == ["iodepth=", "iodepth_batch="]


@pytest.mark.parametrize("shell", OFFERED)
def test_the_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "completion words" in capsys.readouterr().out


def test_another_shell_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err


def test_bash_is_there() -> None:
    assert "bash" in SHELLS


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("line, expected", [
    ("iopstui rep", {"replay", "report"}),
    ("iopstui run --job randread-4", {"randread-4k"}),
    ("iopstui run --form", {"--format"}),
    ("iopstui run --job x --format js", {"jsonl"}),
    ("iopstui run a.fil", {"a.file"}),
])  # fmt: skip
def test_the_shell_offers_it(shell: str, line: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "a.file").touch()
    assert answers(shell, line, tmp_path) == expected


def test_bash_keeps_what_stands_before_an_equals_sign(tmp_path: Path) -> None:
    # readline replaces only what is behind it
    assert answers("bash", "iopstui run --job=randread-4", tmp_path) == {"randread-4k"}
    assert answers("bash", "iopstui run --set iodepth_batch_complete_mi", tmp_path) == {
        "iodepth_batch_complete_min="
    }
