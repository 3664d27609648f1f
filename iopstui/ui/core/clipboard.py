"""Copy text to the terminal's clipboard (OSC 52), and save pictures of the screen."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from textual.app import App
from textual.color import Color
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, OptionList

from iopstui import format as f
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, DIRECTORY, Target, TargetPath
from iopstui.ui.core.list_table import ListTable

MAX_CHARACTERS = 50_000
"""Terminals drop longer texts: most accept about 75 kB of base64."""


def text_of(screen: Screen[Any]) -> str:
    """The text to copy on a screen: a heading and the screen's ``copied_text``; without that, the
    row under the cursor, with the columns' titles if the screen ``copies_titles``. "" if there is
    neither."""
    own: Callable[[], str] | None = getattr(screen, "copied_text", None)
    if own is None:
        return row_text(screen, titled=getattr(screen, "copies_titles", False))
    return "\n".join([*_head(screen), own()])


def _head(screen: Screen[Any]) -> Sequence[str]:
    """The ``copied_head`` of the dashboard below (place, time and answer), then the screen's
    ``copied_title``."""
    title: str = getattr(screen, "copied_title", "")
    if not isinstance(screen, ModalScreen):
        return [title] if title else []
    below = (one for one in reversed(screen.app.screen_stack) if not isinstance(one, ModalScreen))
    head: Callable[[], Sequence[str]] = getattr(next(below, None), "copied_head", list)
    return [*head(), title]


def row_text(screen: Screen[Any], titled: bool = False) -> str:
    """The row under the cursor of a list; "" without a list. ``titled``: with the columns'
    titles."""
    tables = sorted(screen.query(DataTable), key=lambda table: table is not screen.focused)
    for table in tables:
        if table.row_count:
            if isinstance(table, ListTable):
                return table.row_text(titled)
            cells = map(str, table.get_row_at(table.cursor_row))
            return "  ".join(cell.strip() for cell in cells if cell.strip())
    for options in screen.query(OptionList):
        if options.highlighted is not None:
            return str(options.get_option_at_index(options.highlighted).prompt)
    return ""


def place_and_time(
    host: str, wall_ms: float | None, target: Target, devices: Mapping[str, BlockDevice]
) -> str:
    """Where and when something was measured, for a reader elsewhere: "host db1, 2026-11-27 20:32:14
    UTC, loop2 (64 MiB, /srv/disk.img, on vda)". Without a ``host``: the target's path and the
    time."""
    when = host_and_time(host, wall_ms)
    if not host:
        return ", ".join(filter(None, (target.path, when)))
    places = " and ".join(_place_text(place, devices) for place in target.places)
    return ", ".join(filter(None, (when, places)))


def host_and_time(host: str, wall_ms: float | None) -> str:
    """ "host db1, 2026-11-27 20:32:14 UTC"."""
    stamp = (f.utc(wall_ms) if wall_ms is not None else None) or ""
    when = stamp[:19].replace("T", " ") + " UTC" if stamp else ""
    return ", ".join(filter(None, (f"host {host}" if host else "", when)))


def _place_text(place: TargetPath, devices: Mapping[str, BlockDevice]) -> str:
    facts = ", ".join(filter(None, _place_facts(place, devices)))
    return f"{name_of(place)} ({facts})" if facts else name_of(place)


def name_of(place: TargetPath) -> str:
    """A target's device or path: "nvme0n1", "scratch file in /srv"."""
    name = place.device if place.kind == DEVICE and place.device else place.path
    return f"{'scratch file in ' if place.kind == DIRECTORY else ''}{name}"


def _place_facts(place: TargetPath, devices: Mapping[str, BlockDevice]) -> Iterator[str]:
    """Facts about a path: its type, or its size and model, then the devices beneath it."""
    device = devices.get(place.device or "")
    if place.kind != DEVICE:
        yield f"{place.fstype or ''} {place.share}".strip()
        yield f"on {', '.join((place.device, *place.also))}" if place.device else place.no_device
    elif device is not None:
        yield f.size(device.size) if device.size is not None else ""
        yield device.model or device.backing_file or device.layer or ""
    below = [name for name in place.tree if name not in (place.device, *place.also)]
    yield f"on {', '.join(below)}" if below else ""


def copied_message(text: str) -> str:
    """The message after copying: how much, and what the terminal must allow."""
    count = f.counted(len(text), "character")
    return f"{count} copied, if this terminal allows it (OSC 52)"


MAX_PICTURES = 99
_FONTS = re.compile(r"\s*@font-face \{[^}]*\}")


def render_pictures(app: App[Any]) -> dict[str, str]:
    """Pictures of the screen by file suffix. The SVG refers to no other files."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True,
        color_system="truecolor", record=True, legacy_windows=False, safe_box=False,
    )  # fmt: skip
    # the same as in Textual's App.export_screenshot
    console.print(
        app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    )
    text = console.export_text(clear=False)
    colours = SVG_EXPORT_THEME if app.current_theme.dark else DEFAULT_TERMINAL_THEME
    if not app.current_theme.ansi:
        background = Color.parse(app.theme_variables["background"]).rgb
        foreground = Color.parse(app.theme_variables["foreground"]).rgb
        colours = TerminalTheme(background, foreground, [foreground] * 8)
    svg = console.export_svg(title="iopstui", theme=colours)
    lines = [line.rstrip() for line in text.splitlines()]
    return {".svg": _FONTS.sub("", svg), ".txt": "\n".join(lines).rstrip("\n") + "\n"}


def save_pictures(directory: Path, name: str, files: Mapping[str, str]) -> list[Path]:
    """Write ``files`` as ``name`` plus suffix, or as ``name``-2 ... if one exists. Writes all files
    or none, and never follows a link. Raises OSError."""
    for number in range(1, MAX_PICTURES + 1):
        stem = name if number == 1 else f"{name}-{number}"
        paths = [directory / f"{stem}{suffix}" for suffix in files]
        created: list[Path] = []
        try:
            for path, text in zip(paths, files.values(), strict=True):
                _write(path, text, created)
            return paths
        except FileExistsError:
            _remove(created)
        except OSError:
            _remove(created)
            raise
    raise FileExistsError(f"{name} to {name}-{MAX_PICTURES} exist already")


def _write(path: Path, text: str, created: list[Path]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o666)
    created.append(path)
    with open(fd, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _remove(created: list[Path]) -> None:
    for path in created:
        path.unlink(missing_ok=True)
