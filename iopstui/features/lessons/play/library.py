"""The shipped lessons, and how to find one by name or path."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iopstui.errors import Missing, NoFile, UsageError
from iopstui.features.lessons.model.file import parse_lesson
from iopstui.features.lessons.model.pages import Lesson
from iopstui.features.lessons.play.facts import TargetFacts, read_target_facts
from iopstui.features.lessons.play.player import LessonRun
from iopstui.fio.library import shipped_directory
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target

SUFFIX = ".ini"
MAX_BYTES = 1 << 20
_NUMBERED = re.compile(r"(\d+)-(.+)")


def lesson_paths() -> dict[str, Path]:
    """The shipped lesson files by name ("01-littles-law"), in their order."""
    files = sorted(shipped_directory("lessons", "lesson file").glob(f"*{SUFFIX}"))
    return {file.name.removesuffix(SUFFIX): file for file in files}


def load_lesson(path: Path) -> Lesson:
    """Read a lesson's file. Raises UsageError if it is not a lesson."""
    try:
        if not path.is_file():
            raise UsageError(f"{path} is not a file.")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read the lesson {path}: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is too large for a lesson ({len(data)} bytes).")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a lesson: byte {error.start} is not UTF-8 text.",
                         "Save it as UTF-8.") from None  # fmt: skip
    return parse_lesson(text, path.name.removesuffix(SUFFIX), str(path))


def shipped_lessons() -> tuple[Lesson, ...]:
    return tuple(load_lesson(path) for path in lesson_paths().values())


def find_lesson(name: str) -> Lesson:
    """A shipped lesson, by its number, its name, or the unambiguous beginning of its name; or a
    lesson by its path (with a /, or of an existing file). Raises UsageError if there is no such
    lesson."""
    if "/" in name:
        if not os.path.exists(name):
            raise NoFile(name, _suggestion(name))
        return load_lesson(Path(name))
    path = _find_lesson(name, lesson_paths())
    if path is None and name and "\0" not in name and os.path.exists(name):
        path = Path(name)
    if path is None:
        raise UsageError(f"No lesson or file is called {name!r}.", _suggestion(name))
    return load_lesson(path)


def _find_lesson(name: str, paths: dict[str, Path]) -> Path | None:
    stem = name.removesuffix(SUFFIX)
    for lesson_name, path in paths.items():
        match = _NUMBERED.fullmatch(lesson_name)
        number = match is not None and stem.isdecimal() and int(match[1]) == int(stem[:9])
        if stem == lesson_name or (match is not None and stem == match[2]) or number:
            return path
    matches = {
        path for lesson_name, path in paths.items() if stem and _begins_with(lesson_name, stem)
    }
    return matches.pop() if len(matches) == 1 else None


def _begins_with(lesson_name: str, prefix: str) -> bool:
    match = _NUMBERED.fullmatch(lesson_name)
    return lesson_name.startswith(prefix) or (match is not None and match[2].startswith(prefix))


def _suggestion(name: str) -> str:
    stem = os.path.basename(name).removesuffix(SUFFIX).lower()
    try:
        names = [re.sub(r"^\d+-", "", lesson_name) for lesson_name in lesson_paths()]
    except Missing:
        names = []
    matches = difflib.get_close_matches(stem, names, n=2, cutoff=0.5)
    listing = "List: iopstui lesson"
    return f"Did you mean {' or '.join(matches)}? {listing}" if matches else listing


# Lessons that the screen offers: list them, check what they need, and start one.


@dataclass(frozen=True, slots=True)
class LessonOffer:
    """A lesson, with the runs that can't be made here, and why."""

    lesson: Lesson
    impossible_runs: Mapping[str, str]


class Lessons:
    """Lessons for the target of one session; ``job_target`` is ``None`` if the session's job names
    its own files; ``size`` and ``destroy_data`` come from the command line."""

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
        """Start a lesson at its first page. Reads files. Raises UsageError if there is no
        target."""
        return self._run(lesson, self.current_facts())

    def current_facts(self) -> TargetFacts:
        """The present facts about the target (facts.py)."""
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
