"""TARGET may be repeated, anywhere among the options."""

from __future__ import annotations

import pytest

from iopstui.cli.program import build_parser, parse_arguments


@pytest.mark.parametrize(
    ("line", "targets"),
    [
        ("run --job x", []),
        ("run a --job x", ["a"]),
        ("run --job x a", ["a"]),
        ("run a b --job x", ["a", "b"]),
        ("run a --job x b --set bs=4k c", ["a", "b", "c"]),
        ("live", []),
        ("live a b", ["a", "b"]),
        ("sweep a b --job x --axis iodepth=1,2", ["a", "b"]),
        ("compare a --job x --variant iodepth=1 --variant iodepth=2 b", ["a", "b"]),
        ("", []),
    ],
)
def test_all_targets_are_parsed(line: str, targets: list[str]) -> None:
    assert parse_arguments(build_parser(), line.split()).target == targets


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run a --job x -z", "no option -z"), ("run a --job x b --nothing", "no option --nothing"),
        ("jobs x y", "unexpected argument 'y'"), ("lesson 1 a b", "unexpected argument 'b'"),
    ],
)  # fmt: skip
def test_unknown_options_and_arguments_are_refused(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(build_parser(), line.split())
    assert caught.value.code == 2 and message in capsys.readouterr().err


def test_destroy_data_may_be_repeated() -> None:
    args = ["run", "a", "b", "--job", "x", "--destroy-data", "a", "--destroy-data", "b"]
    assert parse_arguments(build_parser(), args).destroy_data == ["a", "b"]
