"""The configuration file: defaults for the command line, reported mistakes, no dangerous keys."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.cli import config as configuration
from iopstui.cli.config import (
    KEYS,
    NOT_CONFIGURABLE,
    Entry,
    config_path,
    parse,
    read_config,
    remember,
)
from iopstui.cli.program import build_parser, main, parse_arguments, read_config_for

FULL = """\
theme = "light"
interval = 0.5
job = "randread"
size = "64m"
nice = 3
format = "jsonl"
mouse = false
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "iopstui" / "config.toml"
    path.parent.mkdir()
    return path


def arguments(*args: str) -> SimpleNamespace:
    config = read_config_for(args[0])
    return SimpleNamespace(**vars(parse_arguments(build_parser(args[0], config), args)))


def test_the_command_line_overrides_the_file(file: Path) -> None:
    file.write_text(FULL)
    run = arguments("run")
    assert (run.interval, run.job, run.size, run.nice) == (0.5, "randread-4k", "64m", 3)
    assert run.format == "jsonl"
    run = arguments("run", "--interval", "2", "--job", "x.fio", "--nice", "0", "--format", "csv")
    assert (run.interval, run.job, run.nice, run.format) == (2.0, "x.fio", 0, "csv")
    assert arguments("replay", "demo").theme == arguments("lesson").theme == "light"
    assert arguments("compare").job == "randread-4k"


def test_every_key_is_an_option_of_its_commands() -> None:
    # layouts are written only by the screen
    assert str(KEYS["layout"].check("cpus")) == "cpus"
    assert str(KEYS["fleet-layout"].check("map by-util")) == "by-util map"
    for name, key in KEYS.items():
        for command in key.commands if not name.endswith("layout") else ():
            below = build_parser()._subparsers._group_actions[0].choices[command]  # type: ignore[union-attr,index]
            options = below._option_string_actions
            assert f"--{name}" in options or f"--no-{name}" in options


def test_the_screen_does_not_start_the_configured_job(file: Path) -> None:
    file.write_text(FULL)
    live = arguments("live")
    assert live.job is None and live.first_job == "randread-4k" and live.theme == "light"


def test_jobs_of_a_sweep_replace_the_configured_one(file: Path) -> None:
    file.write_text(FULL)
    assert arguments("sweep", "--job", "a").job == ["a"]
    assert not arguments("sweep").job and arguments("sweep").first_job == "randread-4k"


def test_a_diskspd_command_replaces_the_configured_job(file: Path) -> None:
    file.write_text(FULL)
    assert arguments("run", "--diskspd", "-w0 x").diskspd == "-w0 x"


@pytest.mark.parametrize("key", NOT_CONFIGURABLE)
def test_dangerous_keys_are_refused(file: Path, key: str) -> None:
    file.write_text(f'{key} = "/dev/sda"\n{key.replace("-", "_")} = true\ninterval = 2\n')
    read_settings = read_config()
    assert set(read_settings.settings) == {"interval"} and len(read_settings.problems) == 2
    assert all(
        "is not allowed in the configuration; give it with each command" in text
        for text in read_settings.problem_texts()
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('thme = "light"', "'thme' is not a key; did you mean theme?"),
        ("zzzzzz = 1", "the keys are theme, mouse, notify, plain"),
        ('theme = "pink"', "not one of dark, light, colourblind"),
        ("theme = 1", "theme is a text in quotes"),
        ('interval = "1"', "interval is a number"),
        ("interval = 0.1", "not a number of seconds from 0.25 to 60"),
        ("mouse = 1", "mouse is true or false"),
        ('mouse = "yes"', "mouse is true or false"),
        ("interval = true", "interval is a number"),
        ("nice = 1.5", "nice is a whole number"),
        ("nice = -1", "not a number from 0 to 19"),
        ('size = "big"', "not a size"),
        ('job = "no-such-job"', "neither a shipped job nor the full path"),
        ('job = "./x.fio"', "neither a shipped job nor the full path"),
        ('format = "json"', "not one of table, jsonl, csv"),
        ("size = 4g", "size: the value must be a number"),
        ("nice = 1\nnice = 2", "nice is already set in line 1"),
    ],
)
def test_a_mistake_is_reported_with_its_line(file: Path, line: str, message: str) -> None:
    file.write_text(line + "\n")
    [sentence] = read_config().problem_texts()
    assert f"line {1 + line.count(chr(10))}: " in sentence and message in sentence


def test_the_layout_is_checked(file: Path) -> None:
    file.write_text('layout = "10s zoomed latency"\n')
    assert arguments("live").layout == "latency zoomed 10s"
    file.write_text('layout = "latency big"\n')
    [sentence] = read_config().problem_texts()
    assert "layout: 'big' is not one of iops, " in sentence


