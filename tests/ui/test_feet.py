"""The keys in the footer of every dialog are readable on the smallest terminal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from iopstui.features.lessons.screen import list as lessons
from iopstui.ui.core.modal import Hint
from iopstui.ui.dialogs import jobs, questions, settings, slow_list
from iopstui.ui.experiment import form
from iopstui.ui.home import screen as home

BOX = 4
"""Columns that the border and the blanks beside it take."""


@pytest.mark.parametrize(
    "hints",
    [
        questions.CHOICE_HINTS,
        jobs.HINTS,
        slow_list.HINTS,
        slow_list.LIST_HINTS,
        questions.OPTION_HINTS,
        home.FOOTER_HINTS,
        questions.PROMPT_HINTS,
        jobs.RUNS_HINTS,
        settings.HINTS,
        (*form.HINTS, form.SCROLL_HINT),
        (*lessons.CONTINUE_HINTS, lessons.SCROLL_HINT, lessons.FILTER_HINT, lessons.CLOSE_HINT),
    ],
)
def test_they_fit_on_80_columns(hints: Sequence[Hint]) -> None:
    assert len("  ".join(f"{key} {does}" for key, does, _ in hints)) <= 80 - BOX
