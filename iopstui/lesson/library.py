"""The shipped lessons; find one by name or path."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from iopstui.errors import Missing, UsageError
from iopstui.fio.shipped_files import shipped_directory
from iopstui.model.lesson.file import parse_lesson
from iopstui.model.lesson.pages import Lesson

SUFFIX = ".ini"
LARGEST = 1 << 20
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
    if len(data) > LARGEST:
        raise UsageError(f"{path} is too large for a lesson ({len(data)} bytes).")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a lesson: byte {error.start} is not UTF-8 text.",
                         "Save it as UTF-8.") from None  # fmt: skip
    return parse_lesson(text, path.name.removesuffix(SUFFIX), str(path))


def shipped_lessons() -> tuple[Lesson, ...]:
    """All of them, in order."""
    return tuple(load_lesson(path) for path in lesson_paths().values())


def find_lesson(name: str) -> Lesson:
    """A shipped lesson by its number, its name, or a beginning that only one has; or any path
    (with a /, or of a file that exists). UsageError if it is none."""
    if "/" in name:
        if not os.path.exists(name):
            raise UsageError(f"The lesson file {name} does not exist.", _advice(name))
        return load_lesson(Path(name))
    found = _find_lesson(name, lesson_paths())
    if found is None and name and "\0" not in name and os.path.exists(name):
        found = Path(name)
    if found is None:
        raise UsageError(f"No lesson or file is called {name!r}.", _advice(name))
    return load_lesson(found)


def _find_lesson(name: str, paths: dict[str, Path]) -> Path | None:
    wanted = name.removesuffix(SUFFIX)
    for known, path in paths.items():
        match = _NUMBERED.fullmatch(known)
        number = match is not None and wanted.isdecimal() and int(match[1]) == int(wanted[:9])
        if wanted == known or (match is not None and wanted == match[2]) or number:
            return path
    begun = {path for known, path in paths.items() if wanted and _begins(known, wanted)}
    return begun.pop() if len(begun) == 1 else None


def _begins(known: str, wanted: str) -> bool:
    match = _NUMBERED.fullmatch(known)
    return known.startswith(wanted) or (match is not None and match[2].startswith(wanted))


def _advice(name: str) -> str:
    wanted = os.path.basename(name).removesuffix(SUFFIX).lower()
    try:
        known = [re.sub(r"^\d+-", "", one) for one in lesson_paths()]
    except Missing:
        known = []
    meant = difflib.get_close_matches(wanted, known, n=2, cutoff=0.5)
    listing = "List: iopstui lesson"
    return f"Did you mean {' or '.join(meant)}? {listing}" if meant else listing
