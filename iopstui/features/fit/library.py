"""Load the programs that are shipped in fits/, and the user's own."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iopstui.catalog.library import SUFFIX, read_toml, user_directory
from iopstui.errors import UsageError
from iopstui.features.fit.model.program import Program, parse_program
from iopstui.fio.library import shipped_directory

FOLDER = "fits"


@dataclass(frozen=True, slots=True)
class Programs:
    """All programs by name. ``problems`` are sentences about the user's files that could not be
    used."""

    by_name: Mapping[str, Program] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def find(self, word: str) -> Program | None:
        """The program of that name, or of another of its names."""
        key = word.strip().lower()
        return self.by_name.get(key) or next(
            (program for program in self.by_name.values() if key in program.also), None
        )

    def choose(self, words: Sequence[str]) -> tuple[Program, ...]:
        """The programs of these names, each once; all without any. UsageError."""
        chosen: dict[str, Program] = {}
        for word in words:
            program = self.find(word)
            if program is None:
                raise UsageError(f"No program is called {word!r}.", self.advice(word))
            chosen[program.name] = program
        return tuple(chosen.values() if words else self.by_name.values())

    def advice(self, word: str) -> str:
        """What may have been meant by an unknown word."""
        names = [name for one in self.by_name.values() for name in (one.name, *one.also)]
        matches = difflib.get_close_matches(word.lower(), names, n=2, cutoff=0.5)
        unused = f" {self.problems[0]}" if self.problems else ""
        return (f"Did you mean {' or '.join(matches)}? " if matches else "") + (
            f"Programs: {', '.join(self.by_name)}.{unused}")  # fmt: skip


def read_programs(directory: Path | None = None) -> Programs:
    """The shipped programs and the user's in ``directory`` (default: ~/.config/iopstui/fits), which
    win. Missing where the shipped ones are not there."""
    shipped = shipped_directory(FOLDER, "program's file")
    programs: dict[str, Program] = {}
    problems: list[str] = []
    directory = user_directory(FOLDER) if directory is None else directory
    own = sorted(directory.glob(f"*{SUFFIX}")) if directory and directory.is_dir() else []
    for path in (*sorted(shipped.glob(f"*{SUFFIX}")), *own):
        try:
            data = read_toml(path, path.parent == shipped)
        except UsageError as error:
            problems.append(error.message)
            continue
        program, mistakes = parse_program(data, path.name.removesuffix(SUFFIX))
        if program is None:
            more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
            problems.append(f"{path} is not used: {mistakes[0]}{more}.")
        else:
            programs[program.name] = program
    return Programs(programs, tuple(problems))
