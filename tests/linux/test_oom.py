"""Whether the OOM killer acted while fio was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.linux.process.limits import oom_text


@pytest.mark.parametrize(
    ("before", "text", "words"),
    [
        (3, "oom_kill 4\n", "ended a process during the run"),
        (3, "nr_free 1\noom_kill 6\nx 1\n", "ended 3 processes during the run"),
        (3, "oom_kill 3\n", ""),
        (None, "oom_kill 3\n", ""),
        (3, "nr_free 1\n", ""),
        (3, "", ""),
    ],
)
def test_it_is_named_only_if_it_ended_something(
    tmp_path: Path, before: int | None, text: str, words: str
) -> None:
    file = tmp_path / "vmstat"
    file.write_text(text)
    found = oom_text(before, file)
    assert words in found and bool(found) is bool(words)
