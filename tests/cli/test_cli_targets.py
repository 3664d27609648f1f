"""TARGET may be repeated, wherever it stands among the options."""

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
def test_every_target_is_taken(line: str, targets: list[str]) -> None:
    assert parse_arguments(build_parser(), line.split()).target == targets


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run a --job x -z", "no option -z"), ("run a --job x b --nothing", "no option --nothing"),
        ("jobs x y", "unexpected argument 'y'"), ("lesson 1 a b", "unexpected argument 'b'"),
    ],
)  # fmt: skip
def test_what_is_no_target_is_still_refused(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_arguments(build_parser(), line.split())
    assert caught.value.code == 2 and words in capsys.readouterr().err


def test_each_device_s_word_is_kept() -> None:
    words = ["run", "a", "b", "--job", "x", "--destroy-data", "a", "--destroy-data", "b"]
    assert parse_arguments(build_parser(), words).destroy_data == ["a", "b"]