def test_remembered_settings_are_written_to_the_file(file: Path) -> None:
    file.unlink(missing_ok=True)
    remember("theme", "light")
    assert file.read_text() == 'theme = "light"\n' and file.stat().st_mode & 0o777 == 0o600
    file.write_text('# mine\ninterval = 2\n"theme" = "dark"  # once\nnice = 1\n[table]\nx = 1\n')
    file.chmod(0o644)
    remember("theme", "nord")
    assert file.read_text() == ('# mine\ninterval = 2\ntheme = "nord"\nnice = 1\n[table]\nx = 1\n')
    assert file.stat().st_mode & 0o777 == 0o644
    assert read_config().settings["theme"].value == "nord"
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_new_key_is_written_before_the_first_table(file: Path) -> None:
    file.write_text("nice = 1\n[table]\n")
    remember("theme", "light")
    assert set(read_config().settings) == {"nice", "theme"}


def test_a_mistake_does_not_stop_a_command(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("x = 1\ny = 2\n")
    assert main(["replay", "demo", "--format", "csv"]) == 0
    captured = capsys.readouterr()
    first, *other_lines = captured.err.splitlines()
    assert captured.out and "config.toml" not in " ".join(other_lines)
    assert "line 1: 'x' is not a key" in first and "1 more: iopstui config" in first
    assert main(["jobs"]) == 0 and not capsys.readouterr().err


def test_the_config_command_shows_the_source_of_each_value(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("# mine\ninterval = 0.5\n")
    assert main(["config"]) == 0
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert ["interval", "0.5", f"{file}, line 2"] in rows and ["theme", "dark", "default"] in rows
    assert {row[0] for row in rows[1:]} == set(KEYS)
    file.write_text("x = 1\n")
    assert main(["config"]) == 2
    assert "line 1: 'x' is not a key" in capsys.readouterr().err


def test_the_config_command_shows_the_path_of_a_missing_file(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config"]) == 0
    assert str(file) in capsys.readouterr().out


def owned_by(uid: int) -> Callable[[int], os.stat_result]:
    real = os.fstat
    return lambda fd: os.stat_result((*real(fd)[:4], uid, *real(fd)[5:10]))


@pytest.mark.parametrize("uid", [0, 1000])
def test_root_reads_only_files_that_nobody_else_can_write(
    file: Path, uid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(FULL)
    monkeypatch.setattr(configuration.os, "geteuid", lambda: 0)
    monkeypatch.setattr(configuration.os, "fstat", owned_by(uid))
    monkeypatch.setattr("iopstui.linux.process.private.check_place", lambda path: None)
    assert bool(read_config().settings) == (uid == 0)
    if uid == 0:
        file.chmod(0o664)
    assert not read_config().settings
    assert (
        "root reads only files that root owns and nobody else can write" in read_config().summary()
    )


def test_root_ignores_a_directory_that_others_can_write(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(FULL)
    monkeypatch.setattr(configuration.os, "geteuid", lambda: 0)
    monkeypatch.setattr(configuration.os, "fstat", owned_by(0))
    file.parent.chmod(0o777)
    assert "ignored" in read_config().summary() and not read_config().settings


def test_an_unreadable_file_is_reported(file: Path) -> None:
    file.mkdir()
    assert "ignored" in read_config().summary()
    file.rmdir()
    os.mkfifo(file)
    assert "it is not a file" in read_config().summary()
    file.unlink()
    file.write_bytes(b"theme = \xff")
    assert "not UTF-8" in read_config().summary()
    file.write_bytes(b"#" * (1 << 17))
    assert "longer than 64 KiB" in read_config().summary()


def test_the_path_follows_xdg_config_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert config_path() == tmp_path / ".config" / "iopstui" / "config.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert config_path() == tmp_path / ".config" / "iopstui" / "config.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/xdg")
    assert config_path() == Path("/etc/xdg/iopstui/config.toml")


@pytest.mark.parametrize("text", (
    "a", "a =", "= 1", "a = 4g", "a = x", 'a = "x', "a = [1]", "a = {b = 1}", "a.b = 1", "a = 1 2",
    'a = "\\ud800"', "a = 1979-05-27", "a b = 1", f"a = {'[' * 20_000}", f"a = {'1' * 5000}",
))  # fmt: skip
def test_a_wrong_line_has_a_reason_and_other_lines_are_read(text: str) -> None:
    wrong, right = parse(f"{text}\nb = 1")
    assert wrong.problem and wrong.value is None and wrong.line == 1
    assert right == Entry(2, "b", 1)


@given(st.text())
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    for entry in parse(text):
        assert (entry.value is None) == bool(entry.problem)
