"""Values that Tab completes for the command's arguments."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui.cli.command import Candidate


def lessons() -> Iterator[Candidate]:
    """The shipped ones, by their names without their numbers."""
    from iopstui.features.lessons.play.library import shipped_lessons

    for lesson in shipped_lessons():
        yield Candidate(lesson.name.lstrip("0123456789").lstrip("-"), lesson.title)


VALUES = {"lesson NAME": lessons}
