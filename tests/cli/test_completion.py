"""Completion, tested in each installed shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from program_words import SHELLS, answers

from iopstui.cli.commands.completion import SHELLS as OFFERED
from iopstui.cli.complete import FILES, complete
from iopstui.cli.program import COMMAND_LINE, command_parsers, main
from iopstui.cli.registry import commands
from iopstui.features.lessons.play.library import find_lesson
from iopstui.fio.library import shipped_jobs


def suggested(*so_far: str) -> list[str]:
    return [suggestion.word for suggestion in complete(so_far, COMMAND_LINE)]


def test_commands_and_options_are_suggested() -> None:
    assert suggested("") == [*(command.name for command in commands()), "--help", "--version"]
    assert suggested("re") == ["replay", "report"]
    for name, parser in command_parsers().items():
        options = {option for option in parser._option_string_actions if option.startswith("--")}
        assert set(suggested(name, "--")) == options
    assert suggested("nothing", "") == []


def test_an_option_is_suggested_again_only_if_it_may_be_repeated() -> None:
    suggestions = suggested("run", "--job", "x", "--set", "y=1", "--")
    assert "--job" not in suggestions and "--set" in suggestions
    assert suggested("run", "--", "--jo") == [FILES], "a TARGET that looks like an option"


@pytest.mark.parametrize("so_far, some", [
    (("run", "--job", "randread-4"), ["randread-4k", FILES]),
    (("run", "--job=randread-4"), ["--job=randread-4k", FILES]),
    (("run", "--format", ""), ["table", "jsonl", "csv", "influx"]),
    (("run", "--set", "iodepth_batch_complete_mi"), ["iodepth_batch_complete_min="]),
    (("run", "--knob", "rq_"), ["rq_affinity="]),
    (("sweep", "--axis", "nr_req"), ["nr_requests="]),
    (("run", "--expect", "'read.clat.p99"), ["read.clat.p99", "read.clat.p99.9"]),
    (("watch", "--trigger", "r_aw"), ["r_await"]),
    (("replay", "de"), ["demo", FILES]),
    (("report", "a.iops", "de"), ["demo", FILES]),
    (("lesson", "litt"), ["littles-law"]),
    (("completion", "z"), ["zsh"]),
    (("run", "--record", ""), [FILES]),
    (("run", "--interval", ""), []),
    (("jobs", "randread-4k", ""), []),
])  # fmt: skip
def test_values_of_options_are_suggested(so_far: tuple[str, ...], some: list[str]) -> None:
    suggestions = suggested(*so_far)
    assert set(some) <= set(suggestions) and bool(suggestions) == bool(some)
    if some in (["zsh"], ["littles-law"]):
        assert suggestions == some


def test_existing_jobs_and_devices_are_suggested() -> None:
    assert suggested("jobs", "") == [job.name for job in shipped_jobs()]
    assert suggested("live", "/dev/") == suggested("live", "--job", "x", "/dev/")
    assert all(find_lesson(lesson) for lesson in suggested("lesson", ""))
    targets = suggested("live", "")
    assert all(target == FILES or Path(target).exists() for target in targets)
    assert suggested("devices", "") == [target for target in targets if target != FILES]


def test_without_fio_common_options_are_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOPSTUI_FIO", "/nowhere/fio")
    assert suggested("run", "--set", "iode") == ["iodepth=", "iodepth_batch="]


@pytest.mark.parametrize("shell", OFFERED)
def test_the_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "completion words" in capsys.readouterr().out


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err


def test_bash_is_supported() -> None:
    assert "bash" in SHELLS


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("line, expected", [
    ("iopstui rep", {"replay", "report"}),
    ("iopstui run --job randread-4", {"randread-4k"}),
    ("iopstui run --form", {"--format"}),
    ("iopstui run --job x --format js", {"jsonl"}),
    ("iopstui run a.fil", {"a.file"}),
])  # fmt: skip
def test_the_shell_completes(shell: str, line: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "a.file").touch()
    assert answers(shell, line, tmp_path) == expected


def test_bash_completes_after_an_equals_sign(tmp_path: Path) -> None:
    # readline replaces only the text after the equals sign
    assert answers("bash", "iopstui run --job=randread-4", tmp_path) == {"randread-4k"}
    assert answers("bash", "iopstui run --set iodepth_batch_complete_mi", tmp_path) == {
        "iodepth_batch_complete_min="
    }
