"""How a message names the lesson that it is about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.features.lessons.plain_player import parse_answers
from iopstui.features.lessons.play.library import find_lesson, lesson_paths


@pytest.mark.parametrize("own", [True, False])
def test_the_advice_leads_to_the_lesson(own: bool, tmp_path: Path) -> None:
    name, path = next(iter(lesson_paths().items()))
    if own:
        path = Path(shutil.copy(path, tmp_path / "my lesson.ini"))
        name = f"'{path}'"
    with pytest.raises(UsageError) as caught:
        parse_answers("a,b,c,d,e,f", find_lesson(str(path)))
    assert caught.value.hint == f"See them with: iopstui lesson --check {name}"
