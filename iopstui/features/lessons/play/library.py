"""The shipped lessons; find one by name or path."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from iopstui.errors import Missing, UsageError
from iopstui.features.lessons.model.file import parse_lesson
from iopstui.features.lessons.model.pages import Lesson
from iopstui.fio.library import shipped_directory

SUFFIX = ".ini"
MAX_BYTES = 1 << 20
_NUMBERED = re.compile(r"(\d+)-(.+)")


def lesson_paths() -> dict[str, Path]:
    """The shipped lesson files by name ("01-littles-law"), in their order."""
    files = sorted(shipped_directory("lessons", "lesson file").glob(f"*{SUFFIX}"))
    return {file.name.removesuffix(SUFFIX): file for file in files}


def load_lesson(path: Path) -> Lesson:
    """Read a lesson file. UsageError if it is not a lesson."""
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
    """Return all shipped lessons, in order."""
    return tuple(load_lesson(path) for path in lesson_paths().values())


def find_lesson(name: str) -> Lesson:
    """A shipped lesson by its number, its name, or a beginning that only one has; or any path
    (with a /, or of a file that exists). UsageError if it is none."""
    if "/" in name:
        if not os.path.exists(name):
            raise UsageError(f"The lesson file {name} does not exist.", _suggestion(name))
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
