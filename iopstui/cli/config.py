"""The configuration file: defaults for command-line options (the command line takes precedence).
Options that can destroy data, or change what is measured (TARGET, --destroy-data, --no-fence,
--probe), must be given with each command and are never read from a file. A mistake in the file is
reported, but stops nothing."""

from __future__ import annotations

import argparse
import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from iopstui.cli import values
from iopstui.discovery import feature_modules
from iopstui.untrusted import parse_toml

MAX_BYTES = 1 << 16
RUNS = ("live", "run", "sweep", "compare")
NOT_CONFIGURABLE = {
    "target": "TARGET", "destroy-data": "--destroy-data", "no-fence": "--no-fence",
    "probe": "--probe",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Key:
    """One key: the ``kind`` of its values, the option's own ``check`` (which raises
    ArgumentTypeError), the ``commands`` that have the option, and the ``default`` without a file,
    as text."""

    kind: type
    check: Callable[[str], object]
    commands: tuple[str, ...]
    default: str


def _theme(text: str) -> str:
    return _check_choice(text, values.THEMES + values.MORE_THEMES)


def _layout(text: str) -> str:
    from iopstui.ui.core.preferences import parse_layout

    try:
        return str(parse_layout(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parse_bool(text: str) -> bool:
    return text == "True"


def _format(text: str) -> str:
    return _check_choice(text, values.EXPERIMENT_FORMATS)


def _check_choice(text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(allowed)}")
    return text


def _job(text: str) -> str:
    from iopstui.errors import UsageError
    from iopstui.fio.library import find_shipped

    if os.path.isabs(text):  # the run checks whether the file exists
        return text
    try:
        return find_shipped(text).name
    except UsageError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a shipped job nor the full path of a job file. {error.hint}"
        ) from error


def _size(text: str) -> str:
    from iopstui.model.sizes import size_bytes

    if not size_bytes(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 512m or 4g")
    return text


KEYS: Mapping[str, Key] = {
    "theme": Key(str, _theme, ("live", "replay", "lesson", "fleet"), "dark"),
    "mouse": Key(bool, _parse_bool, ("live", "replay", "lesson", "fleet"), "true"),
    "notify": Key(bool, _parse_bool, ("live",), "false"),
    "plain": Key(bool, _parse_bool, ("live", "watch", "replay", "lesson"), "false"),
    "plain-every": Key(float, values.plain_every, ("live", "watch", "replay"), "10"),
    "interval": Key(float, values.interval, RUNS, "1"),
    "job": Key(str, _job, RUNS, "none"),
    "size": Key(str, _size, RUNS, "512m in all"),
    "nice": Key(int, values.nice_value, RUNS, "0"),
    "format": Key(str, _format, ("run", "sweep", "compare"), values.EXPERIMENT_FORMATS[0]),
    "layout": Key(str, _layout, ("live", "replay"), "all panels"),
    **{
        name: Key(str, *entry)
        for module in feature_modules("config_keys")
        for name, entry in module.KEYS.items()
    },
}
COMMANDS = {command for key in KEYS.values() for command in key.commands}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in effect, with its line number."""

    value: object
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in effect. ``problems`` are pairs (line, sentence); line 0 means the file as a
    whole."""

    path: Path | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    problems: tuple[tuple[int, str], ...] = ()

    def problem_texts(self) -> list[str]:
        """The mistakes in the file, each with its location."""
        return [f"{self.path}, line {line}: {problem}" if line else f"{self.path}: {problem}"
                for line, problem in self.problems]  # fmt: skip

    def summary(self) -> str:
        """All problems in one line; "" if there are none."""
        sentences = self.problem_texts()
        more = f" (and {len(sentences) - 1} more: iopstui config)" if len(sentences) > 1 else ""
        return sentences[0] + more if sentences else ""

    def set_defaults(self, parser: argparse.ArgumentParser, command: str) -> None:
        """Make the file's values the defaults of the command's options. If the file has a job,
        --job is optional. On the screen that job does not start by itself: the key r starts it."""
        for name, setting in self.settings.items():
            if command not in KEYS[name].commands:
                continue
            # kept apart from --job, which would start a run at once (live) or be one of several
            # (sweep)
            is_first_job = name == "job" and command in ("live", "sweep")
            dest = name.replace("-", "_")
            parser.set_defaults(**{"first_job" if is_first_job else dest: setting.value})
            for action in parser._actions:
                if action.dest == dest:
                    action.required = False
            for group in parser._mutually_exclusive_groups:
                if any(action.dest == dest for action in group._group_actions):
                    group.required = False


def config_path() -> Path | None:
    """$XDG_CONFIG_HOME/iopstui/config.toml, or below ~/.config; ``None`` if this user has no
    home."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    # ignore a relative path, as the XDG base directory specification says
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "iopstui" / "config.toml" if os.path.isabs(base) else None


def read_config() -> Config:
    """This user's file, checked. A missing file counts as an empty one."""
    path = config_path()
    if path is None:
        return Config()
    try:
        text = _read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return Config(path)
    except UnicodeDecodeError:
        return Config(path, problems=((0, "ignored: the file is not UTF-8"),))
    except OSError as error:
        return Config(path, problems=((0, f"ignored: {error.strerror or error}"),))

    return check_entries(path, parse(text))


def _read_text(path: Path) -> str:
    """The file's text. Raises OSError if it can't be read or must not be trusted."""
    from iopstui.linux.process.private import read_trusted

    return read_trusted(path, MAX_BYTES)


def remember(name: str, value: str | bool) -> None:
    """Set a key in this user's file, which is created if it is missing; all other lines stay.
    Raises OSError if it can't be written, or if root would write a file that others can change."""
    path = config_path()
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "this user has no home directory")
    path = Path(os.path.realpath(path))
    try:
        lines = _read_text(path).splitlines()
    except FileNotFoundError:
        lines = []
    if os.geteuid() == 0:
        from iopstui.linux.process.private import check_place

        check_place(path)
    text = str(value).lower() if isinstance(value, bool) else f'"{value}"'
    new = f"{name} = {text}"
    other_lines = [line for line in lines if line.partition("=")[0].strip(" \t\"'") != name]
    at = next(
        (number for number, line in enumerate(lines) if line not in other_lines), len(other_lines)
    )
    # keys below a table's heading are ignored, so insert the line above it
    table = next(
        (n for n, line in enumerate(other_lines) if line.lstrip().startswith("[")), len(other_lines)
    )
    other_lines.insert(min(at, table), new)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            if path.exists():
                os.fchmod(fd, stat.S_IMODE(path.stat().st_mode))
            file.write("\n".join(other_lines) + "\n")
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def check_entries(path: Path, entries: list[Entry]) -> Config:
    """The settings from the valid ``entries``, and the mistakes in the others."""
    settings: dict[str, Setting] = {}
    problems: list[tuple[int, str]] = []
    for entry in entries:
        try:
            value = _check_entry(entry, settings)
        except (argparse.ArgumentTypeError, ValueError) as error:
            problems.append((entry.line, str(error)))
        else:
            settings[entry.key] = Setting(value, _value_text(entry.value), entry.line)
    return Config(path, settings, tuple(problems))


def _value_text(value: Value | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_entry(entry: Entry, before: Mapping[str, Setting]) -> object:
    """The value, as the command-line option would have it. Raises ValueError with the reason in
    words."""
    forbidden = NOT_CONFIGURABLE.get(entry.key.replace("_", "-").lower())
    if forbidden is not None:
        raise ValueError(
            f"{forbidden} is not allowed in the configuration; give it with each command"
        )
    if entry.key and entry.key not in KEYS:
        import difflib

        matches = difflib.get_close_matches(entry.key.lower(), KEYS, n=1, cutoff=0.5)
        advice = f"did you mean {matches[0]}?" if matches else f"the keys are {', '.join(KEYS)}"
        raise ValueError(f"{entry.key!r} is not a key; {advice}")
    if entry.value is None:
        raise ValueError(f"{entry.key}: {entry.problem}" if entry.key else entry.problem)
    if entry.key in before:
        raise ValueError(f"{entry.key} is already set in line {before[entry.key].line}")
    key = KEYS[entry.key]
    if not _has_type(entry.value, key.kind):
        expected = {
            bool: "true or false", str: 'a text in quotes: "..."', int: "a whole number",
            float: "a number",
        }  # fmt: skip
        raise ValueError(f"{entry.key} is {expected[key.kind]}")
    try:
        return key.check(str(entry.value))
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"{entry.key}: {error}") from error


def _has_type(value: Value, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


# Parse TOML line by line: a parser of whole documents stops at the first mistake. Here a wrong line
# is reported, and all others are used.


Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of a line. If it is invalid, ``problem`` is the reason in words, and ``value`` is
    None."""

    line: int
    key: str
    value: Value | None
    problem: str = ""


def parse(text: str) -> list[Entry]:
    """The entries of all lines with content, valid or not, in order; line numbers start at 1."""
    entries: list[Entry] = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip(" \t\r")
        if content.startswith("["):
            return [*entries, Entry(number, "", None, "tables ([...]) are not supported; "
                                                      "everything after one is "
                                                      "ignored")]  # fmt: skip
        if content and not content.startswith("#"):
            entries.append(_entry(number, content))
    return entries


def _entry(number: int, content: str) -> Entry:
    try:
        [(key, value)] = parse_toml(content).items()
    except (ValueError, RecursionError):
        name, equals, value = content.partition("=")
        key = name.strip(" \t\"'") if equals else ""
    else:
        if isinstance(value, Value):
            return Entry(number, key, value)
    if not key:
        return Entry(number, "", None, 'expected  key = "text"  or  key = number')
    problem = 'the value must be a number or a text in quotes ("...", on one line)'
    return Entry(number, key, None, problem)
