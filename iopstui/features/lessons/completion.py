"""Values that shell completion offers for the arguments of `iopstui lesson`."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui.cli.command import Candidate


def lessons() -> Iterator[Candidate]:
    """The names of the shipped lessons, without their numbers."""
    from iopstui.features.lessons.play.library import shipped_lessons

    for lesson in shipped_lessons():
        yield Candidate(lesson.name.lstrip("0123456789").lstrip("-"), lesson.title)


VALUES = {"lesson NAME": lessons}
