"""The lessons that a screen offers: list them, check what they need and start one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from iopstui.errors import UsageError
from iopstui.features.lessons.model.pages import Lesson
from iopstui.features.lessons.play.facts import TargetFacts, read_target_facts
from iopstui.features.lessons.play.library import shipped_lessons
from iopstui.features.lessons.play.player import LessonRun
from iopstui.linux.roots import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target


@dataclass(frozen=True, slots=True)
class LessonOffer:
    """A lesson, with the runs that can't be made here and the reasons."""

    lesson: Lesson
    impossible_runs: Mapping[str, str]


class Lessons:
    """Lessons for the target of one session; ``job_target`` is ``None`` if its job names its own
    files, ``size`` and ``destroy_data`` are those of the command line."""

    def __init__(
        self,
        job_target: Target | None,
        devices: Callable[[], Mapping[str, BlockDevice]],
        size: str | None = None,
        destroy_data: Sequence[str] = (),
        load_lessons: Callable[[], Sequence[Lesson]] = shipped_lessons,
    ) -> None:
        self._target = job_target
        self._devices = devices
        self._size = size
        self._destroy_data = tuple(destroy_data)
        self._load_lessons = load_lessons

    def offers(self) -> list[LessonOffer]:
        """All lessons, in order. Reads files. Raises UsageError or Missing."""
        facts = self.current_facts()
        return [
            LessonOffer(lesson, self._run(lesson, facts).impossible_runs())
            for lesson in self._load_lessons()
        ]

    def start(self, lesson: Lesson) -> LessonRun:
        """Start a lesson at its first page. Reads files. UsageError if there is no target."""
        return self._run(lesson, self.current_facts())

    def current_facts(self) -> TargetFacts:
        """Current facts about the target (facts.py)."""
        return read_target_facts(self._require_target(), self._devices(), Roots())

    def _run(self, lesson: Lesson, facts: TargetFacts) -> LessonRun:
        return LessonRun(lesson, self._require_target(), facts, self._size, self._destroy_data)

    def _require_target(self) -> Target:
        if self._target is None:
            raise UsageError(
                "The session's job names its own files, so lessons have no target.",
                "Start one on a target: iopstui lesson NAME TARGET",
            )
        if self._target.has_several:
            raise UsageError(
                "A lesson needs one device, but this session has several targets.",
                "Start it on one of them: iopstui lesson NAME TARGET",
            )
        return self._target
