"""`iopstui replay` of what fio wrote itself."""

from __future__ import annotations

import pytest
from fio_recordings import LOGS

from iopstui.cli.commands import fleet, replay
from iopstui.cli.program import build_parser
from iopstui.errors import UsageError


@pytest.mark.parametrize("form", ["table", None])
def test_a_result_of_fio_is_sent_to_report(form: str | None) -> None:
    path = str(LOGS / "avg.json")
    with pytest.raises(UsageError) as caught:
        line = [path, *(["--format", form] if form else [])]
        replay.run(build_parser("replay").parse_args(["replay", *line]))
    assert caught.value.hint == f"Open it with: iopstui report {path}"


def test_colours_are_refused_where_there_is_no_screen() -> None:
    for command, word in ((fleet, "web1"), (replay, "demo")):
        name = command.COMMAND.name
        line = [name, word, "--theme", "light", "--format", "jsonl"]
        with pytest.raises(UsageError, match="--theme light needs the screen"):
            command.run(build_parser(name).parse_args(line))
